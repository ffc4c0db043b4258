"""Kafka's locks of those log dirs of a broker that answer, held for one batch.

The locks are taken without waiting, all or none. If a log dir gives no sign of life at the end of a batch, the locks of
the others are released; its own lock stays with its worker, and no broker can start on that disk until it answers.

Not here: taking one lock (``disk.locks``), the changes under the locks.

Spec: design §2 law 4; attacks A22, A31.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress

from logdir import clock
from logdir.disk.locks import BATCH_MS
from logdir.errors import LogDirError, LogDirOfflineError, LogDirSuspectError, ReadOnlyDiskError, RefusedError
from logdir.refusal_slug import Why
from logdir.service.log_dirs.ports import BrokerPorts
from logdir.worker.port import Port
from logdir.worker.remote import gather, overdue
from logdir.worker.state import release_kafka_lock, require_kafka_lock, take_kafka_lock
from logdir.worker.waiting import Overdue

_TRIES = 3
"""Attempts to take all locks when one log dir answers too slowly."""


class HeldLocks:
    """Kafka's locks of a broker's log dirs, held since one instant."""

    def __init__(self, ports: Sequence[Port], began_boottime_ms: int) -> None:
        self._ports = tuple(ports)
        self.began_boottime_ms = began_boottime_ms
        self.log_dirs: tuple[str, ...] = ()
        """Log dirs whose lock is held, sorted; no other log dir may be changed."""
        self.is_released = False
        self.silent: list[LogDirSuspectError] = []
        """Errors of log dirs that did not answer when their locks were to be released."""

    def expired(self, now_boottime_ms: int, /) -> bool:
        """Whether the longest hold is over: finish the current step and release the locks."""
        return self.is_released or now_boottime_ms - self.began_boottime_ms >= BATCH_MS

    def require_held(self) -> None:
        """Check that every lock file still belongs to its log dir; called before each group of changes.

        Raises:
            LogDirReplacedError: a lock file was replaced.
            RefusedError: the locks were released because a log dir did not answer.
        """
        self.require_unreleased()
        begun = [port.begin_opened(require_kafka_lock) for port in self._ports if port.log_dir in self.log_dirs]
        gather(begun)
        for pending in begun:
            with suppress(LogDirSuspectError):
                pending.result()
        # The wait for one that did not answer may have outlasted the hold of the others.
        self.require_unreleased()

    def require_unreleased(self) -> None:
        """Check that the locks were not released because a log dir did not answer; asks no log dir.

        Raises:
            RefusedError: they were.
        """
        if self.is_released:
            raise _unanswered(", ".join(self.log_dirs))

    def release(self) -> None:
        """Release every lock whose log dir answers; a second call does nothing."""
        self.is_released = True
        begun = [port.begin_opened(release_kafka_lock) for port in self._ports if port.is_idle]
        gather(begun)
        for pending in begun:
            try:
                pending.result()
            except LogDirSuspectError as error:
                self.silent.append(error)
            except (LogDirError, OSError):
                continue  # Its descriptor is closed in any case.


def _unanswered(where: str) -> RefusedError:
    return RefusedError(
        where,
        why=Why.LOG_DIR_SUSPECT,
        expected="log dirs that answer while Kafka's locks are held",
        found="a log dir without a sign of life; the locks of the other log dirs were released",
        fix="nothing was begun after that; repeat the command once every log dir answers",
    )


@contextmanager
def hold_all(broker: BrokerPorts, *, without: Collection[str], now_boottime_ms: int) -> Iterator[HeldLocks]:
    """Hold Kafka's lock of every log dir of a broker that answers; the lock files stay.

    Args:
        broker: The ports of the broker.
        without: Log dirs that ``--skip-log-dir`` names. Those that answer are locked all the same.
        now_boottime_ms: The boot-time clock now; the batch starts here.

    Yields:
        The locks.

    Raises:
        LockHeldError: another process holds a lock; the message names the log dir and the process.
        LogDirOfflineError: a log dir cannot be opened, or its lock cannot be queried, and it is not in ``without``.
        ReadOnlyDiskError: a log dir is read-only, and not in ``without``.
        RefusedError: no log dir is left to lock, or two paths lead to one directory.
    """
    ports = sorted(broker.ports, key=lambda port: port.log_dir)
    for number in range(1, _TRIES + 1):
        began_ms = clock.monotonic_ms()
        held = HeldLocks(ports, now_boottime_ms if number == 1 else clock.boottime_ms())
        try:
            with overdue(ports, Overdue(began_ms + BATCH_MS, held.release)):
                held.log_dirs = _taken(broker, ports, without)
                if not held.is_released:
                    yield held
                    return
        finally:
            held.release()
            for error in held.silent:
                broker.remember(error)  # Changes made under the locks stay.
    raise _unanswered(", ".join(port.log_dir for port in ports))


def _taken(broker: BrokerPorts, ports: Sequence[Port], without: Collection[str]) -> tuple[str, ...]:
    """Take every lock; return the log dirs that are locked. Raises as ``hold_all``."""
    taken: list[str] = []
    identities: dict[tuple[int, int], str] = {}
    failed: LogDirError | OSError | None = None
    begun = [port.begin_opened(take_kafka_lock, port.log_dir) for port in ports]
    gather(begun)
    for port, pending in zip(ports, begun, strict=True):
        try:
            identity = pending.result()
        except LogDirSuspectError as error:
            if port.log_dir not in without:
                broker.note(error)
            continue
        except (LogDirOfflineError, ReadOnlyDiskError) as error:
            if port.log_dir not in without:
                failed = failed or error
            continue
        except (LogDirError, OSError) as error:
            failed = failed or error
            continue
        if identity in identities:
            failed = failed or RefusedError(
                port.log_dir,
                why=Why.DUPLICATE_LOG_DIR,
                expected="log dirs that are different directories",
                found=f"the same directory as {identities[identity]}",
                fix="list the directory once",
            )
        identities[identity] = port.log_dir
        taken.append(port.log_dir)
    if failed is not None:
        raise failed
    if not taken:
        raise RefusedError(
            ", ".join(sorted(without)) or ", ".join(port.log_dir for port in ports),
            why=Why.NO_LOG_DIR_ANSWERS,
            expected="at least one log dir that answers",
            found="no log dir that answers",
            fix="mount at least one of them: until one answers, it is not known whether a broker runs",
        )
    return tuple(taken)
