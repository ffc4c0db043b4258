r"""Topic globs as Java regular expressions: ``rlike`` matches exactly what ``fnmatch.fnmatchcase`` matches.

Python's own translation cannot be used: ``\Z`` and character sets have another meaning in Java. So ``*`` and ``?`` are
translated here, and the members of a set are found by calling ``fnmatchcase`` at each character where membership can
change.

Not here: which ``min.insync.replicas`` a topic gets from the globs (``waves.groups``).

Spec: design §7.2 (``topics``: fnmatch, case-sensitive, first match wins).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase


def java_pattern(glob: str) -> str:
    r"""Return a pattern for ``rlike`` that matches exactly the texts that ``fnmatchcase`` matches with ``glob``.

    >>> java_pattern("a*")
    '(?s)\\A\\x{61}.*\\z'
    >>> java_pattern("[!0-9]?")
    '(?s)\\A[\\x{0}-\\x{2f}\\x{3a}-\\x{10ffff}].\\z'
    """
    parts: list[str] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        end = _set_end(glob, at) if char == "[" else None
        if char == "*":
            if parts[-1:] != [".*"]:
                parts.append(".*")
        elif char == "?":
            parts.append(".")
        elif end is not None:
            parts.append(_java_set(glob[at:end]))
            at = end - 1
        else:
            parts.append(f"\\x{{{ord(char):x}}}")
        at += 1
    return rf"(?s)\A{''.join(parts)}\z"


def _set_end(glob: str, start: int) -> int | None:
    """Return the end of the set that starts at ``start``; ``None`` if the bracket is a literal character."""
    at = start + 1
    if glob[at : at + 1] == "!":
        at += 1
    if glob[at : at + 1] == "]":  # As the first character it is a member.
        at += 1
    end = glob.find("]", at)
    return None if end < 0 else end + 1


def _java_set(text: str) -> str:
    ranges = [f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in _ranges(text)]
    return f"[{''.join(ranges)}]" if ranges else "(?!)"


def _ranges(text: str) -> Iterator[tuple[int, int]]:
    # A set is a union of ranges between characters it names: membership changes at one of those, or just after it.
    points = sorted({0} | {ord(c) for c in text} | {min(ord(c) + 1, sys.maxunicode) for c in text})
    start: int | None = None
    for point in points:
        if fnmatchcase(chr(point), text):
            start = point if start is None else start
        elif start is not None:
            yield start, point - 1
            start = None
    if start is not None:
        yield start, sys.maxunicode
