"""The parser of ``logdirctl`` and the way from arguments to a command's action.

``build_parser`` is pure; ``help.txt`` beside this file is its help as text, written by ``make help`` and compared in
a test.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any, NoReturn, TextIO

from logdir.errors import LogDirError, Problem
from tools.cli import Exit, Streams, exit_for, failed, problems_of, say

_COMMANDS = (
    "inventory",
    "init",
    "reconcile",
    "stage",
    "staged",
    "layout",
    "uninstall",
    "describe",
    "strays",
    "metadata",
    "fleet",
)
"""Each a module beside this one; only the one that is asked for is read."""
_EPILOG = """\
exit status: 0 done, 1 problems found, 2 usage or configuration, 3 a broker runs, 4 refused, 5 internal
next: logdirctl inventory --server-properties /etc/kafka/server.properties"""


class _UsageError(Exception):
    """The arguments do not fit; one line."""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """A fixed width, so that help is the same text everywhere; asking for the terminal's costs 5 ms too."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=100, max_help_position=28)


class _Parser(argparse.ArgumentParser):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": _Formatter, **settings})

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{self.prog}: {message} (see {self.prog} --help)")


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands, or one that has at least ``command``: what it does not need stays unread."""
    parser = _Parser(
        prog="logdirctl",
        description="Look at, plan for and change the log directories of Apache Kafka brokers with many disks.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name in (command,) if command in _COMMANDS else _COMMANDS:
        import_module(f"tools.logdirctl.{name}").add_parser(commands)
    return parser


def main(argv: Sequence[str], stdout: TextIO, stderr: TextIO) -> int:
    """Run one command; return its exit status. Never raises for what an operator can cause."""
    streams = Streams(stdout, stderr)
    try:
        with redirect_stdout(stdout):  # where argparse writes help
            arguments = build_parser(argv[0] if argv else None).parse_args(argv)
    except _UsageError as error:
        say(streams, str(error))
        return Exit.USAGE
    except SystemExit as left:  # --help of a command
        return int(left.code or 0)
    if arguments.version:
        from importlib.metadata import version

        stdout.write(f"logdirctl {version('logdird')}\n")
        return Exit.DONE
    if arguments.command is None:
        say(streams, "logdirctl: a command is needed (see logdirctl --help)")
        return Exit.USAGE
    try:
        run: Callable[[argparse.Namespace, Streams], int] = arguments.run
        status = run(arguments, streams)
        stdout.flush()  # here, where a reader that went away is nobody's fault
        return status
    except LogDirError as error:
        return failed(arguments.title, exit_for(error), problems_of(error), streams, as_json=arguments.json)
    except BrokenPipeError:
        return Exit.PROBLEMS
    except Exception as error:  # noqa: BLE001 - the last guard: a fault of ours is one line too
        words = " ".join(f"{type(error).__name__}: {error}".split())
        fault = Problem("internal-error", arguments.title, "no fault of ours", words, "please report it")
        return failed(arguments.title, Exit.INTERNAL, (fault,), streams, as_json=arguments.json)
    except KeyboardInterrupt:
        say(streams, f"logdirctl {arguments.title}: interrupted; nothing half-written was left")
        return 130
