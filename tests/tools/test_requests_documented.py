"""docs/json.md lists every request of the control socket: its keys as the dataclasses have them, and an example.

What stands below the first heading of its section is made by ``tests.generated.requests``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from logdir.daemon.socket.body import MOST_BYTES, MOST_QUESTION_BYTES
from logdir.daemon.socket.routes import path_of
from logdir.errors import MalformedMessageError
from logdir.service.batch.use_cases import NEED_CLOSED
from logdir.service.reconcile import Policy
from logdir.service.report.json_form import from_json, keys_of
from tests.generated.fields import ABSENT
from tests.generated.requests import (
    EXAMPLES,
    OBJECTS,
    REQUESTS,
    TITLE,
    Row,
    compact,
    generated,
    rows_of,
    split_page,
    type_of,
)
from tests.logdir.daemon.rig import Daemon, ask, daemon, until


def code_blocks(language: str) -> list[str]:
    """Return the code in the prose of the section."""
    return re.findall(rf"```{language}\n(.*?)\n```", split_page()[0].partition(f"\n## {TITLE}\n")[2], re.DOTALL)


def test_every_request_stands_on_the_page_as_the_dataclasses_have_it() -> None:
    assert split_page()[1] == generated(), "python -m tests.generated writes it again"


def test_types_that_differ_are_told_apart_on_the_page() -> None:
    hints = (tuple[str, ...], str, int, bool, str | None, tuple[tuple[str, int], ...], Policy, Policy | None)
    assert len(set(map(type_of, hints))) == len(hints)
    with pytest.raises(KeyError):  # An object that the page does not have.
        type_of(Row)


def test_every_object_of_a_request_is_on_the_page_and_no_other() -> None:
    def inside(hint: Any) -> set[type]:
        found = set().union(*map(inside, get_args(hint)))
        if hint in OBJECTS or hint in REQUESTS.values():
            found |= {hint} & OBJECTS.keys()
            found |= set().union(*(inside(get_type_hints(hint)[name]) for name in keys_of(hint)))
        return found

    assert set().union(*map(inside, REQUESTS.values())) == OBJECTS.keys()


@pytest.mark.parametrize("name", REQUESTS)
def test_an_example_is_a_valid_request(name: str) -> None:
    request: Any = from_json(REQUESTS[name], EXAMPLES[name])
    if hasattr(request, "require_valid"):
        request.require_valid()


def required(name: str) -> list[str]:
    return [row.key for row in rows_of(REQUESTS[name]) if row.default == "required"]


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        *((name, "selektor", "payments") for name in REQUESTS),
        *((name, next(iter(EXAMPLES[name])), 1.5) for name in REQUESTS if EXAMPLES[name]),
        *((name, key, ABSENT) for name in REQUESTS for key in required(name)),
    ],
)
def test_a_key_that_does_not_fit_is_refused(name: str, key: str, value: object) -> None:
    body = {one: there for one, there in (EXAMPLES[name] | {key: value}).items() if there is not ABSENT}
    with pytest.raises(MalformedMessageError, match=f"{key}.*; docs/json.md lists the keys"):
        from_json(REQUESTS[name], body)


def test_the_prose_has_the_figures_and_the_names_of_the_code() -> None:
    words = split_page()[0].partition(f"\n## {TITLE}\n")[2]
    assert (MOST_BYTES, MOST_QUESTION_BYTES) == (64 << 20, 64 << 10)
    assert "at most 64 MiB" in words
    assert "64 KiB" in words
    assert all(f"`{name}`" in words for name in NEED_CLOSED)


def body_of(line: str) -> tuple[str, bytes]:
    """Return the path and the body of a line with ``curl`` on the page."""
    match = re.fullmatch(r"curl --unix-socket \S+ http://localhost(\S+) \\\n  -d '(.*)'", line)
    assert match is not None, line
    return match[1], match[2].encode()


def answer_of(one: Daemon, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    found, _, answer = ask(one.socket, head.encode() + body).partition(b"\r\n\r\n")
    value: dict[str, Any] = json.loads(answer)
    return int(found.split(b" ")[1]), value


def test_a_daemon_answers_the_examples_as_the_page_says(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        one.delete(one.make("payments"))
        until("it is captured", lambda: one.status().captured == 1)
        said, refused = (answer_of(one, *body_of(line)) for line in code_blocks("sh"))
        shown = [json.loads(text.replace("/data/1", str(one.log_dirs[0]))) for text in code_blocks("json")]
        assert [said[0], refused[0]] == [200, 400]
        assert [said[1], refused[1]] == shown
        for name, request in EXAMPLES.items():
            body = compact({"apply": False, "request": request}).replace("/data/", f"{tmp_path}/d")
            status, answer = answer_of(one, path_of(name), body.encode())
            assert (status, answer["command"]) == (200, name), answer
            assert not {"malformed-message", "internal-error"} & {problem["slug"] for problem in answer["problems"]}
        assert len(one.staged()) == 1
