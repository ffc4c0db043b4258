"""One broker with three log dirs and its daemon, both as processes: started, killed, given requests, and looked at.

Not here: what is drawn (``rounds``), when a kill comes (``kill``), what must hold (``model``).

Spec: design §5; kafka-behaviour §10.5.
"""

from __future__ import annotations

import fcntl
import os
import time
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from logdir.daemon.socket import client
from logdir.errors import LogDirError
from logdir.service.batch.use_cases import spec_of
from logdir.service.report.exit_status import AnsweredError
from tests.kafka.client import ClientError
from tests.kafka.no_rights import require_no_rights_in_proof
from tests.kafka.rig import Broker, Rig, await_true
from tests.kafka.soak.disk import Record, digest, look, records_of, work_of
from tests.kafka.soak.gap import is_gap_over
from tests.kafka.soak.kill import Task, children, is_watch
from tests.kafka.soak.model import Judge, Log, Model, Place, now_ms
from tests.kafka.soak.observer import Observer
from tests.logdir.daemon.rig import Process
from tests.tools.ctl import ctl

DELETE_DELAY_MS: Final = 8000
"""Short, so that what was deleted goes soon; long enough for a start of the daemon on a busy machine."""
SWEEP_MS: Final = 2000
"""The daemon sweeps four times within the delay of its broker."""
PROPERTIES: Final = {
    "log.segment.delete.delay.ms": str(DELETE_DELAY_MS),
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
}
CONFIG: Final = """server.properties: {properties}
state.dir: state
socket: s.sock
auto.while.stopped: true
staged.min.free: 1
delete.topic.delay.ms: 1h
topics:
  "s*": {{delete.topic.delay.ms: 3s}}
  "m*": {{delete.topic.delay.ms: 12s}}
"""
SETTLE_SECONDS: Final = 45
_DESCRIPTORS: Final = {"supervisor": 14, "worker": 10, "watch": 8}
"""How many descriptors a process of the daemon has open at most for long, of a broker with three log dirs."""
_CALM_SECONDS: Final = 10


class SoakError(Exception):
    """A violation."""


