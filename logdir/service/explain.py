"""Look up the meaning of an error slug in the tables of ``docs/errors.md``.

Spec: design §6; docs/json.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from logdir.errors import ConfigError, Problem
from logdir.service.report.json_form import HIDDEN, KEY
from logdir.suggestion import did_you_mean

_SLUG = re.compile(r"`([a-z]+(?:-[a-z]+)*)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One slug of ``docs/errors.md``: what it means, and what to do."""

    slug: str
    section: str
    """The heading above its table."""
    means: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainResult:
    """The rows of ``docs/errors.md`` for the requested slug, or for every slug."""

    entries: tuple[Entry, ...] = field(metadata={KEY: "items"})
    following: str = field(metadata=HIDDEN)
    """Another slug to look up next; empty: suggest the whole list."""

    @property
    def paragraphs(self) -> Iterator[str]:
        """For people: of each row what it means and what to do, a paragraph each."""
        for entry in self.entries:
            yield f"{entry.slug} ({entry.section})"
            yield f"means: {entry.means}"
            if entry.fix:
                yield f"what to do: {entry.fix}"

    @property
    def listing(self) -> Iterator[str]:
        """For people: the slugs below the headings of their tables, a line each."""
        for section, rows in groupby(self.entries, key=lambda entry: entry.section):
            yield from (section, *(f"  {entry.slug}" for entry in rows))


def read_page(page: Path) -> tuple[Entry, ...]:
    """Read ``errors.md``, and return every row of its tables, in their order."""
    with page.open(encoding="utf-8") as file:
        return tuple(entries(file))


def explain(page: Path, slug: str | None) -> ExplainResult:
    """Return the rows of a slug. Reads the page.

    Args:
        page: The file ``errors.md``.
        slug: The slug; ``None``: every slug, in the order of the page.

    Raises:
        ConfigError: the page has no such slug.
    """
    known = read_page(page)
    slugs = list(dict.fromkeys(entry.slug for entry in known))
    if slug is None:
        return ExplainResult(entries=known, following=slugs[0])
    found = tuple(entry for entry in known if entry.slug == slug)
    if not found:
        fix = did_you_mean(slug, slugs) or "logdirctl explain lists every slug"
        raise ConfigError((Problem("config-error", "SLUG", "a slug of docs/errors.md", slug, fix),))
    return ExplainResult(entries=found, following=_other(found, slugs))


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
            yield Entry(slug=slug, section=section, means=cells[1], fix=cells[2])


def _other(found: Iterable[Entry], slugs: Iterable[str]) -> str:
    """Return another slug that the text of the rows mentions; an empty text if there is none."""
    known = set(slugs)
    for entry in found:
        for slug in _SLUG.findall(f"{entry.means} {entry.fix}"):
            if slug != entry.slug and slug in known:
                return str(slug)
    return ""
