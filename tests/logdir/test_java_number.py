"""Whole numbers as Java reads them."""

from __future__ import annotations

import pytest

from logdir.java_number import parse_java_int
from tests.logdir.formats.contract import java_answers


@pytest.mark.parametrize(("kind", "bits"), [("int", 32), ("long", 64)])
def test_answers_as_java(kind: str, bits: int) -> None:
    answers = set()
    for data, answer in java_answers(kind):
        number = parse_java_int(data.decode(), bits)
        assert ("error" if number is None else f"ok {number}") == answer, data
        answers.add(answer == "error")
    assert answers == {True, False}


EDGES: dict[str, int | None] = {
    "2147483647": 2147483647,
    "2147483648": None,
    "-2147483648": -2147483648,
    "-2147483649": None,
    "-0": 0,
    "": None,
    "+": None,
    "-": None,
    "--1": None,
    "1 ": None,
    "1_0": None,
    "²": None,
    "１٢3": 123,
    "\U0001d7ce": None,
    "0" * 5000 + "7": 7,
    "٠" * 5000 + "٧": 7,
    "9" * 5000: None,
}


@pytest.mark.parametrize("text", EDGES, ids=lambda text: ascii(text[:12]))
def test_edges(text: str) -> None:
    assert parse_java_int(text) == EDGES[text]
