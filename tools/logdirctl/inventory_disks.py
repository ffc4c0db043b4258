"""The disks of one broker scanned side by side, each in a process of its own, and heard until they end.

A copy of this process is on its way at once; where other threads run in it, and a copy may stand still for ever, a new
interpreter is started instead. Whatever happens, none is left behind.

Not here: what one of them does (``logdir.observe.process``), where inventories go (``inventory_output``).

Spec: design §2 law 6, §10 "inventory of many disks".
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from signal import SIGKILL
from typing import BinaryIO

from logdir.observe.process import Request, Summary, parse_summary, run, serve
from logdir.observe.share import is_alone
from logdir.text import printable
from tools.cli import Streams
from tools.logdirctl.inventory_output import unwritten

_NOTE_EVERY = 0.2
"""Seconds between two progress lines on a terminal."""


class _Progress:
    """One line on a terminal that is written over; silent elsewhere."""

    def __init__(self, streams: Streams, disks: int) -> None:
        self._err = streams.err
        self._shown = streams.err.isatty()
        self._counts = [0] * disks
        self._last = time.monotonic()

    def at(self, disk: int) -> Callable[[int], None]:
        """Return what hears of one disk's progress."""

        def note(count: int) -> None:
            self._counts[disk] = count
            now = time.monotonic()
            if self._shown and now - self._last > _NOTE_EVERY:
                self._last = now
                self._err.write(f"\rscanning {len(self._counts)} log dirs: {sum(self._counts)} entries")
                self._err.flush()

        return note

    def done(self) -> None:
        """Take the line away."""
        if self._shown:
            self._err.write("\r\x1b[K")
            self._err.flush()


class _Child:
    """One process that scans one disk."""

    def __init__(self, request: Request, pid: int, pipe: int) -> None:
        self.request = request
        self.pid = pid
        self.pipe = pipe
        """What it tells; closed by ``end``."""
        self._rest = b""
        self._summary: Summary | None = None
        self._reason: str | None = None
        self._strange = b""
        self._status: int | None = None

    def hear(self, note: Callable[[int], None]) -> bool:
        """Read what it told; return whether more may come."""
        data = os.read(self.pipe, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b'{"entries":'):
                note(int(json.loads(line)["entries"]))
            elif line.startswith(b'{"summary":'):
                self._summary = parse_summary(json.loads(line)["summary"])
            elif line.startswith(b'{"unwritten":'):
                self._reason = json.loads(line)["unwritten"] or "an error"
            else:
                self._strange = line.strip() or self._strange
        return bool(data)

    def end(self, *, kill: bool = False) -> None:
        """Wait for its end; repeatable."""
        if self._status is None:
            if kill:
                os.kill(self.pid, SIGKILL)
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self.pipe)

    def summary(self) -> Summary:
        """Return what it found; it has ended.

        Raises:
            OutputError: it could not write the inventory.
            RuntimeError: it ended without a summary; its last words are in the message.
        """
        if self._reason is not None:
            raise unwritten(self.request.log_dir, self._reason)
        if self._status != 0 or self._summary is None:
            words, path = self._strange.decode(errors="replace"), printable(self.request.log_dir)
            raise RuntimeError(f"the scan of {path} ended with {self._status}: {words}")
        return self._summary


def _forked(request: Request, file: BinaryIO, said: int, others: Sequence[int]) -> int:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            # Theirs would stay open here after who asked is gone, and they would never hear of it.
            for other in others:
                os.close(other)
            status = serve(request, file, said)
        finally:
            # Never back into the caller's code, whatever happened: there it would run twice.
            os._exit(status)
    return pid


def _spawned(request: Request, file: BinaryIO, said: int) -> int:
    # It runs this installation's code and no other, wherever it was started from; it needs nothing that is installed
    # beside, so it does not look for it either.
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = f"import sys; sys.path.insert(0, {home!r}); from logdir.observe.process import main; main()"
    command = [sys.executable, "-I", "-S", "-c", code, json.dumps(request._asdict())]
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, file.fileno(), 1),
        (os.POSIX_SPAWN_DUP2, said, 2),
    ]
    return os.posix_spawn(sys.executable, command, os.environ, file_actions=files)


@contextmanager
def _started(requests: Sequence[Request], files: Sequence[BinaryIO]) -> Iterator[list[_Child]]:
    """Start one process per disk; none outlives the body."""
    children: list[_Child] = []
    try:
        for request, file in zip(requests, files, strict=True):
            pipe, said = os.pipe()
            try:
                if is_alone():
                    pid = _forked(request, file, said, [pipe, *(child.pipe for child in children)])
                else:
                    pid = _spawned(request, file, said)
            except OSError:
                os.close(pipe)
                raise
            finally:
                os.close(said)
            children.append(_Child(request, pid, pipe))
        yield children
    finally:
        for child in children:
            child.end(kill=True)


def _listen(children: Sequence[_Child], progress: _Progress) -> None:
    """Hear all of them to their ends."""
    talking = {child.pipe: (child, progress.at(index)) for index, child in enumerate(children)}
    poll = select.poll()
    for pipe in talking:
        poll.register(pipe, select.POLLIN)
    while talking:
        for pipe, _ in poll.poll():
            child, note = talking[pipe]
            if not child.hear(note):
                poll.unregister(pipe)
                del talking[pipe]
                child.end()


def scan(requests: Sequence[Request], files: Sequence[BinaryIO], streams: Streams) -> list[Summary]:
    """Scan every disk, each in a process of its own if there are several.

    Args:
        requests: What to scan.
        files: Where each inventory goes, one per request.
        streams: For progress on a terminal.

    Returns:
        One summary per request, in their order.

    Raises:
        OutputError: an inventory could not be written.
    """
    progress = _Progress(streams, len(requests))
    try:
        if len(requests) == 1:
            try:
                return [run(requests[0], files[0], progress.at(0))]
            except OSError as error:
                raise unwritten(requests[0].log_dir, error.strerror) from error
        with _started(requests, files) as children:
            _listen(children, progress)
        return [child.summary() for child in children]
    finally:
        progress.done()
