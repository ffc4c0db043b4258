"""The operations that somebody asked for and does not wait for: the state of each, and its answer once it has ended.

    QUEUED ──begin──▶ RUNNING ──end──▶ DONE
      │ │                └─────fail──▶ FAILED
      │ └──fail──▶ FAILED
      └──cancel──▶ CANCELLED

DONE says only that the use case came to its end: its answer says what became of each replica. FAILED has an answer
without a result. One that has begun cannot be cancelled: what it has changed is changed.

They are kept in memory alone and in bounded room: what waits, what has ended, and the bytes of both. Nothing is lost
with them, because the state of a replica is its name on the disk (law 2): after a restart, or once an operation is
forgotten, the log dirs tell what it did. Ids begin with a word of this process, so that no id of a former one is found.

Pure; used under the lock of its owner.

Not here: running them (``socket.operating``), their answers (``socket.running``).

Spec: KIP-4 (requests are batches, asynchronous, verified by describing); design §2 law 2, §4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

MOST_WAITING: Final = 1000
"""How many wait for their turn at most; one that was cancelled counts until its turn."""
MOST_WAITING_BYTES: Final = 64 * 1024 * 1024
"""Limit of their requests together; one alone may have as much."""
MOST_ENDED: Final = 1000
"""How many that have ended are remembered, the last ones."""
MOST_ANSWER_BYTES: Final = 8 * 1024 * 1024
"""Limit of the answers together: those of the last ones are kept. All of the daemon has room in 60 MB."""


class OperationState(Enum):
    """The state of an operation."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    """The use case came to its end, and the answer has a result."""
    FAILED = "failed"
    """An error ended it, and the answer has no result."""
    CANCELLED = "cancelled"
    """It was taken back before its turn: nothing of it was done."""


class _Event(Enum):
    BEGIN = "begin"
    END = "end"
    FAIL = "fail"
    CANCEL = "cancel"


_TRANSITIONS: Final[Mapping[tuple[OperationState, _Event], OperationState]] = {
    (OperationState.QUEUED, _Event.BEGIN): OperationState.RUNNING,
    (OperationState.QUEUED, _Event.CANCEL): OperationState.CANCELLED,
    # The log dirs cannot be opened, or the daemon ends, before its turn.
    (OperationState.QUEUED, _Event.FAIL): OperationState.FAILED,
    (OperationState.RUNNING, _Event.END): OperationState.DONE,
    (OperationState.RUNNING, _Event.FAIL): OperationState.FAILED,
    # To take back a second time changes nothing.
    (OperationState.CANCELLED, _Event.CANCEL): OperationState.CANCELLED,
}
"""State and event to the next state; with a pair that is missing nothing changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation, without its answer."""

    id: str
    use_case: str
    """Its name in a path, as ``staged-purge``."""
    applied: bool
    """Whether it is to be done; otherwise it is planned."""
    state: OperationState
    queued_at_ms: int
    """Wall clock, as the other instants."""
    begun_at_ms: int | None = None
    """``None``: it has not begun."""
    ended_at_ms: int | None = None
    """``None``: it has not ended."""
    exit: int | None = None
    """The exit status of its answer; ``None``: it has none."""
    is_answer_left_out: bool = False
    """Whether there was an answer that is not kept, because it or those that came later took the room."""


class Operations:
    """The operations of one daemon; used under the lock of its owner."""

    def __init__(
        self,
        word: str,
        *,
        most_waiting: int = MOST_WAITING,
        most_waiting_bytes: int = MOST_WAITING_BYTES,
        most_ended: int = MOST_ENDED,
        most_answer_bytes: int = MOST_ANSWER_BYTES,
    ) -> None:
        """Begin with none.

        Args:
            word: Begins each id; no former process had it.
            most_waiting: How many wait at most.
            most_waiting_bytes: Limit of their requests together.
            most_ended: How many that have ended are remembered, at least one.
            most_answer_bytes: Limit of the answers together.
        """
        self._word = word
        self._most_waiting, self._most_waiting_bytes = most_waiting, most_waiting_bytes
        self._most_ended, self._most_answer_bytes = most_ended, most_answer_bytes
        self._count = 0
        self._known: dict[str, Operation] = {}
        """All that are remembered, in the order in which they were asked for."""
        self._waiting: dict[str, int] = {}
        """Bytes of the request of each one that waits for its turn, cancelled ones among them."""
        self._ended: deque[str] = deque()
        """Those that have ended, in that order."""
        self._answers: dict[str, bytes] = {}
        """The answers that are kept, in the order in which they came."""
        self._answer_bytes = 0

    def add(self, use_case: str, *, is_applied: bool, request_bytes: int, now_ms: int) -> Operation | None:
        """Add an operation that waits for its turn.

        Args:
            use_case: Its name in a path.
            is_applied: Whether it is to be done.
            request_bytes: Size of its request.
            now_ms: Wall clock.

        Returns:
            ``None``: there is no room for it.
        """
        taken = sum(self._waiting.values())
        if len(self._waiting) >= self._most_waiting or taken + request_bytes > self._most_waiting_bytes:
            return None
        self._count += 1
        made = Operation(
            id=f"{self._word}-{self._count}",
            use_case=use_case,
            applied=is_applied,
            state=OperationState.QUEUED,
            queued_at_ms=now_ms,
        )
        self._known[made.id] = made
        self._waiting[made.id] = request_bytes
        return made

    def forget(self, identity: str) -> None:
        """Forget an operation that was added and cannot be queued."""
        self._waiting.pop(identity, None)
        self._known.pop(identity, None)

    def begin(self, identity: str, now_ms: int) -> bool:
        """Note that the turn of an operation has come; return whether it is to be done: it was not cancelled."""
        self._waiting.pop(identity, None)
        moved = self._moved(identity, _Event.BEGIN)
        if moved is None:
            return False
        self._known[identity] = replace(moved, begun_at_ms=now_ms)
        return True

    def end(self, identity: str, now_ms: int, *, exit_status: int, answer: bytes, is_done: bool) -> None:
        """Note that an operation has ended; nothing changes if it was cancelled.

        Args:
            identity: Its id.
            now_ms: Wall clock.
            exit_status: Of its answer.
            answer: The answer, one JSON object.
            is_done: Whether the answer has a result; only one that has begun has one.
        """
        self._waiting.pop(identity, None)
        moved = self._moved(identity, _Event.END if is_done else _Event.FAIL)
        if moved is None:
            return
        is_kept = len(answer) <= self._most_answer_bytes
        self._known[identity] = replace(moved, ended_at_ms=now_ms, exit=exit_status, is_answer_left_out=not is_kept)
        if is_kept:
            self._answers[identity] = answer
            self._answer_bytes += len(answer)
        self._note_end(identity)

    def cancel(self, identity: str, now_ms: int) -> bool:
        """Take an operation back; return whether nothing of it is done: it was cancelled, now or before."""
        moved = self._moved(identity, _Event.CANCEL)
        if moved is None:
            return False
        if moved.ended_at_ms is None:
            self._known[identity] = replace(moved, ended_at_ms=now_ms)
            self._note_end(identity)
        return True

    def get(self, identity: str) -> Operation | None:
        """Return an operation; ``None``: none of this id is remembered."""
        return self._known.get(identity)

    def answer(self, identity: str) -> bytes | None:
        """Return the answer of an operation; ``None``: it has none, or it is not kept."""
        return self._answers.get(identity)

    def all(self) -> tuple[Operation, ...]:
        """Return all that are remembered, in the order in which they were asked for."""
        return tuple(self._known.values())

    def _moved(self, identity: str, event: _Event) -> Operation | None:
        """Return an operation in its next state; ``None``: it is not remembered, or there is no such state."""
        found = self._known.get(identity)
        after = None if found is None else _TRANSITIONS.get((found.state, event))
        return None if found is None or after is None else replace(found, state=after)

    def _note_end(self, identity: str) -> None:
        """Forget the oldest that have ended, and the oldest answers, that are too many now."""
        self._ended.append(identity)
        while len(self._ended) > self._most_ended:
            oldest = self._ended.popleft()
            self._known.pop(oldest, None)
            self._answer_bytes -= len(self._answers.pop(oldest, b""))
        while self._answer_bytes > self._most_answer_bytes:
            oldest = next(iter(self._answers))
            self._answer_bytes -= len(self._answers.pop(oldest))
            self._known[oldest] = replace(self._known[oldest], is_answer_left_out=True)
