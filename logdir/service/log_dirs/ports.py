"""Ports of one broker's log dirs: parallel calls with a deadline for each log dir.

A log dir that does not answer in time is SUSPECT: its facts are that problem, and the calls on the other log dirs
continue. A metadata log is read in a process of its own, because it may lie on a disk that does not answer.

Not here: work roots and locks (``open_broker``).

Spec: design §2 law 6, §5 "A port per log dir".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from logdir.disk.lock_holder import is_locked
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.work_root import WorkRoot
from logdir.errors import ConfigError, LogDirError, LogDirSuspectError, Problem
from logdir.observe.answering import touch
from logdir.observe.birth import births
from logdir.observe.facts import LogDirFacts, Replica
from logdir.observe.log_end import log_end
from logdir.observe.mounts import identity_at
from logdir.observe.outside import KeptFree, kept_free, kept_free_unseen
from logdir.paths import METADATA_DIR
from logdir.service.log_dirs.config import BrokerConfig, require_distinct
from logdir.service.log_dirs.request import BrokerRequest, LeftOut, PartialBroker, skipped_of
from logdir.worker.look import EVERY_LIVE, Deep, look_deep
from logdir.worker.port import Pending, Port
from logdir.worker.reaping import Unreaped
from logdir.worker.refusing import RefusingPort
from logdir.worker.remote import gather
from logdir.worker.start import close_all, run_apart, run_aside, start
from logdir.worker.state import failed_syncs

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPorts:
    """The ports of one broker's log dirs, in the order of its configuration."""

    named: BrokerConfig
    ports: tuple[Port, ...]
    patience_ms: int
    needs_all: bool = False
    """Whether a log dir that does not answer ends the command, unless ``--skip-log-dir`` names it."""
    skipped: frozenset[str] = frozenset()
    """Log dirs that ``--skip-log-dir`` names."""
    notes: list[Problem] = field(default_factory=list)
    """Remarks beside the result, including SUSPECT log dirs."""
    touched: tuple[Pending[None], ...] = ()
    """Checks of disks with metadata logs outside the log dirs, made at once: two that hang take as long as one."""
    unreaped: Unreaped = field(default_factory=Unreaped)
    """Keeps the processes of ``apart`` that do not end."""
    hanging: tuple[str, ...] = ()
    """Paths of metadata logs outside the log dirs on which such a process hung when the log dirs were opened."""

    def port(self, log_dir: str) -> Port:
        """Return the port of a log dir. Raises ``KeyError``: the broker has no such log dir."""
        return {port.log_dir: port for port in self.ports}[log_dir]

    def let_go(self, log_dir: str, problem: Problem) -> Port:
        """End the worker of a log dir, and with it its locks and open files; refuse every later call on it.

        Args:
            log_dir: The path as configured.
            problem: Why later calls are refused.

        Returns:
            The port of the worker, closed; the worker has ended unless it hangs in the kernel.
        """
        port = self.port(log_dir)
        close_all((port,))
        left = tuple(RefusingPort(log_dir, problem) if one is port else one for one in self.ports)
        object.__setattr__(self, "ports", left)
        return port

    @property
    def suspect(self) -> frozenset[str]:
        """Return the log dirs that did not answer."""
        return frozenset(port.log_dir for port in self.ports if port.is_suspect)

    def note(self, error: LogDirSuspectError) -> None:
        """Record that a log dir is SUSPECT, once.

        Raises:
            LogDirSuspectError: the same error, if every log dir is needed.
        """
        if self.needs_all and error.path not in self.skipped:
            raise error
        self.remember(error)

    def remember(self, error: LogDirSuspectError) -> None:
        """Record that a log dir is SUSPECT, once, without raising."""
        problem = error.problem()
        if all((problem.slug, problem.path) != (one.slug, one.path) for one in self.notes):
            self.notes.append(problem)

    def with_notes(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return problems, then the remarks that they do not contain yet: a log dir is called SUSPECT once."""
        listed = list(problems)
        known = {(one.slug, one.path) for one in listed}
        return [*listed, *(note for note in self.notes if (note.slug, note.path) not in known)]

    @staticmethod
    def why_suspect(port: Port) -> Problem:
        """Return why the calls of a SUSPECT port are refused; it is not asked to do anything."""
        try:
            port.run(identity_at, port.log_dir)  # It refuses at once.
        except LogDirSuspectError as error:
            return error.problem()
        raise ValueError(f"not suspect: {port.log_dir}")

    def require_answering(self) -> None:
        """Check that every needed log dir has answered so far.

        Raises:
            LogDirSuspectError: a log dir did not answer, and every log dir is needed.
        """
        for port in self.ports:
            if port.is_suspect:
                self.note(LogDirSuspectError.of(self.why_suspect(port)))

    def each(self, begin: Callable[[Port], Pending[R]]) -> list[R | LogDirSuspectError]:
        """Make one call on every log dir, in parallel.

        Returns:
            One result per port, in their order; the error, for a log dir that does not answer.

        Raises:
            LogDirError, OSError: the first call that raised another error; all calls have ended by then.
        """
        pendings = [begin(port) for port in self.ports]
        gather(pendings)
        results: list[R | LogDirSuspectError] = []
        failed: LogDirError | OSError | None = None
        for pending in pendings:
            try:
                results.append(pending.result())
            except LogDirSuspectError as error:
                results.append(error)
            except (LogDirError, OSError) as error:
                failed = failed or error
        for one in results:
            if isinstance(one, LogDirSuspectError):
                self.note(one)
        if failed is not None:
            raise failed
        return results

    def begin_roots(self, *, is_start_block_allowed: bool) -> Iterator[tuple[str, Pending[WorkRoot]]]:
        """Open the work root of every log dir, in parallel; yield each log dir and its pending result."""
        begun = [port.begin_root(is_start_block_allowed=is_start_block_allowed) for port in self.ports]
        gather(begun)
        yield from zip((port.log_dir for port in self.ports), begun, strict=True)

    def look(self, deep: Deep = EVERY_LIVE) -> tuple[LogDirFacts, ...]:
        """Scan every log dir; opens no lock and no work root."""
        found = self.each(lambda port: port.begin(look_deep, port.log_dir, deep))
        return tuple(
            unanswered(port.log_dir, one.problem()) if isinstance(one, LogDirSuspectError) else one
            for port, one in zip(self.ports, found, strict=True)
        )

    def is_running(self) -> bool:
        """Return whether a broker runs, as ``running``.

        Raises:
            ConfigError: no lock file can be read.
        """
        found = self.running()
        if isinstance(found, Problem):
            raise ConfigError((found,))
        return found

    def on_all(self, open_dirs: Mapping[str, OpenLogDir], call: Callable[[Sequence[OpenLogDir]], R]) -> R:
        """Make a call over every log dir that answers; repeat it without a log dir that stops answering.

        Args:
            open_dirs: Open log dirs, by path.
            call: The call; may be repeated.

        Raises:
            LogDirSuspectError: a log dir stops answering, and every log dir is needed.
        """
        while True:
            suspect = self.suspect
            try:
                return call([open_dir for log_dir, open_dir in open_dirs.items() if log_dir not in suspect])
            except LogDirSuspectError as error:
                self.note(error)
                if self.suspect == suspect:
                    raise

    def running(self) -> bool | Problem:
        """Whether another process holds Kafka's lock in a log dir that answers; takes no lock and creates no file.

        Returns:
            A problem if no lock file can be read.
        """
        found = self.each(lambda port: port.begin(is_locked, port.log_dir))
        return running_of(one for one in found if not isinstance(one, LogDirSuspectError))

    def births_of(self, replicas: Iterable[Replica]) -> Mapping[tuple[str, str], int]:
        """Return the creation times of partition directories (wall clock, ms), by log dir and path.

        Unreadable directories are left out.
        """
        paths: dict[str, list[str]] = {}
        for replica in replicas:
            paths.setdefault(replica.log_dir, []).append(replica.path)
        found: dict[tuple[str, str], int] = {}
        for one in self.each(lambda port: port.begin(births, port.log_dir, tuple(paths.get(port.log_dir, ())))):
            if not isinstance(one, LogDirSuspectError):
                found.update(one)
        return found

    def failed_syncs(self) -> Mapping[int, str]:
        """Return from the log dirs that answer each device on which a sync failed, with its first error message."""
        found: dict[int, str] = {}
        for port in self.ports:
            if not port.is_suspect:
                with suppress(LogDirError, OSError):
                    found.update(port.run_opened(failed_syncs))
        return found

    def log_end(self, log_dir: str, top: str, path: str) -> int | None:
        """Return the end offset of a log.

        Args:
            log_dir: The log dir on whose disk the log lies.
            top: The log dir, or its work root.
            path: Path relative to ``top``.

        Returns:
            ``None`` if it cannot be read, or the disk does not answer.
        """
        try:
            return self.port(log_dir).run(log_end, top, path)
        except LogDirSuspectError as error:
            self.note(error)
            return None

    def apart(self, path: str | None, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a call that reads a metadata log in a process of its own.

        Args:
            path: Path of the log, if known.
            call: Changes nothing; its arguments and its result can be sent to another process.
            args: Its arguments.
            kwargs: Its arguments.

        Raises:
            LogDirSuspectError: the disk of the log does not answer, or did not earlier and is not tried again: at the
                opening, or a former call whose process has not ended.
        """
        for port in self.ports:
            if port.is_suspect and path is not None and f"{path}/".startswith(f"{port.log_dir}/"):
                raise LogDirSuspectError.of(self.why_suspect(port)._replace(path=path))
        for hung in self.hanging:
            self.unreaped.require_ended(hung)
        for pending in self.touched:
            pending.result()
        where = path or "the metadata log"
        return run_apart(where, self.patience_ms, self.unreaped, call, *args, **kwargs)

    def aside(
        self, path: str, between: Callable[[], None], call: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Make a long call that changes no log dir in a process of its own. Arguments and errors as ``run_aside``."""
        return run_aside(path, self.patience_ms, between, call, *args, **kwargs)


def unanswered(log_dir: str, problem: Problem) -> LogDirFacts:
    """Return the facts of a log dir that did not answer."""
    return LogDirFacts(log_dir=log_dir, problem=problem, is_offline=True)


@contextmanager
def connected(
    request: BrokerRequest, *, needs_all: bool = False, left_out: LeftOut | None = None
) -> Iterator[BrokerPorts]:
    """Start a port for each log dir of a broker; all ports are closed at the end.

    Args:
        request: The broker.
        needs_all: Whether a log dir that does not answer ends the command, unless ``--skip-log-dir`` names it.
        left_out: Log dirs without a worker; ``None``: those of a ``PartialBroker``, or none.

    Raises:
        ConfigError: the broker is invalid, or two of its paths lead to one directory.
    """
    named = request.config()
    skipped = skipped_of(request, named)
    if left_out is None:
        left_out = request.left_out if isinstance(request, PartialBroker) else LeftOut()
    problems, unreaped = left_out.problems, left_out.unreaped or Unreaped()
    started = start([log_dir for log_dir in named.log_dirs if log_dir not in problems], request.disk_timeout_ms)
    refusing = tuple(RefusingPort(log_dir, problems[log_dir]) for log_dir in named.log_dirs if log_dir in problems)
    beside: tuple[Port, ...] = ()
    try:
        logs, hanging = _logs_beside(request, named, unreaped)
        beside = start(logs, request.disk_timeout_ms)
        ports = BrokerPorts(
            touched=tuple(port.begin(touch, port.log_dir) for port in beside),
            unreaped=unreaped,
            hanging=hanging,
            named=named,
            ports=tuple(sorted((*started, *refusing), key=lambda port: named.log_dirs.index(port.log_dir))),
            patience_ms=request.disk_timeout_ms,
            needs_all=needs_all,
            skipped=skipped,
        )
        _require_distinct(ports, request.server_properties or "--log-dirs")
        yield ports
    finally:
        close_all((*started, *beside))
        unreaped.keep((*started, *beside))


def _logs_beside(
    request: BrokerRequest, named: BrokerConfig, unreaped: Unreaped
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the paths of metadata logs and other sources that lie in no log dir of the broker; then those of them on
    which a former process still hangs.
    """
    source = (request.source or "").partition(":")[2]
    own = "" if named.metadata_log_dir is None else f"{os.path.abspath(named.metadata_log_dir)}/{METADATA_DIR}"
    found = dict.fromkeys(os.path.abspath(path) for path in (source, own) if path and "\0" not in path)
    beside = [path for path in found if not any(f"{path}/".startswith(f"{one}/") for one in named.log_dirs)]
    hanging = tuple(path for path in beside if not unreaped.has_ended(path))
    return tuple(path for path in beside if path not in hanging), hanging


def _require_distinct(ports: BrokerPorts, where: str) -> None:
    found: Sequence[tuple[int, int] | LogDirSuspectError | None] = ports.each(
        lambda port: port.begin(identity_at, port.log_dir)
    )
    # A log dir that does not answer cannot be compared with the others.
    known = {
        port.log_dir: one
        for port, one in zip(ports.ports, found, strict=True)
        if one is not None and not isinstance(one, LogDirSuspectError)
    }
    require_distinct(known, where)


def metadata_path(named: BrokerConfig, uri_path: str) -> str | None:
    """Return the path of the metadata log that a source names, as far as it is known without reading a disk."""
    return uri_path or (None if named.metadata_log_dir is None else os.path.abspath(named.metadata_log_dir))


def kept_free_places(ports: BrokerPorts) -> tuple[KeptFree, ...]:
    """Return the log dirs and work roots of a broker, which no output may be written into; each worker resolves its
    own.

    Raises:
        LogDirSuspectError: a log dir does not answer, and every log dir is needed.
    """
    places: list[KeptFree] = []
    for port, found in zip(ports.ports, ports.each(lambda port: port.begin(kept_free, port.log_dir)), strict=True):
        places += kept_free_unseen(port.log_dir) if isinstance(found, LogDirSuspectError) else found
    metadata = ports.named.metadata_log_dir
    if metadata is not None and metadata not in ports.named.log_dirs:
        try:
            places += ports.apart(metadata, kept_free, metadata)
        except LogDirSuspectError as error:
            ports.note(error)
            places += kept_free_unseen(metadata)
    return tuple(places)


def running_of(found: Iterable[bool | Problem | None]) -> bool | Problem:
    """Return whether a broker runs by the answers of ``is_locked``; a problem if no lock file can be read."""
    # A missing log dir does not matter: a running broker holds the locks of the others, too.
    answers = tuple(found)
    denied = [one for one in answers if isinstance(one, Problem)]
    if denied and not any(isinstance(one, bool) for one in answers):
        return denied[0]._replace(slug=ConfigError.code)
    return True in answers
