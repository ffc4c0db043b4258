"""Damaged requests and documents: a typed answer each, the daemon alive, nothing changed.

Each is such that whole it would change something: damage that is not noticed shows.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logdir.decide.staged.deadline import DelayPolicy
from logdir.service.adopt import AdoptRequest
from logdir.service.batch.handover import HandoverRequest
from logdir.service.batch.layout_case import LayoutRequest
from logdir.service.batch.reconcile_case import ReconcileRequest
from logdir.service.capture import CaptureRequest
from logdir.service.cluster.source import SourceRequest
from logdir.service.export import ExportRequest
from logdir.service.layout import read_plan
from logdir.service.purge import PurgeRequest
from logdir.service.reconcile import Policy
from logdir.service.report.json_form import to_json
from logdir.service.report.layout_result import LayoutVerb
from logdir.service.report.staged import Selection
from logdir.service.restore import RestoreRequest
from tests.builders import TOPIC_ID, log_dir
from tests.logdir.cluster.log_dir import LogDir, noop, register, remove, topic
from tests.logdir.cluster.log_dir import partition as claimed
from tests.logdir.daemon.damage import Damage, Whole, damaged_documents, damaged_requests
from tests.logdir.daemon.rig import Daemon, ask, daemon, stage_of, unchanged, until
from tests.logdir.daemon.test_control import answer
from tests.logdir.daemon.test_inbox import (
    EVERY,
    FULL,
    INCREMENTAL,
    SWEEP,
    broker,
    error_of,
    position,
    put,
    until_handled,
)
from tests.logdir.daemon.test_requests import plan_of
from tests.logdir.wire.golden_frames import golden_frames
from tests.proof.claims import DAMAGED_REQUESTS
from tests.proof.plugin import Recorder
from tests.reconcile.universe import document, listed, stopped
from tests.tools.adopt_rig import NEW, RECORDS, WRITTEN, filled
from tests.tools.ctl import ctl, ctl_json
from tests.tools.reconcile_rig import GONE, OTHER, age, raw
from tools.cli.arguments import Exit

SEED = 516
SHOP, LEFT = "d8tRS7h4TJ2Vt43Dp85v2A", "c8tRS7h4TJ2Vt43Dp85v2A"
NO_REQUEST = frozenset((400, 404, 413, 414, 431, 501, 505))
WITHOUT_GONE = listed(pay=(TOPIC_ID, EVERY))


def applied(one: Daemon, *words: object) -> None:
    said = ctl(*words, "--config", one.config, "--apply")
    assert said.status == Exit.DONE, said


def wholes(one: Daemon) -> tuple[Whole, ...]:
    """Make replicas that are live, staged, captured and about to be removed; return a request of each kind for them."""
    broker(one)
    age(filled(one.log_dirs[1] / "old-0", NEW, WRITTEN))
    plan = plan_of(one)
    age(one.make("left", 0, topic_id=LEFT))
    applied(one, "stage", "left-0", "--even-if-unknown", "--even-over-limit")
    one.delete(filled(one.log_dirs[0] / "old-0", OTHER, RECORDS))
    applied(one, "capture", "old")
    one.delete(one.make("due", 0, topic_id=SHOP))
    soon: Any = to_json(CaptureRequest(selector="due", delays=DelayPolicy(default_ms=1), is_held=False))
    assert answer(ask(one.socket, Whole("capture", soon, None, ()).http()))[1]["exit"] == 0
    one.delete(one.make("shop", 0, disk=1, topic_id=SHOP))
    file = one.folder / "full.json"
    file.write_text(json.dumps(document(WITHOUT_GONE, type=FULL, sequence=1)))
    (one.folder / "out").mkdir()
    source = SourceRequest()
    # As a controller has it: "old" was removed, and created again.
    top = log_dir(one.folder / "controller", node=9, directory="AAAAAAAAAAAAAAAAAAAAEA")
    log = LogDir(top / "__cluster_metadata-0")
    log.lead(1)
    log.append(register(1, fenced=True), topic("old", raw(OTHER)), claimed(raw(OTHER), 0, (1,)), remove(raw(OTHER)))
    log.append(topic("old", raw(NEW)), claimed(raw(NEW), 0, (1,)), noop())
    known = SourceRequest(f"metadata:{log.directory}", log.offset, 1)
    requests: tuple[tuple[str, object, str | None, tuple[str, ...]], ...] = (
        (
            "stage",
            stage_of("pay-3"),
            "selector",
            ("selector",),
        ),
        ("capture", CaptureRequest(selector="shop", delays=DelayPolicy(), is_held=False), "selector", ("selector",)),
        (
            "staged-restore",
            RestoreRequest(source=source, selection=Selection("left"), is_even_if_unknown=True),
            "selection",
            ("selection", "selector"),
        ),
        (
            "staged-adopt",
            AdoptRequest(source=known, selection=Selection("old"), as_topic="old", is_even_if_unknown=True),
            "as_topic",
            ("selection", "selector"),
        ),
        ("staged-hold", Selection("old"), "selector", ("selector",)),
        (
            "staged-export",
            ExportRequest(selection=Selection("old"), output=str(one.folder / "out")),
            "output",
            ("selection", "selector"),
        ),
        (
            "staged-purge",
            PurgeRequest(source=source, selection=Selection("due")),
            "source",
            ("selection", "selector"),
        ),
        (
            "reconcile",
            ReconcileRequest(source=SourceRequest(f"request:{file}"), policy=Policy(is_confirmed=True)),
            "source",
            ("source", "uri"),
        ),
        ("layout", LayoutRequest(verb=LayoutVerb.APPLY, document=read_plan(str(plan))), "verb", ()),
        ("handover", HandoverRequest(), None, ()),
    )
    made = []
    for name, request, needed, about in requests:
        value = to_json(request)
        assert isinstance(value, dict)
        made.append(Whole(name, value, needed, about))
    made.append(Whole("disk-release", {"log_dir": str(one.log_dirs[1])}, "log_dir", ("log_dir",)))
    return tuple(made)


@pytest.fixture
def unasked(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that does nothing by itself: whatever changes was requested."""
    with daemon(tmp_path, is_started=False) as one:
        one.config.write_text(one.config.read_text().replace("auto.while.stopped: true", "auto.while.stopped: false"))
        one.start()
        yield one


