"""Codes in the texts of an answer that are for people: slugs, and the values of every enum of the source.

A program takes them from keys of their own: the slug of a problem, the state of an item.

Not here: which answers are looked at (``ctl``, ``test_refusals``, ``tests.whole_refusal``).

Spec: docs/json.md, ``detail``; style §5.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from logdir.service.explain import read_page
from tests.house.source import PACKAGES

_TOP = Path(__file__).parents[2]
SLUGS = frozenset(entry.slug for entry in read_page(_TOP / "docs" / "errors.md"))
FREE_TEXT = frozenset(("detail", "expected", "fix", "found", "impact", "text", "warnings"))
"""Keys of answers whose texts are for people."""
WORDS = frozenset(("in-sync", "name-p", "nothing", "read-only"))
"""Values of enums that are words of any text: *in-sync replicas*, *a read-only disk*, and how a selector is written."""
LAYOUTS = frozenset(("topic-name", "topic-id", "mixed", "empty"))
"""Codes of a layout that go before a noun in any text: *the topic-id layout*, *topic-id directories*."""


def values_of_enums() -> set[str]:
    """Return the values of every enum of the source that are codes: small letters and hyphens."""
    sources = (path.read_text(encoding="utf-8") for top in PACKAGES for path in (_TOP / top).rglob("*.py"))
    return {value for source in sources for value in values_in(source)}


def values_in(source: str) -> set[str]:
    """Return the values of the enums of a module that are codes."""
    # By its lines: to parse all modules takes a second, for every run of tests that types a command.
    classes = re.findall(r"^class \w+\(\w*Enum\):\n((?: +.*\n|\n)+)", source, re.MULTILINE)
    return {value for text in classes for value in re.findall(r'^ {4}\w+ = "([a-z]+(?:-[a-z]+)*)"', text, re.MULTILINE)}


VALUES = values_of_enums() - WORDS
CODES = SLUGS | VALUES
_HYPHENATED = "|".join(sorted((code for code in CODES if "-" in code), key=len, reverse=True))
_CODE = re.compile(
    # Where it is typed: what it means is asked for by it, and a finding is confirmed by it.
    r"(?<!logdirctl explain )(?<!--even-if-found )(?<!--work-root )"
    # No part of a path, of an option, or of a longer name.
    rf"(?<![\w./-])(?:{_HYPHENATED})(?![\w/-]|\.\w)"
)
_SINGLE = "|".join(sorted({*LAYOUTS, *(code for code in VALUES if "-" not in code)}))
_VALUE = re.compile(
    # It is the text, or stands alone before a comma, or amid others of its kind.
    rf"(?:{_SINGLE})(?:(?:, | or | and )(?:{_SINGLE}))*(?:, plan .*)?"
    rf"|.*\b(?:kind|state) (?:{_SINGLE})\b.*"
)


def codes_in(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield what carries a code where an answer is for people: the key, and its text.

    A slug of one word, as ``purging``, is a word of any text: it counts where the text is or begins with it. So is a
    value of an enum, as ``applied``: it counts where the text is it, or several such, or says whose value it is.

    Args:
        value: The answer, or a part of it.
        key: Under which it stands.
    """
    match value:
        case dict():
            for name, below in value.items():
                yield from codes_in(below, name)
        case list():
            for below in value:
                yield from codes_in(below, key)  # As "warnings", a list of texts.
        case str() if key in FREE_TEXT and _has_code(value):
            yield key, value


def _has_code(text: str) -> bool:
    is_slug = re.split(r"[^a-z-]", text, maxsplit=1)[0] in SLUGS
    return is_slug or _CODE.search(text) is not None or _VALUE.fullmatch(text) is not None
