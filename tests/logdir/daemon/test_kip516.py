"""KIP-516 from a request to the purge, through socket and inbox: each kind of request, and the rules of design §4."""

from __future__ import annotations

import json
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from logdir.wire import frames
from logdir.wire.frames import RequestHeader
from logdir.wire.message import Direction, Form
from logdir.wire.schema import defaults
from tests.builders import TOPIC_ID
from tests.logdir.cluster.log_dir import LogDir, change, noop, register, topic
from tests.logdir.cluster.log_dir import partition as claimed
from tests.logdir.daemon.rig import Daemon, daemon, until
from tests.logdir.daemon.test_inbox import (
    EVERY,
    FULL,
    INCREMENTAL,
    SWEEP,
    WITH_GONE,
    WITHOUT_GONE,
    broker,
    error_of,
    lie,
    position,
    put,
)
from tests.reconcile.universe import document, listed, stopped
from tests.tools.ctl import ctl, ctl_json, tree
from tests.tools.reconcile_rig import GONE, OTHER, age, raw
from tools.cli.arguments import Exit

ZERO = "A" * 22
WAYS = pytest.mark.parametrize("way", ["inbox", "socket"])
STOP = document(stopped(delete=True, gone=(GONE, (0, 1))), api="StopReplica", form="kip", sequence=2)
DIFFERENT = document(listed(gone=(OTHER, (0,))), type=INCREMENTAL, sequence=2)


class Kind(NamedTuple):
    """A kind of request, and what follows from it for topic ``gone``."""

    documents: tuple[dict[str, Any], ...]
    reason: str
    numbers: tuple[int, ...]
    """The partitions that are staged."""
    proof: str | None
    """``None``: nothing proves their removal, so that no loss is scheduled."""


KINDS = {
    "LeaderAndIsr FULL": Kind((WITHOUT_GONE,), "absent", (0, 1), "full-request"),
    "LeaderAndIsr INCREMENTAL": Kind((WITH_GONE, DIFFERENT), "topic-id-mismatch", (0,), None),
    "StopReplica": Kind((WITH_GONE, STOP), "stop-replica", (0, 1), "stop-replica"),
}
QUICK = "LeaderAndIsr INCREMENTAL"


class Giver:
    """Gives a daemon one document after the other, by one way."""

    def __init__(self, one: Daemon, way: str) -> None:
        self.one, self.way = one, way
        self.given = 0

    def __call__(self, value: dict[str, Any]) -> str:
        """Return why it was not followed; empty: it was."""
        self.given += 1
        name = f"{self.given}.json"
        if self.way == "socket":
            file = self.one.folder / name
            file.write_text(json.dumps(value))
            said = ctl("reconcile", "--from", f"request:{file}", "--config", self.one.config, "--apply")
            return "" if said.status == Exit.DONE else said.err
        put(self.one, name, value)
        until("it is handled", lambda: name in (*lie(self.one).get("done", ()), *lie(self.one).get("refused", ())))
        return "" if name in lie(self.one)["done"] else error_of(self.one, name)


def marker(one: Daemon, number: int) -> dict[str, Any]:
    path = Path(f"{one.log_dirs[1]}.logdird/deleting/{GONE}_{number}/replica.json")
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def warnings(one: Daemon) -> list[str]:
    """Return the lines of the log about losses that were scheduled by a request, each of which is a warning."""
    lines = [json.loads(line) for line in one.log.splitlines() if "request.warning" in line]
    assert {line["level"] for line in lines} <= {"WARNING"}
    return [line["detail"] for line in lines]


