"""``logdirctl explain``: what ``docs/errors.md`` says of a slug, read from the installed package.

The file beside this one is a link to ``docs/errors.md``; a wheel holds its content.

Spec: design §6; docs/json.md.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from logdir.errors import ConfigError, Problem
from logdir.suggestion import did_you_mean
from tools import render
from tools.cli import Exit, Streams, envelope

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "errors.md")
_SLUG = re.compile(r"`([a-z]+(?:-[a-z]+)*)`")


class Entry(NamedTuple):
    """One row of the page, for one slug."""

    slug: str
    section: str
    means: str
    fix: str


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "explain",
        help="say what a slug of an error or a finding means, and what to do",
        description="Say what the first word of an error or a finding means, and what to do about it.",
        epilog="exit status: 0 done, 2 no such slug",
    )
    parser.add_argument("slug", metavar="SLUG", nargs="?", help="as half-barred; every slug there is if there is none")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.set_defaults(run=act, title="explain")


def read_page() -> tuple[Entry, ...]:
    """Return every slug of the page, in its order. Reads the installed file."""
    with open(PAGE, encoding="utf-8") as file:
        return tuple(entries(file))


def entries(lines: Iterable[str]) -> Iterator[Entry]:
    r"""Yield the rows of the page's tables, one for each slug of their first column.

    >>> list(entries(["## Disks", "| `a`, `b-c` | means | do \\| mend |", "text of `d`"]))[1]
    Entry(slug='b-c', section='Disks', means='means', fix='do | mend')
    """
    section = ""
    for line in lines:
        if line.startswith("#"):
            section = line.lstrip("#").strip()
        if not line.startswith("| `"):
            continue
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        for slug in _SLUG.findall(cells[0]):
            yield Entry(slug, section, cells[1], cells[2])


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status.

    Raises:
        ConfigError: no such slug.
    """
    page = read_page()
    slugs = list(dict.fromkeys(entry.slug for entry in page))
    if arguments.slug is None:
        found: tuple[Entry, ...] = page
        following = slugs[0]
    else:
        found = tuple(entry for entry in page if entry.slug == arguments.slug)
        if not found:
            fix = did_you_mean(arguments.slug, slugs) or "logdirctl explain lists every slug"
            raise ConfigError((Problem("config-error", "SLUG", "a slug of docs/errors.md", arguments.slug, fix),))
        following = _other(found, slugs)
    if arguments.json:
        result = {"entries": [entry._asdict() for entry in found]}
        streams.out.write(envelope("explain", Exit.DONE, (), result))
        return Exit.DONE
    if arguments.slug is None:
        section = ""
        for entry in found:
            if entry.section != section:
                section = entry.section
                streams.out.write(f"{section}\n")
            streams.out.write(f"  {entry.slug}\n")
    else:
        for entry in found:
            fix = f"what to do: {entry.fix}\n" if entry.fix else ""
            for line in (f"{entry.slug} ({entry.section})\n", f"means: {entry.means}\n", fix):
                render.wrapped(streams.out, line)
    streams.out.write(f"next: logdirctl explain {following}".rstrip() + "\n")
    return Exit.DONE


def _other(found: Iterable[Entry], slugs: Iterable[str]) -> str:
    """Return another slug that the rows name, else nothing: the whole list."""
    known = set(slugs)
    for entry in found:
        for slug in _SLUG.findall(f"{entry.means} {entry.fix}"):
            if slug != entry.slug and slug in known:
                return str(slug)
    return ""
