"""Operations: requests to the thread of changes that nobody waits for; their state is asked by an id.

Each takes its turn among the other requests. Its answer is made by a thread of its own: neither the thread of changes
nor a client waits for that.

Not here: states and limits (``daemon.operations``), who may ask (``handler``).

Spec: KIP-4 (requests are asynchronous); design §4, §5.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from logdir import clock
from logdir.daemon.faults import StoppingError
from logdir.daemon.operations import MOST_WAITING, Operation, Operations, OperationState
from logdir.daemon.requests import Answer
from logdir.daemon.socket.body import Asked
from logdir.daemon.socket.envelopes import Reply, of_fault
from logdir.daemon.socket.reads import Reads
from logdir.daemon.socket.refusals import OperationBegunError, busy_error, no_such_operation
from logdir.daemon.socket.routes import operation_path, part_of
from logdir.daemon.socket.running import Came, log_dir_left, reply_of, run_on

if TYPE_CHECKING:
    from logdir.daemon.work import Work

LOG: Final = logging.getLogger(__name__)
_END_S: Final = 1.0
_WORDS: Final = {
    OperationState.QUEUED: "one that waits",
    OperationState.RUNNING: "one that runs",
    OperationState.DONE: "one that is done",
    OperationState.FAILED: "one that has failed",
    OperationState.CANCELLED: "one that was cancelled",
}


class Queue(Protocol):
    """The part of the daemon that operations need."""

    def submit(self, what: str, run: Callable[[Work], Came]) -> Answer:
        """Enqueue a request. Raises ``StoppingError``: the daemon ends."""


class Found(NamedTuple):
    """An operation, and its answer in JSON; ``None``: it has none, or it is not kept."""

    operation: Operation
    answer: bytes | None


class Operating:
    """The operations of one daemon."""

    def __init__(self, daemon: Queue, reads: Reads) -> None:
        """Begin with none.

        Args:
            daemon: Does them.
            reads: Those of the daemon: a log dir that is let go is left by them.
        """
        self._daemon, self._reads = daemon, reads
        self._lock = threading.Lock()
        """Held for moments alone: the thread of changes takes it, too."""
        self._operations = Operations(os.urandom(8).hex())
        self._asked: dict[str, Asked] = {}
        """The requests of those that wait for their turn."""
        self._ended: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="operations", daemon=True)

    def start(self) -> None:
        """Start the thread that makes answers."""
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether its thread works."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End the thread, once it has made the answers of what has ended by now."""
        self._ended.put(None)
        if self._thread.ident is not None:
            self._thread.join(_END_S)

    def add(self, asked: Asked, size: int) -> Operation:
        """Enqueue a request; return its operation, which waits for its turn.

        Args:
            asked: The request.
            size: Its bytes.

        Raises:
            BusyError: too many wait.
            StoppingError: the daemon ends.
        """
        name, left = asked.spec.name, log_dir_left(asked)
        with self._lock:
            made = self._operations.add(
                part_of(name), is_applied=asked.is_applied, request_bytes=size, now_ms=clock.now_ms()
            )
            if made is None:
                expected = f"at most {MOST_WAITING} that wait, with requests of 64 MiB together"
                raise busy_error("operations", expected, "one more")
            self._asked[made.id] = asked
        try:
            answer = self._daemon.submit(name, partial(self._begin, made.id))
        except BaseException:
            with self._lock:
                self._operations.forget(made.id)
                self._asked.pop(made.id, None)
            raise
        # Called by the thread of changes, which only passes it on.
        answer.add_done_callback(lambda done: self._ended.put(partial(self._end, made.id, name, done, left)))
        return made

    def find(self, identity: str) -> Found:
        """Return an operation. Raises ``NoSuchOperationError``: none of this id is remembered."""
        with self._lock:
            found = self._operations.get(identity)
            if found is None:
                raise no_such_operation(identity)
            return Found(found, self._operations.answer(identity))

    def all(self) -> tuple[Operation, ...]:
        """Return all that are remembered, in the order in which they were asked for."""
        with self._lock:
            return self._operations.all()

    def cancel(self, identity: str) -> Operation:
        """Take an operation back that has not begun; return it.

        Raises:
            NoSuchOperationError: none of this id is remembered.
            OperationBegunError: it has begun.
        """
        with self._lock:
            is_cancelled = self._operations.cancel(identity, clock.now_ms())
            found = self._operations.get(identity)
            if found is None:
                raise no_such_operation(identity)
            if not is_cancelled:
                raise OperationBegunError(
                    identity,
                    expected="an operation that waits for its turn",
                    found=_WORDS[found.state],
                    fix=f"nothing was cancelled: GET {operation_path(identity)} shows its state and its answer",
                )
            self._asked.pop(identity, None)
            return found

    def _begin(self, identity: str, work: Work) -> Came:
        """Do an operation; called by the thread of changes. Raises ``LogDirError``: as the use case."""
        with self._lock:
            is_wanted = self._operations.begin(identity, clock.now_ms())
            asked = self._asked.pop(identity, None)
        if asked is None or not is_wanted:
            raise StoppingError("operation", expected="one that is wanted", found="one that was cancelled")
        return run_on(work, asked)

    def _run(self) -> None:
        while (end := self._ended.get()) is not None:
            end()

    def _end(self, identity: str, name: str, done: Answer, left: str | None) -> None:
        """Keep the answer of an operation; whatever happens it has one."""
        try:
            reply = reply_of(name, done.result, self._reads, left)
            data = reply.data
        except Exception as error:
            LOG.exception("operation.fault command=%r", name)
            reply = of_fault(name, error)
            data = reply.data
        self._note_end(identity, reply, data)

    def _note_end(self, identity: str, reply: Reply, data: bytes) -> None:
        with self._lock:
            self._asked.pop(identity, None)  # It ended before its turn.
            self._operations.end(
                identity, clock.now_ms(), exit_status=reply.value["exit"], answer=data, is_done=reply.is_done
            )
