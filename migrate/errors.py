"""Errors of the planning side: the plan's fault, that of a taken output, or that of Spark and its JVM.

One line each, with a way out. The family is caught as ``MigrationError``; ``tools/cli/arguments.py`` maps slugs to
exit statuses. Not here: a fleet file at fault, which is ``logdir.errors.ConfigError`` like any other
setting, and output that cannot be written, ``logdir.errors.OutputError``.

Spec: style §5.6; design §2 law 8.
"""

from __future__ import annotations

from typing import ClassVar

from logdir.errors import LogDirError


class MigrationError(LogDirError):
    """Planning over a fleet cannot go on."""

    code: ClassVar[str] = "migration-error"


class PlanFormatError(MigrationError):
    """A directory or document that is no plan, or not a whole one."""

    code: ClassVar[str] = "plan-format"


class SnapshotFormatError(MigrationError):
    """A directory that is no snapshot, or not a whole one."""

    code: ClassVar[str] = "snapshot-format"


class OutputExistsError(MigrationError):
    """The place for a new directory is taken; nothing was changed."""

    code: ClassVar[str] = "output-exists"


class NoSparkError(MigrationError):
    """The extra ``logdird[fleet]`` is not installed."""

    code: ClassVar[str] = "no-spark"


class SessionError(MigrationError):
    """Spark did not start, or did not finish: no JVM, one too old, or a failed job."""

    code: ClassVar[str] = "spark-session"


class RemoteWalkError(MigrationError):
    """Log dirs are to be walked by a session that may run on other machines."""

    code: ClassVar[str] = "walk-on-cluster"
