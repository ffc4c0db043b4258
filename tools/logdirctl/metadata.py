"""``logdirctl metadata ls | cat | find | dump | shell``: browse the local metadata log, without a JVM.

Not here: reading it (``logdir.service.metadata``, ``metadata_dump``), the prompt of the shell (``metadata_shell``).

Spec: design §6; KIP-631, "kafka-dump-log.sh", "kafka-metadata-shell.sh".
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial

from logdir.metadata.dump import RELEASES, form_of
from logdir.metadata.nodes import escaped
from logdir.paths import METADATA_DIR
from logdir.service.metadata import MetadataRequest, MetadataSession, session
from logdir.service.metadata_dump import MetadataDumpRequest, files_to_dump
from logdir.service.report.json_text import envelope_as_it_comes
from logdir.service.report.metadata_json import End, answers, dumped, end_of, end_of_dump, how_far, listed, there
from logdir.text import printable
from tools.cli.arguments import Exit, Streams, put, say, tell
from tools.cli.broker import JSON, disk_timeout, timeout_ms
from tools.cli.command import Command, Group
from tools.cli.metadata_shell import talk
from tools.cli.option import Flag, OneOf, Option, typed

_ENDS = "0 done, 1 problems found, 2 usage or configuration, 4 refused"
_PLACES = ("server_properties", "log_dirs", "directory", "snapshot")


def _release(text: str) -> str:
    if form_of(text) is None:
        raise argparse.ArgumentTypeError(f"a release from {RELEASES[0]} to {RELEASES[-1]} is expected, not {text!r}")
    return text


def _place_of(arguments: argparse.Namespace) -> MetadataRequest | None:
    """Return a request for the metadata that an option names; ``None`` if none does."""
    named = {name: value for name in _PLACES if (value := getattr(arguments, name, None)) is not None}
    return MetadataRequest(**named, disk_timeout_ms=timeout_ms(arguments)) if named else None


def _session(arguments: argparse.Namespace) -> AbstractContextManager[MetadataSession]:
    return session(_place_of(arguments) or MetadataRequest())


def _browse(lister: str, arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``ls``, ``cat`` or ``find``; return the exit status."""
    with _session(arguments) as found:
        problems = list(found.problems)
        if arguments.json:
            items = there(found.nodes(lister, arguments.path), problems)
            return _put_json(arguments, streams, listed(found.log, items), lambda: end_of(problems))
        for line in there(found.lines(lister, arguments.path), problems):
            streams.out.write(f"{line}\n")
        streams.out.flush()
        say(streams, how_far(found.log))
        tell(arguments.title, problems, streams)
        words = typed(arguments, *_NAMED, _SNAPSHOT, _TIMEOUT)
        say(streams, printable(f"next: logdirctl metadata {'shell' if lister == 'cat' else 'cat PATH'} {words}"))
        return end_of(problems)[0]


