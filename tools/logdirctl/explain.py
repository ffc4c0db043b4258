"""``logdirctl explain``: the entry of a slug in ``docs/errors.md``, read from the installed package.

The file beside this one is a link to ``docs/errors.md``; a wheel holds its content.

Spec: design §6; docs/json.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from logdir.service.explain import explain
from logdir.service.report.json_text import envelope
from tools.cli import render
from tools.cli.arguments import Exit, Streams
from tools.cli.broker import JSON
from tools.cli.command import Command
from tools.cli.option import Option

PAGE = Path(__file__).with_name("errors.md")


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status.

    Raises:
        ConfigError: the slug is not in ``docs/errors.md``.
    """
    found = explain(PAGE, arguments.slug)
    if arguments.json:
        streams.out.write(envelope("explain", Exit.DONE, (), found))
        return Exit.DONE
    if arguments.slug is None:
        streams.out.writelines(f"{line}\n" for line in found.listing)
    else:
        for text in found.paragraphs:
            render.wrapped(streams.out, f"{text}\n")
    streams.out.write(f"next: logdirctl explain {found.following}".rstrip() + "\n")
    return Exit.DONE


COMMAND = Command(
    title="explain",
    run=act,
    description="Say what the first word of an error or a finding means, and what to do about it.",
    ends="0 done, 2 no such slug",
    options=(
        Option("slug", "such as start-block-partial; without one every slug is listed", "SLUG", nargs="?"),
        JSON,
    ),
)
