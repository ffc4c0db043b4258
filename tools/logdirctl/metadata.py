"""``logdirctl metadata ls | cat | find | dump | shell``: browse the local metadata log, without a JVM.

Reads only and takes no lock: on the disks of a stopped broker, and beside a running one as well.

Not here: where the log is (``metadata_place``), lines of the tree (``metadata_nodes``), the shell's commands
(``metadata_shell``).

Spec: design §6; KIP-631, "kafka-dump-log.sh", "kafka-metadata-shell.sh".
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from logdir.errors import ConfigError, LogDirError, Problem
from logdir.text import printable, utf8
from logdir.wire.json_text import text
from tools.cli import FORMAT, Exit, Streams, compact, exit_for, say
from tools.logdirctl.metadata_place import NO_LOG, add_place, directory_of, files_of, local_of, place_words, read, told

if TYPE_CHECKING:
    from logdir.desired.metadata_dump import Dump
    from logdir.desired.metadata_source import Look
    from logdir.desired.metadata_tree import Found

_Part = TypeVar("_Part")
_Note = Callable[[Iterable[Problem], Exit], None]
_STATUS = "exit status: 0 done, 1 problems found, 2 usage or configuration, 4 refused"
_NEWEST = "4.3"
_MOST_GAPS_TOLD = 10
_SUFFIXES = (".log", ".checkpoint")


def add_parser(commands: Any) -> None:
    """Add the commands to the parser."""
    group = commands.add_parser(
        "metadata",
        help="browse or dump the local metadata log",
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
        add_place(parser)
        parser.set_defaults(run=_browse, title=f"metadata {name}", lister=name)
    shell = _command(below, "shell", "walk the metadata tree", "Walk the metadata tree by typing, or by a pipe.")
    add_place(shell)
    shell.set_defaults(run=act_shell, title="metadata shell")
    dump = _command(
        below,
        "dump",
        "print every record, as kafka-dump-log does",
        "Print batches and records as kafka-dump-log --cluster-metadata-decoder does: of the files named, or of the "
        "newest snapshot and the log of a broker.",
    )
    dump.add_argument("file", metavar="FILE", nargs="*", help="a segment (.log) or a snapshot (.checkpoint)")
    add_place(dump, is_required=False)
    dump.add_argument(
        "--skip-record-metadata", action="store_true", help="what records say without their offsets and sizes"
    )
    dump.add_argument(
        "--stock",
        type=_release,
        default=_NEWEST,
        metavar="VERSION",
        help=f"print as that release does, 3.3 to {_NEWEST}, with or without its patch number (default %(default)s)",
    )
    dump.set_defaults(run=act_dump, title="metadata dump")


def _release(text: str) -> str:
    from argparse import ArgumentTypeError

    from logdir.desired.metadata_dump import RELEASES, form_of

    if form_of(text) is None:
        raise ArgumentTypeError(f"a release from {RELEASES[0]} to {RELEASES[-1]} is expected, not {text!r}")
    return text


def _command(below: Any, name: str, says: str, description: str) -> Any:
    parser = below.add_parser(name, help=says, description=description, epilog=_STATUS, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    return parser


def _tell(arguments: argparse.Namespace, problems: Iterable[Problem], streams: Streams) -> None:
    for problem in problems:
        say(streams, f"logdirctl {arguments.title}: {problem.line()}")


def _put_json(
    arguments: argparse.Namespace, out: TextIO, result: Iterable[str], end: Callable[[], tuple[Exit, list[Problem]]]
) -> Exit:
    """Write the one object of ``--json`` as it comes, however long; what it came to is known at its end."""
    out.write(f'{{"command":{compact(arguments.title)},"format":{FORMAT},"result":{{')
    out.writelines(result)
    status, problems = end()
    shown = [{key: utf8(value) for key, value in problem._asdict().items()} for problem in problems]
    out.write(f'}},"exit":{int(status)},"problems":{compact(shown)}}}\n')
    return status


def _log_json(look: Look) -> dict[str, object]:
    return {
        "origin": utf8(look.origin),
        "snapshot": look.snapshot,
        "committed_offset": look.committed,
        "end_offset": look.offset,
        "epoch": look.epoch,
        "as_of_ms": look.as_of_ms,
        "open_transaction": look.open_transaction,
        "is_log_behind": look.is_log_behind,
    }


def _say_how_far(look: Look, streams: Streams) -> None:
    """Say on what it rests: what is behind the snapshot may be taken back."""
    words = f"{printable(look.origin)}: up to offset {look.offset}"
    if look.committed < look.offset:
        words += f"; known to be committed up to {look.committed}"
    if look.open_transaction is not None:
        words += f"; a transaction is open since {look.open_transaction}, and not shown"
    if look.is_log_behind:
        words += "; the log is behind the snapshot, and not shown"
    say(streams, words)


def _browse(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``ls``, ``cat`` or ``find``; return the exit status."""
    from logdir.desired.metadata_tree import build
    from tools.logdirctl.metadata_nodes import LISTERS, Missed, Place

    look = read(arguments)
    place = Place(build(look, local_of(look)))
    problems = [] if look.ended is None else [look.ended]

    def end() -> tuple[Exit, list[Problem]]:
        return (Exit.PROBLEMS if problems else Exit.DONE), problems

    if arguments.json:
        return _put_json(arguments, streams.out, _nodes_json(arguments, place, look, problems), end)
    for line in LISTERS[arguments.lister](place, arguments.path):
        if isinstance(line, Missed):
            problems.append(_missed(line.path, line.why))
        else:
            streams.out.write(f"{line}\n")
    streams.out.flush()
    _say_how_far(look, streams)
    status, _ = end()
    _tell(arguments, problems, streams)
    following = "cat PATH" if arguments.lister != "cat" else "shell"
    say(streams, printable(f"next: logdirctl metadata {following} {place_words(arguments)}"))
    return status


