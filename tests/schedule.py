"""Which worker of pytest-xdist runs what, file by file: all files that need Spark go to one worker, first.

A JVM that has planned one fleet plans the next in a fifth of the time, so two workers must not each warm one up. What
takes longest follows, then the other files, those with the fewest tests first: a long one that begins last leaves the
other worker idle.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

ROOT: Final = Path(__file__).parent.parent
SPARK: Final = "what needs Spark"
LONG: Final = (
    SPARK,
    "tests/crash/families/test_cases.py",
    "tests/soak/test_soak.py",
    "tests/logdir/disk/test_rescue_crash.py",
    "tests/test_readme.py",
    "tests/logdir/disk/test_layout_crash.py",
    "tests/crash/seeded/test_families.py",
    "tests/migrate/test_waves.py",
    "tests/tools/test_terminal.py",
    "tests/crash/test_operations.py",
)
"""What takes longest, in the order in which it is begun."""
_ASKS_FOR_SPARK: Final = re.compile(r"\bspark: SparkSession\b")


@cache
def scope_of(file: str) -> str:
    """Return what a test file is run together with: itself, or everything that shares a Spark session.

    >>> scope_of("tests/migrate/test_plan.py"), scope_of("tests/logdir/test_names.py")
    ('what needs Spark', 'tests/logdir/test_names.py')
    """
    path = ROOT / file
    asks = path.suffix == ".py" and _ASKS_FOR_SPARK.search(path.read_text(encoding="utf-8")) is not None
    return SPARK if asks else file


def place_of(scope: str) -> int:
    """Return the place of a scope among the long ones; of the others that behind the last.

    >>> place_of(SPARK), place_of("tests/logdir/test_names.py") == len(LONG)
    (0, True)
    """
    return LONG.index(scope) if scope in LONG else len(LONG)


class LongFirst(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    """``--dist loadfile``, with one scope for all that needs Spark, and the long ones first."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid.split("::", 1)[0])

    def _assign_work_unit(self, node: WorkerController) -> None:
        following = min(self.workqueue, key=lambda scope: (place_of(scope), len(self.workqueue[scope])))
        self.workqueue.move_to_end(following, last=False)
        super()._assign_work_unit(node)
