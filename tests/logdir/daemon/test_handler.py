"""The control socket in this process: each route, who may use it, and clients that leave; what it asks is played."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from logdir.daemon.faults import stopping_error
from logdir.daemon.report.status import StatusResult, blank_status
from logdir.daemon.requests import Answer
from logdir.daemon.socket import envelopes, handler, reads, routes
from logdir.daemon.socket.envelopes import Reply
from logdir.daemon.socket.server import Control
from logdir.daemon.supervisor import Supervisor
from logdir.service.reading.answering import Answered
from logdir.service.reading.questions import READINGS
from logdir.service.report.exit_status import Exit
from logdir.service.report.result import ItemsResult
from logdir.service.report.use_case import Ran
from tests.generated.test_openapi import DOCUMENT, faults
from tests.logdir.daemon.http import Response, bytes_of, parsed
from tests.logdir.daemon.rig import ask, until

HOLD = {"apply": True, "request": {"selector": "pay"}}
QUEUED = {"use_case": "staged-hold", **HOLD}
ANSWER = b'{"command":"x","format":1,"exit":0,"problems":[],"result":{}}\n'


class Daemon:
    """In place of a supervisor: its thread of changes takes a turn when it is let."""

    def __init__(self, folder: Path) -> None:
        self.config = SimpleNamespace(
            socket=str(folder / "s.sock"),
            server_properties="/s",
            client_properties=None,
            file="/b1.yaml",
            disk_timeout_ms=10_000,
        )
        self.done: list[object] = []
        self.is_stopping = False
        self.waiting: list[tuple[Callable[[Any], Any], Answer]] = []
        self.are_turns_taken = threading.Event()
        self.are_turns_taken.set()

    def status(self) -> StatusResult:
        return replace(blank_status("b1", "0"), queued=len(self.waiting))

    def submit(self, what: str, run: Callable[[Any], Any]) -> Answer:
        if self.is_stopping:
            raise stopping_error()
        answer: Future[Any] = Future()
        threading.Thread(target=self._turn, args=(run, answer), daemon=True).start()
        return answer

    def _turn(self, run: Callable[[Any], Any], answer: Answer) -> None:
        self.are_turns_taken.wait(30)
        if answer.set_running_or_notify_cancel():
            try:
                answer.set_result(run(self))
            except BaseException as error:  # noqa: BLE001 - as the thread of changes
                answer.set_exception(error)

    def run(self, spec: object, request: object, *, is_applied: bool) -> tuple[Ran, tuple[str, ...]]:
        self.done.append(request)
        return Ran(exit=Exit.DONE, problems=(), result=ItemsResult(applied=is_applied, items=())), ("a warning",)


class Rig:
    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon

    def send(self, method: str, path: str, body: object = None) -> Response:
        return parsed(ask(self.daemon.config.socket, bytes_of(method, path, body)))


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    daemon = Daemon(tmp_path)
    control = Control(cast(Supervisor, daemon))
    control.start()
    assert control.is_alive()
    yield Rig(daemon)
    daemon.are_turns_taken.set()
    control.stop()
    assert not control.is_alive()


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every client be a user who may only read."""
    monkeypatch.setattr(handler, "is_owner_or_root", lambda _: False)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Play the processes of reads: each writes ``ANSWER``; what they were asked is returned."""
    found: list[tuple[Any, ...]] = []

    class Port:
        pid, log_dir, is_suspect = None, "the process", True

        def run(self, _: object, *arguments: Any) -> Answered:
            found.append(arguments)
            assert os.write(arguments[-1], ANSWER) == len(ANSWER)
            return Answered(len(ANSWER), None, ())

        def is_reaped(self) -> bool:
            return True

    @contextmanager
    def aside(*_: object) -> Iterator[Port]:
        yield Port()

    monkeypatch.setattr(reads, "aside", aside)
    return found


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Play what makes the metrics and the page."""
    played: dict[str, dict[str, object]] = {
        "logdir.daemon.metrics": {},
        "logdir.daemon.metrics.exposition": {
            "text_of": lambda _: b"logdird_info 1\n",
            "CONTENT_TYPE": "text/plain; a=b",
        },
        "logdir.daemon.page": {},
        "logdir.daemon.page.render": {"render": lambda status, now_ms: f"<!doctype html>{status.name} \udcff"},
    }
    for name, contents in played.items():
        module = ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)
        above, _, last = name.rpartition(".")
        monkeypatch.setattr(sys.modules[above], last, module, raising=False)


def test_what_is_answered_from_memory(rig: Rig, pages: None) -> None:
    status = rig.send("GET", routes.STATUS)
    assert (status.status, status.headers["content-type"], faults("StatusAnswer", status.value)) == (
        200,
        "application/json",
        [],
    )
    assert rig.send("GET", routes.OPENAPI).value == DOCUMENT
    metrics = rig.send("GET", routes.METRICS)
    assert (metrics.status, metrics.headers["content-type"], metrics.body) == (
        200,
        "text/plain; a=b",
        b"logdird_info 1\n",
    )
    page = rig.send("GET", routes.PAGE)
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.body.decode() == "<!doctype html>b1 \ufffd"