@WAYS
@pytest.mark.parametrize(
    "kind",
    # The others wait for deadlines of eight seconds.
    [pytest.param(kind, id=name, marks=() if name == QUICK else pytest.mark.slow) for name, kind in KINDS.items()],
)
def test_kip516_a_request_stages_warns_keeps_its_deadline_over_a_restart_and_is_purged(
    tmp_path: Path, way: str, kind: Kind
) -> None:
    with daemon(tmp_path, more=f"{SWEEP}delete.topic.delay.ms: 8s\n") as one:
        broker(one)
        pause = tmp_path / "state" / "pause-purge"  # However slow this machine is, the restart comes before the purge.
        pause.touch()
        give = Giver(one, way)
        assert [give(value) for value in kind.documents] == [""] * len(kind.documents)
        names = [f"{GONE}_{number}" for number in kind.numbers]
        assert one.staged(1) == names
        assert position(one) == (5, len(kind.documents))
        # KIP-516, Deletion, step 1: what is going to be lost, and when.
        markers = [marker(one, number) for number in kind.numbers]
        due = [None if found["delay_ms"] is None else found["staged_at_ms"] + found["delay_ms"] for found in markers]
        assert warnings(one) == [
            f"{one.log_dirs[1]}/gone-{number} ({GONE}) is staged, and can be restored "
            + ("until an operator purges it" if at_ms is None else f"until {_utc(at_ms)}")
            for number, at_ms in zip(kind.numbers, due, strict=True)
        ]
        is_proven = kind.proof is not None
        for found in markers:
            assert (found["reason"], found["delay_ms"]) == (kind.reason, 8000 if is_proven else None)
            assert (found["evidence"]["kind"], found["evidence"]["proof"]) == (
                "removed" if is_proven else "absent",
                kind.proof,
            )
        one.stop(signal.SIGKILL)
        one.start()
        until("it is listed", lambda: one.status().log_dirs[1].staged == len(names))
        assert (one.staged(1), [marker(one, number) for number in kind.numbers]) == (names, markers)
        # It is counted by the boot-time clock: as wall clock time it is off by what is rounded.
        shown = one.status().next_due_ms
        assert (shown is None) is not is_proven
        assert all(abs((shown or 0) - at_ms) < 1000 for at_ms in due if at_ms is not None)
        pause.unlink()
        if is_proven:
            until("they are purged", lambda: one.staged(1) == [], 60)
            assert time.time() * 1000 >= max(at for at in due if at is not None)
        else:
            # Without proof nothing is due, ever: it goes by name alone.
            assert one.status().log_dirs[1].held == 1
            left = ctl("staged", "purge", "--config", one.config, "--apply")
            assert (left.status, one.staged(1)) == (Exit.DONE, names), left
            said = ctl(
                "staged", "purge", names[0], "--include-held", "--even-if-early", "--config", one.config, "--apply"
            )
            assert (said.status, one.staged(1)) == (Exit.DONE, []), said
        live = {path.name for log_dir in one.log_dirs for path in log_dir.iterdir() if path.is_dir()}
        assert live == {f"pay-{n}" for n in EVERY} | {f"gone-{n}" for n in range(3) if n not in kind.numbers}
        assert position(one) == (5, len(kind.documents))


def as_bytes(value: dict[str, Any]) -> dict[str, Any]:
    """Return a document with its request as a controller sends it: header and body as bytes."""
    form, name, version = Form(value["form"]), value["api"], value["version"]
    message = frames.message(name, Direction.REQUEST, version, form)
    header = RequestHeader(api_key=message.key, api_version=version, correlation_id=7, client_id="1")
    body = frames.to_json(message, version, defaults(message.fields, version)) | value["body"]
    data = frames.encode_request(header, frames.from_json(message, version, body), form)
    return {key: one for key, one in value.items() if key != "body"} | {"hex": data.hex()}


