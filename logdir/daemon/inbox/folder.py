"""The inbox of request documents: ``inbox/*.json`` in the state directory, and where each goes once it was handled.

    inbox/NAME.json      written by others: under a name that starts with ``.``, then renamed
    inbox/.running/      the document that is followed now: others do not write here, so its name cannot be swapped
    inbox/done/          followed documents
    inbox/refused/       the others; beside each ``NAME.json.error``, a line for each problem

No name is followed out of the inbox: each is opened by the directory it lies in, and a link is refused. As over the
control socket only root and the owner of the log dirs may have something changed: a document that another user could
have written is refused, and nothing is taken from a directory in which another user could have put it.

Not here: what a document holds (``cluster.request_document``), when it is followed (``documents``), how many are kept
once they were handled (``handled``).

Spec: design §4 "A request document"; law 10.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from logdir.cluster import request_document
from logdir.daemon.inbox.handled import Handled, error_name, is_in
from logdir.errors import InvalidNameError, LogDirError, NoPermissionError, Problem, RefusedError
from logdir.paths import INBOX, INBOX_RUNNING
from logdir.refusal_slug import Why

_DONE: Final = "done"
_REFUSED: Final = "refused"
_EARLY_BYTES: Final = 1 << 20
"""A document up to this size is parsed when it is found, so that a broken one is refused also beside a broker."""
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
}
_Seen = tuple[int, int, int]
"""Inode, size and time of change of a document."""


class Inbox:
    """The inbox of one daemon; used by one thread. Every method raises ``OSError`` if the state directory fails."""

    def __init__(self, state_dir: str) -> None:
        """Take the state directory; nothing is made yet."""
        self._state_dir = state_dir
        self.path = os.path.join(state_dir, INBOX)
        self._parsed: dict[str, _Seen] = {}
        """The documents that were found whole."""
        self._done, self._refused = Handled(), Handled()

    def names(self) -> tuple[str, ...]:
        """Return the names of the documents, sorted; makes the directories that are missing."""
        with self._opened() as (inbox, running, _, _):
            found = {one for one in os.listdir(inbox) if one.endswith(".json") and not one.startswith(".")}
            names = tuple(sorted(found.union(os.listdir(running))))
        self._parsed = {name: seen for name, seen in self._parsed.items() if name in names}
        return names

    def path_of(self, name: str) -> str:
        """Return the path of a document, for messages."""
        return os.path.join(self.path, name)

    def require_document(self, name: str) -> None:
        """Check that a document is a regular file of a size that is read, and, if it is small, is whole.

        It is one that only root and the owner of the log dirs can write.

        Raises:
            FileNotFoundError: it is gone.
            LogDirError: it is to be refused.
        """
        with self._opened() as (inbox, running, _, _):
            place = running if is_in(running, name) else inbox
            self._require(place, name)

    def _require(self, place: int, name: str) -> None:
        path = self.path_of(name)
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidNameError(path, expected="a file name in UTF-8", found="other bytes") from None
        found = os.stat(name, dir_fd=place, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")
            fix = "put the document itself into the inbox, as a regular file"
            raise RefusedError(path, why=Why.WRONG_FILE_TYPE, expected="a regular file", found=kind, fix=fix)
        if (unprotected := _unprotected(found)) is not None:
            expected = "a document that only root and the owner of the log dirs can write"
            fix = "look at it; then give it to the owner of the log dirs, chmod go-w, and put it into the inbox again"
            raise RefusedError(
                path, why=Why.FILE_NOT_PROTECTED, expected=expected, found=f"one of {unprotected}", fix=fix
            )
        if found.st_size > request_document.MAX_BYTES:
            raise RefusedError(
                path,
                why=Why.FILE_TOO_LARGE,
                expected=f"a request document of at most {request_document.MAX_BYTES} bytes",
                found=f"{found.st_size} bytes",
                fix="make it smaller, or follow the metadata log: logdirctl reconcile --from metadata:PATH",
            )
        seen = found.st_ino, found.st_size, found.st_mtime_ns
        if found.st_size > _EARLY_BYTES or self._parsed.get(name) == seen:
            return
        request_document.parse(_read(place, name, path), path)
        self._parsed[name] = seen

    def take(self, name: str) -> str:
        """Move a document to where others do not write; return its path there.

        Raises:
            FileNotFoundError: it is gone.
            LogDirError: it is to be refused.
        """
        with self._opened() as (inbox, running, _, _):
            if not is_in(running, name):
                os.rename(name, name, src_dir_fd=inbox, dst_dir_fd=running)
            self._require(running, name)
        return os.path.join(self.path, INBOX_RUNNING, name)

    def give_back(self, name: str) -> None:
        """Move a document back into the inbox; one of the same name that came meanwhile waits until it was handled."""
        with self._opened() as (inbox, running, _, _):
            if is_in(running, name) and not is_in(inbox, name):
                os.rename(name, name, src_dir_fd=running, dst_dir_fd=inbox)

    def finish(self, name: str) -> None:
        """Move a document that was followed to ``done``."""
        with self._opened() as (inbox, running, done, _):
            to = self._done.free_name(done, name)
            _move(name, running if is_in(running, name) else inbox, done, to)
            self._done.add(done, to)

    def refuse(self, name: str, problems: Sequence[Problem]) -> None:
        """Move a document to ``refused``, with a line for each problem beside it."""
        lines = "".join(f"{self._shown(one)}\n" for one in dict.fromkeys(problems))
        with self._opened() as (inbox, running, _, refused):
            to = self._refused.free_name(refused, name)
            # The lines come first: killed in between, the document is refused again.
            _write(refused, error_name(to), lines.encode("utf-8", "backslashreplace"))
            _move(name, running if is_in(running, name) else inbox, refused, to)
            self._refused.add(refused, to)

    def _shown(self, problem: Problem) -> str:
        """Return the line of a problem, with the path that the document had in the inbox."""
        return problem.line().replace(f"{self.path}/{INBOX_RUNNING}/", f"{self.path}/")

    @contextmanager
    def _opened(self) -> Iterator[tuple[int, int, int, int]]:
        """Open the inbox and its three directories; those that are missing are made.

        Raises:
            OSError: one cannot be opened or made, or another user can put documents where they are taken from.
        """
        opened = [_open_made(self.path, None, 0o750)]
        try:
            for name, mode in ((INBOX_RUNNING, 0o700), (_DONE, 0o750), (_REFUSED, 0o750)):
                opened.append(_open_made(name, opened[0], mode))
            inbox, running, done, refused = opened
            _require_protected(inbox, "")
            _require_protected(running, f"{INBOX_RUNNING} ")
            yield inbox, running, done, refused
        finally:
            for descriptor in opened:
                os.close(descriptor)


def _open_made(name: str, place: int | None, mode: int) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=place)
    except FileNotFoundError:
        os.mkdir(name, mode, dir_fd=place)
        return os.open(name, _DIRECTORY, dir_fd=place)


def _unprotected(found: os.stat_result) -> str | None:
    """Return by what other users than root and this one can write a file or directory; ``None``: they cannot."""
    if found.st_uid not in (0, os.geteuid()):
        return f"user {found.st_uid}"
    mode = stat.S_IMODE(found.st_mode)
    return f"mode {mode:04o}" if mode & (stat.S_IWGRP | stat.S_IWOTH) else None


def _require_protected(place: int, name: str) -> None:
    if (unprotected := _unprotected(os.fstat(place))) is not None:
        raise PermissionError(errno.EPERM, f"{name}of {unprotected}: others can write there")


def _move(name: str, source: int, target: int, to: str) -> None:
    os.rename(name, to, src_dir_fd=source, dst_dir_fd=target)


def _read(place: int, name: str, path: str) -> bytes:
    try:
        descriptor = os.open(name, _FILE, dir_fd=place)
    except PermissionError as error:
        fix = "make it readable for the owner of the log dirs, and put it into the inbox again"
        raise NoPermissionError(path, expected="a file that can be read", found=error.strerror, fix=fix) from error
    with open(descriptor, "rb") as file:
        return file.read(_EARLY_BYTES + 1)


def _write(place: int, name: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(name, flags, 0o640, dir_fd=place), "wb") as file:
        file.write(data)


def is_of(error: LogDirError, path: str) -> bool:
    """Whether an error is about the document at a path, or the option that names it, and not about the broker."""
    return error.path in (path, "--from")
