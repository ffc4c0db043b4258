"""A daemon that is asked without a pause captures what its broker deletes meanwhile: not one deletion is missed.

How many requests it answers in a second is measured by ``benchmarks/interfaces.py``; here it is asked as often as it
answers, until everything is captured.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Self

from logdir.daemon.socket import routes
from logdir.daemon.socket.connections import MOST_CLIENTS
from tests.logdir.daemon.http import bytes_of, parsed
from tests.logdir.daemon.rig import Daemon, ask, daemon, until

DELETED = 60
ANSWERED = 3_000
"""So many requests are answered at least while it captures: three seconds of the budget."""
QUESTIONS = {
    "status": bytes_of("GET", "/v1/status"),
    "metrics": bytes_of("GET", "/metrics"),
    "page": bytes_of("GET", "/status.html"),
    "nothing": bytes_of("GET", "/v1/nothing"),
    "read": bytes_of("POST", routes.path_of("staged-ls"), {"apply": False, "request": {}}),
}
ANSWERS = {"status": {200}, "metrics": {200}, "page": {200}, "nothing": {404}, "read": {200, 503}}
"""Two reads are answered at once, and a third one is told so."""


class Crowd:
    """Clients that ask one question after the other until they are told to end."""

    def __init__(self, path: str, clients: int = 4) -> None:
        self.found: Counter[tuple[str, int]] = Counter()
        self._path = path
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(clients)]

    @property
    def answered(self) -> int:
        """How many answers there were from memory: what a budget counts."""
        with self._lock:
            return sum(count for (name, _), count in self.found.items() if name in ("status", "metrics", "page"))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number: int) -> None:
        # Most of it is the status; each client begins elsewhere.
        names = [*["status"] * 6, "metrics", "page", "nothing", "read"]
        while not self._is_over.is_set():
            name = names[number % len(names)]
            number += 1
            # An answer that is none counts as one, so that the client goes on and the test sees it.
            status = 0
            with suppress(OSError, ValueError, AssertionError):
                status = parsed(ask(self._path, QUESTIONS[name])).status
            with self._lock:
                self.found[name, status] += 1


def deleted_amid(one: Daemon, crowd: Crowd) -> list[Path]:
    """Delete topics as a broker does, one after so many answers, until there are enough of both."""
    gone = []
    for number in range(DELETED):
        until("it answers", lambda: crowd.answered >= number * ANSWERED // DELETED, 120)  # noqa: B023
        path = one.log_dirs[number % 2] / f"topic{number}-0"
        gone.append(one.delete(path, unique=f"{number:032x}"))
    return gone


def test_no_capture_is_missed_beside_many_requests(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False) as one:
        for number in range(DELETED):
            one.make(f"topic{number}", disk=number % 2, topic_id=f"eXOy6xj-Q8ivrWAl{number:04}kw")
        one.start()
        with Crowd(one.socket) as crowd:
            gone = deleted_amid(one, crowd)
            # A broker gives it a minute.
            until("all are captured", lambda: one.status().captured == DELETED, 60)
            until("it was asked as often as it has to be", lambda: crowd.answered >= ANSWERED, 120)
            for path in gone:
                one.remove(path)
        found = one.status()
        assert (found.captured, found.missed) == (DELETED, 0)
        assert sum(disk.staged for disk in found.log_dirs) == DELETED
        assert len(one.staged(0)) == len(one.staged(1)) == DELETED // 2
        assert [event["event"] for event in one.events()].count("captured") == DELETED
        assert {(name, status) for name, status in crowd.found if status not in ANSWERS[name]} == set()
        assert {name for name, _ in crowd.found} == ANSWERS.keys()


def test_more_clients_than_there_are_places_for_hold_up_no_capture(tmp_path: Path) -> None:
    """Who finds no place is told so at once; what is deleted meanwhile is captured like any other."""
    with daemon(tmp_path, is_started=False) as one:
        for number in range(4):
            one.make("pay", number)
        one.start()
        with Crowd(one.socket, clients=2 * MOST_CLIENTS) as crowd:
            until("it answers", lambda: crowd.answered >= MOST_CLIENTS, 120)
            for number in range(4):
                one.delete(one.log_dirs[0] / f"pay-{number}")
            root = Path(f"{one.log_dirs[0]}.logdird") / "deleting"
            until("all are captured", lambda: len(list(root.iterdir())) == 4, 60)
        until("it answers again, and shows them", lambda: one.state() == "RUNNING" and one.status().captured == 4)
        assert one.status().missed == 0
        assert {status for _, status in crowd.found} <= {200, 404, 503, 0}
