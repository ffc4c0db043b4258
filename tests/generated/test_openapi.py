"""docs/openapi.json is what the code makes of itself, and says of every route what it takes and answers."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdir.daemon.operations import Operation, OperationState
from logdir.daemon.report.failed_replicas import FailedReplicas
from logdir.daemon.report.status import LogDirStatus, blank_status
from logdir.daemon.socket import handler, routes
from logdir.daemon.socket.envelopes import found, of_error, of_fault, of_operation
from logdir.daemon.state import LogDirState
from logdir.errors import ConfigError, MalformedMessageError, Problem
from logdir.service.batch.use_cases import NEED_CLOSED
from logdir.service.reading.questions import READINGS
from tests.generated.openapi import FILE, document, generated
from tests.generated.requests import EXAMPLES
from tests.json_schema import Schema, resolved, wrong

DOCUMENT: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
METHODS = ("get", "post", "delete")


def component(name: str) -> Schema:
    return resolved(f"#/components/schemas/{name}", DOCUMENT)


def faults(name: str, value: object) -> list[str]:
    """Return where a value does not fit a component."""
    return list(wrong(value, component(name), DOCUMENT))


def inside(value: object) -> Iterator[dict[str, Any]]:
    """Yield every object in a JSON value."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from inside(one)


def test_the_file_is_what_the_code_makes() -> None:
    assert FILE.read_text("utf-8") == generated(), "python -m tests.generated writes it again"


