"""Starts of a stock broker against a daemon that follows documents on a stopped one: no lock of ours is in their way.

Each start is handed over as its unit does it, most of them while the daemon holds Kafka's locks. The documents come
without end, each takes the lock of every log dir, and some are still waiting when the broker starts; beside them an
operator stages all replicas of a topic, and restores them, again and again.

Spec: design §2 law 4; attacks A22.
"""

from __future__ import annotations

import json
import os
import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from logdir.daemon.socket import client
from logdir.errors import LogDirError
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
from tests.kafka.undo_rig import await_in_sync, stop
from tests.logdir.daemon.rig import Process, stage_of
from tests.proof.kafka_claims import DAEMON_STARTS
from tests.proof.plugin import Recorder
from tests.reconcile.universe import document, listed
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(2 * 60 * 60)]

SEED: Final = 31
PARTITIONS: Final = 6
_INCREMENTAL: Final = 1


class Worker(ABC):
    """Does something in a thread of its own, until the block ends that it was begun for."""

    def __init__(self) -> None:
        self._ends = threading.Event()

    @abstractmethod
    def _run(self) -> None:
        """Work until ``_ends`` is set."""

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


class Feeder(Worker):
    """Writes a document into the inbox as soon as the last one was followed."""

    def __init__(self, inbox: Path, topic_id: str) -> None:
        super().__init__()
        self._inbox, self._topic_id = inbox, topic_id
        inbox.mkdir(parents=True, exist_ok=True)
        self._sequence = 0

    def handled(self) -> int:
        """How many were followed: done, or refused under the locks."""
        return sum(len(list((self._inbox / name).glob("*.json"))) for name in ("done", "refused"))

    def await_more_than(self, count: int) -> None:
        """Wait until another one was followed."""
        await_true("a document is followed", lambda: self.handled() > count, timeout_seconds=60)

    def _run(self) -> None:
        while not self._ends.wait(0.02):
            if not list(self._inbox.glob("[0-9]*.json")):
                self._sequence += 1
                states = listed(pay=(self._topic_id, tuple(range(PARTITIONS))))
                value = document(states, type=_INCREMENTAL, sequence=self._sequence)
                hidden = self._inbox / f".{self._sequence:06}.json"
                hidden.write_text(json.dumps(value))
                hidden.rename(self._inbox / f"{self._sequence:06}.json")


class Operator(Worker):
    """Asks the daemon to stage a topic and to restore it, in turn: each renames its replicas under Kafka's locks."""

    def __init__(self, socket: str, topic_id: str) -> None:
        super().__init__()
        self._socket, self._topic_id = socket, topic_id
        self.staged = self.restored = 0
        """How many replicas were."""

    def await_restored(self) -> None:
        """Wait until some more were restored."""
        before = self.restored
        await_true("a topic is restored", lambda: self.restored > before, timeout_seconds=60)

    def _run(self) -> None:
        stage = replace(stage_of("pay"), is_even_if_last=True)
        while not self._ends.is_set():
            staged = self._ask("stage", stage)
            self.staged += len(staged)
            # Those staged before are left: the broker made their replicas anew when it started in between.
            selection = Selection(f"id:{self._topic_id}", names=tuple(map(os.path.basename, staged)))
            restore = RestoreRequest(source=SourceRequest(), selection=selection, is_even_if_unknown=False)
            self.restored += len(self._ask("staged restore", restore)) if staged else 0

    def _ask(self, command: str, request: Any) -> list[str]:
        """Return the new paths of the replicas that were changed: none, if a broker runs or is about to."""
        try:
            ran, _ = client.run(self._socket, spec_of(command), request, is_applied=True)
        except (LogDirError, AnsweredError):
            self._ends.wait(0.1)
            return []
        return [one.new_path or "" for one in ran.result.items if one.state is ItemState.DONE]


@pytest.mark.parametrize("version", releases_of("daemon starts"))
def test_a22_no_start_of_a_broker_meets_a_lock_of_a_daemon_that_works_on_a_stopped_one(
    version: str, make_rig: Callable[[str], Rig], tmp_path: Path, record_proof: Recorder
) -> None:
    draw = random.Random(SEED)
    starts = DAEMON_STARTS.count("starts") // len(releases_of("daemon starts"))
    after_work = amid = 0
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=3)
        broker.start()
        topic_id = rig.client.create_on("pay", [[1]] * PARTITIONS)
        await_in_sync(rig, "pay", [1])
        configuration = broker.write_configuration()
        assert ctl("init", "--server-properties", configuration, "--apply").status == Exit.DONE
        stop(broker)
        config = tmp_path / "b1.yaml"
        more = "state.dir: state\nsocket: s.sock\nsweep.interval.ms: 500\nauto.while.stopped: true\n"
        config.write_text(f"server.properties: {configuration}\n{more}")
        with Process(config).running() as daemon:
            feeder = Feeder(tmp_path / "state" / "inbox", topic_id)
            operator = Operator(daemon.socket, topic_id)
            with feeder.working(), operator.working():
                for number in range(starts):
                    before = feeder.handled()
                    if number % 2 == 0:
                        feeder.await_more_than(before)
                    if number % 4 == 2:
                        operator.await_restored()
                    threading.Event().wait(draw.random())
                    if number % 4:
                        await_true("a batch is in progress", lambda: is_held(broker.log_dirs[0]), timeout_seconds=60)
                    amid += is_held(broker.log_dirs[0])
                    after_work += feeder.handled() > before
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
    assert after_work >= starts // 2
    # Of three in four the lock was seen held just before.
    assert amid >= starts // 2
    assert min(operator.staged, operator.restored) >= starts
    record_proof(DAEMON_STARTS, {"starts": starts}, seeds=SEED)