def is_alive(one: Daemon, pid: int) -> bool:
    """Whether it is the same daemon, without a fault and with the same log dirs open."""
    status = one.status()
    faults = [word for word in ("request.fault", "daemon.fault", "work.failed", "broker.reopened") if word in one.log]
    return (status.state, status.pid, faults) == ("RUNNING", pid, [])


def _judged(raw: bytes, damage: Damage, what: object) -> int:
    """Return the status of the answer to a damaged request, which is as it must be."""
    assert raw, what
    status, value = answer(raw)
    where = what, status, value
    match damage:
        case Damage.HOSTILE:
            assert status in (200, 400), where
        case Damage.NOTHING:
            assert (status, value["exit"] != 0) == (200, True), where
        case Damage.STATUS if status == 200:
            assert (value["command"], value["exit"]) == ("status", 0), where
        case _:
            assert status in NO_REQUEST, where
            assert value["exit"] != 0, where
    if value["exit"]:
        slugs = _slugs(value)
        assert slugs, where
        assert all(re.fullmatch("[a-z][a-z0-9-]+", slug) and slug != "internal-error" for slug in slugs), where
    return status


def _slugs(value: Any) -> list[str]:
    """Return the slugs of an answer: of its problems, and of those of its items."""
    items = [item["problem"] for item in value["result"].get("items", ())]
    return [problem["slug"] for problem in (*value["problems"], *items) if problem is not None]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_damaged_requests_change_nothing_and_stop_nothing(unasked: Daemon, record_proof: Recorder) -> None:
    one = unasked
    asked = wholes(one)
    for whole in asked:
        status, value = answer(ask(one.socket, whole.http(is_applied=False)))
        # Were it sent as it is, with apply, something would change.
        assert (whole.name, status, value["exit"]) == (whole.name, 200, 0), value
    before, pid = unchanged(one), one.status().pid
    count = DAMAGED_REQUESTS.count("requests")
    sent: Counter[Damage] = Counter()
    statuses: Counter[int] = Counter()
    for data, damage, name in damaged_requests(asked, count, SEED):
        raw = ask(one.socket, data)
        sent[damage] += 1
        if data or raw:  # Only an empty request may get no answer.
            statuses[_judged(raw, damage, (name, damage, data[:2000]))] += 1
    assert unchanged(one) == before
    assert is_alive(one, pid)
    assert sent.keys() == set(Damage)
    assert {200, 400, 404} <= statuses.keys()
    # And a whole one is still done.
    whole = next(item for item in asked if item.name == "staged-hold")
    assert answer(ask(one.socket, whole.http()))[1]["exit"] == 0
    assert unchanged(one) != before
    record_proof(DAMAGED_REQUESTS, {"requests": count}, seeds=SEED)


