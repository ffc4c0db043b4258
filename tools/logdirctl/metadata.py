"""``logdirctl metadata ls | cat | find | dump | shell``: browse the local metadata log, without a JVM.

Not here: reading it (``logdir.service.metadata``, ``metadata_dump``), the prompt of the shell (``metadata_shell``).

Spec: design §6; KIP-631, "kafka-dump-log.sh", "kafka-metadata-shell.sh".
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from logdir.errors import Problem
from logdir.metadata.dump import RELEASES, form_of
from logdir.metadata.nodes import escaped
from logdir.paths import METADATA_DIR
from logdir.service.metadata import MetadataRequest, MetadataSession, session
from logdir.service.metadata_dump import FileDump, MetadataDumpRequest, files_to_dump
from logdir.service.report.exit_status import Exit, exit_for
from logdir.service.report.json_text import envelope_as_it_comes
from logdir.service.report.metadata_json import answers, dumped, how_far, listed, there
from logdir.text import printable, quoted
from tools.cli.arguments import Streams, put, say, tell
from tools.cli.broker import add_disk_timeout, timeout_ms, timeout_words
from tools.logdirctl.metadata_shell import talk

_End = tuple[Exit, Sequence[Problem]]
"""The exit status of a command, and its problems."""
_STATUS = "exit status: 0 done, 1 problems found, 2 usage or configuration, 4 refused"
_PLACES = ("server_properties", "log_dirs", "directory", "snapshot")


def add_parser(commands: Any) -> None:
    """Add ``metadata`` and its commands to the parser."""
    group = commands.add_parser(
        "metadata",
        description="Browse or dump the local metadata log of a KRaft node. Reads only, beside a running broker too.",
    )
    below = group.add_subparsers(dest="metadata_command", metavar="COMMAND", required=True)
    for name, text, description in (
        ("ls", "list nodes of the metadata tree", "List what is in directories of the metadata tree."),
        ("cat", "show values of the metadata tree", "Show the values of leaves of the metadata tree."),
        ("find", "list nodes and all below them", "List nodes of the metadata tree and all that is below them."),
    ):
        parser = _command(below, name, text, f"{description} Paths may be patterns: *, ?, [a-z], {{a,b}}.")
        number = "+" if name == "cat" else "*"
        parser.add_argument("path", metavar="PATH", nargs=number, help="a path; the root if there is none")
        _add_place(parser)
        parser.set_defaults(run=_browse, title=f"metadata {name}", lister=name)
    shell = _command(below, "shell", "walk the metadata tree", "Walk the metadata tree by typing, or by a pipe.")
    _add_place(shell)
    shell.set_defaults(run=act_shell, title="metadata shell")
    dump = _command(
        below,
        "dump",
        "print every record, as kafka-dump-log does",
        "Print batches and records as kafka-dump-log --cluster-metadata-decoder does: of the files named, or of the "
        "newest snapshot and the log of a broker.",
    )
    dump.add_argument("file", metavar="FILE", nargs="*", help="a segment (.log) or a snapshot (.checkpoint)")
    _add_place(dump, is_required=False)
    dump.add_flag("--skip-record-metadata", "print records without their offsets and sizes")
    dump.add_argument(
        "--stock",
        type=_release,
        default=RELEASES[-1],
        metavar="VERSION",
        help=f"print as that release does, {RELEASES[0]} to {RELEASES[-1]}, with or without its patch number "
        "(default %(default)s)",
    )
    dump.set_defaults(run=act_dump, title="metadata dump")


def _release(text: str) -> str:
    if form_of(text) is None:
        raise argparse.ArgumentTypeError(f"a release from {RELEASES[0]} to {RELEASES[-1]} is expected, not {text!r}")
    return text


def _command(below: Any, name: str, text: str, description: str) -> Any:
    parser = below.add_parser(name, help=text, description=description, epilog=_STATUS)
    parser.add_flag("--json", "one JSON object on standard output")
    return parser


def _add_place(parser: Any, *, is_required: bool = True) -> None:
    """Add the options that name the metadata; ``is_required``: one must be typed, and ``--snapshot`` is one of them."""
    place = parser.add_mutually_exclusive_group(required=is_required)
    place.add_argument(
        "--server-properties", metavar="FILE", help="the broker's configuration; metadata.log.dir is read there"
    )
    place.add_argument("--log-dirs", metavar="A,B", help="the log dirs themselves, separated by commas")
    place.add_argument("--directory", metavar="DIR", help=f"the directory {METADATA_DIR} itself")
    add_disk_timeout(parser, "it is SUSPECT")
    if is_required:
        place.add_argument("--snapshot", metavar="FILE", help="one snapshot, or the segment that begins at offset 0")


def _place_of(arguments: argparse.Namespace) -> tuple[MetadataRequest | None, str]:
    """Return where the metadata lies, ``None`` if no option names it, and that option for the next command to type."""
    for name in _PLACES:
        value = getattr(arguments, name, None)
        if value is not None:
            place = MetadataRequest(**{name: value}, disk_timeout_ms=timeout_ms(arguments))
            return place, f"--{name.replace('_', '-')} {quoted(value)}{timeout_words(arguments)}"
    return None, ""


def _session(arguments: argparse.Namespace) -> AbstractContextManager[MetadataSession]:
    place, _ = _place_of(arguments)
    return session(place or MetadataRequest())


def _browse(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``ls``, ``cat`` or ``find``; return the exit status."""
    with _session(arguments) as found:
        problems = list(found.problems)
        if arguments.json:
            items = there(found.nodes(arguments.lister, arguments.path), problems)
            return _put_json(arguments, streams, listed(found.log, items), lambda: _end(problems))
        for line in there(found.lines(arguments.lister, arguments.path), problems):
            streams.out.write(f"{line}\n")
        streams.out.flush()
        say(streams, how_far(found.log))
        tell(arguments.title, problems, streams)
        following = "cat PATH" if arguments.lister != "cat" else "shell"
        say(streams, printable(f"next: logdirctl metadata {following} {_place_of(arguments)[1]}"))
        return _end(problems)[0]


