"""What a daemon answers from memory: scrapes, the status page, and 1,000 requests a second while topics are deleted.

``python -m benchmarks.interfaces [--dir DIR] [--partitions N] [--seconds N]``

A broker of twelve log dirs and 20,000 partitions. Each answer is compared with one of as many bytes that never change,
from ``http.server`` on a unix socket, in turn and in the same run: what is left is the work of making it. Under load
directories are renamed as a broker does, and removed five seconds later; a capture that comes too late is missed. The
same requests are then offered to that other server. The page that is drawn is the largest there is: twelve log dirs,
500 entries in the undo window.

Not here: that no capture is missed however slow the machine is (``tests/logdir/daemon/test_beside_requests.py``).

Spec: design §10; issue "The daemon at home on a host", Budgets.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.daemon import LOG_DIRS, PARTITIONS, delete, make, memory, started
from benchmarks.measure import Row, show
from benchmarks.unsynced import default_dir
from logdir.daemon.page.render import render
from tests.browser.chromium import chromium, find
from tests.logdir.daemon.page.sample import NOW_MS, SHAPES

ROUNDS: Final = 101
SECONDS: Final = 20
OFFERED: Final = 1_000
"""Requests a second."""
DELETED_A_SECOND: Final = 10
DELETE_DELAY_MS: Final = 5_000
ASKED: Final = {"a scrape": "/metrics", "the status": "/v1/status", "the page": "/status.html"}
BASELINE: Final = "http.server, as many bytes"
DRAWN: Final = 7
EMPTY: Final = "an empty page"
_CLIENTS: Final = 8
_PATIENCE_S: Final = 60
_BARE: Final = """
import sys
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn, UnixStreamServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"x" * int(self.path[1:])
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "unix"

    def log_message(self, *words):
        pass

class Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

Server(sys.argv[1], Handler).serve_forever()
"""
_DRAWN: Final = """new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"""
"""Milliseconds from the beginning of a navigation until what was loaded is on the screen."""


def get(path: str, where: str) -> bytes:
    """Ask a server on a unix socket; return the body of its answer.

    Raises:
        OSError: nobody answers there.
        ValueError: the status is not 200.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE_S)
        connection.connect(path)
        connection.sendall(f"GET {where} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        parts = []
        while part := connection.recv(1 << 18):
            parts.append(part)
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    if head.split(b" ")[1:2] != [b"200"]:
        raise ValueError(head.decode(errors="replace")[:100])
    return body


@contextmanager
def bare(folder: Path) -> Iterator[str]:
    """Start the baseline; yield its socket."""
    path = str(folder / "bare.sock")
    process = subprocess.Popen([sys.executable, "-c", _BARE, path])
    try:
        until = time.monotonic() + _PATIENCE_S
        while not Path(path).is_socket():
            if time.monotonic() > until:
                raise SystemExit("the baseline does not start")
            time.sleep(0.01)
        yield path
    finally:
        process.terminate()
        process.wait()


def _took_ms(path: str, where: str) -> float:
    began = time.perf_counter()
    get(path, where)
    return 1000 * (time.perf_counter() - began)


def in_turn(daemon: str, baseline: str, rounds: int) -> list[Row]:
    """Ask for each thing and for as many bytes of the baseline, in turn; return a row for each."""
    rows = []
    for what, where in ASKED.items():
        size = len(get(daemon, where))
        theirs, ours = [], []
        for _ in range(rounds):
            ours.append(_took_ms(daemon, where))
            theirs.append(_took_ms(baseline, f"/{size}"))
        median = statistics.median(ours)
        rows.append(Row(f"{what}, {size / 1000:,.0f} kB", median, median / statistics.median(theirs), BASELINE, None))
    return rows


class Load:
    """Clients that ask for something at a steady rate."""

    def __init__(self, path: str, where: str, rate: int, seconds: float) -> None:
        """Make them; nothing is asked yet.

        Args:
            path: The socket.
            where: What they ask for.
            rate: Requests a second, all clients together.
            seconds: How long they ask.
        """
        self._path, self._where, self._between_s, self._seconds = path, where, _CLIENTS / rate, seconds
        self._lock = threading.Lock()
        self.answered = self.refused = 0
        self.took_ms: list[float] = []
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(_CLIENTS)]

    def run(self) -> float:
        """Ask for the whole time; return how many were answered a second, up to the last answer."""
        began = time.monotonic()
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join()
        return self.answered / (time.monotonic() - began)

    def _ask(self, number: int) -> None:
        began = time.monotonic()
        next_s = began + self._between_s * number / _CLIENTS
        answered = refused = 0
        took_ms = []
        # One that is late asks at once, and skips none: the rate is that which is offered.
        while next_s < began + self._seconds:
            time.sleep(max(0.0, next_s - time.monotonic()))
            next_s += self._between_s
            try:
                took_ms.append(_took_ms(self._path, self._where))
                answered += 1
            except (OSError, ValueError):
                refused += 1
        with self._lock:
            self.answered += answered
            self.refused += refused
            self.took_ms += took_ms


def deletions(paths: Sequence[Path], between_s: float, delay_s: float) -> None:
    """Rename directories one after the other as a broker does, and remove each after its delay."""
    renamed: list[tuple[float, Path]] = []
    waiting = list(paths)
    next_s = time.monotonic()
    while waiting or renamed:
        now_s = time.monotonic()
        if waiting and now_s >= next_s:
            path = waiting.pop(0)
            delete([path])
            (gone,) = path.parent.glob(f"{path.name}.*-delete")
            renamed.append((now_s + delay_s, gone))
            next_s += between_s
        while renamed and renamed[0][0] <= now_s:
            shutil.rmtree(renamed.pop(0)[1])
        time.sleep(0.005)