def act_shell(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``metadata shell``; return the exit status."""
    source = sys.stdin or io.StringIO()
    if isinstance(source, io.TextIOWrapper):
        source.reconfigure(errors="backslashreplace")  # bytes that are no text are a name that is not there
    with _session(arguments) as found:
        problems = list(found.problems)
        if arguments.json:
            lines = listed(found.log, answers(found, iter(source.readline, ""), problems))
            return _put_json(arguments, streams, lines, lambda: end_of(problems))
        is_typed = source.isatty()
        if is_typed:
            say(streams, how_far(found.log))
        tell(arguments.title, problems, streams)
        is_well = talk(found, source, streams.out, streams.err)
        # A person sees the message; a script reads the exit status.
        return Exit.PROBLEMS if problems or not (is_well or is_typed) else Exit.DONE


def act_dump(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``metadata dump``: print record batches and records; return the exit status."""
    request = MetadataDumpRequest(
        files=tuple(arguments.file),
        place=_place_of(arguments),
        release=arguments.stock,
        is_record_metadata_skipped=arguments.skip_record_metadata,
        disk_timeout_ms=timeout_ms(arguments),
    )
    with files_to_dump(request) as files:
        if arguments.json:
            return _put_json(arguments, streams, dumped(files), lambda: end_of_dump(files))
        is_shown = streams.out.isatty()
        for one in files:
            put(streams, f"Dumping {one.name}")
            for line in one.lines():
                streams.out.write(f"{escaped(line) if is_shown else line}\n")
            if one.end.gaps:
                say(streams, "\n".join((f"Non-consecutive offsets in {printable(one.name)}", *one.end.first_gaps)))
        streams.out.flush()
        status, problems = end_of_dump(files)
        tell(arguments.title, problems, streams)
        return status


def _put_json(arguments: argparse.Namespace, streams: Streams, result: Iterable[str], end: Callable[[], End]) -> Exit:
    """Write the JSON envelope piece by piece; ``end``, called after the last piece, returns status and problems."""
    streams.out.writelines(envelope_as_it_comes(arguments.title, result, end))
    return end()[0]


def _named_by(one_of: OneOf) -> tuple[Option, ...]:
    properties = "the broker's configuration; metadata.log.dir is read there"
    return (
        Option("--server-properties", properties, "FILE", one_of=one_of),
        Option("--log-dirs", "the log dirs themselves, separated by commas", "A,B", one_of=one_of),
        Option("--directory", f"the directory {METADATA_DIR} itself", "DIR", one_of=one_of),
    )


_PLACE = OneOf("the metadata")
_NAMED, _TIMEOUT = _named_by(_PLACE), disk_timeout("it is SUSPECT")
_SNAPSHOT = Option("--snapshot", "one snapshot, or the segment that begins at offset 0", "FILE", one_of=_PLACE)


def _browser(name: str, text: str, description: str) -> Command:
    path = Option("path", "a path; the root if there is none", "PATH", nargs="+" if name == "cat" else "*")
    return Command(
        title=f"metadata {name}",
        run=partial(_browse, name),
        help=text,
        description=f"{description} Paths may be patterns: *, ?, [a-z], {{a,b}}.",
        ends=_ENDS,
        options=(JSON, path, *_NAMED, _TIMEOUT, _SNAPSHOT),
    )


_STOCK = f"{RELEASES[0]} to {RELEASES[-1]}, with or without its patch number (default %(default)s)"
COMMAND = Group(
    title="metadata",
    description="Browse or dump the local metadata log of a KRaft node. Reads only, beside a running broker too.",
    commands=(
        _browser("ls", "list nodes of the metadata tree", "List what is in directories of the metadata tree."),
        _browser("cat", "show values of the metadata tree", "Show the values of leaves of the metadata tree."),
        _browser(
            "find", "list nodes and all below them", "List nodes of the metadata tree and all that is below them."
        ),
        Command(
            title="metadata shell",
            run=act_shell,
            help="walk the metadata tree",
            description="Walk the metadata tree by typing, or by a pipe.",
            ends=_ENDS,
            options=(JSON, *_NAMED, _TIMEOUT, _SNAPSHOT),
        ),
        Command(
            title="metadata dump",
            run=act_dump,
            help="print every record, as kafka-dump-log does",
            description="Print batches and records as kafka-dump-log --cluster-metadata-decoder does: of the files "
            "named, or of the newest snapshot and the log of a broker.",
            ends=_ENDS,
            options=(
                JSON,
                Option("file", "a segment (.log) or a snapshot (.checkpoint)", "FILE", nargs="*"),
                *_named_by(OneOf("the metadata", is_required=False)),
                _TIMEOUT,
                Flag("--skip-record-metadata", "print records without their offsets and sizes"),
                Option(
                    "--stock", f"print as that release does, {_STOCK}", "VERSION", type=_release, default=RELEASES[-1]
                ),
            ),
        ),
    ),
)
