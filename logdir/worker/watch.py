"""Watching one log dir for ``-delete`` and ``-stray`` directories, in a process of its own.

The process watches the top of the log dir alone, and sends one byte whenever a directory gets such a name, or events
were lost. A byte is a hint: it makes the next look earlier and carries no name. A watch that hangs or
ends harms nothing, because the sweep finds the same directories.

Not here: looking at the log dir (``observe.leaving``).

Spec: design §5; libraries §3; kafka-behaviour §3.2, §3.3.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import Final

from logdir.disk.kernel.kernel_process import end_with_starter
from logdir.paths import DELETE_SUFFIX, STRAY_SUFFIX
from logdir.worker.reaping import has_ended

_END_MS: Final = 100
"""How long to wait for the end of a killed process."""
HINT: Final = b"!"
READY: Final = b"+"
"""The first byte: the watch is set; what was there before it gives no hint."""
FAILED: Final = b"-"
"""The first byte if there is no watch; the reason follows, and the process ends."""


class Watch:
    """The watch process of one log dir, as its starter has it."""

    def __init__(self, log_dir: str, pid: int, connection: socket.socket) -> None:
        self.log_dir, self.pid, self.connection = log_dir, pid, connection
        connection.setblocking(False)

    def read(self) -> bytes | None:
        """Return the bytes that have arrived; ``None``: the process has ended."""
        try:
            return self.connection.recv(1 << 12) or None
        except BlockingIOError:
            return b""
        except OSError:
            return None

    def close(self) -> None:
        """End the process; one that hangs in the kernel is left."""
        self.connection.close()
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        has_ended(self.pid, _END_MS)


def start_watch(log_dir: str) -> Watch:
    """Start a process that watches a log dir.

    Raises:
        OSError: no more processes can be started.
    """
    ours, theirs = socket.socketpair()
    try:
        home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        code = f"import sys; sys.path.insert(0, {home!r}); from logdir.worker.watch import main; main()"
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-c", code, str(os.getpid()), os.fsencode(log_dir).hex()],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)],
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return Watch(log_dir, pid, ours)


def main() -> None:
    """Watch until the starter ends; does not return. Arguments: pid of the starter, the log dir in hexadecimal."""
    starter, log_dir = int(sys.argv[1]), os.fsdecode(bytes.fromhex(sys.argv[2]))
    end_with_starter(starter)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=os.dup(0)) as connection:
        _watch(log_dir, connection)
    os._exit(0)


def is_leaving(name: str) -> bool:
    """Whether a directory name ends as those that a broker gives before a removal."""
    return name.endswith((DELETE_SUFFIX, STRAY_SUFFIX))


def _watch(log_dir: str, connection: socket.socket) -> None:
    from watchdog.events import DirCreatedEvent, DirMovedEvent, FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.inotify import InotifyObserver

    def hint() -> None:
        with suppress(BlockingIOError, OSError):  # The starter has hints to read, or has ended.
            connection.send(HINT, socket.MSG_DONTWAIT)

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            path = event.dest_path or event.src_path
            if is_leaving(os.fsdecode(os.path.basename(path))):
                hint()

    class Lost(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            hint()

    # watchdog reports an overflow of the kernel's queue only to this logger.
    log = logging.getLogger("watchdog.observers.inotify_c")
    log.addHandler(Lost(logging.WARNING))
    log.propagate = False
    try:
        observer = InotifyObserver()
        observer.schedule(Handler(), log_dir, recursive=False, event_filter=[DirMovedEvent, DirCreatedEvent])
        observer.start()
    except OSError as error:  # No such directory, no permission, or no inotify instance is left.
        with suppress(OSError):
            connection.send(FAILED + (error.strerror or str(error)).encode())
        return
    connection.send(READY)
    connection.recv(1)  # Until the starter closes its end.
