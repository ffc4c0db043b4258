"""The side of pytest: the recorder a test is given, and the controller that gathers what all workers' tests said.

Records travel in the reports of tests, which pytest-xdist carries to its controller anyhow: nothing is shared
between workers. A run leaves one file in ``LOGDIRD_PROOF_OUT``, if that is set.

Spec: ``docs/architecture.md``, "Two tiers of proof".
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.proof.claim import Claim
from tests.proof.claims import CLAIMS
from tests.proof.page import line
from tests.proof.records import FAILED, PASSED, SKIPPED, Outcome, Record, Run, merge, tally, write_run
from tests.proof.sizes import SIZE

PROPERTY: Final = "proof"
OUT: Final = "LOGDIRD_PROOF_OUT"
"""Names the folder the run is written into; it must exist."""


class Recorder:
    """What the fixture ``record_proof`` is: call it at the end, when everything was asserted."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def __call__(
        self,
        claim: Claim,
        counts: Mapping[str, int],
        *,
        seeds: int | Sequence[int] = (),
        violations: int = 0,
        least: Mapping[str, float] | None = None,
    ) -> None:
        """Record what this test showed of a claim.

        Args:
            claim: One that names this test.
            counts: Label to how many.
            seeds: What the cases were drawn with.
            violations: How many cases broke the claim; any makes the proof fail.
            least: Label to the lowest value seen.

        Raises:
            ValueError: The claim does not name this test.
        """
        if not claim.is_shown_by(self._item.nodeid):
            raise ValueError(f"expected a test of the claim {claim.key}; found {self._item.nodeid}")
        record = Record(
            claim=claim.key,
            counts=dict(counts),
            seeds=(seeds,) if isinstance(seeds, int) else tuple(seeds),
            violations=violations,
            least=dict(least or {}),
        )
        self._item.user_properties.append((PROPERTY, record.to_json()))


class Gatherer:
    """Hears every report of a run, prints a line a claim, and writes the run down."""

    def __init__(self, out: Path | None) -> None:
        self._out = out
        self._began_ns = time.time_ns()
        self._failed: dict[str, None] = {}
        self._passed: dict[str, None] = {}
        self._outcomes: dict[str, Outcome] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the end and the records of a test of a claim, and every failure."""
        test = report.nodeid
        if report.failed:
            self._failed[test] = None
        elif report.passed and report.when == "call":
            self._passed[test] = None
        if not any(claim.is_shown_by(test) for claim in CLAIMS):
            return
        if report.failed:
            self._outcomes[test] = Outcome(test=test, end=FAILED)
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._outcomes[test] = Outcome(test=test, end=SKIPPED, reason=reason)
        elif report.when == "call":
            said = [value for name, value in report.user_properties if name == PROPERTY and isinstance(value, str)]
            self._outcomes[test] = Outcome(test=test, end=PASSED, records=tuple(map(Record.from_json, said)))

    def run(self, exit_status: int) -> Run:
        """Return the run as it stands."""
        return Run(
            size=SIZE,
            exit_status=exit_status,
            failed=tuple(self._failed),
            outcomes=tuple(self._outcomes.values()),
            passed=tuple(test for test in self._passed if test not in self._failed),
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Print which part of the proof ran."""
        outcomes = merge([self.run(exitstatus)])
        # Of the claims this run was not about there is nothing to say.
        seen = [one for one in CLAIMS if any(map(one.is_shown_by, outcomes))]
        if seen:
            terminalreporter.section(f"proof, size {SIZE}")
            for claim in seen:
                terminalreporter.write_line(line(tally(claim, outcomes)))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the run down."""
        if self._out is not None:
            # Named by when it began: of two runs at two sizes the last one counts, and what is run again once it has
            # failed comes after the run in which it did, though that one may go on for long.
            write_run(self.run(int(exitstatus)), self._out / f"{self._began_ns}.json")


def configure(config: pytest.Config) -> None:
    """Register a gatherer, unless this is a worker: its controller gathers."""
    if not hasattr(config, "workerinput"):
        out = os.environ.get(OUT)
        config.pluginmanager.register(Gatherer(Path(out).absolute() if out else None), "logdird-proof")
