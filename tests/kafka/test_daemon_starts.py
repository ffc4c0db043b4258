"""Starts of a stock broker against a daemon that follows documents on a stopped one: no lock of ours is in their way.

Each start is handed over as its unit does it, most of them while the daemon holds Kafka's locks. The documents come
without end, each takes the lock of every log dir and stages replicas, which are restored before the next one comes, and
some are still waiting when the broker starts; beside them an operator stages all replicas of a topic, and restores
them, again and again.

Spec: design §2 law 4; attacks A22.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from logdir.daemon.socket import client
from logdir.errors import LogDirError
from logdir.formats.own import staging_limit_file
from logdir.service.batch.use_cases import spec_of
from logdir.service.cluster.source import SourceRequest
from logdir.service.report.exit_status import AnsweredError
from logdir.service.report.result import ItemState
from logdir.service.report.staged import Selection
from logdir.service.restore import RestoreRequest
from tests.hung.locks import is_held
from tests.kafka.no_rights import require_no_rights_in_proof
from tests.kafka.rig import Rig, await_true
from tests.kafka.rotation import releases_of
from tests.kafka.soak.disk import work_of
from tests.kafka.undo_rig import await_in_sync, stop
from tests.logdir.daemon.rig import Process, stage_of
from tests.proof.kafka_claims import DAEMON_STARTS
from tests.proof.plugin import Recorder
from tests.reconcile.universe import OTHER, document, listed
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(2 * 60 * 60)]

SEED: Final = 31
PARTITIONS: Final = 6
_INCREMENTAL: Final = 1
_OTHER_ID: Final = OTHER["a"]
_HOUR_S: Final = 60 * 60
_PROPERTIES: Final = {"broker.session.timeout.ms": "3000"}
"""A broker that was killed waits at its next start until its last session has ended: 9 s by default."""


def deleting(log_dirs: Sequence[Path], topic_id: str) -> set[str]:
    """Return the names of what is staged of a topic."""
    names = (name for log_dir in log_dirs for name in os.listdir(f"{work_of(log_dir)}/deleting"))
    return {name for name in names if name.startswith(f"{topic_id}_")}


def as_after_a_day(log_dirs: Sequence[Path]) -> None:
    """Let the staging limit count from nothing: it lets a document stage little more than once in 24 hours."""
    for log_dir in log_dirs:
        hidden = log_dir.with_name(f".{log_dir.name}.{threading.get_ident()}")
        hidden.write_bytes(staging_limit_file.render(()))
        hidden.rename(Path(work_of(log_dir), staging_limit_file.FILE_NAME))


class Worker(ABC):
    """Does something in a thread of its own, until the block ends that it was begun for."""

    def __init__(self) -> None:
        self._ends = threading.Event()
        self.staged = self.restored = 0
        """How many replicas were."""

    @abstractmethod
    def _run(self) -> None:
        """Work until ``_ends`` is set."""

    def await_restored(self) -> None:
        """Wait until some more were restored."""
        before = self.restored
        await_true("replicas are restored", lambda: self.restored > before, timeout_seconds=60)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Work until the block ends."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._ends.set()
            thread.join()


def ask(socket: str, command: str, request: Any) -> list[str] | None:
    """Let a daemon do something; return the new paths of what it changed; ``None``: it refused, or did not answer."""
    try:
        ran, _ = client.run(socket, spec_of(command), request, is_applied=True)
    except (LogDirError, AnsweredError):
        return None  # A broker runs, or is about to.
    return [one.new_path or "" for one in ran.result.items if one.state is ItemState.DONE]


def restore(socket: str, topic_id: str, names: Collection[str]) -> int:
    """Let a daemon restore what is staged under these names; return how many were."""
    selection = Selection(f"id:{topic_id}", names=tuple(sorted(names)))
    request = RestoreRequest(source=SourceRequest(), selection=selection, is_even_if_unknown=False)
    return len(ask(socket, "staged restore", request) or ()) if names else 0


class Feeder(Worker):
    """Writes a document into the inbox as soon as the last one was followed, and what that staged was restored.

    Each says that all partitions of ``fed`` but the first have another topic id: they are stale, and are staged.
    """

    def __init__(self, daemon: Process, log_dirs: Sequence[Path], topic_id: str) -> None:
        super().__init__()
        self._inbox = daemon.folder / "state" / "inbox"
        self._inbox.mkdir(parents=True, exist_ok=True)
        self._socket, self._log_dirs, self._topic_id = daemon.socket, log_dirs, topic_id
        self._sequence = 0
        self.followed = 0
        """How many documents were done and staged something."""

    def handled(self) -> int:
        """How many documents were done, or refused."""
        return sum(len(list((self._inbox / name).glob("*.json"))) for name in ("done", "refused"))

    def await_more_than(self, count: int) -> None:
        """Wait until another one has staged something."""
        await_true("a document stages replicas", lambda: self.followed > count, timeout_seconds=60)

    def _run(self) -> None:
        while not self._ends.wait(0.02):
            before = deleting(self._log_dirs, self._topic_id)
            name = self._write()
            while not (is_done := (self._inbox / "done" / name).exists()):
                if (self._inbox / "refused" / name).exists() or self._ends.wait(0.02):
                    break
            staged = deleting(self._log_dirs, self._topic_id) - before
            if is_done:
                self.followed += bool(staged)
                self.staged += len(staged)
            as_after_a_day(self._log_dirs)
            self._restore(staged)

    def _write(self) -> str:
        """Write the next document, of what has been there for an hour; return its name."""
        hour_ago_s = time.time() - _HOUR_S
        for path in self._live():
            os.utime(path / "partition.metadata", (hour_ago_s, hour_ago_s))
        self._sequence += 1
        name = f"{self._sequence:06}.json"
        states = listed(fed=(_OTHER_ID, tuple(range(1, PARTITIONS))))
        hidden = self._inbox / f".{name}"
        hidden.write_text(json.dumps(document(states, type=_INCREMENTAL, sequence=self._sequence)))
        hidden.rename(self._inbox / name)
        return name

    def _live(self) -> list[Path]:
        return [path.parent for log_dir in self._log_dirs for path in log_dir.glob("fed-*/partition.metadata")]

    def _restore(self, staged: set[str]) -> None:
        """Restore what was staged, except where a broker that started meanwhile has made the replicas anew."""
        while staged and not self._ends.wait(0.02):
            self.restored += restore(self._socket, self._topic_id, staged)
            live = {f"{self._topic_id}_{path.name.rpartition('-')[2]}" for path in self._live()}
            staged = {name for name in staged if name.partition(".")[0] not in live}


class Operator(Worker):
    """Asks the daemon to stage a topic and to restore it, in turn: each renames its replicas under Kafka's locks."""

    def __init__(self, socket: str, log_dirs: Sequence[Path], topic_id: str) -> None:
        super().__init__()
        self._socket, self._log_dirs, self._topic_id = socket, log_dirs, topic_id

    def _run(self) -> None:
        stage = replace(stage_of("pay"), is_even_if_last=True)
        while not self._ends.is_set():
            staged = ask(self._socket, "stage", stage)
            if staged is None:
                self._ends.wait(0.1)
                continue
            as_after_a_day(self._log_dirs)
            self.staged += len(staged)
            # Those staged before are left: the broker made their replicas anew when it started in between.
            self.restored += restore(self._socket, self._topic_id, set(map(os.path.basename, staged)))


