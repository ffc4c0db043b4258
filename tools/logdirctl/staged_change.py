"""``logdirctl staged restore | adopt | hold | purge | export``: change or copy staged replicas.

Not here: planning and doing each (``logdir.service.restore``, ``hold``, ``purge``, ``export``).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from functools import partial

from logdir.service.adopt import AdoptRequest
from logdir.service.batch.purge_recheck import PurgeOverrides
from logdir.service.export import ExportRequest
from logdir.service.purge import PurgeRequest
from logdir.service.report.result import ItemResult
from logdir.service.report.staged import Selection
from logdir.service.restore import RestoreRequest
from logdir.text import quoted
from tools.cli.arguments import Streams
from tools.cli.broker import argv_of, has_override, next_argv
from tools.cli.change import change
from tools.cli.delay import delay_words, delays_of
from tools.cli.report import is_planned
from tools.cli.source import named_words, source_of


def next_line(arguments: argparse.Namespace, rows: Sequence[ItemResult], more: str = "") -> str:
    """Return the next command to type.

    Args:
        arguments: Of this command.
        rows: What became of each replica.
        more: Further options to repeat, each after a blank.
    """
    where = next_argv(arguments)
    if arguments.apply or not is_planned(rows) or has_override(arguments):
        return f"logdirctl staged ls {argv_of(arguments)}"
    flags = named_words(arguments)
    if getattr(arguments, "disk", None) is not None:
        flags += f" --disk {quoted(arguments.disk)}"
    if getattr(arguments, "output", None) is not None:
        flags += f" -o {quoted(arguments.output)}"
    flags += "".join(f" --name {quoted(name)}" for name in getattr(arguments, "name", ()))
    selector = "" if arguments.selector is None else f" {quoted(arguments.selector)}"
    return f"logdirctl {arguments.title}{selector} {where}{flags}{more} --apply"


def selection_of(arguments: argparse.Namespace) -> Selection:
    """Return which staged replicas the arguments select."""
    return Selection(arguments.selector, arguments.disk, tuple(arguments.name))


def restore(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged restore``; return the exit status."""
    request = RestoreRequest(
        source=source_of(arguments), selection=selection_of(arguments), is_even_if_unknown=arguments.even_if_unknown
    )
    return change(arguments, streams, request, partial(next_line, arguments), are_said=True)


def hold(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged hold``; return the exit status."""
    following = partial(next_line, arguments)
    return change(arguments, streams, selection_of(arguments), following, are_overrides_said=False)


def export(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged export``; return the exit status."""
    output = os.path.abspath(arguments.output) if arguments.output else ""
    request = ExportRequest(selection=selection_of(arguments), output=output)
    return change(arguments, streams, request, partial(next_line, arguments), are_overrides_said=False)


def purge(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged purge``; return the exit status."""
    overrides = PurgeOverrides(
        is_even_if_assigned=arguments.even_if_assigned,
        is_even_if_last=arguments.even_if_last,
        is_even_if_early=arguments.even_if_early,
    )
    request = PurgeRequest(
        source=source_of(arguments),
        selection=selection_of(arguments),
        overrides=overrides,
        includes_held=arguments.include_held,
        bytes_per_second=arguments.bytes_per_second,
    )
    return change(arguments, streams, request, partial(next_line, arguments), are_said=True)


def _adopt_words(arguments: argparse.Namespace) -> str:
    """Return the options that only ``staged adopt`` has, as typed, for the next command to type."""
    words = f" --as {quoted(arguments.as_topic)}"
    words += "".join(f" --with {quoted(path)}" for path in arguments.listings)
    return words + (" --keep" if arguments.keep else "") + delay_words(arguments)


def adopt(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``staged adopt``; return the exit status."""
    request = AdoptRequest(
        source=source_of(arguments),
        selection=selection_of(arguments),
        as_topic=arguments.as_topic,
        listings=tuple(arguments.listings),
        delays=delays_of(arguments),
        is_kept=arguments.keep,
        is_even_if_unknown=arguments.even_if_unknown,
    )
    return change(arguments, streams, request, partial(next_line, arguments, more=_adopt_words(arguments)))
