"""The use cases that only read, as the daemon runs them: each in a process of its own, few at a time, with a deadline.

Such a process opens the log dirs itself, with a worker for each, as a command does beside a daemon. So a read takes no
turn of the thread of changes and none of this process's memory: its answer lies in a file without a name, and is sent
from there. It is ended when its client leaves, when its time is over, and when a log dir is let go (``disk release``).

A log dir that the daemon knows to hang or has let go is left out, and its problem stands in the answer. What is left of
a read that hangs in the kernel is remembered until it ends, and no other process is started for the same log dir: so
there are never more than a few, however often one asks.

Not here: what is read (``service.reading``), who may ask (``handler``).

Spec: design §2 law 6, §5; attacks A26, A40, A49.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from logdir import clock
from logdir.daemon.config import DaemonConfig
from logdir.daemon.faults import StoppingError, stopping_error
from logdir.daemon.release import SLUG as RELEASED
from logdir.daemon.report.status import LogDirStatus, StatusResult
from logdir.daemon.socket.refusals import ReadEndedError, busy_error
from logdir.daemon.state import LogDirState
from logdir.errors import LogDirError, LogDirSuspectError, Problem
from logdir.service.reading.answering import Hanging, OwnBroker, answer_into
from logdir.service.reading.questions import Question, Reading
from logdir.service.report.json_form import to_json
from logdir.worker.calls import Descriptor, Signature
from logdir.worker.port import Port
from logdir.worker.reaping import Orphan, Unreaped, children_of
from logdir.worker.start import aside

MOST_READS: Final = 2
"""How many there are at a time; the last one is for root and the owner of the log dirs."""
READ_MS: Final = 5 * 60 * 1000
"""How long one may take."""
MOST_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Size limit of an answer."""
_PATIENCE_MS: Final = 30 * 1000
"""How long its process may give no sign of life. A log dir that hangs is found before, by its own worker."""
_MOST_DISK_TIMEOUT_MS: Final = 30 * 1000
"""Longest time for which one of its log dirs may hang: the others are answered for before its time is over."""
_NICE: Final = 10
"""Its priority: what captures comes first."""
_END_MS: Final = 5 * 1000
"""How long the end of reads is waited for."""
_KILLED_MS: Final = 1000
"""How long a process may take to end that was killed, before it counts as one that hangs in the kernel."""
_READER: Final = "the reading process"
"""What a process of a read is called of which it is not known what it was started for."""


class Content(NamedTuple):
    """An answer: the one JSON object, in an open file from its beginning on."""

    file: int
    size: int


class Source(Protocol):
    """The part of the daemon that reads need."""

    @property
    def config(self) -> DaemonConfig:
        """Its configuration."""

    def status(self) -> StatusResult:
        """Return the status, from memory."""


@dataclass(slots=True, eq=False)
class _Read:
    """A read in progress, until its answer is sent."""

    until_ms: int
    """``CLOCK_MONOTONIC``: when its time is over."""
    is_wanted: Callable[[], bool]
    left_out: Mapping[str, Problem] = field(default_factory=dict)
    hanging: tuple[Hanging, ...] = ()
    orphans: list[Orphan] = field(default_factory=list)
    """The processes that its process had started when it was killed, and that were killed with it."""
    is_reading: bool = True
    """Whether a process of it may have log dirs open."""
    why: LogDirError | None = None
    """Why it is ended."""

    def over(self) -> LogDirError | None:
        """Return why it goes on no further; ``None``: it does."""
        if self.why is not None:
            return self.why
        if clock.monotonic_ms() >= self.until_ms:
            return _ended(f"none within {READ_MS // 1000} s", "name a selector; or use logdirctl, which takes its time")
        if not self.is_wanted():
            return StoppingError("request", expected="a client that waits", found="one that has left")
        return None


def _ended(found: str, fix: str = "repeat the request") -> ReadEndedError:
    return ReadEndedError(_READER, expected="an answer", found=found, fix=fix)


