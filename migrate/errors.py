"""Errors of the planner: of a plan, of an existing output, or of Spark and its JVM.

Each is one line with a fix. The common base class is ``MigrationError``; ``tools/cli/arguments.py`` maps slugs to exit
statuses. Not here: errors of a fleet file, which are ``logdir.errors.ConfigError`` like those of any other setting, and
output that cannot be written, ``logdir.errors.OutputError``.

Spec: style §5.6; design §2 law 8.
"""

from __future__ import annotations

from typing import ClassVar

from logdir.errors import LogDirError


class MigrationError(LogDirError):
    """A fleet command cannot go on; the family of the errors below."""

    code: ClassVar[str] = "migration-error"


class PlanFormatError(MigrationError):
    """A directory is no plan of ``fleet plan``, or one of its documents is missing, incomplete or not in its format."""

    code: ClassVar[str] = "plan-format"


class SnapshotFormatError(MigrationError):
    """A directory is no snapshot of ``fleet scan``, or an incomplete one."""

    code: ClassVar[str] = "snapshot-format"


class OutputExistsError(MigrationError):
    """The output directory already exists; nothing was changed."""

    code: ClassVar[str] = "output-exists"


class NoSparkError(MigrationError):
    """The extra ``logdird[fleet]`` is not installed."""

    code: ClassVar[str] = "no-spark"


class SessionError(MigrationError):
    """Spark did not start or did not finish: no JVM, one too old, or a failed job."""

    code: ClassVar[str] = "spark-session"


class RemoteWalkError(MigrationError):
    """The fleet file lists log dirs to walk, but Spark's tasks may run on other machines."""

    code: ClassVar[str] = "walk-on-cluster"