@pytest.mark.slow
@WAYS
def test_kip516_documents_that_hold_the_bytes_of_a_request_are_followed(tmp_path: Path, way: str) -> None:
    """LeaderAndIsr as it was shipped; StopReplica as it was shipped, by name, and as the KIP has it, by topic id."""
    more = tuple(range(8))  # A tenth of all replicas may be staged: three.
    kept = listed(pay=(TOPIC_ID, EVERY), more=(OTHER, more), gone=(GONE, (1, 2)))
    full = document(kept, type=FULL, sequence=1) | {"version": 5}
    by_name = document(stopped(delete=True, gone=(None, (1,))), api="StopReplica", sequence=2)
    by_id = document(stopped(delete=True, gone=(GONE, (2,))), api="StopReplica", form="kip", sequence=3)
    with daemon(tmp_path, more=SWEEP) as one:
        broker(one)
        for number in more:
            age(one.make("more", number, topic_id=OTHER))
        give = Giver(one, way)
        for number, value in enumerate((full, by_name, by_id)):
            reason = "absent" if value is full else "stop-replica"
            assert give(as_bytes(value)) == ""
            assert one.staged(1) == [f"{GONE}_{partition}" for partition in range(number + 1)]
            assert (position(one), marker(one, number)["reason"]) == ((5, number + 1), reason)
            assert marker(one, number)["delay_ms"] == 4 * 60 * 60 * 1000
        # Bytes that are not those of the request that the document names.
        other = as_bytes(by_name) | {"api": "LeaderAndIsr", "sequence": 4}
        assert "malformed-file: " in give(other)
        assert (position(one), len(one.staged(1)), one.staged()) == ((5, 3), 3, [])
        live = {path.name for log_dir in one.log_dirs for path in log_dir.iterdir() if path.is_dir()}
        assert live == {f"pay-{n}" for n in EVERY} | {f"more-{n}" for n in more}


