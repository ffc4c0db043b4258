"""``logdirctl metadata ls | cat | find | dump | shell``: browse the local metadata log, without a JVM.

Not here: what is read (``logdir.service.metadata``, ``metadata_dump``), the terminal of the shell (``metadata_shell``).

Spec: design §6; KIP-631, "kafka-dump-log.sh", "kafka-metadata-shell.sh".
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TextIO

from logdir.errors import Problem
from logdir.metadata.dump import RELEASES, form_of
from logdir.metadata.nodes import Line, Missed, escaped
from logdir.paths import METADATA_DIR
from logdir.service.metadata import MetadataLog, MetadataRequest, MetadataSession, session, typed
from logdir.service.metadata_dump import DumpEnd, FileDump, MetadataDumpRequest, files_to_dump
from logdir.service.report.json_form import to_json
from logdir.text import printable, quoted
from tools.cli.arguments import FORMAT, Exit, Streams, compact, exit_for, say
from tools.cli.target import add_disk_timeout, timeout_ms, timeout_words
from tools.logdirctl.metadata_shell import talk

_STATUS = "exit status: 0 done, 1 problems found, 2 usage or configuration, 4 refused"
_PLACES = ("server_properties", "log_dirs", "directory", "snapshot")
_MOST_GAPS_SHOWN = 10


def add_parser(commands: Any) -> None:
    """Add the commands to the parser."""
    group = commands.add_parser(
        "metadata",
        description="What the local metadata log of a KRaft node says. Reads only, beside a running broker too.",
        allow_abbrev=False,
    )
    below = group.add_subparsers(dest="metadata_command", metavar="COMMAND", required=True)
    for name, says, description in (
        ("ls", "list nodes of the metadata tree", "List what is in directories of the metadata tree."),
        ("cat", "show values of the metadata tree", "Show the values of leaves of the metadata tree."),
        ("find", "list nodes and all below them", "List nodes of the metadata tree and all that is below them."),
    ):
        parser = _command(below, name, says, f"{description} Paths may be patterns: *, ?, [a-z], {{a,b}}.")
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
    dump.add_argument(
        "--skip-record-metadata", action="store_true", help="what records say without their offsets and sizes"
    )
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


def _command(below: Any, name: str, says: str, description: str) -> Any:
    parser = below.add_parser(name, help=says, description=description, epilog=_STATUS, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    return parser


def _add_place(parser: Any, *, is_required: bool = True) -> None:
    """Add the ways to say which metadata is meant."""
    place = parser.add_mutually_exclusive_group(required=is_required)
    place.add_argument(
        "--server-properties", metavar="FILE", help="the broker's configuration; metadata.log.dir is read there"
    )
    place.add_argument("--log-dirs", metavar="A,B", help="the log dirs themselves, separated by commas")
    place.add_argument("--directory", metavar="DIR", help=f"the {METADATA_DIR} itself")
    add_disk_timeout(parser, "it is SUSPECT")
    if is_required:
        place.add_argument("--snapshot", metavar="FILE", help="one snapshot, or the segment that begins at offset 0")


def _place_of(arguments: argparse.Namespace) -> tuple[MetadataRequest | None, str]:
    """Return the place that is named, and its words for the next command to type."""
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
        return _browsed(arguments, streams, found)


def _browsed(arguments: argparse.Namespace, streams: Streams, found: MetadataSession) -> int:
    problems = list(found.problems)
    if arguments.json:
        items = _known(found.nodes(arguments.lister, arguments.path), problems)
        return _put_json(arguments, streams.out, _listed(found.log, items), lambda: _end(problems))
    for line in _known(found.lines(arguments.lister, arguments.path), problems):
        streams.out.write(f"{line}\n")
    streams.out.flush()
    say(streams, _how_far(found.log))
    _tell(arguments, problems, streams)
    following = "cat PATH" if arguments.lister != "cat" else "shell"
    say(streams, printable(f"next: logdirctl metadata {following} {_place_of(arguments)[1]}"))
    return _end(problems)[0]


def _known(lines: Iterable[Line], problems: list[Problem]) -> Iterator[str]:
    """Yield what is there; what was missed joins the problems."""
    for one in lines:
        if isinstance(one, Missed):
            problems.append(one.problem)
        else:
            yield one


def act_shell(arguments: argparse.Namespace, streams: Streams, source: TextIO | None = None) -> int:
    """Run the shell; return the exit status.

    Args:
        arguments: Of the command line.
        streams: Where to.
        source: Where the lines come from; standard input if nothing is said.
    """
    source = (sys.stdin or io.StringIO()) if source is None else source
    if isinstance(source, io.TextIOWrapper):
        source.reconfigure(errors="backslashreplace")  # bytes that are no text are a name that is not there
    with _session(arguments) as found:
        return _talked(arguments, streams, source, found)


def _talked(arguments: argparse.Namespace, streams: Streams, source: TextIO, found: MetadataSession) -> int:
    problems = list(found.problems)
    if arguments.json:
        lines = _listed(found.log, _answered(found, source, problems))
        return _put_json(arguments, streams.out, lines, lambda: _end(problems))
    is_typed = source.isatty()
    if is_typed:
        say(streams, _how_far(found.log))
    _tell(arguments, problems, streams)
    is_well = talk(found, source, streams.out, streams.err)
    # Whoever types sees what failed; a script is told by the status.
    return Exit.PROBLEMS if problems or not (is_well or is_typed) else Exit.DONE


def _answered(found: MetadataSession, source: TextIO, problems: list[Problem]) -> Iterator[str]:
    while not found.is_over and (line := source.readline()):
        item, missed = typed(found, line.rstrip("\r\n"))
        problems += missed
        yield compact(to_json(item))


def act_dump(arguments: argparse.Namespace, streams: Streams) -> int:
    """Print batches and records; return the exit status."""
    request = MetadataDumpRequest(
        files=tuple(arguments.file),
        place=_place_of(arguments)[0],
        release=arguments.stock,
        is_record_metadata_skipped=arguments.skip_record_metadata,
        disk_timeout_ms=timeout_ms(arguments),
    )
    with files_to_dump(request) as files:
        return _dumped(arguments, streams, files)


def _dumped(arguments: argparse.Namespace, streams: Streams, files: Sequence[FileDump]) -> int:
    def end() -> tuple[Exit, list[Problem]]:
        worst = max((_status_of(one.end) for one in files), default=Exit.DONE)
        return worst, [problem for one in files for problem in one.end.problems]

    if arguments.json:
        return _put_json(arguments, streams.out, _joined('"items":[', map(_file_json, files)), end)
    is_shown = streams.out.isatty()
    for one in files:
        streams.out.write(f"Dumping {printable(one.name)}\n")
        for line in one.lines():
            streams.out.write(f"{escaped(line) if is_shown else line}\n")
        if one.end.gaps:
            say(streams, f"Non-consecutive offsets in {printable(one.name)}")
        for first, second in one.end.gaps[:_MOST_GAPS_SHOWN]:
            say(streams, f"  {first} is followed by {second}")
    streams.out.flush()
    status, problems = end()
    _tell(arguments, problems, streams)
    return status


def _status_of(one: DumpEnd) -> Exit:
    if one.error is not None:
        return exit_for(one.error)
    return Exit.PROBLEMS if one.problems else Exit.DONE


def _file_json(one: FileDump) -> Iterator[str]:
    yield from _joined(f'{{"path":{compact(one.path)},"batches":[', one.batches())
    yield f',"trailing_bytes":{compact(one.end.trailing_bytes)}}}'


def _listed(log: MetadataLog, items: Iterable[str]) -> Iterator[str]:
    yield f'"log":{compact(to_json(log))},'
    yield from _joined('"items":[', items)


def _joined(head: str, items: Iterable[str | Iterable[str]]) -> Iterator[str]:
    """Yield a JSON list as it comes, however long."""
    separator = head
    for item in items:
        yield separator
        yield from (item,) if isinstance(item, str) else item
        separator = ","
    yield "]" if separator == "," else f"{head}]"


def _put_json(
    arguments: argparse.Namespace, out: TextIO, result: Iterable[str], end: Callable[[], tuple[Exit, list[Problem]]]
) -> Exit:
    """Write the one object of ``--json`` as it comes; what it came to is known at its end."""
    out.write(f'{{"command":{compact(arguments.title)},"format":{FORMAT},"result":{{')
    out.writelines(result)
    status, problems = end()
    out.write(f'}},"exit":{int(status)},"problems":{compact(to_json(problems))}}}\n')
    return status


def _end(problems: list[Problem]) -> tuple[Exit, list[Problem]]:
    return (Exit.PROBLEMS if problems else Exit.DONE), problems


def _tell(arguments: argparse.Namespace, problems: Iterable[Problem], streams: Streams) -> None:
    for problem in problems:
        say(streams, f"logdirctl {arguments.title}: {problem.line()}")


def _how_far(log: MetadataLog) -> str:
    """Return on what it rests: what is behind the snapshot may be taken back."""
    words = f"{printable(log.origin)}: up to offset {log.end_offset}"
    if log.committed_offset < log.end_offset:
        words += f"; known to be committed up to {log.committed_offset}"
    if log.open_transaction is not None:
        words += f"; a transaction is open since {log.open_transaction}, and not shown"
    if log.is_log_behind:
        words += "; the log is behind the snapshot, and not shown"
    return words
