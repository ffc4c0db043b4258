"""The results of the ``metadata`` commands as JSON in parts, their ends, and how far a log was read, for people.

Spec: docs/json.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from logdir.errors import Problem
from logdir.metadata.nodes import Line, Missed
from logdir.service.metadata import MetadataLog, MetadataSession, typed
from logdir.service.metadata_dump import DumpItem, FileDump
from logdir.service.report.exit_status import Exit, exit_for
from logdir.service.report.json_form import to_json
from logdir.service.report.json_text import compact, joined
from logdir.text import printable

End = tuple[Exit, Sequence[Problem]]
"""The exit status of a command, and its problems."""


def end_of(problems: Sequence[Problem]) -> End:
    """Return the end of a command that found these problems."""
    return (Exit.PROBLEMS if problems else Exit.DONE), problems


def end_of_dump(files: Sequence[FileDump]) -> End:
    """Return the end of a dump of files, all of which were read."""
    status, problems = end_of(tuple(problem for one in files for problem in one.end.problems))
    return max((exit_for(one.end.error) for one in files if one.end.error is not None), default=status), problems


def listed(log: MetadataLog, items: Iterable[str]) -> Iterator[str]:
    """Yield the keys and values of the result of ``metadata ls``, ``cat``, ``find`` or ``shell``, in parts."""
    yield f'"log":{compact(to_json(log))},'
    yield from joined("items", items)


def dumped(files: Iterable[FileDump]) -> Iterator[str]:
    """Yield the keys and values of the result of ``metadata dump``, in parts."""
    return joined("items", map(_file, files))


def _file(one: FileDump) -> Iterator[str]:
    """Yield the JSON of a ``DumpItem`` in parts; its record batches come first, as they are read."""
    yield "{"
    yield from joined("batches", one.batches())
    # What stands behind the batches is known at their end.
    rest = compact(to_json(DumpItem(path=one.path, trailing_bytes=one.end.trailing_bytes)))
    yield rest.removeprefix('{"batches":[]')


def there(lines: Iterable[Line], problems: list[Problem]) -> Iterator[str]:
    """Yield the lines; instead of a ``Missed`` path, append its problem to ``problems``."""
    for one in lines:
        if isinstance(one, Missed):
            problems.append(one.problem)
        else:
            yield one


def answers(session: MetadataSession, lines: Iterable[str], problems: list[Problem]) -> Iterator[str]:
    """Yield the JSON of every line typed, until the shell is left; append what fails to ``problems``."""
    for line in lines:
        item, missed = typed(session, line.rstrip("\r\n"))
        problems += missed
        yield compact(to_json(item))
        if session.is_over:
            return


def how_far(log: MetadataLog) -> str:
    """Return, for people, which log was read up to which offset, and how much of it is known to be committed."""
    words = f"{printable(log.origin)}: up to offset {log.end_offset}"
    if log.committed_offset < log.end_offset:
        words += f"; known to be committed up to {log.committed_offset}"
    if log.open_transaction is not None:
        words += f"; a transaction is open since offset {log.open_transaction}, and not shown"
    if log.is_log_behind:
        words += "; the log is behind the snapshot, and not shown"
    return words
