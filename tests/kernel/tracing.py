"""What an operation asks of the kernel, as strace hears it; and strace in the way of it, failing or killing at a call.

A trace is told in words of its own (``Event``), so that it can be held against what the model says it would be
(``expected``). A call is made to fail on its way into the kernel: it does nothing then. The interpreter repeats some
calls by itself that end with EINTR (PEP 475), which is no repetition of ours.

Not here: which calls are failed (``errnos``), judging what is left (``cuts.recovered``).

Spec: reliability §4.4 ("bypasses": a comparison of trace and reality; errors, SQLite-style); strace(1).
"""

from __future__ import annotations

import errno
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.host import Call
from tests.crash.recording import Recording
from tests.crash.tree import Edit, Log
from tests.kernel.runner import Ended, Runner

TRACED = (
    "open", "openat", "openat2", "creat", "mkdir", "mkdirat", "mknod", "mknodat", "rename", "renameat", "renameat2",
    "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat", "rmdir", "truncate", "ftruncate", "fallocate",
    "write", "pwrite64", "pwritev", "pwritev2", "copy_file_range", "sendfile", "splice", "chmod", "fchmod", "fchmodat",
    "chown", "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr",
    "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "fsync", "fdatasync", "syncfs", "sync",
    "sync_file_range", "msync", "io_uring_enter",
)  # fmt: skip
"""Every system call that changes a file system or makes something durable, and those that open for it."""
_LINE = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\)\s+= (?P<result>-?\d+|\?)(?P<rest>.*)")
_ARGUMENT = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\.\.\.)?|\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*')
_CREATES = ("O_CREAT", "O_TRUNC", "O_TMPFILE")
_OF_DESCRIPTOR = ("fchown", "fchmod", "write", "pwrite64", "ftruncate", "fsync", "fdatasync", "syncfs", "utimensat")
_HINT = "sync_file_range"
_STARTS_ONLY = "SYNC_FILE_RANGE_WRITE"
"""The only flag of the hint: it starts to write, waits for nothing and makes nothing durable."""
_TWO_NAMES = ("renameat2", "renameat", "linkat")
_OWN_DESCRIPTOR = "/proc/self/fd/"
_UNNAMED = "(unnamed)"
_ONE_CALL = {
    "rename": "renameat2",
    "replace": "renameat",
    "link": "linkat",
    "unlink": "unlinkat",
    "rmdir": "rmdir",
    "truncate": "ftruncate",
    "fsync": "fsync",
    "fsync-dir": "fsync",
    "syncfs": "syncfs",
}
"""Which system call each call of the model is that is only one."""
RAW = {"create": "openat", "rmdir": "unlinkat", "name": "linkat"}
"""What the kernel calls an event, where that is something else."""


class Event(NamedTuple):
    """One system call that changes something or makes it durable."""

    name: str
    path: str
    to: str = ""
    errno: int = 0
    number: int = 0
    """How many calls of this name there were before it, those that only open included."""
    is_injected: bool = False

    def shown(self) -> tuple[str, str, str, int]:
        """Return what is compared."""
        return self.name, self.path, self.to, self.errno


def missing_strace() -> str:
    """Say what this machine lacks to trace; empty if nothing."""
    return "" if shutil.which("strace") else "needs strace: apt install strace"


# What was heard.


class _Hearing:
    """A trace on its way into events: what each descriptor was opened as, whatever became of its name since."""

    def __init__(self, roots: Mapping[str, str]) -> None:
        self._roots = roots
        self._opened: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self.events: list[Event] = []

    def hear(self, line: str) -> None:
        matched = _LINE.match(line)
        if matched is None:
            return
        name, result = matched["name"], matched["result"]
        number = self._counts.get(name, 0)
        self._counts[name] = number + 1
        arguments = [_argument(found) for found in _ARGUMENT.finditer(matched["arguments"])]
        if name == _HINT and arguments[3] == _STARTS_ONLY:
            return
        failed = re.match(r" (E\w+)", matched["rest"]) if result == "-1" else None
        event = self._event(name, arguments)
        if name == "openat" and not failed:
            self._opened[result] = event.path
        if name == "openat" and not any(flag in arguments[2] for flag in _CREATES):
            return
        if name == "linkat" and arguments[1].startswith(_OWN_DESCRIPTOR):
            self._name(self._opened[arguments[1].removeprefix(_OWN_DESCRIPTOR)], event.path)
        for path in (event.path, event.to):
            if path and not any(f"{path}/".startswith(f"{mount}/") for mount in self._roots):
                raise AssertionError(f"something else than the disks is changed: {line}")
        said = getattr(errno, failed[1]) if failed else 0
        self.events.append(event._replace(number=number, errno=said, is_injected="(INJECTED)" in matched["rest"]))

    def _name(self, unnamed: str, path: str) -> None:
        """Say of what was done to a file without a name, under which name it was to appear."""
        at = len(self.events)
        while at and self.events[at - 1].path == unnamed:
            at -= 1
            self.events[at] = self.events[at]._replace(path=path)

    def _event(self, name: str, arguments: Sequence[str]) -> Event:
        if name == "openat":
            place = _UNNAMED if "O_TMPFILE" in arguments[2] else arguments[1]
            return Event("create", self._at(arguments[0], place))
        if name == "linkat" and arguments[1].startswith(_OWN_DESCRIPTOR):
            return Event("name", self._at(arguments[2], arguments[3]))
        if name == "unlinkat" and "AT_REMOVEDIR" in arguments[2]:
            return Event("rmdir", self._at(arguments[0], arguments[1]))
        if name in ("mkdirat", "unlinkat"):
            return Event(name, self._at(arguments[0], arguments[1]))
        if name in _TWO_NAMES:
            flags = "" if name != "renameat2" or arguments[4] == "RENAME_NOREPLACE" else " that replaces"
            return Event(name + flags, self._at(*arguments[:2]), self._at(*arguments[2:4]))
        if name in _OF_DESCRIPTOR:
            return Event(name, self._opened[arguments[0]])
        raise AssertionError(f"a call that nobody makes: {name}{tuple(arguments)}")

    def _at(self, descriptor: str, name: str) -> str:
        """Return a path as the model calls it."""
        path = name if descriptor == "AT_FDCWD" else f"{self._opened[descriptor]}/{name}"
        for mount, root in self._roots.items():
            if f"{path}/".startswith(f"{root}/"):
                return mount + path.removeprefix(root)
        return path


