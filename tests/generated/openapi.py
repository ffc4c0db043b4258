"""``docs/openapi.json``: the interface of the control socket, from its routes and the dataclasses of the use cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from logdir.daemon.operations import Operation
from logdir.daemon.report.status import StatusResult
from logdir.daemon.socket import routes
from logdir.daemon.socket.body import MOST_BYTES, MOST_QUESTION_BYTES
from logdir.daemon.socket.reads import READ_MS
from logdir.errors import Problem
from logdir.formats.own.inventory import Entry
from logdir.service.batch.use_cases import NEED_CLOSED
from logdir.service.reading.questions import INVENTORY, READINGS
from logdir.service.report.exit_status import Exit
from logdir.service.report.json_text import FORMAT
from logdir.service.report.result import ItemsResult
from tests.generated.requests import EXAMPLES
from tests.generated.schemas import Schema, Schemas, ref

FILE: Final = Path(__file__).parents[2] / "docs" / "openapi.json"
VERSION: Final = "1.0"
"""Of the interface: the first number stands in each path, the second grows with what is added."""
_JSON: Final = "application/json"
_OWNER: Final = "Root and the owner of the log dirs."
_EVERYBODY: Final = "Whoever may connect."
_WORDS: Final = {
    "200": "The answer; of a use case also where it refuses: `exit` and `problems` say so.",
    "202": "The operation waits for its turn.",
    "400": "The request has not the form that it must have; nothing was done.",
    "403": "The user of the client may not do this; nothing was done.",
    "404": "There is no such path, use case or operation.",
    "409": "It cannot be done as things are; nothing was done.",
    "413": "The body is too large, or its length is not given; it was not read.",
    "500": "A fault of logdird: report the line.",
    "503": "logdird ends, or has no room or no time for it: repeat the request.",
}


def _title(name: str) -> str:
    return "".join(word.capitalize() for word in name.split())


def _body(schema: Schema, example: object, most_bytes: int) -> Schema:
    return {
        "required": True,
        "description": f"At most {most_bytes} bytes.",
        "content": {_JSON: {"schema": schema, "example": example}},
    }


def _answers(good: dict[str, Schema], *others: str) -> Schema:
    """Return the responses of a path: what is answered well, and the statuses of refusals."""
    found = {status: _response(status, content) for status, content in good.items()}
    return found | {status: {"$ref": f"#/components/responses/Refused{status}"} for status in (*others, "500", "503")}


def _response(status: str, content: Schema) -> Schema:
    return {"description": _WORDS[status], "content": content}


class _Document:
    def __init__(self) -> None:
        self.schemas = Schemas()
        self.paths: dict[str, Schema] = {}
        self._make_frame()
        self._make_questions()
        for name in (*routes.CHANGES, *READINGS):
            self._make_use_case(name)
        for name in NEED_CLOSED:
            self._make_closed(name)
        self._make_operations()

    def _result(self, kind: type) -> Schema:
        return self.schemas.record(kind, is_request=False)

    def _component(self, name: str, schema: Schema) -> Schema:
        self.schemas.components[name] = schema
        return ref(name)

    def _envelope(self, result: Schema, *, problems: int = 0, **more: Schema) -> Schema:
        """Return the schema of an answer.

        Args:
            result: Of its result.
            problems: How many problems it has at least.
            more: Further keys.
        """
        listed: Schema = {"type": "array", "items": self._result(Problem)}
        if problems:
            listed["minItems"] = problems
        properties: dict[str, Schema] = {
            "command": {"type": "string", "description": "what was asked for, as the name of its command"},
            "format": {"const": FORMAT},
            "exit": {
                "type": "integer",
                "enum": [int(one) for one in Exit if one is not Exit.INTERRUPTED],
                "description": "as a command would exit",
            },
            "problems": listed,
            "result": result,
            **more,
        }
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def _make_frame(self) -> None:
        nothing: Schema = {"type": "object", "maxProperties": 0, "additionalProperties": False}
        self._component("Nothing", nothing)
        self._component("Refusal", self._envelope(ref("Nothing"), problems=1))

    def _make_questions(self) -> None:
        status = self._component("StatusAnswer", self._envelope(self._result(StatusResult)))
        text: Schema = {"schema": {"type": "string"}}
        for path, summary, content in (
            (routes.STATUS, "The status of the daemon, from memory", {_JSON: {"schema": status}}),
            (routes.METRICS, "The metrics of the daemon, from memory", {"text/plain; version=0.0.4": text}),
            (routes.PAGE, "The status as a page, from memory", {"text/html; charset=utf-8": text}),
            (routes.OPENAPI, "This document", {_JSON: {"schema": {"type": "object"}}}),
        ):
            self.paths[path] = {
                "get": {"summary": summary, "description": _EVERYBODY, "responses": _answers({"200": content})}
            }

    def _make_use_case(self, name: str) -> None:
        reading = READINGS.get(name)
        spec = reading or routes.spec_named(name)
        request = self.schemas.record(spec.request, is_request=True)
        results = [self._result(spec.result)]
        if issubclass(spec.result, ItemsResult) and spec.result is not ItemsResult:
            results.append(self._result(ItemsResult))  # Where nothing was selected.
        if reading is INVENTORY:
            entries = {"type": "array", "items": self._result(Entry), "description": "where `are_entries_wanted`"}
            self.schemas.components["InventoryDisk"]["properties"]["entries"] = entries
        texts: Schema = {"type": "array", "items": {"type": "string"}, "description": "for people"}
        flag = {"type": "boolean", "description": "whether the same request, applied, has something to do"}
        answer = self._component(
            f"{_title(name)}Answer",
            self._envelope(
                results[0] if len(results) == 1 else {"anyOf": results},
                lines=texts,
                warnings=texts,
                is_waiting=flag,
                next={"type": "string", "description": "of `layout`: which verb follows"},
            ),
        )
        apply: Schema = {"type": "boolean", "description": "whether to do it; false: plan it, and change nothing"}
        if reading is not None:
            apply = {"const": False, "description": "it only reads"}
        asked = _keys(apply=apply, request=request)
        path = routes.path_of(name)
        summary = f"{'Ask what' if reading else 'Plan or do what'} `logdirctl {name}` {'shows' if reading else 'does'}"
        who = f"{_EVERYBODY} A source that is a file: {_OWNER.lower()}" if reading else _OWNER
        limit = f" It ends after {READ_MS // 1000} s." if reading else ""
        most = MOST_QUESTION_BYTES if reading else MOST_BYTES
        good = {"200": {_JSON: {"schema": {"anyOf": [answer, ref("Refusal")]}}}}
        self.paths[path] = {
            "post": {
                "summary": summary,
                "description": who + limit,
                "requestBody": _body(asked, {"apply": False, "request": EXAMPLES[name]}, most),
                "responses": _answers(good, "400", "403", "413"),
            }
        }

    def _make_closed(self, name: str) -> None:
        self.paths[routes.path_of(name)] = {
            "post": {
                "summary": f"Refused: `logdirctl {name}` needs log dirs that no daemon has open",
                "responses": _answers({}, "409"),
            }
        }

    def _make_operations(self) -> None:
        operation = self._result(Operation)
        one = dict(self.schemas.components["Operation"])
        answers = [ref(f"{_title(name)}Answer") for name in routes.CHANGES]
        whole = {
            "anyOf": [{"type": "null"}, *answers, ref("Refusal")],
            "description": "what its use case would have answered; `null`: it has not ended, or the answer is not kept",
        }
        one["properties"] = {**one["properties"], "answer": whole}
        one["required"] = [*one["required"], "answer"]
        self._component("OperationWithAnswer", one)
        single = self._component("OperationAnswer", self._envelope(ref("OperationWithAnswer")))
        listed = self._component("OperationsAnswer", self._envelope(_keys(items={"type": "array", "items": operation})))
        by_name = [
            _keys(
                use_case={"const": routes.part_of(name)},
                apply={"type": "boolean"},
                request=self.schemas.record(routes.spec_named(name).request, is_request=True),
            )
            for name in routes.CHANGES
        ]
        example = {"use_case": "staged-hold", "apply": True, "request": EXAMPLES["staged hold"]}
        location = {"Location": {"description": "the path of the operation", "schema": {"type": "string"}}}
        good = _answers({"202": {_JSON: {"schema": single}}}, "400", "403", "413")
        good["202"]["headers"] = location
        self.paths[routes.OPERATIONS] = {
            "post": {
                "summary": "Enqueue a request whose answer is not waited for",
                "description": _OWNER,
                "requestBody": _body({"oneOf": by_name}, example, MOST_BYTES),
                "responses": good,
            },
            "get": {
                "summary": "Every operation that is remembered, without answers",
                "description": _OWNER,
                "responses": _answers({"200": {_JSON: {"schema": listed}}}, "403"),
            },
        }
        self.paths[routes.operation_path("{id}")] = {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {
                "summary": "One operation, with its answer once it has ended",
                "description": _OWNER,
                "responses": _answers({"200": {_JSON: {"schema": single}}}, "403", "404"),
            },
            "delete": {
                "summary": "Take back an operation that has not begun",
                "description": _OWNER,
                "responses": _answers({"200": {_JSON: {"schema": single}}}, "403", "404", "409"),
            },
        }


def _keys(**properties: Any) -> Schema:
    """Return the schema of an object that has exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def document() -> Schema:
    """Return the document."""
    made = _Document()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "logdird",
            "version": VERSION,
            "description": "The control socket of logdird, the log directory manager of one Kafka broker. docs/api.md "
            "says how to ask, who may, and what stays as it is within a version.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://localhost", "description": "over the unix socket /run/logdird/NAME.sock"}],
        "paths": made.paths,
        "components": {
            "schemas": dict(sorted(made.schemas.components.items())),
            "responses": {
                f"Refused{status}": _response(status, {_JSON: {"schema": ref("Refusal")}})
                for status in _WORDS
                if status >= "400"
            },
        },
    }


def generated() -> str:
    """Return the text of the file."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def write() -> Path:
    """Write the file; return its path."""
    FILE.write_text(generated(), "utf-8")
    return FILE