@pytest.mark.parametrize("version", releases_of("daemon starts"))
def test_a22_no_start_of_a_broker_meets_a_lock_of_a_daemon_that_works_on_a_stopped_one(
    version: str, make_rig: Callable[[str], Rig], tmp_path: Path, record_proof: Recorder
) -> None:
    draw = random.Random(SEED)
    starts = DAEMON_STARTS.count("starts") // len(releases_of("daemon starts"))
    after_work = amid = 0
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=3, properties=_PROPERTIES)
        broker.start()
        pay_id, fed_id = (rig.client.create_on(topic, [[1]] * PARTITIONS) for topic in ("pay", "fed"))
        await_in_sync(rig, "pay", [1])
        await_in_sync(rig, "fed", [1])
        configuration = broker.write_configuration()
        assert ctl("init", "--server-properties", configuration, "--apply").status == Exit.DONE
        stop(broker)
        config = tmp_path / "b1.yaml"
        more = (
            "state.dir: state\nsocket: s.sock\nstaged.min.free: 1\nsweep.interval.ms: 500\nauto.while.stopped: true\n"
        )
        config.write_text(f"server.properties: {configuration}\n{more}")
        with Process(config).running() as daemon:
            feeder = Feeder(daemon, broker.log_dirs, fed_id)
            operator = Operator(daemon.socket, broker.log_dirs, pay_id)
            with feeder.working(), operator.working():
                for number in range(starts):
                    before = feeder.followed
                    if number % 4 != 1:
                        feeder.await_more_than(before)
                    if number % 4 == 2:
                        operator.await_restored()
                        feeder.await_restored()
                    threading.Event().wait(draw.random())
                    if number % 4:
                        await_true("a batch is in progress", lambda: is_held(broker.log_dirs[0]), timeout_seconds=60)
                    amid += is_held(broker.log_dirs[0])
                    after_work += feeder.followed > before
                    said = ctl("handover", "--config", config, "--quiet")
                    assert (said.status, said.out) == (Exit.DONE, ""), said
                    handled = feeder.handled()
                    assert broker.try_start() is None, (number, broker.trouble())
                    assert daemon.process is not None
                    require_no_rights_in_proof(broker.pid, daemon.process.pid)
                    assert "Failed to acquire lock" not in broker.log_text
                    assert feeder.handled() == handled
                    await_true("the daemon sees it", lambda: daemon.status().broker_runs is True)
                    broker.kill()
                    await_true("the daemon sees that it has ended", lambda: daemon.status().broker_runs is False)
            assert not daemon.has_ended()
    assert after_work >= 3 * starts // 4
    # Of three in four the lock was seen held just before.
    assert amid >= starts // 2
    counts = {
        "replicas staged by documents": feeder.staged,
        "replicas restored after documents": feeder.restored,
        "replicas staged by an operator": operator.staged,
        "replicas restored for an operator": operator.restored,
    }
    assert {what: count for what, count in counts.items() if count < starts} == {}
    record_proof(DAEMON_STARTS, {"starts": starts, **counts}, seeds=SEED)
