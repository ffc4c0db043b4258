"""docs/api.md says of the interface what is so: routes, statuses, figures; and what it shows can be typed."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from logdir.daemon import operations
from logdir.daemon.operations import OperationState
from logdir.daemon.socket import reads, routes
from logdir.daemon.socket.body import MOST_BYTES, MOST_QUESTION_BYTES
from logdir.daemon.socket.connections import MOST_CLIENTS
from logdir.daemon.socket.server import DEADLINE_MS
from logdir.service.batch.use_cases import NEED_CLOSED
from logdir.service.reading.questions import READINGS
from tests.generated.test_openapi import DOCUMENT, METHODS, faults
from tests.logdir.daemon.http import Response, ended, send
from tests.logdir.daemon.rig import daemon, until
from tests.test_errors_documented import LISTED

PAGE: Final = (Path(__file__).parents[3] / "docs" / "api.md").read_text("utf-8")
MIB: Final = 1 << 20


class Typed(NamedTuple):
    """What a line with ``curl`` asks."""

    method: str
    path: str
    body: Any


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def typed() -> Iterator[Typed]:
    """Yield what the page shows to be typed, in its order."""
    for block in blocks("sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            assert words[:3] == ["curl", "--unix-socket", "/run/logdird/NAME.sock"], line
            options = dict(zip(words[3::2], words[4::2], strict=False)) if words[3].startswith("-") else {}
            url = next(word for word in words if word.startswith("http://localhost/"))
            body = words[words.index("-d") + 1] if "-d" in words else None
            method = options.get("-X", "GET" if body is None else "POST")
            yield Typed(method, url.removeprefix("http://localhost"), None if body is None else json.loads(body))


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in section(title).splitlines() if line[:2] == "| "
    ]


def test_every_route_of_the_document_is_on_the_page_and_no_other() -> None:
    listed = {tuple(row[0].strip("`").split()) for row in rows("Routes")[1:]}
    paths = DOCUMENT["paths"]
    use_cases = {path for path in paths if path.startswith(routes.USE_CASES)}
    found = {(method.upper(), path) for path in paths.keys() - use_cases for method in METHODS & paths[path].keys()}
    wanted = {(method, path.replace("{id}", "ID")) for method, path in found} | {("POST", f"{routes.USE_CASES}NAME")}
    assert listed == wanted


def test_every_use_case_that_only_reads_is_on_the_page_and_no_other() -> None:
    names = {routes.part_of(name) for name in READINGS}
    assert {row[0].strip("`") for row in rows("What only reads")[1:]} == names
    assert all(f"`{name}`" in section("Routes") for name in (*names, *NEED_CLOSED))


def test_every_state_of_an_operation_is_on_the_page_and_no_other() -> None:
    states = {row[0].strip("`") for row in rows("Operations")[1:]}
    assert states == {state.value for state in OperationState}


def test_every_status_of_the_document_is_on_the_page() -> None:
    listed = {status for row in rows("Answers")[1:] for status in row[0].split(", ")}
    answered = {
        status
        for path in DOCUMENT["paths"].values()
        for method in METHODS & path.keys()
        for status in path[method]["responses"]
    }
    assert answered <= listed
    assert listed - answered == {"414", "431", "501", "505"}  # Of the head of a request, before its path is looked at.


def test_every_slug_on_the_page_is_explained() -> None:
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", PAGE)) - {routes.part_of(name) for name in READINGS}
    assert {"no-such-operation", "operation-begun", "daemon-busy", "read-ended", "no-permission"} <= named
    assert named - set(LISTED) == {"staged-purge"}


def test_the_page_has_the_figures_of_the_code() -> None:
    limits = {row[0]: row[1] for row in rows("Limits")[1:]}
    assert (MOST_CLIENTS, DEADLINE_MS) == (64, 10_000)
    assert limits["clients at a time"].startswith("64, ")
    assert limits["time to send a request, and to take an answer"] == "10 seconds each"
    assert (MOST_BYTES, MOST_QUESTION_BYTES) == (64 * MIB, 64 << 10)
    assert limits["body of a request that may change something"] == "64 MiB"
    assert limits["body of a question to what only reads"] == "64 KiB"
    assert (reads.MOST_READS, reads.READ_MS, reads.MOST_ANSWER_BYTES) == (2, 300_000, 64 * MIB)
    assert limits["what only reads"] == "2 at a time, 300 seconds, 64 MiB of answer"
    assert (operations.MOST_WAITING, operations.MOST_WAITING_BYTES) == (1000, 64 * MIB)
    assert limits["operations that wait"] == "1,000, with requests of 64 MiB together"
    assert (operations.MOST_ENDED, operations.MOST_ANSWER_BYTES) == (1000, 8 * MIB)
    assert limits["operations that have ended"] == "1,000, with answers of 8 MiB together"


def test_what_is_shown_as_an_answer_is_one() -> None:
    (shown,) = blocks("json")
    assert faults("OperationAnswer", json.loads(shown)) == []


def test_what_is_shown_to_be_typed_is_a_request() -> None:
    found = list(typed())
    assert len(found) == 6
    for one in found:
        path = re.sub(r"(?<=/v1/operations/).*", "{id}", one.path)
        method = DOCUMENT["paths"][path][one.method.lower()]
        assert ("requestBody" in method) == (one.body is not None)


@pytest.mark.slow
def test_what_is_shown_is_answered_so(tmp_path: Path) -> None:
    identity = ""
    found: list[Response] = []
    with daemon(tmp_path) as fresh:
        fresh.delete(fresh.make("payments"))
        until("it is captured", lambda: fresh.status().captured == 1)
        for one in typed():
            path = re.sub(r"(?<=/v1/operations/).*", identity, one.path)
            found.append(send(fresh, one.method, path, one.body))
            if found[-1].status == 202:
                identity = found[-1].value["result"]["id"]
                assert ended(fresh, identity)["exit"] == 0
        # It has ended before it is cancelled.
        assert [one.status for one in found] == [200, 200, 202, 200, 409, 200]
        (shown,) = (json.loads(text)["result"] for text in blocks("json"))
        result = found[2].value["result"]
        same = ("use_case", "applied", "is_answer_left_out", "answer")
        assert result.keys() == shown.keys()
        assert [result[key] for key in same] == [shown[key] for key in same]
        assert [item["state"] for item in found[-1].value["result"]["items"]] == ["held"]