def _missed(path: str, why: str) -> Problem:
    return Problem("nothing-selected", path, "a node of the tree", why, "logdirctl metadata find lists them")


def _nodes_json(arguments: argparse.Namespace, place: Any, look: Look, problems: list[Problem]) -> Iterator[str]:
    from logdir.desired.metadata_paths import path_of
    from logdir.desired.metadata_tree import Leaf, below
    from tools.logdirctl.metadata_nodes import targets

    yield f'"log":{compact(_log_json(look))},"nodes":['
    separator = ""
    for path, found in targets(place, arguments.path):
        if found is None:
            problems.append(_missed(path, "no such file or directory"))
            continue
        if arguments.lister == "cat" and not isinstance(found.node, Leaf):
            problems.append(_missed(path, "is a directory"))
            continue
        for one in below(found) if arguments.lister == "find" else (found,):
            yield separator + text(_node_json(one, path_of(one.names), with_children=arguments.lister == "ls"))
            separator = ","
    yield "]"


def _node_json(found: Found, path: str, *, with_children: bool) -> dict[str, object]:
    from logdir.desired.metadata_tree import Leaf, children

    told: dict[str, object] = {"path": path, "names": [utf8(name) for name in found.names]}
    if isinstance(found.node, Leaf):
        told["value"] = utf8(found.node.value) if isinstance(found.node.value, str) else found.node.value
    elif with_children:
        told["children"] = [utf8(name) for name in children(found.node)]
    return told


def act_shell(arguments: argparse.Namespace, streams: Streams, source: TextIO | None = None) -> int:
    """Run the shell; return the exit status.

    Args:
        arguments: Of the command line.
        streams: Where to.
        source: Where the lines come from; standard input if nothing is said.
    """
    from logdir.desired.metadata_tree import build
    from tools.logdirctl.metadata_shell import Shell, talk, terminal_width

    source = (sys.stdin or io.StringIO()) if source is None else source
    if isinstance(source, io.TextIOWrapper):
        source.reconfigure(errors="backslashreplace")  # bytes that are no text are a name that is not there
    look = read(arguments)
    problems = [] if look.ended is None else [look.ended]
    root = build(look, local_of(look))
    if arguments.json:
        shell = Shell(root)
        return _put_json(
            arguments,
            streams.out,
            _session_json(shell, source, look, problems),
            lambda: (Exit.PROBLEMS if problems else Exit.DONE, problems),
        )
    shell = Shell(root, width=lambda: terminal_width(streams.out))
    is_typed = source.isatty()
    if is_typed:
        _say_how_far(look, streams)
    _tell(arguments, problems, streams)
    is_well = talk(shell, source, streams.out, streams.err)
    # Whoever types sees what failed; a script is told by the status.
    return Exit.PROBLEMS if problems or not (is_well or is_typed) else Exit.DONE


