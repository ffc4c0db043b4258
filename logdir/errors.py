"""Every error the storage layer raises, by whose fault it is.

One line each: what, where, expected, found, what to do (law 8). ``code`` is the stable slug of a class, ``slug`` that
of one error (of a refusal: ``refusal_slug``); each is explained in ``docs/errors.md``. This module raises nothing
itself and knows no exit status: ``tools/cli/arguments.py`` maps errors to those.

Spec: design §2 law 8, style §5.6.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self

from logdir.refusal_slug import Why

_SHOWN = 120


def printable(text: str) -> str:
    """Return a text as one line: what a terminal would act on is escaped."""
    if text.isprintable():
        return text  # nearly always
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shown(value: object) -> str:
    """Return ``value`` as one short printable line, for the *found* part of a message."""
    text = printable(in_words(value)) or "an empty text"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def in_words(value: object) -> str:
    """Return a value as a text of ours has it, whole: never as Python prints nothing, or a list."""
    match value:
        case str():
            return value
        case None:
            return "none"
        case list() | tuple():
            return ", ".join(map(in_words, value)) or "an empty list"
        case _:
            return repr(value)


ANOTHERS_DISK = "it is of another broker, and stays as it is: mount this broker's own disk, or correct log.dirs"
"""What to do about a log dir that is foreign."""


class Problem(NamedTuple):
    """One finding among many; the JSON keys of design §6."""

    slug: str
    path: str
    expected: str
    found: str
    fix: str = ""

    def line(self) -> str:
        """Return the finding as one line."""
        return _line(self.slug, self.path, self.expected, self.found, self.fix)

    def reason(self) -> str:
        """Return what was expected, what was found and what to do, where the slug and the path are known."""
        return f"{self.mismatch()}; {self.fix}" if self.fix else self.mismatch()

    def mismatch(self) -> str:
        """Return what was expected and what was found."""
        return f"expected {self.expected}, found {self.found}"


def _line(slug: str, path: str, expected: str, found: str, fix: str) -> str:
    tail = f"; {fix}" if fix else ""
    # Nothing is cut here: a path is what somebody has to go and look at.
    return printable(f"{slug}: {path}: expected {expected}, found {found}{tail}")


class LogDirError(Exception):
    """The root: something about a log dir is not as it must be."""

    code: ClassVar[str] = "log-dir-error"

    def __init__(self, path: str, *, expected: str, found: object, fix: str = "", slug: str = "") -> None:
        self.slug = slug or self.code
        self.path = path
        self.expected = expected
        self.found = shown(found)
        self.fix = fix
        super().__init__(_line(self.slug, path, expected, self.found, fix))

    def problem(self) -> Problem:
        """Return the error as one finding among others."""
        return Problem(self.slug, self.path, self.expected, self.found, self.fix)


class FormatError(LogDirError):
    """The bytes are at fault."""

    code: ClassVar[str] = "format-error"


class MalformedFileError(FormatError):
    """A file that is not in its format."""

    code: ClassVar[str] = "malformed-file"


class MalformedMessageError(FormatError):
    """A request or result in JSON is not what its type says."""

    code: ClassVar[str] = "malformed-message"


class UnsupportedVersionError(FormatError):
    """A file in a version we do not know, most likely from a newer release."""

    code: ClassVar[str] = "unsupported-version"


class InvalidIdError(FormatError):
    """A text that is no topic, directory or cluster id."""

    code: ClassVar[str] = "invalid-id"


class InvalidNameError(FormatError):
    """A text that is no topic or directory name."""

    code: ClassVar[str] = "invalid-name"


class DiskError(LogDirError):
    """The disk or its rights are at fault."""

    code: ClassVar[str] = "disk-error"


class LogDirOfflineError(DiskError):
    """A log dir cannot be read; the ``OSError`` is its cause."""

    code: ClassVar[str] = "log-dir-offline"


class LogDirSuspectError(LogDirOfflineError):
    """A log dir did not answer in time: what was asked of it last may be done or not."""

    code: ClassVar[str] = "log-dir-suspect"


class NoPermissionError(LogDirOfflineError):
    """A log dir or its work root that we have no right to; nothing says that its disk is unwell."""

    code: ClassVar[str] = "no-permission"


class MetadataLogUnreadError(DiskError):
    """The metadata log that a broker writes itself cannot be read; no other source is named."""

    code: ClassVar[str] = "metadata-log-unread"


class LockHeldError(DiskError):
    """Somebody holds Kafka's lock of a log dir: most likely a broker runs."""

    code: ClassVar[str] = "lock-held"


class WorkRootOwnedError(LockHeldError):
    """Another process of ours works in a work root."""

    code: ClassVar[str] = "work-root-owned"


class RefusedError(DiskError):
    """What the disk, its file system or its rights do not let us do safely, or the facts forbid; nothing was changed.

    It has no slug of its own: each kind of refusal has one.
    """

    def __init__(self, path: str, *, why: Why, expected: str, found: object, fix: str = "") -> None:
        super().__init__(path, expected=expected, found=found, fix=fix, slug=why.value)

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return a finding that forbids a command as an error, under its slug."""
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


class ReadOnlyDiskError(DiskError):
    """A disk that takes no changes, or from which we accept none any more."""

    code: ClassVar[str] = "disk-read-only"


class DiskFullError(DiskError):
    """A disk has no room, or no inode, for what is to be written; nothing was changed by it."""

    code: ClassVar[str] = "disk-full"


class StateError(LogDirError):
    """The facts are at fault: what lies there is not what this step needs."""

    code: ClassVar[str] = "state-error"


class NotFormattedError(StateError):
    """A log dir that says of no cluster and no node that it is theirs."""

    code: ClassVar[str] = "not-formatted"


class ForeignLogDirError(StateError):
    """A work root and its log dir, or a log dir and its host, are not of one cluster, node and directory id."""

    code: ClassVar[str] = "foreign"


class LogDirReplacedError(StateError):
    """A path leads to another directory than the one that was opened."""

    code: ClassVar[str] = "log-dir-replaced"


class NoWorkRootError(StateError):
    """A log dir without a work root, or with one that is not finished."""

    code: ClassVar[str] = "no-work-root"


class WorkRootConflictError(StateError):
    """A work root where another is asked for, something else in its place, or one that is still in use."""

    code: ClassVar[str] = "work-root-conflict"


class OutputError(LogDirError):
    """What was to be written outside all log dirs could not be; nothing is left of it."""

    code: ClassVar[str] = "output-failed"


class ConfigError(LogDirError):
    """The operator's settings are at fault; ``problems`` holds every one of them."""

    code: ClassVar[str] = "config-error"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first = problems[0]
        super().__init__(first.path, expected=first.expected, found=first.found, fix=first.fix)
        self.problems = problems