def events(text: str, roots: Mapping[str, str]) -> list[Event]:
    """Return what a trace tells of changes, under the names of the model.

    Args:
        text: Of strace, from before the first directory was opened.
        roots: Where the model's disks are.

    Raises:
        AssertionError: Something else than these disks was changed.
    """
    hearing = _Hearing(roots)
    for line in text.splitlines():
        hearing.hear(line)
    return hearing.events


def _argument(found: re.Match[str]) -> str:
    if found[1] is not None:
        return found[1].encode("latin-1", "backslashreplace").decode("unicode_escape")
    return found[0].strip()


# What the model says.


def expected(recording: Recording) -> Iterator[Event]:
    """Yield the system calls that a run on the model stands for."""
    volumes = recording.world_now().volumes
    before = [0] * len(volumes)
    for record in recording.records:
        disk = next((at for at, (edits, _) in enumerate(record.marks) if edits > before[at]), 0)
        first, last = before[disk], record.marks[disk][0]
        before = [edits for edits, _ in record.marks]
        *others, final = _stands_for(record.call, volumes[disk].log, range(first, last))
        yield from others
        yield final._replace(errno=record.errno)


def _stands_for(call: Call, log: Log, numbers: range) -> Iterator[Event]:
    """Yield the system calls of one call of the model."""
    edits = [log.edits[number] for number in numbers]
    match call.name:
        case "mkdir":
            yield Event("mkdirat", call.path)
            yield from _given_to(log, edits, call.path, 0o700)
        case "write":
            yield Event("create", call.path)
            yield from _given_to(log, edits, call.path, 0o600)
            yield from (Event("write", call.path) for edit in edits if edit.data is not None)
            yield from (Event("utimensat", call.path) for edit in edits if edit.mtime_ns is not None)
            if edits:
                yield Event("name", call.path)
        case "chown":
            if edits:
                yield from _given(call.path, _owner_before(log, edits[0], numbers[0]), _owner_after(log, edits))
        case _:
            yield Event(_ONE_CALL[call.name], call.path, call.to)


def _given_to(log: Log, edits: Sequence[Edit], path: str, mask: int) -> Iterator[Event]:
    """Yield how what root made, with no more rights than these, was given to whom it is to belong."""
    if edits:
        owner = _owner_after(log, edits)
        yield from _given(path, Owner(0, 0, owner.mode & mask), owner)


def _given(path: str, before: Owner, after: Owner) -> Iterator[Event]:
    if before[:2] != after[:2]:
        yield Event("fchown", path)
    if before.mode != after.mode:
        yield Event("fchmod", path)


def _owner_after(log: Log, edits: Sequence[Edit]) -> Owner:
    inode = next(inode for edit in edits for inode in (edit.inode, *(slot[2] for slot in edit.slots)) if inode)
    given = [edit.owner for edit in edits if edit.inode == inode and edit.owner is not None]
    return given[-1] if given else (log.births.get(inode) or log.base[inode]).owner


def _owner_before(log: Log, edit: Edit, number: int) -> Owner:
    earlier = [said for said in log.edits[:number] if said.inode == edit.inode and said.owner is not None]
    born = log.births.get(edit.inode) or log.base[edit.inode]
    return (earlier[-1].owner if earlier else None) or born.owner


# In the way.


class Heard(NamedTuple):
    """What came of an operation that was traced."""

    ended: Ended
    text: str
    """Of strace."""


class Tracer:
    """Runs operations under strace."""

    def __init__(self, runner: Runner, folder: Path) -> None:
        """Make one.

        Args:
            runner: What runs them.
            folder: For what strace writes.
        """
        self._runner = runner
        self._file = folder / "trace"

    def run(self, operation: str, roots: Mapping[str, str], *injections: str) -> Heard:
        """Run an operation to its end.

        Args:
            operation: Its name.
            roots: Where its disks are.
            injections: Of strace: which calls fail, or end the process.

        Raises:
            PermissionError: This machine lets nobody trace.
        """
        self._runner.start(operation, roots)
        told = [argument for injection in injections for argument in ("-e", f"inject={injection}")]
        command = ["strace", "-s", "4096", "-e", f"trace={','.join(TRACED)}", "-e", "signal=none", *told]
        strace = subprocess.Popen(
            [*command, "-o", str(self._file), "-p", str(self._runner.pid)], stderr=subprocess.PIPE, text=True
        )
        assert strace.stderr is not None
        with strace.stderr:
            line = strace.stderr.readline()
            if "attached" not in line:
                strace.wait()
                self._runner.kill()
                self._runner.ended()
                raise PermissionError(f"strace: {line.strip()}")
            self._runner.go()
            ended = self._runner.ended()
            strace.wait()
        return Heard(ended, self._file.read_text("utf-8", "surrogateescape"))
