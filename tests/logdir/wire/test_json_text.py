"""JSON as stock tools write it: numbers as Java shows them, control characters, and the same value read back."""

from __future__ import annotations

import json
import math
import random
import struct

import pytest

from logdir.wire.json_text import double, text

# As java.lang.Double.toString of JDK 19 and later shows them.
JAVA = {
    0.0: "0.0",
    1.0: "1.0",
    100.0: "100.0",
    1048576.0: "1048576.0",
    9999999.0: "9999999.0",
    1e7: "1.0E7",
    12345678.9: "1.23456789E7",
    0.001: "0.001",
    9.99e-4: "9.99E-4",
    1e22: "1.0E22",
    2e23: "2.0E23",
    -2.5: "-2.5",
    5e-324: "4.9E-324",
    2.2250738585072014e-308: "2.2250738585072014E-308",
    1.7976931348623157e308: "1.7976931348623157E308",
}


@pytest.mark.parametrize(("value", "shown"), JAVA.items(), ids=JAVA.values())
def test_a_number_looks_as_in_java(value: float, shown: str) -> None:
    assert double(value) == shown


def test_what_is_no_number_stands_in_quotes() -> None:
    assert text([math.nan, math.inf, -math.inf, -0.0]) == '["NaN","Infinity","-Infinity",-0.0]'


def test_every_number_is_read_back() -> None:
    rng = random.Random(20_261_121)
    for _ in range(20_000):
        (value,) = struct.unpack(">d", rng.randbytes(8))
        if math.isfinite(value):
            assert float(double(value)) == value


def test_control_characters_and_other_letters() -> None:
    assert text('\x00\x1b\n\t"\\/\x7f\u00e4\u2028') == '"\\u0000\\u001B\\n\\t\\"\\\\/\x7f\u00e4\u2028"'
    # A text that looks like an escape, or like a number, is none.
    assert text({"a\x1b": "\\u001b", "b": "1.5e7 NaN"}) == '{"a\\u001B":"\\\\u001b","b":"1.5e7 NaN"}'
    assert text({"x": [True, None, 3, 1.5, "é\x01"]}) == '{"x":[true,null,3,1.5,"é\\u0001"]}'


def test_values_are_read_back_as_they_were() -> None:
    rng = random.Random(7)
    letters = 'ab\\"\x00\x1f\x7f\x9bé\u2028\U0001f600/un0159.eE-'

    def value(depth: int) -> object:
        match rng.randrange(6 if depth else 4):
            case 0:
                return "".join(rng.choices(letters, k=rng.randrange(8)))
            case 1:
                return rng.randrange(-(1 << 63), 1 << 63)
            case 2:
                return rng.choice((True, False, None))
            case 3:
                return rng.uniform(-1, 1) * 10.0 ** rng.randrange(-20, 20)
            case 4:
                return [value(depth - 1) for _ in range(rng.randrange(4))]
            case _:
                return {f"{at}{rng.choice(letters)}": value(depth - 1) for at in range(rng.randrange(4))}

    for _ in range(3_000):
        one = value(3)
        written = text(one)
        assert json.loads(written) == one
        assert not set(written) & set(map(chr, range(32)))
