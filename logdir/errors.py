"""All errors of the storage layer, grouped by cause: bytes, disk, facts, or settings.

Each error is one line: what, where, expected, found, fix (law 8). ``code`` is the stable slug of a class, ``slug`` that
of one error (for a refusal: ``refusal_slug``); ``docs/errors.md`` explains each. This module raises nothing itself and
knows no exit status: ``tools/cli/arguments.py`` maps errors to exit statuses.

Spec: design §2 law 8, style §5.6.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self

from logdir.refusal_slug import Why

_SHOWN = 120


def printable(text: str) -> str:
    """Return a text as one line, with control characters escaped."""
    if text.isprintable():
        return text  # The usual case.
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shown(value: object) -> str:
    """Return ``value`` as one short printable line, for the *found* part of a message."""
    text = printable(in_words(value)) or "an empty text"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def in_words(value: object) -> str:
    """Return a value as the text for a message, uncut and without Python's notation for ``None`` or lists."""
    match value:
        case str():
            return value
        case None:
            return "none"
        case list() | tuple():
            return ", ".join(map(in_words, value)) or "an empty list"
        case _:
            return repr(value)


ANOTHERS_DISK = "the disk is of another broker, and stays as it is: mount this broker's own disk, or correct log.dirs"
"""Fix for a log dir that belongs to another broker."""


class Problem(NamedTuple):
    """One problem that a command found: what is wrong where, and the fix; the fields are JSON keys (design §6)."""

    slug: str
    path: str
    expected: str
    found: str
    fix: str = ""

    def line(self) -> str:
        """Return all fields as one line, as it is printed."""
        return _line(self.slug, self.path, self.expected, self.found, self.fix)

    def reason(self) -> str:
        """Return expected, found and fix, for output that already shows slug and path."""
        return f"{self.mismatch()}; {self.fix}" if self.fix else self.mismatch()

    def mismatch(self) -> str:
        """Return what was expected and what was found."""
        return f"expected {self.expected}, found {self.found}"


def _line(slug: str, path: str, expected: str, found: str, fix: str) -> str:
    tail = f"; {fix}" if fix else ""
    # Nothing is cut here: people need the whole path.
    return printable(f"{slug}: {path}: expected {expected}, found {found}{tail}")


class LogDirError(Exception):
    """The root class: an error about a log dir."""

    code: ClassVar[str] = "log-dir-error"

    def __init__(self, path: str, *, expected: str, found: object, fix: str = "", slug: str = "") -> None:
        self.slug = slug or self.code
        self.path = path
        self.expected = expected
        self.found = shown(found)
        self.fix = fix
        super().__init__(_line(self.slug, path, expected, self.found, fix))

    def problem(self) -> Problem:
        """Return the error as a value, to be listed with other problems instead of raised."""
        return Problem(self.slug, self.path, self.expected, self.found, self.fix)

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return the error to raise for a problem; it has the slug of the problem."""
        error = cls.__new__(cls)
        LogDirError.__init__(
            error,
            problem.path,
            expected=problem.expected,
            found=problem.found,
            fix=problem.fix,
            slug=problem.slug,
        )
        return error


class FormatError(LogDirError):
    """The bytes of a file or message are at fault."""

    code: ClassVar[str] = "format-error"


class MalformedFileError(FormatError):
    """A file does not have its format."""

    code: ClassVar[str] = "malformed-file"


class MalformedMessageError(FormatError):
    """A JSON request or result lacks a key, has an unknown one, or holds a value of another type."""

    code: ClassVar[str] = "malformed-message"


class UnsupportedVersionError(FormatError):
    """A file has an unknown version, most likely from a newer release."""

    code: ClassVar[str] = "unsupported-version"


class InvalidIdError(FormatError):
    """A text is no valid topic, directory or cluster id."""

    code: ClassVar[str] = "invalid-id"


class InvalidNameError(FormatError):
    """A text is no valid topic or directory name."""

    code: ClassVar[str] = "invalid-name"


class DiskError(LogDirError):
    """The disk or its permissions are at fault."""

    code: ClassVar[str] = "disk-error"


class LogDirOfflineError(DiskError):
    """A log dir cannot be read; the ``OSError`` is its cause."""

    code: ClassVar[str] = "log-dir-offline"


class LogDirSuspectError(LogDirOfflineError):
    """A log dir did not answer in time: it is not known whether the last call was carried out."""

    code: ClassVar[str] = "log-dir-suspect"


class NoPermissionError(LogDirOfflineError):
    """A permission for a log dir or its work root is missing; its disk may be healthy."""

    code: ClassVar[str] = "no-permission"


class MetadataLogUnreadError(DiskError):
    """The broker's own metadata log cannot be read, and no other source is named."""

    code: ClassVar[str] = "metadata-log-unread"


class LockHeldError(DiskError):
    """Another process has locked Kafka's ``.lock`` of a log dir: most likely a broker runs."""

    code: ClassVar[str] = "lock-held"


class WorkRootOwnedError(LockHeldError):
    """Another logdird process works in a work root: it has locked ``owner.lock``."""

    code: ClassVar[str] = "work-root-owned"


class RefusedError(DiskError):
    """The disk, its file system, its permissions or the facts do not allow a safe change; nothing was changed.

    It has no slug of its own: each kind of refusal has one.
    """

    def __init__(self, path: str, *, why: Why, expected: str, found: object, fix: str) -> None:
        super().__init__(path, expected=expected, found=found, fix=fix, slug=why.value)


class ReadOnlyDiskError(DiskError):
    """The disk is read-only, or no longer trusted with writes."""

    code: ClassVar[str] = "disk-read-only"


class DiskFullError(DiskError):
    """The disk has no space or no inode for a write; nothing was changed."""

    code: ClassVar[str] = "disk-full"


class StateError(LogDirError):
    """The state of the files does not allow this step."""

    code: ClassVar[str] = "state-error"


class NotFormattedError(StateError):
    """``meta.properties`` of a log dir is missing, or names no cluster or no node."""

    code: ClassVar[str] = "not-formatted"


class ForeignLogDirError(StateError):
    """A work root is of another log dir, or a log dir of another broker or cluster, by the ids in its files."""

    code: ClassVar[str] = "foreign"


class LogDirReplacedError(StateError):
    """The path of an open log dir leads to a different directory now."""

    code: ClassVar[str] = "log-dir-replaced"


class NoWorkRootError(StateError):
    """A log dir has no work root, or an unfinished one."""

    code: ClassVar[str] = "no-work-root"


class WorkRootConflictError(StateError):
    """A work root has another kind than requested, its place is occupied, or it is still in use."""

    code: ClassVar[str] = "work-root-conflict"


class OutputError(LogDirError):
    """An output outside all log dirs could not be written; nothing of it is left."""

    code: ClassVar[str] = "output-failed"


class ConfigError(LogDirError):
    """The operator's settings are wrong; ``problems`` holds all findings."""

    code: ClassVar[str] = "config-error"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first = problems[0]
        super().__init__(first.path, expected=first.expected, found=first.found, fix=first.fix)
        self.problems = problems