def test_the_installed_file_is_that_of_the_docs_and_no_copy_that_ages() -> None:
    assert handler._DOCUMENT.read_text("utf-8") == FILE.read_text("utf-8")
    top = Path(__file__).parents[2]
    patterns = tomllib.loads((top / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["package-data"]["*"]
    assert "*.json" in patterns


def test_every_reference_leads_somewhere() -> None:
    references = {one["$ref"] for one in inside(DOCUMENT) if "$ref" in one}
    assert references
    assert all(resolved(one, DOCUMENT) is not None for one in references)
    used = {one.rpartition("/")[2] for one in references}
    assert DOCUMENT["components"]["schemas"].keys() <= used


def test_every_route_is_in_it_and_no_other() -> None:
    names = (*routes.CHANGES, *READINGS, *NEED_CLOSED)
    single = (routes.STATUS, routes.METRICS, routes.PAGE, routes.OPENAPI, routes.OPERATIONS)
    wanted = {*single, routes.operation_path("{id}"), *map(routes.path_of, names)}
    assert DOCUMENT["paths"].keys() == wanted
    assert all(routes.use_case_at(routes.path_of(name)) == name for name in names)


def test_every_request_body_takes_its_example_and_no_other_key() -> None:
    for path, methods in DOCUMENT["paths"].items():
        body = methods.get("post", {}).get("requestBody")
        if body is None:
            continue
        (content,) = body["content"].values()
        schema, example = content["schema"], content["example"]
        assert list(wrong(example, schema, DOCUMENT)) == [], path
        assert list(wrong({**example, "more": 1}, schema, DOCUMENT)), path
        assert list(wrong({**example, "apply": "false"}, schema, DOCUMENT)), path
        assert list(wrong({**example, "request": {"selektor": 1}}, schema, DOCUMENT)), path


@pytest.mark.parametrize("name", READINGS)
def test_what_only_reads_takes_no_apply(name: str) -> None:
    (content,) = DOCUMENT["paths"][routes.path_of(name)]["post"]["requestBody"]["content"].values()
    asked = {"apply": True, "request": EXAMPLES[name]}
    assert list(wrong(asked, content["schema"], DOCUMENT))


def test_every_answer_says_what_it_is() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for method in METHODS & methods.keys():
            responses = methods[method]["responses"]
            assert {"500", "503"} <= responses.keys(), path
            for status, one in responses.items():
                response = resolved(one["$ref"], DOCUMENT) if "$ref" in one else one
                assert response["description"], (path, status)
                assert response["content"], (path, status)


def test_a_status_fits() -> None:
    problem = Problem("log-dir-suspect", "/d1", "an answer", "none", "look")
    log_dir = LogDirStatus(log_dir="/d1", state=LogDirState.SUSPECT, problem=problem)
    status = replace(
        blank_status("b1", "0"), log_dirs=(log_dir,), failed_replicas=FailedReplicas(broker_id=1, topics=())
    )
    for one in (blank_status("b1", "0"), status):
        value = found("status", one).value
        assert faults("StatusAnswer", json.loads(json.dumps(value))) == []


def test_a_refusal_fits() -> None:
    errors = (
        MalformedMessageError("request", expected="one JSON object", found="x"),
        ConfigError((Problem("config-error", "SELECTOR", "a", "b"), Problem("config-error", "--from", "a", "b"))),
    )
    for reply in (*(of_error("stage", error) for error in errors), of_fault("stage", ValueError("x"))):
        assert faults("Refusal", reply.value) == []
        assert not reply.is_done


def test_an_operation_fits_with_its_answer_and_without() -> None:
    operation = Operation(id="1f-1", use_case="staged-hold", applied=True, state=OperationState.QUEUED, queued_at_ms=7)
    refused = of_error("staged hold", MalformedMessageError("request", expected="a", found="b")).data
    for answer in (None, refused):
        value = json.loads(of_operation("operation", operation, answer))
        assert faults("OperationAnswer", value) == []
        assert (value["result"]["id"], value["result"]["state"]) == ("1f-1", "queued")
        assert value["result"]["answer"] == (None if answer is None else json.loads(answer))
    assert faults("OperationsAnswer", {**value, "result": {"items": [{"id": "1f-1"}]}})


def test_what_does_not_fit_is_noticed() -> None:
    value = json.loads(json.dumps(found("status", blank_status("b1", "0")).value))
    damages: tuple[Callable[[Any], object], ...] = (
        lambda one: one.pop("exit"),
        lambda one: one.update(exit=9),
        lambda one: one.update(format=2),
        lambda one: one.update(more=1),
        lambda one: one["result"].pop("gaps"),
        lambda one: one["result"].update(captured="1"),
        lambda one: one["result"].update(captured=None),
        lambda one: one["result"].update(broker_runs=1),
        lambda one: one["result"].update(waiting=[{"slug": "a"}]),
        lambda one: one["result"].update(items={}),
    )
    for damage in damages:
        damaged = copy.deepcopy(value)
        damage(damaged)
        assert faults("StatusAnswer", damaged), damaged


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, [1], [True, 1.5, "1", None]),
        ({"type": ["string", "null"]}, ["a", None], [1, []]),
        ({"enum": ["a", 1]}, ["a", 1], ["b", True, 1.0]),
        ({"const": False}, [False], [0, None, "false"]),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, [["a"]], [[], ["a", 1], "a"]),
        (
            {"prefixItems": [{"type": "string"}, {"type": "integer"}], "maxItems": 2},
            [["a", 1]],
            [[1, "a"], ["a", 1, 2]],
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ["a", None], [1]),
        ({"oneOf": [{"type": "integer"}, {"enum": [1, "a"]}]}, [2, "a"], [1, None]),
        ({"type": "object", "maxProperties": 0}, [{}], [{"a": 1}]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"a": 1}], [{"a": "b"}]),
    ],
)
def test_the_validator_tells_what_fits_from_what_does_not(schema: Schema, good: list[Any], bad: list[Any]) -> None:
    assert [value for value in good if list(wrong(value, schema, {}))] == []
    assert [value for value in bad if not list(wrong(value, schema, {}))] == []


def test_a_word_that_the_validator_does_not_know_is_an_error() -> None:
    with pytest.raises(ValueError, match="minimum"):
        list(wrong(1, {"minimum": 0}, {}))


def test_the_document_is_made_anew_each_time() -> None:
    assert document() == document()
    assert re.fullmatch(r"\d+\.\d+", DOCUMENT["info"]["version"])