_NO_DOCUMENT = frozenset(("malformed-file", "unsupported-version"))


def whole_documents() -> list[dict[str, Any]]:
    """Return documents of each kind that would stage something: more than was followed, at a position not yet seen."""
    stop = stopped(delete=True, gone=(GONE, (0,)))
    return [
        document(listed(pay=(TOPIC_ID, EVERY), gone=(GONE, (1, 2))), type=FULL, sequence=900),
        document(listed(gone=(NEW, (0,))), type=INCREMENTAL, sequence=900),
        document(stop, api="StopReplica", form="kip", sequence=900),
        document(stopped(delete=True, gone=(None, (2,))), api="StopReplica", sequence=900),
    ]


def in_frames() -> list[dict[str, Any]]:
    """Return documents with what stock controllers sent."""
    return [
        {
            "document": 1,
            "api": frame.api,
            "version": frame.version,
            "form": "shipped",
            "sequence": 900,
            "partitions": sum(len(topic["partitionStates"]) for topic in frame.body["topicStates"]),
            "hex": frame.data.hex(),
        }
        for frame in golden_frames()
        if frame.key in (4, 5) and frame.direction == "request"
    ]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_damaged_documents_are_refused_by_name_and_change_nothing(tmp_path: Path, record_proof: Recorder) -> None:
    count, each = DAMAGED_REQUESTS.count("documents"), 50
    every = listed(pay=(TOPIC_ID, EVERY), gone=(GONE, (0, 1, 2)))
    with daemon(tmp_path, more=SWEEP) as one:
        broker(one)
        age(one.make("left", 0, topic_id=LEFT))
        applied(one, "stage", "left-0", "--even-if-unknown", "--even-over-limit")
        one.delete(one.make("old", 0, topic_id=OTHER))
        put(one, "0.json", document(every, type=FULL, sequence=1))
        until("it is captured", lambda: one.status().captured == 1)
        until_handled(one, done=1)
        for value in whole_documents():
            (tmp_path / "whole.json").write_text(json.dumps(value))
            said, result = ctl_json("reconcile", "--from", f"request:{tmp_path}/whole.json", "--config", one.config)
            # Were it followed, something would be staged.
            assert (said, {item["action"] for item in result["items"]}) == (Exit.DONE, {"stage"}), value
        before, pid = _but_the_position(one), one.status().pid
        names, followed = [], ["0.json"]
        for number, data in enumerate(damaged_documents(whole_documents(), in_frames(), count, SEED)):
            names.append(f"{number:05}.json")
            put(one, names[-1], data)
            if number % each == each - 1:
                # One that is whole comes amid them, and is followed; nothing that it says is news.
                followed.append(f"{number:05}-whole.json")
                put(one, followed[-1], document(every, type=FULL, sequence=len(followed)))
        inbox = tmp_path / "state" / "inbox"
        until("all are handled", lambda: not _documents(inbox) and not _documents(inbox / ".running"), 60 + count)
        assert sorted(_documents(inbox / "done")) == followed
        refused = [json.loads(line)["detail"] for line in one.log.splitlines() if "document.refused" in line]
        # Each by its name, and with the kind of its fault.
        form = re.compile(rf"name=(\S+) (\S+): {re.escape(str(inbox))}/(?:\.running/)?(\S+): ")
        parts = [found.groups() if (found := form.match(line)) else (line, "", "") for line in refused]
        assert [part for part in parts if part[0] != part[2] or part[1] not in _NO_DOCUMENT] == []
        refused = [name for name, _, _ in parts]
        assert sorted(refused) == names
        # The thousand that were refused last stay.
        assert sorted(_documents(inbox / "refused")) == sorted(refused[-1000:])
        for name in refused[-1000:]:
            lines = error_of(one, name).splitlines()
            assert lines, name
            for line in lines:
                assert line.startswith(
                    (f"malformed-file: {inbox}/{name}: ", f"unsupported-version: {inbox}/{name}: ")
                ), line
        assert position(one) == (5, len(followed))
        assert _but_the_position(one) == before
        assert is_alive(one, pid)
        record_proof(DAMAGED_REQUESTS, {"documents": count, "whole documents amid them": len(followed) - 1}, seeds=SEED)


def _documents(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".json")]


def _but_the_position(one: Daemon) -> dict[str, tuple[object, ...]]:
    return {path: seen for path, seen in unchanged(one).items() if Path(path).name != "controller.json"}
