"""*Did you mean* suggestions: the existing name that is nearest to a misspelled one.

>>> did_you_mean("stagd", ["stage", "strays", "fleet"])
'did you mean stage?'
>>> did_you_mean("nonsense", ["stage", "strays", "fleet"])
''
"""

from __future__ import annotations

from collections.abc import Iterable

_ALIKE, _ALIKE_IF_SHORT = 0.6, 0.5
_MOST = 20_000
"""Limit of compared names; comparing so many takes some tenths of a second."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the name most like a word, ``None`` if no name is like it."""
    from difflib import get_close_matches

    names = dict.fromkeys(name for name in known if abs(len(name) - len(word)) <= max(3, len(word) // 2))
    found = get_close_matches(word, list(names)[:_MOST], 1, _ALIKE if len(word) > 3 else _ALIKE_IF_SHORT)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean NAME?`` for a misspelled word; empty if no known name is like it."""
    found = nearest(word, known)
    return "" if found is None else f"did you mean {found}?"
