"""How long a daemon keeps its hands off Kafka's locks after a handover: until the broker has them all, or five minutes.

A lock of ours would make the broker's start fail, also once it has some of them: it takes them one after the other.
After a restart of the daemon ``handover.json`` holds the instant of the last handover; one that cannot be read counts
as one of now, once.

Spec: design §2 law 4; attacks A22.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from logdir import clock
from logdir.disk.record import handover
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, LogDirSuspectError, Problem, RefusedError
from logdir.refusal_slug import Why
from logdir.service.batch.handover import found_and_expected, lacking_error
from logdir.service.batch.use_cases import HANDOVER, Spec

AT_MOST_MS: Final = 5 * 60 * 1000
"""How long a broker may take from the handover to its locks."""

_REOPENED_MS: Final = 60 * 1000
"""How long ago log dirs may have been opened again, for a handover not to ask for it once more."""


class StartAwaited:
    """Whether the start of a broker is awaited. Used by the thread of changes."""

    def __init__(self) -> None:
        """Begin without a handover."""
        self._until_ms = 0
        self._ended_ms = -1
        """When the broker was seen with all locks last: a handover before that is over."""
        self._unread: set[str] = set()
        """Log dirs whose file could not be read."""
        self._reopening: tuple[Mapping[str, Problem], int] | None = None
        """Which log dirs were to be opened again before a handover, and when that was asked (``CLOCK_BOOTTIME``)."""

    @property
    def is_on(self) -> bool:
        """Whether the log dirs were handed over, and the broker has not been seen with all locks since."""
        return clock.boottime_ms() < self._until_ms

    def begin(self, at_ms: int | None = None) -> None:
        """Note a handover at an instant of ``CLOCK_BOOTTIME``; ``None``: now."""
        now_ms = clock.boottime_ms()
        at_ms = now_ms if at_ms is None else min(now_ms, at_ms)
        if at_ms > self._ended_ms:
            self._until_ms = max(self._until_ms, at_ms + AT_MOST_MS)

    def read(self, open_dirs: Iterable[OpenLogDir]) -> None:
        """Note the last handover by ``handover.json`` of these log dirs."""
        for open_dir in open_dirs:
            try:
                found = handover.read(open_dir)
            except LogDirSuspectError:
                continue  # A disk that does not answer has no handover to read.
            except (LogDirError, OSError):
                if open_dir.log_dir not in self._unread:
                    self._unread.add(open_dir.log_dir)
                    self.begin()
                continue
            if found is not None and found.boot_id == clock.boot_id():
                self.begin(found.boottime_ms)

    def end(self) -> None:
        """Note that the broker has all locks."""
        self._until_ms = 0
        self._ended_ms = clock.boottime_ms()

    def admit(self, spec: Spec, log_dirs: Iterable[str]) -> Spec:
        """Return a use case as it may be done now: without Kafka's locks while a start is awaited.

        Args:
            spec: The use case.
            log_dirs: Those of the broker, for the message.

        Raises:
            RefusedError: a start is awaited, and it needs Kafka's locks.
        """
        left_ms = self._until_ms - clock.boottime_ms()
        if left_ms <= 0 or spec.name == HANDOVER:
            return spec
        if spec.is_beside_broker:
            return spec.without_locks()
        raise RefusedError(
            ", ".join(log_dirs),
            why=Why.HANDED_OVER,
            expected="log dirs that are not handed over to a broker",
            found="a handover, and no broker that runs since",
            fix=f"wait until it runs; if none starts, wait {-(-left_ms // 1000)} s",
        )

    def note(self, spec: Spec) -> None:
        """Note that a use case was done."""
        if spec.name == HANDOVER:
            self.begin()

    def is_opening_needed(self, spec: Spec, request: Any, failed: Mapping[str, Problem]) -> bool:
        """Return whether the log dirs are to be opened again first, because one could not be opened before.

        Args:
            spec: The use case; only a handover needs all log dirs.
            request: Its request; a mere recovery does without what lacks.
            failed: Log dirs that could not be opened, and why; another object each time they are opened again.

        Raises:
            RefusedError: they were just opened again, and one still cannot be.
        """
        if spec.name != HANDOVER or request.is_recovery_only:
            return False
        lacking = [one for one in failed if one not in request.skipped]
        if not lacking:
            return False
        before, now_ms = self._reopening, clock.boottime_ms()
        if before is None or now_ms - before[1] >= _REOPENED_MS:
            self._reopening = failed, now_ms
            return True
        if before[0] is failed:
            return True  # They were not opened again yet.
        self._reopening = None
        problem = failed[lacking[0]]
        raise lacking_error(lacking[0], found_and_expected(problem), problem.fix)


def waiting_error() -> RefusedError:
    """Return why something that takes long goes on no further: a handover waits for it."""
    return RefusedError(
        "handover",
        why=Why.HANDED_OVER,
        expected="no broker that is about to start",
        found="a handover that waits",
        fix="what was done by then stays done; repeat the command once the broker runs",
    )
