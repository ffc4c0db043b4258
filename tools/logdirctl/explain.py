"""``logdirctl explain``: the entry of a slug in ``docs/errors.md``, read from the installed package.

The file beside this one is a link to ``docs/errors.md``; a wheel holds its content.

Spec: design §6; docs/json.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from logdir.service.explain import explain
from logdir.service.report.json_text import envelope
from tools.cli import render
from tools.cli.arguments import Exit, Streams

PAGE = Path(__file__).with_name("errors.md")


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "explain",
        description="Say what the first word of an error or a finding means, and what to do about it.",
        epilog="exit status: 0 done, 2 no such slug",
    )
    parser.add_argument(
        "slug", metavar="SLUG", nargs="?", help="such as start-block-partial; without one every slug is listed"
    )
    parser.add_flag("--json", "one JSON object on standard output")
    parser.set_defaults(run=act, title="explain")


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status.

    Raises:
        ConfigError: the slug is not in ``docs/errors.md``.
    """
    found = explain(PAGE, arguments.slug)
    if arguments.json:
        streams.out.write(envelope("explain", Exit.DONE, (), found))
        return Exit.DONE
    section = ""
    for entry in found.entries:
        if arguments.slug is not None:
            fix = f"what to do: {entry.fix}\n" if entry.fix else ""
            for line in (f"{entry.slug} ({entry.section})\n", f"means: {entry.means}\n", fix):
                render.wrapped(streams.out, line)
            continue
        if entry.section != section:
            section = entry.section
            streams.out.write(f"{section}\n")
        streams.out.write(f"  {entry.slug}\n")
    streams.out.write(f"next: logdirctl explain {found.following}".rstrip() + "\n")
    return Exit.DONE
