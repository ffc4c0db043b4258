"""The text format of Prometheus (0.0.4): types and samples of what a daemon shows."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.promql.tokens import text_of
from tests.promql.values import NAME, Labels, PromqlError, labels_of

_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?")
_PAIR = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)')


class Exposition(NamedTuple):
    """What was shown."""

    types: dict[str, str]
    """The type of each family."""
    samples: dict[Labels, float]

    @property
    def names(self) -> set[str]:
        """The names of its series: those with a sample, and those that a family without one would have."""
        ends = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}
        declared = {name + end for name, kind in self.types.items() for end in ends.get(kind, ("",))}
        return declared | {dict(labels)[NAME] for labels in self.samples}


def read_exposition(text: str) -> Exposition:
    """Return what a text shows.

    Raises:
        PromqlError: it is not in that format, or has a series twice.
    """
    found = Exposition({}, {})
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("#"):
            words = line.split(None, 3)
            if words[1:2] == ["TYPE"]:
                found.types[words[2]] = words[3]
            continue
        sample = _SAMPLE.fullmatch(line)
        if sample is None:
            raise PromqlError(f"no sample: {line!r}")
        labels = labels_of(((NAME, sample[1]), *_pairs(sample[2] or "", line)))
        if labels in found.samples:
            raise PromqlError(f"a series twice: {line!r}")
        found.samples[labels] = float(sample[3])
    return found


def _pairs(text: str, line: str) -> list[tuple[str, str]]:
    pairs, at = [], 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            raise PromqlError(f"no labels: {line!r}")
        pairs.append((pair[1], text_of(f'"{pair[2]}"')))
        at = pair.end()
    return pairs
