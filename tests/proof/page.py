"""The words of the proof: one line a claim on the terminal, and ``docs/proof.md``.

Spec: ``docs/architecture.md``, "Two tiers of proof".
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise

from tests import trees
from tests.kafka.fetch import RELEASES
from tests.proof.records import Tally


def seeds_text(seeds: Sequence[int]) -> str:
    """Return the seeds, rising, in few words: ``seed 7``, ``seeds 0 to 39, 41``."""
    starts = [at for at in range(len(seeds)) if at == 0 or seeds[at] != seeds[at - 1] + 1]
    runs = [(seeds[first], seeds[end - 1]) for first, end in pairwise([*starts, len(seeds)])]
    text = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in runs)
    return f"seed{'s' if len(seeds) > 1 else ''} {text}"


def counts_text(tally: Tally) -> str:
    """Return what was counted: of how many, where that is known, and the lowest values."""
    parts = []
    for label, ran in sorted(tally.counts.items(), key=lambda item: (item[0] not in tally.claim.sizes, item[0])):
        sizes = tally.claim.sizes.get(label)
        of = f" of {sizes.full:,}" if sizes and ran < sizes.full else ""
        parts.append(f"{ran:,}{of} {label}")
    parts += [f"lowest {label} {value:.2f}" for label, value in sorted(tally.least.items())]
    return ", ".join(parts)


def line(tally: Tally) -> str:
    """Return the claim's line for a terminal."""
    if tally.absent and not tally.was_seen:
        return f"proof: {tally.claim.text}: not run: {tally.absent}"
    parts = [counts_text(tally)] if tally.was_seen else []
    parts += [seeds_text(tally.seeds)] if tally.seeds else []
    parts += list(tally.problems)
    return f"proof: {tally.claim.text}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """When and on what the proof was run; nothing that names a machine."""

    date: str
    logdird: str
    python: str
    spark: str
    kafka: tuple[str, ...]
    """Releases whose running brokers we compare with."""
    trees: tuple[str, ...]
    """Releases and ways of running that wrote the trees kept as test data."""
    kernel: str
    machine: str


def circumstances(now: datetime) -> Circumstances:
    """Return those of this process.

    Args:
        now: With its zone.
    """
    # Beyond the numbers a kernel release may hold what its builder called it.
    kernel = re.match(r"\d+(\.\d+)*", platform.release())
    return Circumstances(
        date=now.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        logdird=version("logdird"),
        python=platform.python_version(),
        spark=_installed("pyspark"),
        kafka=RELEASES,
        trees=trees.NAMES,
        kernel=f"{platform.system()} {kernel[0] if kernel else 'of unknown release'}",
        machine=platform.machine(),
    )


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def render(tallies: Iterable[Tally], about: Circumstances, mended: Sequence[str] = ()) -> str:
    """Return ``docs/proof.md``.

    Args:
        tallies: One a claim.
        about: When and on what.
        mended: Tests that failed at first, and passed in a later run of the same proof.
    """
    tallies = list(tallies)
    rows = [
        f"| {one.claim.text} | {_cell(one)} | {_seeds(one)} | {'' if one.absent else f'{one.violations:,}'} |"
        for one in tallies
    ]
    absent = any(one.absent for one in tallies)
    releases = "none: not run" if any(one.absent and one.claim.key == "kafka-log-dirs" for one in tallies) else ""
    return "\n".join(
        [
            "# Proof",
            "",
            f"Written by `make proof` at the end of a run in which {_failures(mended)}.",
            "Never edit it by hand: run it again.",
            "",
            *(f"- failed, mended and run again: `{test}`" for test in mended),
            *([""] if mended else []),
            "| claim | counts | seed | violations |",
            "|---|---|---|---|",
            *rows,
            "",
            *(["What was not run is not shown by this page.", ""] if absent else []),
            "| | |",
            "|---|---|",
            f"| date | {about.date} |",
            f"| logdird | {about.logdird} |",
            f"| Python | {about.python} |",
            f"| Spark | {about.spark} |",
            f"| Kafka, running | {releases or ', '.join(about.kafka)} |",
            f"| Kafka, trees kept | {', '.join(about.trees)} |",
            f"| kernel | {about.kernel} |",
            f"| machine | {about.machine} |",
            "",
            "To reproduce: `make proof`. It needs what `make test` needs, Java and Maven for the stock brokers, and",
            "Chromium for the report. It is a long run. Seeds are fixed, so equal code draws equal cases.",
            "",
        ]
    )


def _failures(mended: Sequence[str]) -> str:
    return "no test failed but these" if mended else "no test failed"


def _cell(tally: Tally) -> str:
    return f"not run: {tally.absent}" if tally.absent else counts_text(tally)


def _seeds(tally: Tally) -> str:
    return seeds_text(tally.seeds).partition(" ")[2] if tally.seeds else ""
