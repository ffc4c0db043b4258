"""Which tests reach which lines, and how long each takes: ``python -m tests.mutants.survey OUT FILE...`` in a copy.

A change is tried on the tests that reach its line, and on no others. With coverage.py, a context a test.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import coverage
import pytest

from tests.mutants.worker import arguments


class _Contexts:
    def __init__(self, measured: coverage.Coverage) -> None:
        self._measured = measured
        self.seconds: dict[str, float] = {}
        self.bad: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Begin a context."""
        self._measured.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how long it took, and whether it fails as it is."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.outcome != "passed":
            self.bad.add(report.nodeid)


def main(argv: Sequence[str]) -> int:
    """Run the tests of some files; write what they reach."""
    out, files = Path(argv[0]), list(argv[1:])
    measured = coverage.Coverage(
        data_file=None,
        include=["logdir/decide/*", "logdir/disk/*", "logdir/service/*", "tools/logdirctl/*"],
        config_file=False,
    )
    contexts = _Contexts(measured)
    with tempfile.TemporaryDirectory() as base:
        measured.start()
        command = [one for one in arguments(files, Path(base) / "t") if one != "-x"]
        pytest.main(command, plugins=[contexts])
        measured.stop()
    data = measured.get_data()
    here = Path.cwd()
    tests = sorted(test for test in contexts.seconds if test not in contexts.bad)
    number = {test: index for index, test in enumerate(tests)}
    lines: dict[str, dict[str, list[int]]] = {}
    for file in data.measured_files():
        name = str(Path(file).relative_to(here))
        lines[name] = {
            str(line): sorted(number[test] for test in found if test in number)
            for line, found in data.contexts_by_lineno(file).items()
        }
    seconds = [round(contexts.seconds[test], 3) for test in tests]
    out.write_text(json.dumps({"tests": tests, "seconds": seconds, "lines": lines}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
