"""The threads that answer clients: one at a time each, and after that the next one, if there is one soon.

To start a thread takes as long as to answer from memory, and the thread that accepts clients waits for it. So a thread
that has answered waits some seconds for another client, and then ends: a daemon that nobody asks has none.

Not ``concurrent.futures``: a thread of its pool never ends, and the end of the process waits for all of them.

Not here: how many clients there may be (``places``), what they are answered (``handler``).

Spec: design §5; issue "The daemon at home on a host", Budgets.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar

MOST_IDLE: Final = 8
"""How many threads wait for another client; others end."""
_IDLE_S: Final = 5.0
"""How long one waits."""
C = TypeVar("C")


class ThreadPool(Generic[C]):
    """Threads that answer clients; as many as there are clients."""

    def __init__(self, answer: Callable[[C], None], *, idle_s: float = _IDLE_S) -> None:
        """Begin without a thread.

        Args:
            answer: Answers one client; it raises nothing.
            idle_s: How long a thread waits for another client.
        """
        self._answer, self._idle_s = answer, idle_s
        self._clients: SimpleQueue[C] = SimpleQueue()
        self._lock = threading.Lock()
        self._free = 0
        """Threads that wait, without those for which a client is in the queue."""

    def give(self, client: C) -> None:
        """Let a client be answered.

        Raises:
            RuntimeError: no thread waits for one, and no other can be started.
        """
        with self._lock:
            is_awaited = self._free > 0
            if is_awaited:
                self._free -= 1
                self._clients.put(client)
        if not is_awaited:
            threading.Thread(target=self._run, args=(client,), name="client", daemon=True).start()

    def _run(self, client: C) -> None:
        while True:
            self._answer(client)
            del client  # Its connection is not kept by a thread that waits.
            with self._lock:
                if self._free >= MOST_IDLE:
                    return
                self._free += 1
            try:
                client = self._clients.get(timeout=self._idle_s)
            except Empty:
                with self._lock:
                    if self._free > 0:
                        self._free -= 1
                        return
                # Just now a client was given to it.
                client = self._clients.get()
