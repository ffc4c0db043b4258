"""The interface of a running daemon: every route, who may use it, operations, and what only reads."""

from __future__ import annotations

import copy
import json
import os
import random
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from logdir.daemon.release import SLUG as RELEASED
from logdir.daemon.socket import routes
from logdir.daemon.socket.body import MOST_QUESTION_BYTES
from logdir.service.reading.questions import READINGS
from logdir.service.report.json_form import to_json
from tests.builders import TOPIC_ID
from tests.generated.test_openapi import DOCUMENT, faults
from tests.logdir.daemon.damage import no_json, places, twice
from tests.logdir.daemon.http import Response, bytes_of, ended, enqueued, operation, parsed, read, send
from tests.logdir.daemon.rig import Daemon, ask, daemon, stage_of, unchanged, until
from tests.logdir.daemon.test_control import ask_as
from tests.logdir.service.test_answering import TITLES, timeless
from tests.tools.ctl import ctl

_NOBODY = 65534
SOURCE = {"/brokers/topics/pay": {"version": 3, "partitions": {"0": [1]}}}
HOLD = {"selector": "pay"}
TWICE = b'{"apply": false, "use_case": "staged-hold", "apply": true, "request": {"selector": "pay"}}'
LONG = f"POST /v1/use-cases/staged-ls HTTP/1.1\r\nContent-Length: {MOST_QUESTION_BYTES + 1}\r\n\r\n{{}}".encode()
"""A question that is too long, of which only the beginning is sent."""


def captured(one: Daemon) -> None:
    gone = one.delete(one.make())
    until("it is captured", lambda: one.status().captured == 1)
    one.remove(gone)


def named(one: Daemon) -> dict[str, Any]:
    """Return a source that is a file."""
    file = one.folder / "znodes.json"
    file.write_text(json.dumps(SOURCE))
    return {"source": {"uri": f"znodes:{file}"}}


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with daemon(tmp_path_factory.mktemp("api")) as made:
        captured(made)
        yield made


