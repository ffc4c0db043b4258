"""``logdirctl staged adopt``: make staged files the log of a topic that was created again.

Not here: checking and doing it (``logdir.service.adopt``).
"""

from __future__ import annotations

import argparse
from functools import partial

from logdir.service import adopt as adopting
from logdir.service.adopt import AdoptRequest
from logdir.service.log_dirs.opening import opened
from logdir.text import quoted
from tools.cli.arguments import Streams
from tools.cli.change import change
from tools.cli.delay import delay_words, delays_of
from tools.cli.source import source_of
from tools.logdirctl.staged_change import next_line, selection_of


def _argv_of(arguments: argparse.Namespace) -> str:
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
    return change(
        arguments,
        streams,
        adopting,
        request,
        partial(next_line, arguments, more=_argv_of(arguments)),
        opening=partial(opened, is_skip_of_use=False),
        result=lambda shown: shown.result,
        lines=lambda shown: () if arguments.apply else shown.warnings,
    )