def _utc(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.slow
@WAYS
def test_kip516_the_rules_of_requests_hold_through_the_daemon(tmp_path: Path, way: str) -> None:
    with daemon(tmp_path, more=SWEEP) as one:
        broker(one)
        bare = one.make("bare")
        (bare / "partition.metadata").unlink()
        age(bare)
        give = Giver(one, way)
        every = listed(pay=(TOPIC_ID, EVERY), gone=(GONE, (0, 1, 2)))

        def replicas() -> dict[str, tuple[object, ...]]:
            found = tree(*one.log_dirs, *(Path(f"{log_dir}.logdird/deleting") for log_dir in one.log_dirs))
            return {path: seen for path, seen in found.items() if "/bare-0/" not in path}

        before = replicas()
        # Type 0 stages nothing: neither what differs in id nor what is left out.
        assert "removal-not-proven: " in give(document(listed(pay=(OTHER, (0,))), sequence=1))
        assert (position(one), replicas()) == (None, before)
        assert give(document(listed(pay=(TOPIC_ID, (0,))), sequence=1)) == ""
        assert (position(one), replicas()) == ((5, 1), before)
        # A zero id changes nothing, not even of a partition without one.
        zeros = listed(pay=(ZERO, EVERY), gone=(ZERO, (0, 1, 2)), bare=(ZERO, (0,)))
        assert give(document(zeros, type=FULL, sequence=2)) == ""
        assert (position(one), replicas()) == ((5, 2), before)
        assert not (bare / "partition.metadata").exists()
        # A partition without an id gets that of the request.
        assert give(document(listed(bare=(OTHER, (0,))), type=INCREMENTAL, sequence=3)) == ""
        assert (bare / "partition.metadata").read_text() == f"version: 0\ntopic_id: {OTHER}"
        # One partition that is not this broker's, or none at all: the whole request is refused.
        others = listed(pay=(TOPIC_ID, EVERY))
        others[0]["partitionStates"][7]["replicas"] = [2, 3]
        assert "request-for-another-broker: " in give(document(others, type=FULL, sequence=4))
        assert "request-empty: " in give(document([], type=FULL, sequence=4))
        # An ISR that cannot be one.
        twice = listed(pay=(TOPIC_ID, EVERY))
        twice[0]["partitionStates"][7]["isr"] = [1, 1]
        assert "malformed-file: " in give(document(twice, type=FULL, sequence=4))
        # An older controller, an older request, one for an earlier start of the broker. The same again is no fault.
        assert "request-overtaken: " in give(document(listed(pay=(OTHER, (0,))), type=FULL, sequence=9, epoch=4))
        assert "request-overtaken: " in give(document(listed(pay=(OTHER, (0,))), type=FULL, sequence=2))
        late = document(listed(pay=(OTHER, (0,))), type=FULL, sequence=4, broker_epoch=39)
        assert "broker-epoch-differs: " in give(late)
        assert give(document(listed(pay=(OTHER, (0,))), type=INCREMENTAL, sequence=3)) == ""
        assert (position(one), replicas()) == ((5, 3), before)
        # StopReplica without delete stages nothing; that of another registration is refused.
        keep = stopped(delete=False, gone=(GONE, (0,)))
        assert give(document(keep, api="StopReplica", form="kip", sequence=4)) == ""
        gone = stopped(delete=True, gone=(GONE, (0,)))
        strange = document(gone, api="StopReplica", form="kip", sequence=5, broker_epoch=41)
        assert "broker-epoch-differs: " in give(strange)
        assert (position(one), replicas()) == ((5, 4), before)
        # A newer controller counts from anew, and what it leaves out is staged.
        kept = listed(pay=(TOPIC_ID, EVERY), gone=(GONE, (1, 2)), bare=(OTHER, (0,)))
        assert give(document(kept, type=FULL, sequence=1, epoch=6)) == ""
        assert (position(one), one.staged(1)) == ((6, 1), [f"{GONE}_0"])
        # What is wanted again loses its deadline.
        assert marker(one, 0)["delay_ms"] == 4 * 60 * 60 * 1000
        again = [*every, *listed(bare=(OTHER, (0,)))]
        give(document(again, type=FULL, sequence=2, epoch=6))
        until("it is held", lambda: one.status().log_dirs[1].held == 1)
        assert (one.staged(1), marker(one, 0)["delay_ms"]) == ([f"{GONE}_0"], None)


def test_kip516_a_replica_that_differs_in_id_is_answered_inconsistent(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        broker(one)
        file = tmp_path / "request.json"
        file.write_text(json.dumps(document(listed(gone=(OTHER, (0,)), pay=(TOPIC_ID, (0,))), type=1, sequence=1)))
        status, result = ctl_json("reconcile", "--from", f"request:{file}", "--config", one.config, "--apply")
        assert (status, [(item["topic"], item["code"]) for item in result["answers"]]) == (
            Exit.DONE,
            [("gone", 103), ("pay", 0)],
        )


def test_a46_what_the_metadata_log_moves_away_stays_while_it_is_in_the_isr_or_being_added(tmp_path: Path) -> None:
    """Wanted is what is assigned or being added, and what may be the last copy never goes by itself."""
    with daemon(tmp_path) as one:
        for number in range(4):
            age(one.make("pay", number))
        log = LogDir(one.log_dirs[0] / "__cluster_metadata-0")
        log.lead(1)
        log.append(*(register(node) for node in (1, 2, 3)))
        log.append(topic("pay", raw(TOPIC_ID)), *(claimed(raw(TOPIC_ID), number, (1, 2)) for number in range(4)))
        after: tuple[dict[str, Any], ...] = (
            {"replicas": (2, 3), "isr": (1, 2)},
            {"replicas": (2, 3), "isr": (2,), "addingReplicas": (1,)},
            {"replicas": (1, 2), "isr": (1, 2)},
            {"replicas": (2, 3), "isr": (2, 3)},
        )
        log.append(*(change(raw(TOPIC_ID), number, **changed) for number, changed in enumerate(after)))
        log.append(noop())
        log.snapshot(
            *(register(node) for node in (1, 2, 3)),
            topic("pay", raw(TOPIC_ID)),
            *(claimed(raw(TOPIC_ID), number, **changed) for number, changed in enumerate(after)),
        )
        said = ctl("reconcile", "--from", "metadata:", "--config", one.config, "--apply", "--even-over-limit")
        assert (said.status, said.err.count("expected ")) == (Exit.PROBLEMS, 1), said
        assert f"last-copy: {one.log_dirs[0]}/pay-0: " in said.err
        assert one.staged() == [f"{TOPIC_ID}_3"]
        found = Path(f"{one.log_dirs[0]}.logdird/deleting/{TOPIC_ID}_3/replica.json")
        assert json.loads(found.read_text())["reason"] == "replica-moved-away"
