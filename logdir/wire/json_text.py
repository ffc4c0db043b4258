r"""JSON text as stock Kafka's tools print it: one line, no blanks, non-ASCII letters unescaped.

It differs from Python's JSON in floating-point numbers and control characters.

Not here: the JSON form of records (``json_form``, ``metadata_records``).

Spec: kafka-formats §9 (what ``kafka-dump-log`` prints); java.lang.Double.toString as of JDK 19 (those before write a
few numbers with more digits than needed).

>>> text({"value": 1e7, "name": "a\x1b\u00e4"})
'{"value":1.0E7,"name":"a\\u001Bä"}'
"""

from __future__ import annotations

import json
import math
import re
from typing import Final

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_MAYBE_FLOAT: Final = re.compile(r"\d\.\d|\de[-+]?\d|NaN|Infinity")
"""Matches text that may contain a floating-point number; false matches only cost time."""
_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-f]{4}|.)")
_PLAIN_FROM, _PLAIN_TO = -3, 7
"""Powers of ten between which a number is written without an exponent."""


def text(value: object) -> str:
    """Return a value as one line of JSON, byte for byte as Kafka's own tools print it: no blanks, Java's numbers.

    Args:
        value: Dictionaries with text keys, lists, texts, numbers, booleans and ``None``.
    """
    written = _encode(value)
    return _written(value) if _MAYBE_FLOAT.search(written) else _upper(written)


def _upper(written: str) -> str:
    if "\\u" not in written:
        return written
    return _ESCAPE.sub(lambda found: f"\\u{found[0][2:].upper()}" if found[0][1] == "u" else found[0], written)


def _written(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_upper(_encode(key))}:{_written(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, float):
        # NaN and infinities are quoted.
        return double(value) if math.isfinite(value) else f'"{double(value)}"'
    return _upper(_encode(value))


def double(value: float) -> str:
    """Return a floating-point number as Java prints it.

    >>> double(1048576.0), double(1.0E7), double(0.001), double(0.00012), double(-0.0)
    ('1048576.0', '1.0E7', '0.001', '1.2E-4', '-0.0')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign = "-" if value < 0 else ""
    digits, power = _decimal(repr(abs(value)))
    if len(digits) == 1:
        digits, power = _decimal(f"{abs(value):.1e}")  # of two digits the nearest: the smallest numbers differ in it
    first = power - 1
    if _PLAIN_FROM <= first < _PLAIN_TO:
        if power <= 0:
            return f"{sign}0.{'0' * -power}{digits}"
        padded = digits.ljust(power, "0")
        return f"{sign}{padded[:power]}.{padded[power:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{first}"


def _decimal(shown: str) -> tuple[str, int]:
    """Return digits and exponent: the number is 0.DIGITS times ten to that power."""
    mantissa, exponent = f"{shown}e0".split("e")[:2]
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent) + len(whole) - (len(whole + fraction) - len(digits))
    return digits.rstrip("0"), power
