"""Whole numbers as Java reads them from text (``Integer.parseInt``, ``Long.parseLong``).

Not Python's ``int()``: that also takes blanks, underscores and digits beyond the basic plane, and gives up on
very long runs of zeros. What Java refuses and we accept would be a file we call good and a broker dies on.

Spec: kafka-formats §2 (version ``+0``, ``00``), §4.3, §6.2 step 3; java.lang.Character.digit.
"""

from __future__ import annotations

_LONGEST = 19  # digits of 2**63 - 1
_BASIC_PLANE = "\uffff"


def parse_java_int(text: str, bits: int = 32) -> int | None:
    """Return the number Java reads from ``text``, or ``None`` where it throws NumberFormatException.

    Args:
        text: Not trimmed; an optional ``+`` or ``-``, then decimal digits of any script of the basic plane.
        bits: 32 for ``int``, 64 for ``long``; what does not fit is refused.

    >>> parse_java_int("+007"), parse_java_int("٣"), parse_java_int(" 1"), parse_java_int("2147483648")
    (7, 3, None, None)
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    # Java looks at UTF-16 units, so digits beyond the basic plane are halves of a surrogate pair to it: no
    # digits.
    if not digits.isdecimal() or (not digits.isascii() and max(digits) > _BASIC_PLANE):
        return None
    if len(digits) > _LONGEST:
        first = next((i for i, digit in enumerate(digits) if int(digit)), len(digits) - 1)
        digits = digits[first:]
        if len(digits) > _LONGEST:
            return None
    value = -int(digits) if text[0] == "-" else int(digits)
    limit = 1 << (bits - 1)
    return value if -limit <= value < limit else None
