"""What all commands share: exit statuses, errors as one line, output as text for people or as JSON for a program.

Spec: design §6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, TextIO

from logdir.errors import (
    ConfigError,
    DiskError,
    FormatError,
    LockHeldError,
    LogDirError,
    LogDirSuspectError,
    NoPermissionError,
    Problem,
    RefusedError,
    WorkRootOwnedError,
)
from logdir.service.report.json_text import envelope
from logdir.text import printable
from tools.cli.streams import as_utf8

if TYPE_CHECKING:
    import argparse


class Exit(IntEnum):
    """Exit statuses of every command but ``kafka-storage``."""

    DONE = 0
    PROBLEMS = 1
    USAGE = 2
    BROKER_RUNS = 3
    REFUSED = 4
    INTERNAL = 5
    INTERRUPTED = 130
    """The status a shell gives a process that SIGINT ended."""


class Streams(NamedTuple):
    """Where a command writes: data to standard output (``out``), messages to standard error (``err``)."""

    out: TextIO
    err: TextIO


def say(streams: Streams, line: str) -> None:
    """Write a message of one or more lines to standard error, without control characters that steer a terminal."""
    streams.err.write("".join(f"{printable(one)}\n" for one in line.split("\n")))
    streams.err.flush()


def problems_of(error: LogDirError) -> tuple[Problem, ...]:
    """Return every problem that an error carries: several of a ``ConfigError``, one of any other."""
    return error.problems if isinstance(error, ConfigError) else (error.problem(),)


_EXIT = {
    "output-failed": Exit.PROBLEMS,
    "output-exists": Exit.USAGE,
    "no-spark": Exit.USAGE,
    "spark-session": Exit.USAGE,
    "plan-format": Exit.USAGE,
    "snapshot-format": Exit.USAGE,
    "walk-on-cluster": Exit.REFUSED,
}
"""Exit statuses by slug, for errors of ``logdirctl fleet``, whose class alone does not decide the status."""


def exit_for(error: LogDirError) -> Exit:
    """Return the exit status of a command that an error stopped."""
    match error:
        case ConfigError():
            return Exit.USAGE
        case WorkRootOwnedError() | RefusedError() | NoPermissionError() | LogDirSuspectError():
            return Exit.REFUSED
        case LockHeldError():
            return Exit.BROKER_RUNS
        case FormatError() | DiskError():
            return Exit.PROBLEMS
        case _:
            return _EXIT.get(error.code, Exit.REFUSED)


def tell(command: str, problems: Iterable[Problem], streams: Streams) -> None:
    """Write problems to standard error: one line each, which begins with the command."""
    name = command if command == "logdirctl" else f"logdirctl {command}"
    for problem in problems:
        say(streams, f"{name}: {problem.line()}")


def answered(
    arguments: argparse.Namespace, streams: Streams, status: Exit, problems: Sequence[Problem], result: object
) -> bool:
    """Write the problems and, with ``--json``, the JSON envelope; return whether there is nothing more to print."""
    tell(arguments.title, problems, streams)
    if arguments.json:
        streams.out.write(envelope(arguments.title, status, problems, result))
    return bool(arguments.json)


def put(streams: Streams, *lines: str) -> None:
    """Write lines for people to standard output, without control characters that steer a terminal."""
    streams.out.writelines(f"{printable(line)}\n" for line in lines)


def failed(command: str, exit_status: Exit, problems: tuple[Problem, ...], streams: Streams, *, as_json: bool) -> Exit:
    """Write problems to standard error and, with ``as_json``, the JSON envelope too; return ``exit_status``."""
    tell(command, problems, streams)
    if as_json:
        as_utf8(streams.out)
        streams.out.write(envelope(command, exit_status, problems, {}))
    return exit_status
