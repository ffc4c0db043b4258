"""Every error the storage layer raises, by whose fault it is.

One line each: what, where, expected, found, what to do (law 8). ``code`` is a stable slug; each is explained in
``docs/errors.md``. This module raises nothing itself and knows no exit status: ``tools/cli.py`` maps slugs to those.

Spec: design §2 law 8, style §5.6.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

_SHOWN = 120


def shown(value: object) -> str:
    """Return ``value`` as one short printable line, for the *found* part of a message."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


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


def _line(slug: str, path: str, expected: str, found: str, fix: str) -> str:
    tail = f"; {fix}" if fix else ""
    return f"{slug}: {shown(path)}: expected {expected}, found {found}{tail}"


class LogDirError(Exception):
    """The root: something about a log dir is not as it must be."""

    code: ClassVar[str] = "log-dir-error"

    def __init__(self, path: str, *, expected: str, found: object, fix: str = "") -> None:
        self.path = path
        self.expected = expected
        self.found = shown(found)
        self.fix = fix
        super().__init__(_line(self.code, path, expected, self.found, fix))

    def problem(self) -> Problem:
        """Return the error as one finding among others."""
        return Problem(self.code, self.path, self.expected, self.found, self.fix)


class FormatError(LogDirError):
    """The bytes are at fault."""

    code: ClassVar[str] = "format-error"


class MalformedFileError(FormatError):
    """A file that is not in its format."""

    code: ClassVar[str] = "malformed-file"


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


class ConfigError(LogDirError):
    """The operator's settings are at fault; ``problems`` holds every one of them."""

    code: ClassVar[str] = "config-error"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first = problems[0]
        super().__init__(first.path, expected=first.expected, found=first.found, fix=first.fix)
        self.problems = problems
