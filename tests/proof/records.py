"""What tests said and how they ended, one run a file; several runs put together and judged claim by claim.

Not here: pytest (``plugin.py``) and words (``page.py``).

Spec: ``docs/architecture.md``, "Two tiers of proof".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.proof.claim import Claim
from tests.proof.sizes import Size

PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one test showed of one claim."""

    claim: str
    """The claim's key."""
    counts: Mapping[str, int]
    """Label to how many; records of a claim are summed label by label."""
    seeds: tuple[int, ...] = ()
    violations: int = 0
    least: Mapping[str, float] = field(default_factory=dict)
    """Label to a lowest value; of the records of a claim the lowest counts."""

    def to_json(self) -> str:
        """Return one line that :meth:`from_json` takes."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Return the record ``to_json`` wrote."""
        value = json.loads(text)
        return cls(**{**value, "seeds": tuple(value["seeds"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a test of a claim ended, and what it recorded."""

    test: str
    """Its node id, parameters included."""
    end: str
    reason: str = ""
    """Why it was skipped."""
    records: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of pytest."""

    size: Size
    exit_status: int
    failed: tuple[str, ...]
    """Every test that failed, those of no claim included."""
    outcomes: tuple[Outcome, ...]
    """Of the tests that belong to a claim."""
    passed: tuple[str, ...] = ()
    """Every test that passed, those of no claim included."""


def write_run(run: Run, path: Path) -> None:
    """Write a run as one JSON document."""
    value = asdict(run)
    for outcome, made in zip(value["outcomes"], run.outcomes, strict=True):
        outcome["records"] = [record.to_json() for record in made.records]
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_runs(folder: Path) -> list[Run]:
    """Return the runs written into a folder and its parts, by file name."""
    paths = sorted(folder.rglob("*.json"), key=lambda path: path.name)
    return [_run(json.loads(path.read_text(encoding="utf-8"))) for path in paths]


def _run(value: Mapping[str, Any]) -> Run:
    outcomes = tuple(
        Outcome(**{**outcome, "records": tuple(map(Record.from_json, outcome["records"]))})
        for outcome in value["outcomes"]
    )
    return Run(
        size=Size(value["size"]),
        exit_status=value["exit_status"],
        failed=tuple(value["failed"]),
        outcomes=outcomes,
        passed=tuple(value.get("passed", ())),
    )


def merge(runs: Iterable[Run]) -> dict[str, Outcome]:
    """Return one outcome a test: failed in any run is failed; else the last run that passed it counts.

    CI runs some tests twice, at two sizes: nothing may be counted twice.
    """
    rank = {SKIPPED: 0, PASSED: 1, FAILED: 2}
    merged: dict[str, Outcome] = {}
    for run in runs:
        for outcome in run.outcomes:
            known = merged.get(outcome.test)
            if known is None or rank[outcome.end] >= rank[known.end]:
                merged[outcome.test] = outcome
    return merged


def forgive(runs: Sequence[Run], tests: Iterable[str]) -> list[Run]:
    """Return the runs without the failures of tests that passed in a later one, when what failed had been mended.

    A long proof need not begin anew over a rig that misjudged; which tests these were is for the page to say.

    Args:
        runs: In their order.
        tests: Node ids.

    Raises:
        ValueError: one did not fail, or did not pass afterwards.
    """
    left = list(runs)
    for test in tests:
        failed = [number for number, run in enumerate(left) if test in run.failed]
        passed = [
            number
            for number, run in enumerate(left)
            if test in run.passed or any(outcome.test == test and outcome.end == PASSED for outcome in run.outcomes)
        ]
        if not failed or not passed or passed[-1] < failed[-1]:
            raise ValueError(f"{test} did not fail and then pass")
        for number in failed:
            run = left[number]
            others = tuple(one for one in run.failed if one != test)
            left[number] = replace(
                run,
                # Only pytest's 1 says that tests failed and nothing else was wrong.
                exit_status=0 if run.exit_status == 1 and not others else run.exit_status,
                failed=others,
                outcomes=tuple(outcome for outcome in run.outcomes if outcome.test != test),
            )
    return left


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What all runs together show of a claim."""

    claim: Claim
    counts: Mapping[str, int] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    violations: int = 0
    least: Mapping[str, float] = field(default_factory=dict)
    absent: str = ""
    """Why the claim was not run, where its machine lacks what it needs; else empty."""
    problems: tuple[str, ...] = ()
    """Why the claim is not shown."""

    @property
    def was_seen(self) -> bool:
        """Tell whether anything was counted."""
        return bool(self.counts)


def tally(claim: Claim, outcomes: Mapping[str, Outcome]) -> Tally:
    """Put together what the tests of a claim recorded.

    Args:
        claim: The claim.
        outcomes: By test, as :func:`merge` returns them.
    """
    mine = [outcome for test, outcome in sorted(outcomes.items()) if claim.is_shown_by(test)]
    skipped = [outcome for outcome in mine if outcome.end == SKIPPED]
    if mine and claim.needs and len(skipped) == len(mine):
        return Tally(claim=claim, absent=f"needs {claim.needs}")
    problems = [f"{outcome.test} {outcome.end}" for outcome in mine if outcome.end != PASSED]
    ran = {outcome.test.partition("[")[0] for outcome in mine}
    problems += [f"{test} did not run" for test in claim.where if test not in ran]
    counts: Counter[str] = Counter()
    seeds: set[int] = set()
    least: dict[str, float] = {}
    violations = 0
    for outcome in mine:
        if outcome.end != PASSED:
            continue
        records = [record for record in outcome.records if record.claim == claim.key]
        if not records and claim.counted:
            records = [Record(claim=claim.key, counts={claim.counted: 1})]
        if not records:
            problems.append(f"{outcome.test} recorded nothing")
        for record in records:
            counts.update(record.counts)
            seeds.update(record.seeds)
            violations += record.violations
            for label, value in record.least.items():
                least[label] = min(value, least.get(label, value))
    if violations:
        problems.append(f"{violations} violations")
    return Tally(
        claim=claim,
        counts=dict(counts),
        seeds=tuple(sorted(seeds)),
        violations=violations,
        least=least,
        problems=tuple(problems),
    )


def refusals(tallies: Sequence[Tally], runs: Sequence[Run], *, full: bool) -> list[str]:
    """Return why these runs are no proof, a line each; nothing if they are.

    Args:
        tallies: One a claim.
        runs: The runs they came from.
        full: Whether all of everything is asked for, as the page says; else CI's part, on a machine that lacks nothing.
    """
    found = [] if runs else ["no run was recorded"]
    for run in runs:
        found += [f"{test} failed" for test in run.failed]
        if run.exit_status and not run.failed:
            found.append(f"a run ended with exit status {run.exit_status}")
        if full and run.size is not Size.FULL:
            found.append(f"a run was of size {run.size}, not {Size.FULL}")
    for one in tallies:
        found += [f"{one.claim.key}: {problem}" for problem in one.problems]
        if one.absent:
            found += [] if full else [f"{one.claim.key}: not run: {one.absent}"]
            continue
        for label, sizes in one.claim.sizes.items():
            ran = one.counts.get(label, 0)
            # Some sizes are the least that is asked for: how many states an operation has is not up to us.
            if ran * (1 if full else sizes.ci_part) < sizes.full:
                found.append(f"{one.claim.key}: {ran:,} of {sizes.full:,} {label}")
    return list(dict.fromkeys(found))
