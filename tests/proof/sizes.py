"""How large a run is: a taste in ``make test``, a seeded sample in CI, the whole in ``make proof``.

The one place that says so. Not here: what is counted and how much of it is the whole (``claims.py``).

Spec: ``docs/architecture.md``, "Two tiers of proof".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CI_PART: Final = 10
"""CI runs one in so many, or more."""


class Size(StrEnum):
    """The size of a run."""

    SAMPLE = "sample"
    CI = "ci"
    FULL = "full"


def size_of(environ: Mapping[str, str]) -> Size:
    """Return the size the environment asks for: ``LOGDIRD_PROOF=1`` wins over ``LOGDIRD_CI=1``."""
    if environ.get("LOGDIRD_PROOF") == "1":
        return Size.FULL
    return Size.CI if environ.get("LOGDIRD_CI") == "1" else Size.SAMPLE


SIZE: Final = size_of(os.environ)
"""The size of this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many of something each size of run takes; without ``ci`` a tenth, without ``sample`` what CI takes."""

    full: int
    ci: int | None = None
    sample: int | None = None
    ci_part: int = CI_PART
    """CI runs one in so many, or more: a tenth, unless a claim of hours says less."""

    def __post_init__(self) -> None:
        if not 0 < self.at(Size.SAMPLE) <= self.at(Size.CI) <= self.full <= self.at(Size.CI) * self.ci_part:
            raise ValueError(f"expected 1 <= sample <= ci <= full <= {self.ci_part} * ci; found {self}")

    def at(self, size: Size) -> int:
        """Return the number a run of this size takes."""
        ci = -(-self.full // self.ci_part) if self.ci is None else self.ci
        return {Size.FULL: self.full, Size.CI: ci, Size.SAMPLE: ci if self.sample is None else self.sample}[size]


def count(*, full: int, ci: int | None = None, sample: int | None = None) -> int:
    """Return how many this run takes.

    Args:
        full: In ``make proof``.
        ci: In CI; a tenth of ``full`` or more, and a tenth (rounded up) if left out.
        sample: In ``make test``; as ``ci`` if left out.

    Raises:
        ValueError: A size is out of order, or CI takes less than a tenth.
    """
    return Sizes(full=full, ci=ci, sample=sample).at(SIZE)
