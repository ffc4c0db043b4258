"""What all commands share: exit statuses, errors as one line, output as text for people or as JSON for a program.

Spec: design §6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from logdir.errors import Problem
from logdir.service.report.exit_status import Exit as Exit  # every command takes it from here
from logdir.service.report.json_text import envelope
from logdir.service.report.table import Table
from logdir.text import printable
from tools.cli import render
from tools.cli.streams import as_utf8

if TYPE_CHECKING:
    import argparse


class Streams(NamedTuple):
    """Where a command writes: data to standard output (``out``), messages to standard error (``err``)."""

    out: TextIO
    err: TextIO


def say(streams: Streams, line: str) -> None:
    """Write a message of one or more lines to standard error, without control characters that steer a terminal."""
    streams.err.write("".join(f"{printable(one)}\n" for one in line.split("\n")))
    streams.err.flush()


def tell(command: str, problems: Iterable[Problem], streams: Streams) -> None:
    """Write problems to standard error: one line each, which begins with the command."""
    name = command if command == "logdirctl" else f"logdirctl {command}"
    for problem in problems:
        say(streams, f"{name}: {problem.line()}")


def answer(
    arguments: argparse.Namespace,
    streams: Streams,
    result: object,
    problems: Sequence[Problem],
    shown: Iterable[str | Table[Any]],
    *,
    status: Exit | None = None,
) -> Exit:
    """Print what a command found or did: its problems, then its result, as JSON or for people; return the exit status.

    Args:
        arguments: Of the command.
        streams: Where to print.
        result: The result, for ``--json``.
        problems: All problems.
        shown: Lines and tables for people, in their order; the last line is the next command to type.
        status: The exit status; ``None``: it says whether there are problems.
    """
    status = (Exit.PROBLEMS if problems else Exit.DONE) if status is None else status
    tell(arguments.title, problems, streams)
    if arguments.json:
        streams.out.write(envelope(arguments.title, status, problems, result))
        return status
    for one in shown:
        if isinstance(one, Table):
            render.table(streams.out, *one.cells())
        else:
            put(streams, one)
    return status


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
