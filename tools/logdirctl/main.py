"""The parser of ``logdirctl`` and the way from arguments to a command's action.

``build_parser`` is pure; ``help.txt`` beside this file is its help as text, written by ``make help`` and compared in
a test.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from typing import TextIO

from logdir.errors import LogDirError, Problem
from tools.cli import Exit, Streams, exit_for, failed, problems_of, say
from tools.logdirctl.usage import SLUG, Parser, UsageError, wants_json
from tools.streams import StdoutError, as_utf8, guarded
from tools.version import VERSION

_COMMANDS = (
    "inventory",
    "init",
    "reconcile",
    "stage",
    "capture",
    "staged",
    "layout",
    "uninstall",
    "describe",
    "strays",
    "metadata",
    "fleet",
    "explain",
)
"""Each a module beside this one; only the one that is asked for is read."""
_EPILOG = """\
exit status: 0 done, 1 problems found, 2 usage or configuration, 3 a broker runs, 4 refused, 5 internal,
             130 interrupted
next: logdirctl inventory --server-properties /etc/kafka/server.properties"""


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands, or one that has at least ``command``: what it does not need stays unread."""
    parser = Parser(
        prog="logdirctl",
        description="Look at, plan for and change the log directories of Apache Kafka brokers with many disks.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name in (command,) if command in _COMMANDS else _COMMANDS:
        import_module(f"tools.logdirctl.{name}").add_parser(commands)
    return parser


def main(argv: Sequence[str], stdout: TextIO, stderr: TextIO) -> int:
    """Run one command; return its exit status. Never raises for what an operator can cause."""
    streams = Streams(*guarded(stdout, stderr))
    status: int = Exit.DONE
    try:
        status = _run(argv, streams)
        streams.out.flush()  # here, where a disk that is full, or a reader that has gone, can be answered
    except StdoutError as error:
        status = status or Exit.PROBLEMS
        if not error.is_reader_gone:
            fix = "make room; what a command with --apply changed stays changed, and logdirctl staged ls shows it"
            problem = Problem("stdout-failed", "standard output", "room to write", error.found, fix)
            say(streams, f"logdirctl: {problem.line()}")
    return status


def _run(argv: Sequence[str], streams: Streams) -> int:
    try:
        with redirect_stdout(streams.out):  # where argparse writes help
            arguments = build_parser(argv[0] if argv else None).parse_args(argv)
    except UsageError as error:
        return failed(error.command, Exit.USAGE, (error.problem,), streams, as_json=wants_json(argv))
    except SystemExit as left:  # --help of a command
        return int(left.code or 0)
    except KeyboardInterrupt:
        return _interrupted(None, argv, streams)
    if arguments.version:
        streams.out.write(f"logdirctl {VERSION}\n")
        return Exit.DONE
    if arguments.command is None:
        problem = Problem(SLUG, "COMMAND", "a command of logdirctl", "none", "see logdirctl --help")
        return failed("logdirctl", Exit.USAGE, (problem,), streams, as_json=wants_json(argv))
    as_json = bool(getattr(arguments, "json", False))
    if as_json:
        as_utf8(streams.out)
    try:
        run: Callable[[argparse.Namespace, Streams], int] = arguments.run
        return run(arguments, streams)
    except LogDirError as error:
        return failed(arguments.title, exit_for(error), problems_of(error), streams, as_json=as_json)
    except StdoutError:
        raise
    except Exception as error:  # noqa: BLE001 - the last guard: a fault of ours is one line too
        words = " ".join(f"{type(error).__name__}: {error}".split())
        fault = Problem("internal-error", arguments.title, "no fault of ours", words, "please report it")
        return failed(arguments.title, Exit.INTERNAL, (fault,), streams, as_json=as_json)
    except KeyboardInterrupt:
        return _interrupted(arguments, argv, streams)


def _interrupted(arguments: argparse.Namespace | None, argv: Sequence[str], streams: Streams) -> int:
    from tools.logdirctl import interrupted  # it looks at disks: not read by every command

    return interrupted.tell(arguments, argv, streams, as_json=wants_json(argv))