def test_a_fault_of_ours_is_answered_by_its_name(
    rig: Rig, pages: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> bytes:
        raise ValueError("a fault")

    monkeypatch.setattr(sys.modules["logdir.daemon.metrics.exposition"], "text_of", fail)
    found = rig.send("GET", routes.METRICS)
    assert (found.status, found.slugs, found.value["exit"]) == (500, ["internal-error"], 5)
    assert "request.fault" in caplog.text


def test_a_status_in_which_nothing_has_changed_is_made_into_json_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = rig.daemon.status()
    shown = [status]
    made: list[object] = []

    def noted(command: str, result: object) -> Reply:
        made.append(result)
        return envelopes.found(command, result)

    monkeypatch.setattr(handler, "found", noted)
    monkeypatch.setattr(rig.daemon, "status", lambda: shown[0])
    assert len({rig.send("GET", routes.STATUS).body for _ in range(3)}) == 1
    assert made == [status]
    shown[0] = replace(status, queued=7)
    assert rig.send("GET", routes.STATUS).value["result"]["queued"] == 7
    assert len(made) == 2


def test_many_who_ask_for_the_page_take_no_more_than_one(
    rig: Rig, pages: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the thread of changes would wait for all of them each time that it has something to do."""
    making: list[int] = []
    most: list[int] = []

    def render(status: StatusResult, now_ms: int) -> str:
        making.append(1)
        most.append(len(making))
        threading.Event().wait(0.02)
        making.pop()
        return "a page"

    monkeypatch.setattr(sys.modules["logdir.daemon.page.render"], "render", render)
    threads = [threading.Thread(target=rig.send, args=("GET", routes.PAGE)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


def test_a_use_case_is_run_and_an_operation_of_it_too(rig: Rig) -> None:
    found = rig.send("POST", "/v1/use-cases/staged-hold", HOLD)
    assert (found.status, faults("StagedHoldAnswer", found.value)) == (200, [])
    assert (found.value["command"], found.value["warnings"]) == ("staged hold", ["a warning"])
    queued = rig.send("POST", routes.OPERATIONS, QUEUED)
    assert (queued.status, faults("OperationAnswer", queued.value)) == (202, [])
    path = queued.headers["location"]
    assert path == routes.operation_path(queued.value["result"]["id"])
    until("it is done", lambda: rig.send("GET", path).value["result"]["state"] == "done")
    whole = rig.send("GET", path)
    assert (faults("OperationAnswer", whole.value), whole.value["result"]["answer"]) == ([], found.value)
    listed = rig.send("GET", routes.OPERATIONS)
    assert faults("OperationsAnswer", listed.value) == []
    assert [item["use_case"] for item in listed.value["result"]["items"]] == ["staged-hold"]
    assert len(rig.daemon.done) == 2
    late = rig.send("DELETE", path)
    assert (late.status, late.slugs) == (409, ["operation-begun"])


def test_an_operation_that_is_cancelled_is_not_done(rig: Rig) -> None:
    rig.daemon.are_turns_taken.clear()
    path = rig.send("POST", routes.OPERATIONS, QUEUED).headers["location"]
    for _ in range(2):
        found = rig.send("DELETE", path)
        assert (found.status, found.value["result"]["state"]) == (200, "cancelled")
    rig.daemon.are_turns_taken.set()
    second = rig.send("POST", routes.OPERATIONS, QUEUED).headers["location"]
    until("the next one is done", lambda: rig.send("GET", second).value["result"]["state"] == "done")
    assert len(rig.daemon.done) == 1
    assert rig.send("GET", path).value["result"]["state"] == "cancelled"


def test_a_daemon_that_ends_says_so(rig: Rig) -> None:
    rig.daemon.is_stopping = True
    for path, body in (("/v1/use-cases/staged-hold", HOLD), (routes.OPERATIONS, QUEUED)):
        found = rig.send("POST", path, body)
        assert (found.status, found.slugs) == (503, ["daemon-stopping"])


@pytest.mark.parametrize("name", READINGS)
def test_what_only_reads_is_asked_for_its_own_broker(rig: Rig, asked: list[tuple[Any, ...]], name: str) -> None:
    found = rig.send("POST", routes.path_of(name), {"apply": False, "request": {}})
    assert (found.status, found.body) == (200, ANSWER)
    ((its_name, _, broker, *_),) = asked
    assert (its_name, tuple(broker)) == (name, ("/s", None, "/b1.yaml", 10_000))


def test_a_user_who_may_only_read_changes_nothing(rig: Rig, others: None, asked: list[tuple[Any, ...]]) -> None:
    refused = [
        *(rig.send("POST", routes.path_of(name), {"apply": False, "request": {}}) for name in routes.CHANGES),
        rig.send("POST", routes.OPERATIONS, QUEUED),
        rig.send("GET", routes.OPERATIONS),
        rig.send("GET", routes.operation_path("0-1")),
        rig.send("DELETE", routes.operation_path("0-1")),
    ]
    assert {(found.status, *found.slugs) for found in refused} == {(403, "no-permission")}
    assert rig.daemon.done == []
    assert rig.send("GET", routes.STATUS).status == 200
    assert asked == []


@pytest.mark.parametrize("uri", ["metadata:/etc", "request:/etc/shadow", "znodes:/a", "cluster:/tmp/evil", "", "x:"])
def test_a_user_who_may_only_read_names_no_file(rig: Rig, others: None, asked: list[tuple[Any, ...]], uri: str) -> None:
    for name in ("staged ls", "strays", "describe"):
        found = rig.send("POST", routes.path_of(name), {"apply": False, "request": {"source": {"uri": uri}}})
        assert (found.status, found.slugs) == (403, ["no-permission"])
    assert asked == []
    own = rig.send("POST", routes.path_of("strays"), {"apply": False, "request": {"source": {"uri": "metadata:"}}})
    assert (own.status, len(asked)) == (200, 1)


def test_the_owner_names_any_source(rig: Rig, asked: list[tuple[Any, ...]]) -> None:
    body = {"apply": False, "request": {"source": {"uri": "znodes:/a"}}}
    assert rig.send("POST", routes.path_of("strays"), body).status == 200
    assert json.loads(asked[0][1])["source"]["uri"] == "znodes:/a"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/use-cases/describe", {"apply": True, "request": {}}, 400),
        ("POST", "/v1/use-cases/describe", {"apply": False, "request": {"broker": None}}, 400),
        ("POST", "/v1/use-cases/inventory", {"apply": False, "request": {"output": "/tmp"}}, 400),
        ("POST", "/v1/use-cases/inventory", b" " * 65_537, 413),
        ("POST", "/v1/use-cases/inventory", None, 413),
        ("POST", "/v1/operations", {**QUEUED, "use_case": "describe"}, 400),
        ("POST", "/v1/operations", {**QUEUED, "use_case": "init"}, 400),
        ("POST", "/v1/operations", {**QUEUED, "use_case": "staged hold"}, 400),
        ("POST", "/v1/operations", {**QUEUED, "use_case": None}, 400),
        ("POST", "/v1/operations", {**QUEUED, "more": 1}, 400),
        ("POST", "/v1/operations", HOLD, 400),
        ("POST", "/v1/operations", {**QUEUED, "request": {"selector": ""}}, 400),
        ("POST", "/v1/operations", b"[", 400),
        ("POST", "/v1/use-cases/staged-hold", {"apply": True, "request": {"selector": ""}}, 200),
        ("POST", "/v1/use-cases/init", HOLD, 409),
        ("POST", "/v1/use-cases/", HOLD, 404),
        ("POST", "/v1/operations/", QUEUED, 404),
        ("POST", "/v1/status", {}, 404),
        ("GET", "/v1/operations/0-1", None, 404),
        ("GET", "/v1/operations/", None, 404),
        ("GET", "/v1/use-cases/describe", None, 404),
        ("GET", "/", None, 404),
        ("DELETE", "/v1/operations/0-1", None, 404),
        ("DELETE", "/v1/operations", None, 501),
        ("DELETE", "/v1/status", None, 501),
        ("HEAD", "/metrics", None, 501),
        ("PUT", "/v1/operations/0-1", {}, 501),
    ],
)
def test_what_does_not_fit_is_answered_by_its_name(
    rig: Rig, asked: list[tuple[Any, ...]], method: str, path: str, body: object, status: int
) -> None:
    found = rig.send(method, path, body)
    assert (found.status, faults("Refusal", found.value)) == (status, [])
    assert rig.daemon.done == []
    assert asked == []
    assert rig.send("GET", routes.OPERATIONS).value["result"]["items"] == []


def test_a_request_whose_client_leaves_before_its_turn_is_not_begun_and_an_operation_is(rig: Rig) -> None:
    rig.daemon.are_turns_taken.clear()
    for path, body in (("/v1/use-cases/staged-hold", HOLD), (routes.OPERATIONS, QUEUED)):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(rig.daemon.config.socket)
            connection.sendall(bytes_of("POST", path, body))
    until("it is queued", lambda: len(rig.send("GET", routes.OPERATIONS).value["result"]["items"]) == 1)
    threading.Event().wait(0.5)  # Longer than the daemon takes to look whether its client is there.
    rig.daemon.are_turns_taken.set()
    until("it is done", lambda: len(rig.daemon.done) == 1)
    threading.Event().wait(0.3)
    assert len(rig.daemon.done) == 1


@pytest.mark.parametrize(("part", "status"), [("stage", 403), ("describe", 413), ("erase", 404), ("init", 409)])
def test_a_request_that_is_refused_unread_is_answered_all_the_same(
    rig: Rig, others: None, part: str, status: int
) -> None:
    found = rig.send("POST", f"/v1/use-cases/{part}", b" " * 3_000_000)
    assert (found.status, faults("Refusal", found.value)) == (status, [])