def _session_json(shell: Any, source: TextIO, look: Look, problems: list[Problem]) -> Iterator[str]:
    from tools.logdirctl.metadata_nodes import Missed

    yield f'"log":{compact(_log_json(look))},"lines":['
    separator = ""
    while not shell.is_over and (line := source.readline()):
        said: list[str] = []
        for one in shell.run(line.rstrip("\r\n")):
            if isinstance(one, Missed):
                problems.append(_missed(one.path, one.why))
            else:
                said.append(one)
        yield separator + compact({"typed": utf8(line.rstrip("\r\n")), "printed": said})
        separator = ","
    yield "]"


def act_dump(arguments: argparse.Namespace, streams: Streams) -> int:
    """Print batches and records; return the exit status."""
    from tools.logdirctl.metadata_nodes import escaped

    files = _files(arguments)
    problems: list[Problem] = []
    worst = Exit.DONE

    def note(found: Iterable[Problem], status: Exit) -> None:
        nonlocal worst
        for problem in found:
            problems.append(problem)
            worst = max(worst, status)

    if arguments.json:
        texts = _dump_json(arguments, files, note)
        return _put_json(arguments, streams.out, texts, lambda: (worst, problems))
    is_shown = streams.out.isatty()
    for path, name in files:
        streams.out.write(f"Dumping {printable(name)}\n")
        with _kept(note), _dumped(path, arguments) as dump:
            for line in _reading(path, dump.lines(skip_record_metadata=arguments.skip_record_metadata)):
                streams.out.write(f"{escaped(line) if is_shown else line}\n")
            _say_gaps(dump, name, streams)
            note(_counted(dump), Exit.PROBLEMS)
    streams.out.flush()
    _tell(arguments, problems, streams)
    return worst


@contextmanager
def _kept(note: _Note) -> Iterator[None]:
    """Keep an error that ends one file, and go on with the next."""
    try:
        yield
    except LogDirError as error:
        note([error.problem()], exit_for(error))


@contextmanager
def _dumped(path: str, arguments: argparse.Namespace) -> Iterator[Dump]:
    from logdir.desired.metadata_dump import Dump, StockForm, form_of
    from logdir.desired.metadata_file import opened

    with ExitStack() as stack:
        with told(path):
            file = stack.enter_context(opened(path, is_followed=bool(arguments.file)))
        yield Dump(file, form=form_of(arguments.stock) or StockForm.OF_4_3)


def _reading(path: str, parts: Iterator[_Part]) -> Iterator[_Part]:
    """Yield what is read of a file; an error of the kernel is one of the file's, not of whoever takes the parts."""
    with told(path):
        yield from parts


def _counted(dump: Dump) -> list[Problem]:
    more = dump.unreadable - len(dump.problems)
    if not more:
        return dump.problems
    last = dump.problems[-1]
    return [*dump.problems[:-1], last._replace(fix=f"{last.fix}{'; ' if last.fix else ''}{more} more in this file")]


def _say_gaps(dump: Dump, name: str, streams: Streams) -> None:
    if not dump.gaps:
        return
    say(streams, f"Non-consecutive offsets in {printable(name)}")
    for first, second in dump.gaps[:_MOST_GAPS_TOLD]:
        say(streams, f"  {first} is followed by {second}")


def _files(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """Return path and shown name of every file.

    Raises:
        ConfigError: neither files nor a broker, or both, or a name that is none of either kind.
        LogDirError: the broker's metadata log is not there.
    """
    if bool(arguments.file) == bool(place_words(arguments)):
        found = "both" if arguments.file else "neither"
        raise ConfigError((Problem("config-error", "metadata dump", "files, or a broker", found),))
    if not arguments.file:
        directory = directory_of(arguments)
        with told(directory, NO_LOG):
            return [(path, path) for path in files_of(directory)]
    wrong = [name for name in arguments.file if not name.endswith(_SUFFIXES) or "\0" in name]
    if wrong:
        expected = "a file called .log or .checkpoint"
        raise ConfigError(tuple(Problem("config-error", name, expected, "another name") for name in wrong))
    return [(os.path.abspath(name), name) for name in arguments.file]


def _dump_json(arguments: argparse.Namespace, files: list[tuple[str, str]], note: _Note) -> Iterator[str]:
    yield '"files":['
    for number, (path, _) in enumerate(files):
        yield f'{"," if number else ""}{{"path":{compact(utf8(path))},"batches":['
        separator, trailing = "", None
        with _kept(note), _dumped(path, arguments) as dump:
            for batch in _reading(path, dump.objects()):
                yield separator + text(batch)
                separator = ","
            trailing = dump.trailing_bytes
            note(_counted(dump), Exit.PROBLEMS)
        yield f'],"trailing_bytes":{compact(trailing)}}}'
    yield "]"
