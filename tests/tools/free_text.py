"""Slugs in the texts of an answer that are for people: a program takes the slug of a problem instead.

Not here: which answers are looked at (``ctl``, ``test_refusals``, ``tests.whole_refusal``).

Spec: docs/json.md, ``detail``; style §5.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from logdir.service.explain import read_page

SLUGS = frozenset(entry.slug for entry in read_page(Path(__file__).parents[2] / "docs" / "errors.md"))
FREE_TEXT = frozenset(("detail", "expected", "fix", "found", "impact", "text", "warnings"))
"""Keys of answers whose texts are for people."""
_HYPHENATED = "|".join(sorted((slug for slug in SLUGS if "-" in slug), key=len, reverse=True))
_CODE = re.compile(
    # Where it is typed: what it means is asked for by it, and a finding is confirmed by it.
    r"(?<!logdirctl explain )(?<!--even-if-found )"
    # No part of a path, of an option, or of a longer name.
    rf"(?<![\w./-])(?:{_HYPHENATED})(?![\w/-]|\.\w)"
)


def codes_in(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield what carries a slug where an answer is for people: the key, and its text.

    A slug of one word, as ``purging``, is a word of any text: it counts where the text is or begins with it.

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
        case str() if key in FREE_TEXT and (_CODE.search(value) or re.split(r"[^a-z-]", value, maxsplit=1)[0] in SLUGS):
            yield key, value