def test_every_route_that_is_answered_from_memory(one: Daemon) -> None:
    status = send(one, "GET", routes.STATUS)
    assert (status.status, faults("StatusAnswer", status.value)) == (200, [])
    document = send(one, "GET", routes.OPENAPI)
    assert (document.status, document.value) == (200, DOCUMENT)
    metrics = send(one, "GET", routes.METRICS)
    assert (metrics.status, metrics.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert b"logdird_info{" in metrics.body
    page = send(one, "GET", routes.PAGE)
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.body.decode().lower().startswith("<!doctype html>")
    listed = send(one, "GET", routes.OPERATIONS)
    assert (listed.status, faults("OperationsAnswer", listed.value)) == (200, [])


@pytest.mark.parametrize("name", READINGS)
def test_what_only_reads_is_answered_as_by_the_command_beside_it(one: Daemon, name: str) -> None:
    # Without a source of its own: strays needs one here.
    request = named(one) if name == "strays" else {}
    words = ("--from", request["source"]["uri"]) if request else ()
    before = unchanged(one)
    found = read(one, name, request)
    assert unchanged(one) == before
    assert found.status == 200
    assert faults(f"{TITLES.get(name, name.capitalize())}Answer", found.value) == []
    said = ctl(*name.split(), *words, "--config", one.config, "--json")
    value = {key: part for key, part in found.value.items() if key not in ("lines", "warnings", "is_waiting", "next")}
    wanted = json.loads(said.out)
    for disk in wanted["result"]["items"] if name == "inventory" else ():
        # The command lists every entry.
        assert len(disk.pop("entries")) == disk["rows"]
        disk["sha256"] = None
    assert timeless(value) == timeless(wanted)


def test_what_is_staged_is_seen_by_whoever_asks(one: Daemon) -> None:
    (item,) = read(one, "staged ls", {"selector": "pay-0"}).value["result"]["items"]
    assert (item["topic_id"], item["partition"], item["log_end"] is not None) == (TOPIC_ID, 0, True)
    nothing = read(one, "staged ls", {"selector": "nope"})
    assert (nothing.status, nothing.value["exit"], nothing.slugs) == (200, 1, ["nothing-selected"])


BAD: dict[str, tuple[bytes, int]] = {
    "a question with apply": (
        bytes_of("POST", "/v1/use-cases/describe", {"apply": True, "request": {}}),
        400,
    ),
    "a question without apply": (bytes_of("POST", "/v1/use-cases/describe", {"request": {}}), 400),
    "a question about another broker": (
        bytes_of("POST", "/v1/use-cases/describe", {"apply": False, "request": {"broker": {"log_dirs": "/"}}}),
        400,
    ),
    "an inventory into a directory": (
        bytes_of("POST", "/v1/use-cases/inventory", {"apply": False, "request": {"output": "/tmp"}}),
        400,
    ),
    "a question of another type": (
        bytes_of("POST", "/v1/use-cases/staged-ls", {"apply": False, "request": {"selector": 7}}),
        400,
    ),
    "a question that is too long": (LONG, 413),
    "a question without a length": (bytes_of("POST", "/v1/use-cases/staged-ls"), 413),
    "half a question": (bytes_of("POST", "/v1/use-cases/staged-ls", {"apply": False, "request": {}})[:-5], 400),
    "a question of no use case": (bytes_of("POST", "/v1/use-cases/metadata-ls", {"apply": False, "request": {}}), 404),
    "an operation without a use case": (bytes_of("POST", "/v1/operations", {"apply": False, "request": {}}), 400),
    "an operation of no use case": (
        bytes_of("POST", "/v1/operations", {"use_case": "erase", "apply": True, "request": {}}),
        400,
    ),
    "an operation of what only reads": (
        bytes_of("POST", "/v1/operations", {"use_case": "describe", "apply": False, "request": {}}),
        400,
    ),
    "an operation of what needs closed log dirs": (
        bytes_of("POST", "/v1/operations", {"use_case": "uninstall", "apply": True, "request": {}}),
        400,
    ),
    "an operation by another name": (
        bytes_of("POST", "/v1/operations", {"use_case": "staged hold", "apply": True, "request": HOLD}),
        400,
    ),
    "a use case that is no text": (
        bytes_of("POST", "/v1/operations", {"use_case": ["stage"], "apply": True, "request": {}}),
        400,
    ),
    "an operation with a key too many": (
        bytes_of("POST", "/v1/operations", {"use_case": "staged-hold", "apply": True, "request": HOLD, "id": "1"}),
        400,
    ),
    "an operation whose key stands twice": (
        bytes_of(
            "POST", "/v1/operations", b'{"apply": false, "use_case": "staged-hold", "apply": true, "request": {}}'
        ),
        400,
    ),
    "an operation whose request has another key": (
        bytes_of("POST", "/v1/operations", {"use_case": "staged-hold", "apply": True, "request": {"selektor": "pay"}}),
        400,
    ),
    "an operation whose request cannot be used": (
        bytes_of("POST", "/v1/operations", {"use_case": "staged-hold", "apply": True, "request": {"selector": ""}}),
        400,
    ),
    "an operation that is no JSON": (bytes_of("POST", "/v1/operations", b"{"), 400),
    "an operation of a huge length": (b"POST /v1/operations HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
    "no such operation": (bytes_of("GET", "/v1/operations/0-1"), 404),
    "an operation with an odd id": (bytes_of("GET", "/v1/operations/../status"), 404),
    "no such operation to cancel": (bytes_of("DELETE", "/v1/operations/0-1"), 404),
    "all operations to cancel": (bytes_of("DELETE", "/v1/operations"), 501),
    "an operation to change": (bytes_of("PUT", "/v1/operations/0-1", {}), 501),
    "the head of the metrics": (bytes_of("HEAD", "/metrics"), 501),
    "another version": (bytes_of("GET", "/v2/status"), 404),
    "a query": (bytes_of("GET", "/v1/status?a=1"), 404),
}


@pytest.mark.parametrize("name", BAD)
def test_a_damaged_request_gets_a_typed_answer_and_changes_nothing(one: Daemon, name: str) -> None:
    data, expected = BAD[name]
    before = unchanged(one)
    found = parsed(ask(one.socket, data))
    assert (found.status, faults("Refusal", found.value)) == (expected, [])
    assert found.value["exit"] != 0
    assert unchanged(one) == before
    assert send(one, "GET", routes.OPERATIONS).value["result"]["items"] == []
    assert one.state() == "RUNNING"
    assert "request.fault" not in one.log


def damaged_operations(count: int) -> Iterator[bytes]:
    """Yield bodies of operations that are none any more: each lacks what every one must have."""
    draw = random.Random(516)
    whole = {"use_case": "staged-hold", "apply": True, "request": HOLD}
    for number in range(count):
        value = copy.deepcopy(whole)
        match number % 4:
            case 0:
                yield no_json(draw, json.dumps(whole).encode())
            case 1:
                yield twice(draw, json.dumps(whole)).encode()
            case 2:
                del value[draw.choice(tuple(whole))]
                yield json.dumps(value).encode()
            case _:
                place, key = draw.choice(places(value))
                place[key] = {"x": 1}
                yield json.dumps(value).encode()


@pytest.mark.slow
def test_damaged_operations_are_refused_and_none_is_queued(one: Daemon) -> None:
    before, pid = unchanged(one), one.status().pid
    for body in damaged_operations(400):
        found = send(one, "POST", routes.OPERATIONS, body)
        assert (found.status, faults("Refusal", found.value)) == (400, []), body
    assert send(one, "GET", routes.OPERATIONS).value["result"]["items"] == []
    assert unchanged(one) == before
    assert (one.status().pid, "request.fault" in one.log) == (pid, False)


def test_a_request_that_is_refused_unread_is_answered_all_the_same(one: Daemon) -> None:
    """Its client sends on, and a connection that is reset would take the answer away."""
    head = b"POST /v1/use-cases/describe HTTP/1.1\r\nContent-Length: 4000000\r\n\r\n"
    found = parsed(ask(one.socket, head + b" " * 4_000_000))
    assert (found.status, found.slugs) == (413, ["malformed-message"])


def test_an_operation_is_done_and_its_answer_is_that_of_the_use_case(tmp_path: Path) -> None:
    with daemon(tmp_path) as fresh:
        captured(fresh)
        planned = ended(fresh, enqueued(fresh, "staged-hold", HOLD, is_applied=False))
        assert (planned["state"], planned["applied"]) == ("done", False)
        assert [item["state"] for item in planned["answer"]["result"]["items"]] == ["planned"]
        same = send(fresh, "POST", "/v1/use-cases/staged-hold", {"apply": False, "request": HOLD})
        assert timeless(planned["answer"]) == timeless(same.value)
        assert fresh.status().log_dirs[0].held == 0
        done = ended(fresh, enqueued(fresh, "staged-hold", HOLD))
        assert (done["state"], done["exit"], done["use_case"]) == ("done", 0, "staged-hold")
        assert [item["state"] for item in done["answer"]["result"]["items"]] == ["done"]
        assert done["queued_at_ms"] <= done["begun_at_ms"] <= done["ended_at_ms"]
        # What it did is verified by describing.
        (item,) = read(fresh, "staged ls", HOLD).value["result"]["items"]
        assert item["state"] == "held"
        nothing = ended(fresh, enqueued(fresh, "staged-hold", {"selector": "nope"}))
        assert (nothing["state"], nothing["exit"]) == ("done", 1)
        listed = send(fresh, "GET", routes.OPERATIONS).value
        assert faults("OperationsAnswer", listed) == []
        assert [one["id"] for one in listed["result"]["items"]] == [planned["id"], done["id"], nothing["id"]]
        for one in (planned, done, nothing):
            whole = send(fresh, "GET", routes.operation_path(one["id"])).value
            assert faults("OperationAnswer", whole) == []
        # It ran among the other requests, and stands in the history like them.
        assert [event["command"] for event in fresh.events() if event["event"] == "request"] == ["staged hold"] * 2


def test_one_typed_result_for_each_item_of_a_batch(tmp_path: Path) -> None:
    with daemon(tmp_path) as fresh:
        for number in range(3):
            fresh.make("pay", number)
        (fresh.log_dirs[0] / "pay-1" / "of somebody else").mkdir()
        found = ended(fresh, enqueued(fresh, "stage", to_json(stage_of("pay"))))
        items = found["answer"]["result"]["items"]
        assert sorted((item["path"], item["state"]) for item in items) == [
            ("pay-0", "done"),
            ("pay-1", "refused"),
            ("pay-2", "done"),
        ]
        assert [item["problem"] is None for item in sorted(items, key=lambda one: str(one["path"]))] == [
            True,
            False,
            True,
        ]


def test_a_restart_forgets_operations_and_says_where_to_look(tmp_path: Path) -> None:
    with daemon(tmp_path) as fresh:
        captured(fresh)
        identity = enqueued(fresh, "staged-hold", HOLD)
        ended(fresh, identity)
        assert fresh.stop() == 0
        fresh.start()
        gone = send(fresh, "GET", routes.operation_path(identity))
        assert (gone.status, gone.slugs, faults("Refusal", gone.value)) == (404, ["no-such-operation"], [])
        assert "logdirctl staged ls" in gone.value["problems"][0]["fix"]
        assert send(fresh, "DELETE", routes.operation_path(identity)).status == 404
        # The disk knows what was done.
        (item,) = read(fresh, "staged ls", HOLD).value["result"]["items"]
        assert item["state"] == "held"
        assert enqueued(fresh, "staged-hold", HOLD) != identity


@contextmanager
def stopped_workers(one: Daemon) -> Iterator[None]:
    """Let the thread of changes wait: the workers of its log dirs answer nothing meanwhile, and are not given up."""
    workers = [pid for pid in one.children() if pid not in one.watches()]
    try:
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGCONT)


def begun(one: Daemon, until_closed: ExitStack) -> list[str]:
    """Return operations of which the last has begun, and goes on until the stack is closed.

    A look for deletions that was under way when the workers stopped keeps it from its turn; then another one is tried.
    """
    tried: list[str] = []
    while len(tried) < 5:
        with ExitStack() as stack:
            stack.enter_context(stopped_workers(one))
            tried.append(enqueued(one, "staged-hold", HOLD))
            with suppress(AssertionError):
                until("it has begun", lambda: operation(one, tried[-1])["state"] == "running", 5)
                until_closed.push(stack.pop_all())
                return tried
        ended(one, tried[-1])
    raise AssertionError("none has begun: a look was under way each time")


def test_an_operation_is_cancelled_until_it_begins_and_the_thread_of_changes_holds_up_no_reader(tmp_path: Path) -> None:
    # No sweep comes between.
    more = "disk.timeout.ms: 120000\nsweep.interval.ms: 60000\n"
    with daemon(tmp_path, more=more, delete_delay_ms=600_000) as fresh:
        captured(fresh)
        with ExitStack() as until_closed:
            held = begun(fresh, until_closed)
            second = enqueued(fresh, "staged-hold", HOLD)
            assert operation(fresh, second)["state"] == "queued"
            assert fresh.status().queued == 1
            for _ in range(2):  # To cancel it twice is to cancel it.
                found = send(fresh, "DELETE", routes.operation_path(second))
                assert (found.status, faults("OperationAnswer", found.value)) == (200, [])
                assert found.value["result"]["state"] == "cancelled"
            answer = send(fresh, "DELETE", routes.operation_path(held[-1]))
            assert (answer.status, answer.slugs) == (409, ["operation-begun"])
            # A use case that only reads takes no turn: it is answered meanwhile.
            assert read(fresh, "staged ls").value["exit"] == 0
            assert read(fresh, "layout status").value["exit"] == 0
        assert ended(fresh, held[-1])["exit"] == 0
        until("its turn has passed", lambda: fresh.status().queued == 0)
        assert (operation(fresh, second)["state"], operation(fresh, second)["begun_at_ms"]) == ("cancelled", None)
        requests = [event["command"] for event in fresh.events() if event["event"] == "request"]
        assert requests == ["staged hold"] * len(held)


def test_what_was_enqueued_is_done_although_its_client_has_left(tmp_path: Path) -> None:
    with daemon(tmp_path) as fresh:
        captured(fresh)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(fresh.socket)
            body = {"use_case": "staged-hold", "apply": True, "request": HOLD}
            connection.sendall(bytes_of("POST", routes.OPERATIONS, body))
        until("it is done", lambda: fresh.status().log_dirs[0].held == 1)
        (item,) = send(fresh, "GET", routes.OPERATIONS).value["result"]["items"]
        until("its answer is kept", lambda: operation(fresh, item["id"])["state"] == "done")


def test_a_reader_that_leaves_ends_its_processes_and_is_no_fault(tmp_path: Path) -> None:
    with daemon(tmp_path) as fresh:
        until("each log dir has its watch", lambda: len(fresh.watches()) == 2)
        before = set(fresh.children())
        for _ in range(10):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.connect(fresh.socket)
                connection.sendall(bytes_of("POST", routes.path_of("inventory"), {"apply": False, "request": {}}))
        until("its processes have ended", lambda: set(fresh.children()) <= before)

        def is_answered() -> bool:
            return read(fresh, "inventory").status == 200

        until("there is a place again", is_answered)
        assert "request.fault" not in fresh.log
        assert "control.fault" not in fresh.log


def test_a_disk_that_was_let_go_is_opened_by_no_reader(tmp_path: Path) -> None:
    with daemon(tmp_path) as fresh:
        two = fresh.log_dirs[1]
        for is_waited_for in (True, False):
            request = {"log_dir": str(two)}
            if is_waited_for:
                released = send(fresh, "POST", "/v1/use-cases/disk-release", {"apply": True, "request": request})
                assert (released.status, released.value["exit"]) == (200, 0)
            else:
                assert ended(fresh, enqueued(fresh, "disk-release", request))["exit"] == 0
            two.rename(f"{two}.away")  # As if it was unmounted: whoever opens it finds no log dir.
            for name in ("staged ls", "describe", "layout status"):
                found = read(fresh, name)
                assert (found.value["exit"], RELEASED in found.slugs) == (1, True), found
                assert "log-dir-offline" not in found.slugs
            Path(f"{two}.away").rename(two)


def allowed(path: str, *, is_applied: bool) -> list[tuple[str, bytes, int]]:
    """Return requests of a user who may only read, and the status of each."""
    held = {"use_case": "staged-hold", "apply": is_applied, "request": HOLD}
    return [
        ("status", bytes_of("GET", routes.STATUS), 200),
        ("metrics", bytes_of("GET", routes.METRICS), 200),
        ("page", bytes_of("GET", routes.PAGE), 200),
        ("document", bytes_of("GET", routes.OPENAPI), 200),
        *((name, bytes_of("POST", routes.path_of(name), {"apply": False, "request": {}}), 200) for name in READINGS),
        *(
            (
                f"{name} of a file",
                bytes_of(
                    "POST",
                    routes.path_of(name),
                    {"apply": False, "request": {"source": {"uri": f"{scheme}:{path}"}}},
                ),
                403,
            )
            for name in ("staged ls", "strays", "describe")
            for scheme in ("metadata", "request", "znodes", "cluster")
        ),
        ("operations", bytes_of("GET", routes.OPERATIONS), 403),
        ("an operation", bytes_of("GET", routes.operation_path("0-1")), 403),
        ("to cancel", bytes_of("DELETE", routes.operation_path("0-1")), 403),
        ("to enqueue", bytes_of("POST", routes.OPERATIONS, held), 403),
        ("a long body", LONG, 413),
    ]


@pytest.mark.root
@pytest.mark.parametrize("is_applied", [False, True], ids=["planned", "applied"])
def test_another_user_reads_and_neither_changes_anything_nor_names_a_file(is_applied: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: asks as another user")
    with tempfile.TemporaryDirectory(prefix="logdird-") as name, daemon(Path(name)) as fresh:
        Path(name).chmod(0o755)
        captured(fresh)
        secret = fresh.folder / "secret.json"
        secret.write_text('{"password": "hunter2"}')
        before = unchanged(fresh)
        for what, data, expected in allowed(str(secret), is_applied=is_applied):
            found = parsed(ask_as(_NOBODY, fresh.socket, data))
            assert (what, found.status) == (what, expected), found.body[:500]
            assert b"hunter2" not in found.body
            if expected == 403:
                assert (what, found.slugs) == (what, ["no-permission"])
        assert unchanged(fresh) == before
        assert "request" not in {event["event"] for event in fresh.events()}
        assert send(fresh, "GET", routes.OPERATIONS).value["result"]["items"] == []
        # The owner may name a file, and see what came of an operation.
        assert read(fresh, "strays", named(fresh)).status == 200
        assert ended(fresh, enqueued(fresh, "staged-hold", HOLD))["state"] == "done"


def test_an_answer_that_is_sent_in_parts_arrives_whole(tmp_path: Path) -> None:
    with daemon(tmp_path) as fresh:
        for number in range(2500):
            (fresh.log_dirs[0] / f"{'a' * 200}-{number}").mkdir()
        found: Response = read(fresh, "inventory", {"are_entries_wanted": True})
        assert (found.status, len(found.body) > 1 << 20) == (200, True)
        assert sum(len(disk["entries"]) for disk in found.value["result"]["items"]) >= 2500