class World:
    """The broker, the daemon, and what is known of them."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.broker: Broker = rig.add_broker(log_dirs=3, properties=PROPERTIES)
        self.model = Model()
        self.broker.start()
        properties = self.broker.write_configuration()
        assert ctl("init", "--server-properties", properties, "--apply").status == 0
        folder = rig.root / "logdird"
        folder.mkdir()
        config = folder / "b1.yaml"
        config.write_text(CONFIG.format(properties=properties))
        self.daemon = Process(config)
        self.observer = Observer(self.broker.log_dirs)
        self.judge = Judge(self.model, self.observer, self.names_loss)
        self._sent = 0
        self._misses: Counter[int] = Counter()
        """By process id of a daemon: how many of the misses that it counts are explained by a loss."""

    def start(self) -> None:
        """Start daemon and observer."""
        self.daemon.start()
        assert self.daemon.process is not None
        require_no_rights_in_proof(self.broker.pid, self.daemon.process.pid)
        self.observer.start()

    def close(self) -> None:
        """End the daemon and the observer, however they are."""
        self.observer.stop()
        if self.daemon.process is not None and self.daemon.process.poll() is None:
            self.daemon.process.kill()
            self.daemon.process.wait()

    # -- the broker ------------------------------------------------------------------------------------------

    def create(self, topic: str, partitions: int, written: int) -> str:
        """Create a topic with records in some of its partitions, each unlike any other; return its id."""
        topic_id = self.rig.client.create(topic, partitions)
        for partition in range(partitions):
            await_true(f"{topic}-{partition} has a leader", partial(self._leads, topic, partition))
        for partition in range(written):
            self._sent += 1
            count, size, keys = 3 + self._sent % 9, 20 + self._sent, self._sent % 3
            began_ms = now_ms()
            produce = self.rig.client.produce
            last = produce(topic, partition, records=count, value_bytes=size, keys=keys, headers=True)
            assert last == count - 1, (topic, partition, last)
            values = [f"{n}-".encode().ljust(size, b"x") for n in range(count)]
            sent = [
                (n, f"k{n % keys}".encode() if keys else None, value, ((b"n", b"%d" % n),))
                for n, value in enumerate(values)
            ]
            # When each was written its client alone knows: the rest has to be what was sent.
            records = self._written(f"{topic}-{partition}")
            assert [(one.offset, one.key, one.value, one.headers) for one in records] == sent
            assert all(began_ms <= one.timestamp_ms <= now_ms() for one in records)
            log = Log(topic, topic_id, partition, digest(records), count, zlib.crc32(b"".join(values)))
            self.model.logs.append(log)
        return topic_id

    def _written(self, name: str) -> list[Record]:
        """Return the records of a live partition, as its broker has just written them."""
        (path,) = (log_dir / name for log_dir in self.broker.log_dirs if (log_dir / name).is_dir())
        return [one for segment in sorted(path.glob("*.log")) for one in records_of(segment.read_bytes())]

    def _leads(self, topic: str, partition: int) -> bool:
        return bool(self.rig.client.in_sync(topic, partition))

    def start_broker(self) -> None:
        """Start the broker, and wait until it answers."""
        self.broker.start()
        self.judge.is_broker_running = True

        def answers() -> bool:
            with suppress(ClientError):
                self.rig.client.topics()
                return True
            return False

        await_true("the broker answers", answers, timeout_seconds=60)

    def stop_broker(self) -> None:
        """Stop the broker in order."""
        self.broker.stop()
        self.judge.is_broker_running = False

    def verify(self, logs: list[Log]) -> None:
        """Let a consumer read logs.

        Raises:
            SoakError: It read something else than was written.
        """
        for log in logs:
            await_true(f"{log} has a leader", partial(self._leads, log.topic, log.partition))
            read = self.rig.client.consume(log.topic, log.partition)
            if (read.records, read.first, read.crc32) != (log.records, 0, log.crc32):
                raise SoakError(f"read: {log} has {log.records} records, crc32 {log.crc32}; a consumer found {read}")

    # -- the daemon ------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The process id of the daemon."""
        assert self.daemon.process is not None
        return self.daemon.process.pid

    def processes(self) -> list[int]:
        """Return the daemon and everything it has started."""
        return [self.pid, *children(self.pid)]

    def ask(self, command: str, request: Any) -> object:
        """Let the daemon carry out a request.

        Raises:
            LogDirError: It does not answer.
            AnsweredError: It answered without a result.
        """
        ran, _ = client.run(self.daemon.socket, spec_of(command), request, is_applied=True)
        return ran

    def names_loss(self, log: Log) -> bool:
        """Whether the daemon names the loss of a log: its history has a gap in which it may have gone, or its status
        counts a miss that names no other.
        """
        if any(is_gap_over(event, log.since_ms + DELETE_DELAY_MS) for event in self.daemon.events()):
            return True
        if self.daemon.has_ended() or self.daemon.status().missed == self._misses[self.pid]:
            return False
        self._misses[self.pid] += 1
        return True

    def until_asked(self, command: str, request: Any, goal: Callable[[], bool], first: object) -> None:
        """Repeat a request that was cut off, as its operator would, until what it asks for is so.

        Raises:
            SoakError: It never became so.
        """
        answer = first
        until = time.monotonic() + SETTLE_SECONDS
        while not goal():
            if time.monotonic() > until:
                found = look(self.broker.log_dirs)[0]
                mine = [one for one in found if one.topic_id and one.topic_id in str(request)]
                lies = "; ".join(f"{one.place} {one.name} {sorted(one.inodes)}" for one in mine)
                raise SoakError(f"stuck: {command} was never done; there is: {lies}; the last answer: {answer}")
            time.sleep(0.2)
            task = Task(lambda: self.ask(command, request))
            task.run()
            answer = task.answer

    # -- looks -----------------------------------------------------------------------------------------------

    def judge_unsettled(self) -> None:
        """Judge while a process has just been killed: nothing is lost.

        Raises:
            SoakError: Something is.
        """
        wrong: list[str] = []
        for _ in range(5):
            wrong = self.judge.judge(*look(self.broker.log_dirs), is_settled=False)
            if not wrong:
                return
            time.sleep(0.2)  # Renamed while it was read.
        raise SoakError("\n".join(wrong))

    def settle(self) -> str:
        """Return what it waited for; wait until everything is as it must be when all processes run.

        Raises:
            SoakError: It does not become so.
        """
        until = time.monotonic() + SETTLE_SECONDS
        last = ""
        while True:
            wrong = self.observer.early()
            if wrong:
                raise SoakError("\n".join(wrong))
            wrong = self.judge.judge(*look(self.broker.log_dirs), is_settled=True)
            if not wrong:
                break
            if time.monotonic() > until:
                raise SoakError("\n".join(wrong))
            last = wrong[0]
            time.sleep(0.1)
        self._count()
        return last

    def _count(self) -> None:
        """Raise ``SoakError`` if the daemon or a child keeps too many descriptors, or it has too many children."""
        until = time.monotonic() + _CALM_SECONDS
        while wrong := self._too_many():
            if time.monotonic() > until:
                raise SoakError(wrong)
            time.sleep(0.1)

    def _too_many(self) -> str:
        """Say which process has too many descriptors, or that there are too many processes; empty if all is well."""
        those = children(self.pid)
        if len(those) > 2 * len(self.broker.log_dirs):
            return f"processes: the daemon has {len(those)} for three log dirs: {those}"
        for pid in (self.pid, *those):
            kind = "supervisor" if pid == self.pid else "watch" if is_watch(pid) else "worker"
            try:
                count = len(os.listdir(f"/proc/{pid}/fd"))
            except FileNotFoundError:
                continue  # Replaced meanwhile.
            if count > _DESCRIPTORS[kind]:
                return f"descriptors: {count} of a {kind} are open, {_DESCRIPTORS[kind]} are expected at most"
        return ""

    def end(self) -> None:
        """End daemon and broker in order.

        Raises:
            SoakError: Something of them is left.
        """
        had = children(self.pid)
        status = self.daemon.stop()
        left = [f"process {pid}" for pid in had if Path(f"/proc/{pid}").exists()]
        left += [self.daemon.socket] if Path(self.daemon.socket).exists() else []
        if self.broker.is_running:
            self.stop_broker()
        for log_dir in self.broker.log_dirs:
            for path in (f"{work_of(log_dir)}/owner.lock", f"{log_dir}/.lock"):
                left += [] if not Path(path).exists() or _is_free(path) else [path]
        if status != 0 or left:
            raise SoakError(f"left behind: the daemon ended with {status}; left: {left}")

    def account(self) -> list[str]:
        """Return what the daemon says of itself, for a violation."""
        lines = self.daemon.log.splitlines()[-12:] if (self.daemon.folder / "log").exists() else []
        with suppress(LogDirError, AnsweredError):
            status = self.daemon.status()
            states = [f"{Path(one.log_dir).name} {one.state.value} purging {one.purging}" for one in status.log_dirs]
            lines += [status.state, *states, *(problem.line() for problem in status.waiting)]
        return lines

    def live_names(self, topic: str) -> tuple[str, ...]:
        """Return the names of a topic's live directories."""
        return tuple(f"{log.topic}-{log.partition}" for log in self.model.at(Place.LIVE) if log.topic == topic)


def _is_free(path: str) -> bool:
    with open(path, "rb+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
