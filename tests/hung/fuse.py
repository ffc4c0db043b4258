"""A FUSE server that shows a directory and stops answering when it is told to: ``python -m tests.hung.fuse``.

It speaks the kernel's protocol itself (linux/fuse.h, 7.31), so that nothing need be installed. While its control file
names operations it reads their requests and answers none; once the file is empty it answers what waited. In a file of
the same name with ``.since`` stands when the first request was left unanswered, on ``time.monotonic``.

The control file holds words: ``READ`` is the operation on every file, ``OPEN:.lock`` that on files of this name. With
``held=/path`` nothing hangs before a request that comes while Kafka's lock of the log dir ``/path`` is held; who asks
waits for the answer, so it is held until then. With ``after=3`` three such requests are answered first.

Not here: mounting for a test (``rig``).
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from logdir.disk.kernel.kernel_process import end_with_starter
from tests.hung.locks import is_held

_IN: Final = Struct("<IIQQIIII")
_OUT: Final = Struct("<IiQ")
_ATTR: Final = Struct("<6Q10I")
_ENTRY: Final = Struct("<4Q2I")
_ATTR_OUT: Final = Struct("<Q2I")
_OPEN_OUT: Final = Struct("<Q2I")
_READ_IN: Final = Struct("<QQI")
_WRITE_IN: Final = Struct("<QQIIQII")
_STATFS: Final = Struct("<5Q4I24x")
_LOCK: Final = Struct("<QQII")
_POSIX_LOCKS: Final = 2
"""In the answer to INIT: locks are asked of the server, too, not of the kernel alone."""
_F_UNLCK: Final = 2
_DIRENT: Final = Struct("<QQII")
_INIT_OUT: Final = Struct("<4I2H2I2H8I")
_BUFFER: Final = (1 << 20) + 4096
_NO_SUID_NO_DEV: Final = 2 | 4

NAMES: Final = {
    1: "LOOKUP",
    2: "FORGET",
    3: "GETATTR",
    4: "SETATTR",
    14: "OPEN",
    15: "READ",
    16: "WRITE",
    17: "STATFS",
    18: "RELEASE",
    20: "FSYNC",
    25: "FLUSH",
    26: "INIT",
    27: "OPENDIR",
    28: "READDIR",
    29: "RELEASEDIR",
    30: "FSYNCDIR",
    31: "GETLK",
    32: "SETLK",
    36: "INTERRUPT",
    42: "BATCH_FORGET",
}
_UNANSWERED: Final = frozenset(("FORGET", "INTERRUPT", "BATCH_FORGET"))
_AWAITED_BY_NOBODY: Final = frozenset(("RELEASE", "RELEASEDIR"))
"""What follows a close in its own time: nothing hangs at it."""


def since_file(control: Path) -> Path:
    """Return where the server of a control file writes when the first request was left unanswered."""
    return Path(f"{control}.since")


class Hung(NamedTuple):
    """What is left unanswered."""

    words: frozenset[str] = frozenset()
    """Operations, or an operation and the name of a file."""
    held: str = ""
    """The log dir whose lock must be held; empty: it need not be."""
    after: int = 0
    """How many such requests are answered first."""

    @classmethod
    def of(cls, text: str) -> Hung:
        """Return what a control file says."""
        options = dict(word.split("=", 1) for word in text.split() if "=" in word)
        words = frozenset(word for word in text.split() if "=" not in word)
        return cls(words, options.get("held", ""), int(options.get("after", 0)))


class Server:
    """One mounted file system."""

    def __init__(self, backing: Path, control: Path, device: int) -> None:
        self._control = control
        self._since = since_file(control)
        self._device = device
        self._paths: dict[int, str] = {1: str(backing)}
        self._nodes: dict[str, int] = {str(backing): 1}
        self._waiting: list[bytes] = []
        self._answered = 0
        self._calls: dict[str, Callable[[int, bytes], bytes]] = {
            "INIT": lambda node, data: _INIT_OUT.pack(
                7, 31, 1 << 20, _POSIX_LOCKS, 16, 12, 1 << 20, 1, 256, 0, *[0] * 8
            ),
            "LOOKUP": self._lookup,
            "GETATTR": lambda node, data: _ATTR_OUT.pack(0, 0, 0) + self._attributes(self._paths[node]),
            "SETATTR": lambda node, data: _ATTR_OUT.pack(0, 0, 0) + self._attributes(self._paths[node]),
            "OPEN": self._open,
            "OPENDIR": lambda node, data: _OPEN_OUT.pack(0, 0, 0),
            "READDIR": self._readdir,
            "READ": self._read,
            "WRITE": self._write,
            "STATFS": lambda node, data: _STATFS.pack(1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 4096, 255, 4096, 0),
            "RELEASE": self._release,
            "RELEASEDIR": lambda node, data: b"",
            "FLUSH": lambda node, data: b"",
            "FSYNC": lambda node, data: b"",
            "FSYNCDIR": lambda node, data: b"",
            # Nobody else asks for a lock of these.
            "GETLK": lambda node, data: _LOCK.pack(0, 0, _F_UNLCK, 0),
            "SETLK": lambda node, data: b"",
        }

    def serve(self) -> None:
        """Answer until it is unmounted."""
        poll = select.poll()
        poll.register(self._device, select.POLLIN)
        while True:
            hung = self._hung()
            if not hung.words:
                for request in self._waiting:
                    self._answer(request)
                self._waiting.clear()
                self._answered = 0
            if not poll.poll(50):
                continue
            try:
                request = os.read(self._device, _BUFFER)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                continue
            if self._is_hung(request, hung):
                if not self._waiting:
                    self._since.write_text(repr(time.monotonic()))
                self._waiting.append(request)
            else:
                self._answer(request)

    def _hung(self) -> Hung:
        try:
            return Hung.of(self._control.read_text())
        except FileNotFoundError:
            return Hung()

    def _is_hung(self, request: bytes, hung: Hung) -> bool:
        """Whether a request is left unanswered."""
        _, code, _, node, *_ = _IN.unpack_from(request)
        name = NAMES.get(code, "?")
        file = self._paths.get(node, "").rpartition("/")[2]
        words = (name, f"{name}:{file}") if name in _AWAITED_BY_NOBODY else (name, f"{name}:{file}", "ALL")
        if name in _UNANSWERED or hung.words.isdisjoint(words):
            return False
        if self._waiting:
            return True
        if hung.held and not is_held(Path(hung.held)):
            return False
        self._answered += 1
        return self._answered > hung.after

    def _answer(self, request: bytes) -> None:
        _, code, unique, node, *_ = _IN.unpack_from(request)
        name = NAMES.get(code, "?")
        if name in _UNANSWERED:
            return
        number, data = 0, b""
        try:
            call = self._calls.get(name)
            if call is None:
                number = errno.ENOSYS
            else:
                data = call(node, request[_IN.size :])
        except OSError as error:
            number = error.errno or errno.EIO
        except KeyError:
            number = errno.ESTALE
        try:
            os.write(self._device, _OUT.pack(_OUT.size + len(data), -number, unique) + data)
        except OSError as error:
            if error.errno != errno.ENOENT:  # who asked has gone
                raise

    def _lookup(self, node: int, data: bytes) -> bytes:
        name = os.fsdecode(data.rstrip(b"\0"))
        path = f"{self._paths[node]}/{name}"
        os.lstat(path)
        number = self._nodes.setdefault(path, len(self._nodes) + 1)
        self._paths[number] = path
        return _ENTRY.pack(number, 0, 0, 0, 0, 0) + self._attributes(path)

    @staticmethod
    def _attributes(path: str) -> bytes:
        found = os.lstat(path)
        times = [divmod(one, 10**9) for one in (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)]
        return _ATTR.pack(
            found.st_ino, found.st_size, found.st_blocks, *(one[0] for one in times), *(one[1] for one in times),
            found.st_mode, found.st_nlink, found.st_uid, found.st_gid, 0, 4096, 0,
        )  # fmt: skip

    def _open(self, node: int, data: bytes) -> bytes:
        return _OPEN_OUT.pack(os.open(self._paths[node], os.O_RDWR), 0, 0)

    @staticmethod
    def _read(node: int, data: bytes) -> bytes:
        descriptor, offset, size = _READ_IN.unpack_from(data)
        return os.pread(descriptor, size, offset)

    @staticmethod
    def _write(node: int, data: bytes) -> bytes:
        descriptor, offset, size, *_ = _WRITE_IN.unpack_from(data)
        written = os.pwrite(descriptor, data[_WRITE_IN.size : _WRITE_IN.size + size], offset)
        return written.to_bytes(4, "little") + bytes(4)

    @staticmethod
    def _release(node: int, data: bytes) -> bytes:
        os.close(int.from_bytes(data[:8], "little"))
        return b""

    def _readdir(self, node: int, data: bytes) -> bytes:
        _, offset, size = _READ_IN.unpack_from(data)
        found = b""
        names = [".", "..", *sorted(os.listdir(self._paths[node]))]
        for number, name in list(enumerate(names))[offset:]:
            mode = os.lstat(f"{self._paths[node]}/{name}").st_mode
            encoded = os.fsencode(name)
            entry = _DIRENT.pack(number + 2, number + 1, len(encoded), stat.S_IFMT(mode) >> 12) + encoded
            entry += bytes(-len(entry) % 8)
            if len(found) + len(entry) > size:
                break
            found += entry
        return found


def mount(backing: Path, at: Path, control: Path) -> Server:
    """Mount a directory at another; needs root. Raises ``OSError``."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"logdird-test", os.fsencode(at), b"fuse", _NO_SUID_NO_DEV, options.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(at))
    return Server(backing, control, device)


if __name__ == "__main__":
    # A server that ends breaks the connection: what hangs then has an error, and the machine is as before.
    end_with_starter(os.getppid())
    _backing, _at, _control = map(Path, sys.argv[1:])
    server = mount(_backing, _at, _control)
    print("mounted", flush=True)
    server.serve()
