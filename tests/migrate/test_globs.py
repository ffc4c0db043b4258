"""Topic globs in the JVM's spelling match what ``fnmatchcase`` matches."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest

from migrate.source.globs import java_pattern

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GLOBS = (
    "*", "**", "?", "", "a", "A", "a*", "*a", "a*b*c", "a?c", "a.c", "a\\*", "a\\Eb*", "\\Qa\\E", "[abc]", "[!abc]",
    "[a-c]*", "[c-a]", "[!c-a]", "[]a]", "[!]a]*", "[a", "[", "[]", "[!]", "[^a]", "[a-]", "[-a]", "[a&&b]", "[a||b]",
    "[[a]b]", "[a-c-e]", "[\\a]", "{a,b}", "a|b", "(a)", "a$", "^a", "a+", "ü*", "[à-ü]?", "[!à]", "𝄞", "[𝄞]?", "[!𝄞]",
    "a\nb", "?\n*", "_*.v[0-9]", "__*", "é", "e\u0301",
)  # fmt: skip
TEXTS = (
    "", "a", "A", "b", "c", "d", "e", "ab", "abc", "aXbYc", "a.c", "axc", "a\\", "a\\*", "a\\Eb", "a\\Ebx", "\\Qa\\E",
    "]", "]x", "[", "[a", "[]", "[!]", "^", "-", "&", "|", "[b]", "ab]", "{a,b}", "a|b", "(a)", "a$", "^a", "a+", "aa",
    "ü", "üx", "àx", "à", "𝄞", "𝄞a", "a\n", "\n", "a\nb", "\r", "\u2028", "_x.v1", "__consumer_offsets", "é", "e\u0301",
    "\\", "\\a", "a\r\n",
)  # fmt: skip


@pytest.mark.spark
def test_every_glob_matches_what_python_matches(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    frame = spark.createDataFrame([(text,) for text in TEXTS], "text string")
    columns = [F.col("text").rlike(java_pattern(glob)).alias(f"g{number}") for number, glob in enumerate(GLOBS)]
    rows = frame.select("text", *columns).collect()
    wrong = [
        (glob, row["text"])
        for row in rows
        for number, glob in enumerate(GLOBS)
        if row[f"g{number}"] != fnmatchcase(row["text"], glob)
    ]
    assert len(rows) == len(TEXTS)
    assert wrong == []
