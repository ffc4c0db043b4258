"""The parser of ``logdirctl``; it runs the typed command and turns errors into lines and exit statuses.

Not here: which commands there are (``commands``).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from typing import TextIO

from logdir.errors import LogDirError, Problem
from logdir.service.report.exit_status import Exit, exit_for, problems_of
from tools.cli.arguments import Streams, failed, say
from tools.cli.streams import StdoutError, as_utf8, guarded
from tools.cli.usage import SLUG, Parser, UsageError, wants_json
from tools.logdirctl.commands import COMMANDS, help_text
from tools.version import VERSION


class _Top(Parser):
    def format_help(self) -> str:
        return help_text()


def build_parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return a parser with these commands only; imports the module of each."""
    parser = _Top(prog="logdirctl")
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name in names:
        import_module(f"tools.logdirctl.{name.replace('-', '_')}").COMMAND.add(commands)
    return parser


def _parser_for(argv: Sequence[str]) -> argparse.ArgumentParser:
    if argv and argv[0] in COMMANDS:
        return build_parser(argv[:1])
    # A word that is no command is compared with the commands of every module.
    return build_parser(() if {*argv} <= {"-h", "--help", "--version"} else COMMANDS)


Prepare = Callable[[argparse.Namespace], None]


def main(argv: Sequence[str], stdout: TextIO, stderr: TextIO, prepare: Prepare | None = None) -> int:
    """Run one command; return its exit status. Never raises for what an operator can cause.

    ``prepare``: called before the command, for example to become another user; errors are those of the command.
    """
    streams = Streams(*guarded(stdout, stderr))
    status: int = Exit.DONE
    try:
        status = _run(argv, streams, prepare)
        streams.out.flush()  # here, where a disk that is full, or a reader that has gone, can be answered
    except StdoutError as error:
        status = status or Exit.PROBLEMS
        if not error.is_reader_gone:
            fix = "free space; what a command with --apply changed stays changed, and logdirctl staged ls shows it"
            problem = Problem("stdout-failed", "standard output", "room to write", error.found, fix)
            say(streams, f"logdirctl: {problem.line()}")
    return status


def _run(argv: Sequence[str], streams: Streams, prepare: Prepare | None) -> int:
    try:
        with redirect_stdout(streams.out):  # where argparse writes help
            arguments = _parser_for(argv).parse_args(argv)
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
        if prepare is not None:
            prepare(arguments)
        run: Callable[[argparse.Namespace, Streams], int] = arguments.run
        return run(arguments, streams)
    except LogDirError as error:
        return failed(arguments.title, exit_for(error), problems_of(error), streams, as_json=as_json)
    except StdoutError:
        raise
    except Exception as error:  # noqa: BLE001 - the last guard: a fault of ours is one line too
        words = " ".join(f"{type(error).__name__}: {error}".split())
        fault = Problem(
            "internal-error", arguments.title, "no fault of logdirctl", words, "report this line, and what you typed"
        )
        return failed(arguments.title, Exit.INTERNAL, (fault,), streams, as_json=as_json)
    except KeyboardInterrupt:
        return _interrupted(arguments, argv, streams)


def _interrupted(arguments: argparse.Namespace | None, argv: Sequence[str], streams: Streams) -> int:
    from tools.cli import interrupted

    return interrupted.tell(arguments, argv, streams, as_json=wants_json(argv))