def act_shell(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``metadata shell``; return the exit status."""
    source = sys.stdin or io.StringIO()
    if isinstance(source, io.TextIOWrapper):
        source.reconfigure(errors="backslashreplace")  # bytes that are no text are a name that is not there
    with _session(arguments) as found:
        problems = list(found.problems)
        if arguments.json:
            lines = listed(found.log, answers(found, iter(source.readline, ""), problems))
            return _put_json(arguments, streams, lines, lambda: _end(problems))
        is_typed = source.isatty()
        if is_typed:
            say(streams, how_far(found.log))
        tell(arguments.title, problems, streams)
        is_well = talk(found, source, streams.out, streams.err)
        # Whoever types sees what failed; a script is told by the status.
        return Exit.PROBLEMS if problems or not (is_well or is_typed) else Exit.DONE


def act_dump(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``metadata dump``: print record batches and records; return the exit status."""
    request = MetadataDumpRequest(
        files=tuple(arguments.file),
        place=_place_of(arguments)[0],
        release=arguments.stock,
        is_record_metadata_skipped=arguments.skip_record_metadata,
        disk_timeout_ms=timeout_ms(arguments),
    )
    with files_to_dump(request) as files:
        if arguments.json:
            return _put_json(arguments, streams, dumped(files), lambda: _end_of(files))
        is_shown = streams.out.isatty()
        for one in files:
            put(streams, f"Dumping {one.name}")
            for line in one.lines():
                streams.out.write(f"{escaped(line) if is_shown else line}\n")
            if one.end.gaps:
                say(streams, "\n".join((f"Non-consecutive offsets in {printable(one.name)}", *one.end.first_gaps)))
        streams.out.flush()
        status, problems = _end_of(files)
        tell(arguments.title, problems, streams)
        return status


def _put_json(arguments: argparse.Namespace, streams: Streams, result: Iterable[str], end: Callable[[], _End]) -> Exit:
    """Write the JSON envelope piece by piece; ``end``, called after the last piece, returns status and problems."""
    streams.out.writelines(envelope_as_it_comes(arguments.title, result, end))
    return end()[0]


def _end(problems: Sequence[Problem]) -> _End:
    return (Exit.PROBLEMS if problems else Exit.DONE), problems


def _end_of(files: Sequence[FileDump]) -> _End:
    problems = tuple(problem for one in files for problem in one.end.problems)
    errors = [exit_for(one.end.error) for one in files if one.end.error is not None]
    return max(errors, default=_end(problems)[0]), problems