def drawn(folder: Path) -> list[Row]:
    """Draw the largest page and one without anything, in turn; no row without a browser."""
    program = find()
    if program is None:
        return []
    page, empty = folder / "page.html", folder / "empty.html"
    text = render(SHAPES["large"], NOW_MS)
    page.write_text(text, encoding="utf-8")
    empty.write_text("<!DOCTYPE html><title>empty</title><p>empty", encoding="utf-8")
    times: dict[Path, list[float]] = {page: [], empty: []}
    with chromium(program) as tab:
        for path in [*times] * (DRAWN + 1):
            tab.open(path)
            times[path].append(tab.run(_DRAWN))
    ours, theirs = (statistics.median(found[1:]) for found in times.values())
    what = f"the largest page drawn, {len(text.encode()) / 1000:,.0f} kB"
    return [Row(what, ours, ours / theirs, EMPTY, None)]


def measure(home: str, partitions: int = PARTITIONS, seconds: int = SECONDS, rounds: int = ROUNDS) -> str:
    """Return the figures as Markdown tables."""
    rows: list[tuple[str, str, str, bool | None]] = []

    def note(
        what: str, value: float, unit: str, most: float | None = None, least: float | None = None, form: str = ",.2f"
    ) -> None:
        verdict = value <= most if most is not None else value >= least if least is not None else None
        budget = f"≤ {most:g}" if most is not None else f"≥ {least:g}" if least is not None else "-"
        shown = budget if verdict is None else f"{budget} {unit}".strip()
        rows.append((what, f"{value:{form}} {unit}".strip(), shown, verdict))

    count = DELETED_A_SECOND * seconds
    with tempfile.TemporaryDirectory(prefix="logdird-bench-", dir=home) as name:
        work = Path(name)
        tops = make(work, partitions, full=2 * count)
        with open(work / "server.properties", "a", encoding="utf-8") as file:
            file.write(f"log.segment.delete.delay.ms={DELETE_DELAY_MS}\n")
        with started(work) as daemon, bare(work) as baseline:
            daemon.until(None)
            before = memory(daemon.process.pid, "Rss")
            note("the first scrape, which loads the library", _took_ms(daemon.socket, "/metrics"), "ms")
            ratios = in_turn(daemon.socket, baseline, rounds)
            note(
                f"a scrape at {partitions:,} partitions and {LOG_DIRS} disks, median", ratios[0].milliseconds, "ms", 20
            )
            note("the page, until it is there, median", ratios[2].milliseconds, "ms")
            note("the largest page", len(render(SHAPES["large"], NOW_MS).encode()) / 1000, "kB", 300)
            in_browser = drawn(work)
            if in_browser:
                note("… drawn by Chromium, median", in_browser[0].milliseconds, "ms", 1000)
            note("supervisor, resident, before the first scrape", before, "MB", 60)
            note("supervisor, resident, after it", memory(daemon.process.pid, "Rss"), "MB", 60)
            every = sorted(path for path in tops[0].iterdir() if path.is_dir() and path.name.startswith("topic-"))
            remover = threading.Thread(
                target=deletions, args=(every[:count], 1 / DELETED_A_SECOND, DELETE_DELAY_MS / 1000)
            )
            load = Load(daemon.socket, ASKED["the status"], OFFERED, seconds)
            cpu_s = daemon.cpu_seconds()
            remover.start()
            rate = load.run()
            cpu_s = daemon.cpu_seconds() - cpu_s
            remover.join()
            until = time.monotonic() + _PATIENCE_S
            while (found := daemon.status()) is None or found.captured + found.missed < count:
                if time.monotonic() > until:
                    raise SystemExit(f"not all are captured or missed after {_PATIENCE_S} s: {found}")
                time.sleep(0.1)
            what = f"{OFFERED:,} requests a second offered for {seconds} s: answered a second"
            note(what, rate, "", least=0.99 * OFFERED)
            note("… not answered with 200", load.refused, "", 0, form=",")
            note("… an answer, median", statistics.median(load.took_ms), "ms")
            note("… an answer, the longest of a thousand", sorted(load.took_ms)[-1 - len(load.took_ms) // 1000], "ms")
            note("… all processes of the daemon, of one core", 100 * cpu_s / seconds, "%")
            note(f"… deletions meanwhile, {DELETED_A_SECOND} a second", count, "", form=",")
            note("… of these missed", found.missed, "", 0, form=",")
            same = Load(baseline, f"/{len(get(daemon.socket, ASKED['the status']))}", OFFERED, seconds)
            theirs = same.run()
            median, its = statistics.median(load.took_ms), statistics.median(same.took_ms)
            ratios.append(
                Row(f"an answer of {rate:,.0f} a second", median, median / its, f"{BASELINE}, {theirs:,.0f}", None)
            )
            ratios += in_browser
            note("supervisor, resident, after it all", memory(daemon.process.pid, "Rss"), "MB", 60)
    words = {True: "met", False: "MISSED", None: "-"}
    lines = ["| what | found | budget | |", "| --- | --- | --- | --- |"]
    lines += [f"| {what} | {value} | {budget} | {words[verdict]} |" for what, value, budget, verdict in rows]
    return f"{show(ratios)}\n\n" + "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", metavar="DIR")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--seconds", type=int, default=SECONDS, metavar="SECONDS")
    wanted = parser.parse_args()
    print(measure(wanted.dir or default_dir(), wanted.partitions, wanted.seconds))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