class Reads:
    """The reads of one daemon; used by the threads of its clients."""

    def __init__(self, daemon: Source) -> None:
        """Begin without a read; ``daemon``: whose broker is read."""
        Signature.of(answer_into)  # Now: threads that make codecs at a time would find one that is half made.
        self._daemon = daemon
        self._changed = threading.Condition()
        self._reads: list[_Read] = []
        self._unreaped = Unreaped()
        self._is_stopping = False

    @contextmanager
    def answered(
        self, reading: Reading, question: Question, *, may_change: bool, is_wanted: Callable[[], bool]
    ) -> Iterator[Content]:
        """Answer a question; the answer takes one of the places until the end of the block.

        Args:
            reading: The use case.
            question: Its question.
            may_change: Whether it is the owner or root who asks: for others the last place is none.
            is_wanted: Whether somebody still waits for the answer; asked a few times a second.

        Raises:
            BusyError: there is no place.
            ReadEndedError: its time was over, its process ended, or a log dir was let go.
            StoppingError: the daemon ends, or nobody waits for the answer any more.
            LogDirError: as the use case; or what was left of a former read hangs in the kernel.
        """
        read = self._begin(may_change=may_change, is_wanted=is_wanted)
        file = -1
        try:
            try:
                file = os.memfd_create("answer", os.MFD_CLOEXEC)
                size = self._run(read, reading, question, file)
            except OSError as error:
                raise _ended(error.strerror or str(error)) from error
            finally:
                self._note_read(read)
            yield Content(file, size)
        finally:
            if file >= 0:
                os.close(file)
            with self._changed:
                self._reads.remove(read)
                self._changed.notify_all()

    def leave(self, log_dir: str) -> None:
        """End all reads because a log dir was let go; return once none of them has it open, or after some seconds.

        Called once that is done: reads that begin later leave it out, as the status shows it.
        """
        until_ms = clock.monotonic_ms() + _END_MS
        path = os.path.abspath(log_dir)
        with self._changed:
            while not self._is_let_go(path) and clock.monotonic_ms() < until_ms:
                self._changed.wait(0.01)
            self._end_all(_ended(f"that {path} is let go (disk release)"))

    def stop(self) -> None:
        """End all reads, and begin no other."""
        with self._changed:
            self._is_stopping = True
            self._end_all(stopping_error())

    def _begin(self, *, may_change: bool, is_wanted: Callable[[], bool]) -> _Read:
        """Take a place. Raises as ``answered``."""
        with self._changed:
            if self._is_stopping:
                raise stopping_error()
            most = MOST_READS if may_change else MOST_READS - 1
            if len(self._reads) >= most:
                raise busy_error("reads", f"at most {most} use cases that only read at a time", "one more")
            self._unreaped.require_ended(_READER)
            read = _Read(clock.monotonic_ms() + READ_MS, is_wanted)
            read.left_out = self._left_out()
            read.hanging = tuple(Hanging(path, pid) for path, pid in self._unreaped.pids().items())
            self._reads.append(read)
            return read

    def _left_out(self) -> dict[str, Problem]:
        """Return the log dirs that are not opened, and why."""
        left_out = self._unreaped.problems()
        for one in self._daemon.status().log_dirs:
            if one.state is LogDirState.SUSPECT or _is_released(one):
                left_out[one.log_dir] = one.problem or _silent(one.log_dir)
        return left_out

    def _is_let_go(self, log_dir: str) -> bool:
        return any(one.log_dir == log_dir and _is_released(one) for one in self._daemon.status().log_dirs)

    def _run(self, read: _Read, reading: Reading, question: Question, file: int) -> int:
        """Let a process answer; return the size of the answer. Raises as ``answered``, and ``OSError``."""
        started: list[Port] = []

        def between() -> None:
            if (why := read.over()) is not None:
                read.orphans += orphans_of(started)
                raise why

        config = self._daemon.config
        broker = OwnBroker(
            server_properties=config.server_properties,
            client_properties=config.client_properties,
            daemon_config=config.file,
            disk_timeout_ms=min(config.disk_timeout_ms, _MOST_DISK_TIMEOUT_MS),
        )
        try:
            with aside(_READER, _PATIENCE_MS, between) as port:
                started.append(port)
                if port.pid is not None:
                    with suppress(OSError):
                        os.setpriority(os.PRIO_PROCESS, port.pid, _NICE)
                try:
                    answered = port.run(
                        answer_into,
                        reading.name,
                        json.dumps(to_json(question)),
                        broker,
                        read.left_out,
                        read.hanging,
                        MOST_ANSWER_BYTES,
                        Descriptor(file),
                    )
                except LogDirSuspectError as error:
                    raise _ended(error.found) from error  # Its own errors come in what it answers.
                # While it lives the ids of what it started are not given to other processes.
                self._keep(answered.hanging)
        finally:
            _wait_for_end(read.orphans)
            with self._changed:
                self._unreaped.keep((*started, *read.orphans))
        if answered.error is not None:
            raise answered.error
        return answered.size

    def _keep(self, hanging: Iterable[Hanging]) -> None:
        with self._changed:
            self._unreaped.keep(Orphan(one.path, one.pid) for one in hanging)

    def _note_read(self, read: _Read) -> None:
        with self._changed:
            read.is_reading = False
            self._changed.notify_all()

    def _end_all(self, why: LogDirError) -> None:
        """End all reads; return once their processes have ended, or after some seconds. The caller holds the lock."""
        ended = tuple(self._reads)
        for one in ended:
            one.why = one.why or why
        self._changed.wait_for(lambda: not any(one.is_reading for one in ended), _END_MS / 1000)


def orphans_of(started: Iterable[Port]) -> list[Orphan]:
    """Kill what processes have started that are about to be killed; return it, for what hangs in the kernel lives on.

    No id of it is given to another process meanwhile: who started it is stopped, and does not reap it.
    """
    found: list[Orphan] = []
    for port in started:
        if port.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(port.pid, signal.SIGSTOP)  # It starts no other meanwhile.
            for pid in children_of(port.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)  # One that has only begun would not yet be killed with its starter.
                found.append(Orphan(_READER, pid))
    return found


def _wait_for_end(orphans: Iterable[Orphan]) -> None:
    """Wait until processes have ended that were killed; not for long for those that hang in the kernel."""
    left, until_ms = list(orphans), clock.monotonic_ms() + _KILLED_MS
    while (left := [one for one in left if not one.is_reaped()]) and clock.monotonic_ms() < until_ms:
        threading.Event().wait(0.01)


def _is_released(one: LogDirStatus) -> bool:
    return one.problem is not None and one.problem.slug == RELEASED


def _silent(log_dir: str) -> Problem:
    fix = "SUSPECT: check the kernel log; it is read again once it answers"
    return Problem(LogDirSuspectError.code, log_dir, "an answer", "none", fix)
