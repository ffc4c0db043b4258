"""Answering a question about a broker in a process of its own, into a file that the asker has open.

The process runs the use case as a command does beside a daemon: it opens the log dirs itself, takes no lock, and has a
worker process for each log dir. So the asker neither touches a log dir nor holds the answer in its memory, and ends all
of it by ending one process. What is left of a log dir that hangs is named, so that no other process is started for it.

Not here: how many at once, and for how long (``logdir.daemon``).

Spec: design §2 law 6, §5 "A port per log dir"; attacks A40, A49; docs/json.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, assert_never

from logdir.errors import LogDirError, Problem
from logdir.observe.share import send
from logdir.service.log_dirs.request import BrokerRequest, LeftOut, PartialBroker
from logdir.service.reading.questions import (
    READINGS,
    DescribeQuestion,
    InventoryQuestion,
    LayoutStatusQuestion,
    Question,
    StagedLsQuestion,
    StraysQuestion,
    source_of,
)
from logdir.service.report.exit_status import Exit
from logdir.service.report.json_form import from_json
from logdir.service.report.json_text import compact, envelope
from logdir.worker.calls import Descriptor
from logdir.worker.reaping import Orphan, Unreaped
from logdir.worker_call import worker_call

MORE_KEYS: Final = ("is_waiting", "lines", "next", "warnings")
"""Keys of an answer over the socket beside those of ``--json``."""


class OwnBroker(NamedTuple):
    """The broker of the daemon, and how long one of its log dirs may give no sign of life."""

    server_properties: str
    client_properties: str | None
    daemon_config: str
    disk_timeout_ms: int


class Hanging(NamedTuple):
    """A process that was killed and has not ended, and the log dir or path for which it was started."""

    path: str
    pid: int


class Answered(NamedTuple):
    """What came of a question."""

    size: int
    """Bytes of the answer in the file; without a meaning beside an error."""
    error: LogDirError | None
    """Why there is no answer."""
    hanging: tuple[Hanging, ...]
    """What is left of log dirs that hang."""


@worker_call
def answer_into(
    name: str,
    question: str,
    broker: OwnBroker,
    left_out: Mapping[str, Problem],
    hanging: tuple[Hanging, ...],
    most_bytes: int,
    file: Descriptor,
) -> Answered:
    """Answer a question, and write the one JSON object of the answer into a file.

    Args:
        name: Name of the use case.
        question: Its question in JSON, valid.
        broker: The broker.
        left_out: Log dirs that are not opened, and why.
        hanging: Processes that still hang: what each was started for is not opened.
        most_bytes: Size limit of the answer.
        file: The file, empty.
    """
    unreaped = Unreaped()
    unreaped.keep(Orphan(one.path, one.pid) for one in hanging)
    known = {one.pid for one in hanging}
    asked: Question = from_json(READINGS[name].request, json.loads(question))
    source = source_of(asked)
    request = PartialBroker(
        server_properties=broker.server_properties,
        client_properties=broker.client_properties,
        daemon_config=broker.daemon_config,
        disk_timeout_ms=broker.disk_timeout_ms,
        source=None if source is None else source.uri,
        left_out=LeftOut({**unreaped.problems(), **left_out}, unreaped),
    )
    size, error = 0, None
    try:
        for part in answer_of(name, asked, request):
            data = part.encode()
            size += len(data)
            if size > most_bytes:
                raise _too_large(name, most_bytes)
            send(file, data)
    except LogDirError as found:
        error = found
    left = tuple(Hanging(path, pid) for path, pid in unreaped.pids().items() if pid not in known)
    return Answered(size, error, left)


def answer_of(name: str, question: Question, request: BrokerRequest) -> Iterator[str]:
    """Yield the one JSON object of an answer in parts: that of ``--json``, with ``MORE_KEYS``.

    Raises:
        LogDirError: as the use case, before the first part.
    """
    match question:
        case StagedLsQuestion():
            return _staged_ls(name, question, request)
        case StraysQuestion():
            return _strays(name, question, request)
        case DescribeQuestion():
            return _describe(name, question, request)
        case InventoryQuestion():
            return _inventory(name, question, request)
        case LayoutStatusQuestion():
            return _layout_status(name, request)
        case never:
            assert_never(never)


def _staged_ls(name: str, question: StagedLsQuestion, request: BrokerRequest) -> Iterator[str]:
    from logdir.service.staged_listing import StagedListingRequest, list_staged

    found = list_staged(
        StagedListingRequest(
            broker=request,
            source=question.source,
            selector=question.selector,
            are_ends_wanted=question.are_ends_wanted,
        )
    )
    yield from _with_more([envelope(name, _status(found.problems), found.problems, found)])


def _strays(name: str, question: StraysQuestion, request: BrokerRequest) -> Iterator[str]:
    from logdir.service.strays import StraysRequest, strays

    asked = StraysRequest(
        broker=request, source=question.source, selector=question.selector, protected=question.protected
    )
    found = strays(asked, source_read=lambda _: None)
    yield from _with_more([envelope(name, _status(found.problems), found.all_problems, found)])


def _describe(name: str, question: DescribeQuestion, request: BrokerRequest) -> Iterator[str]:
    from logdir.service.describe import DescribeRequest, describe

    asked = DescribeRequest(broker=request, source=question.source, selector=question.selector, disks=question.disks)
    found = describe(asked, source_read=lambda _: None)
    text = envelope(name, _status(found.problems), found.problems, found)
    yield from _with_more([text], tuple(note.line() for note in found.notes))


def _inventory(name: str, question: InventoryQuestion, request: BrokerRequest) -> Iterator[str]:
    from logdir.service.inventory import InventoryRequest, take
    from logdir.service.report.inventory_json import inventory_envelope
    from logdir.service.report.reporter import SILENT

    asked = InventoryRequest(broker=request, is_exact=question.is_exact, is_written=question.are_entries_wanted)
    found = take(asked, SILENT)
    yield from _with_more(inventory_envelope(name, Exit.DONE if found.is_sound else Exit.PROBLEMS, found))


def _layout_status(name: str, request: BrokerRequest) -> Iterator[str]:
    from logdir.service.layout_status import status

    found = status(request)
    yield from _with_more([envelope(name, _status(found.problems), found.problems, found.result)])


def _status(problems: Sequence[Problem]) -> Exit:
    return Exit.PROBLEMS if problems else Exit.DONE


def _with_more(parts: Iterable[str], warnings: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the JSON of an answer with ``MORE_KEYS``; ``warnings``: remarks that are no problems."""
    more = compact(dict(zip(MORE_KEYS, (False, [], "", list(warnings)), strict=True)))
    held = ""
    for part in parts:
        if held:
            yield held
        held = part
    end = "}\n"
    yield f"{held.removesuffix(end)},{more[1:]}\n"


def _too_large(name: str, most_bytes: int) -> LogDirError:
    return LogDirError(
        name,
        expected=f"an answer of at most {most_bytes >> 20} MiB",
        found="a longer one",
        fix="name a selector; or use logdirctl, which prints an answer of any length",
        slug="result-too-large",
    )
