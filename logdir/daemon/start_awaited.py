"""How long a daemon keeps its hands off Kafka's locks after a handover: until the broker runs, or five minutes.

A lock of ours would make the broker's start fail. After a restart of the daemon ``handover.json`` says when the last
handover was; one that cannot be read counts as one of now.

Spec: design §2 law 4; attacks A22.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from logdir import clock
from logdir.disk.record import handover
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, LogDirSuspectError, RefusedError
from logdir.refusal_slug import Why
from logdir.service.batch.use_cases import HANDOVER, Spec

AT_MOST_MS: Final = 5 * 60 * 1000
"""How long a broker may take from the handover to its locks."""


class StartAwaited:
    """Whether the start of a broker is awaited. Used by the thread of changes."""

    def __init__(self) -> None:
        """Begin without a handover."""
        self._until_ms = 0

    @property
    def is_on(self) -> bool:
        """Whether the log dirs were handed over, and the broker has not been seen running since."""
        return clock.boottime_ms() < self._until_ms

    def begin(self, at_ms: int | None = None) -> None:
        """Note a handover at an instant of ``CLOCK_BOOTTIME``; ``None``: now."""
        now_ms = clock.boottime_ms()
        self._until_ms = max(self._until_ms, min(now_ms, now_ms if at_ms is None else at_ms) + AT_MOST_MS)

    def read(self, open_dirs: Iterable[OpenLogDir]) -> None:
        """Note the last handover that these log dirs tell of."""
        for open_dir in open_dirs:
            try:
                found = handover.read(open_dir)
            except LogDirSuspectError:
                continue  # It is in nobody's hands.
            except (LogDirError, OSError):
                self.begin()
                continue
            if found is not None and found.boot_id == clock.boot_id():
                self.begin(found.boottime_ms)

    def end(self) -> None:
        """Note that the broker runs."""
        self._until_ms = 0

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
            fix=f"wait until it runs; if none starts, {-(-left_ms // 1000)} s",
        )

    def note(self, spec: Spec) -> None:
        """Note that a use case was done."""
        if spec.name == HANDOVER:
            self.begin()
