"""The moves of a layout change go on side by side on all log dirs, under one hold of the locks."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from logdir.decide.layout import transitions
from logdir.disk.batch_loop import Held
from logdir.disk.kernel.host import HostDisk
from logdir.disk.replica.relayout import to_ids
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, LogDirReplacedError, ReadOnlyDiskError
from logdir.service.batch.layout_phases import LayoutReport, carry_out, look_all
from logdir.service.report.reporter import SILENT, Reporter, Silent
from logdir.worker.port import Pending, begin_here
from tests.builders import log_dir, partition
from tests.logdir.disk import layout_rig

EACH = 5
"""Replicas of each log dir."""


class Workers:
    """Starts calls as workers do, and tells which were started and which have ended; some fail."""

    def __init__(self, failing: dict[str, Exception] | None = None) -> None:
        self.told: list[tuple[str, str]] = []
        self.failing = failing or {}

    def begin_at(self, call: Callable[..., Any], open_dir: OpenLogDir, /, *args: Any, **kwargs: Any) -> Pending[Any]:
        name = Path(open_dir.log_dir).name
        if call is not to_ids:
            return begin_here(call, open_dir, *args, **kwargs)
        self.told.append(("begun", name))

        def ended(opened: OpenLogDir) -> object:
            self.told.append(("ended", name))
            if name in self.failing:
                raise self.failing[name]
            return call(opened, *args, **kwargs)

        return begin_here(ended, open_dir)


class Counting(Silent):
    """Counts the replicas it is told of."""

    moved = 0

    def advance(self, count: int) -> None:
        self.moved += count


class Locks:
    """Counts how often they are held."""

    count = 0

    @contextmanager
    def hold(self) -> Iterator[Held]:
        self.count += 1
        with layout_rig.unlocked() as held:
            yield held


@pytest.fixture
def tops(tmp_path: Path) -> list[Path]:
    made = [log_dir(tmp_path / f"d{number}") for number in (1, 2)]
    for number, top in enumerate(made):
        layout_rig.add_work(top)
        for replica in range(EACH):
            partition(top / f"a-{number * EACH + replica}")
    return made


def apply(tops: list[Path], workers: Workers, locks: Locks, reporter: Reporter = SILENT) -> LayoutReport:
    """Take everything to topic-id directories, two replicas of each log dir at a time."""
    with layout_rig.opened(HostDisk(), [str(top) for top in tops]) as open_dirs:
        decision = transitions.apply(layout_rig.plan_of(open_dirs), look_all(open_dirs))
        begin_at: Any = workers.begin_at
        return carry_out(open_dirs, decision, locks.hold, reporter=reporter, batch=2, begin_at=begin_at)


def left(top: Path) -> int:
    """Return how many replicas are under their names."""
    return len(list(top.glob("a-*")))


def test_each_hold_moves_a_batch_of_every_log_dir_side_by_side(tops: list[Path]) -> None:
    workers, locks = Workers(), Locks()
    report = apply(tops, workers, locks)
    both = [("begun", "d1"), ("begun", "d2"), ("ended", "d1"), ("ended", "d2")]
    assert workers.told == both * 3
    # Two for applying, one for the start block, three for batches of 2, 2 and 1, two for applied, two for the syncs.
    assert locks.count == 10
    assert report.is_finished
    assert (len(report.outcomes), [left(top) for top in tops]) == (2 * EACH, [0, 0])


@pytest.mark.parametrize("failing", ["d1", "d2"])
def test_a_log_dir_that_fails_is_not_tried_again_and_the_other_ends_its_moves(failing: str, tops: list[Path]) -> None:
    workers = Workers({failing: OSError(errno.EIO, "Input/output error")})
    report = apply(tops, workers, Locks())
    assert workers.told.count(("begun", failing)) == 1
    (log_dir_failed, error), *more = report.failed.items()
    assert (Path(log_dir_failed).name, type(error), more) == (failing, ReadOnlyDiskError, [])
    assert not report.is_finished
    assert {top.name: left(top) for top in tops} == {"d1": 0, "d2": 0, failing: EACH}
    assert {Path(where).name for where, _ in report.outcomes} == {"d1", "d2"} - {failing}


@pytest.mark.parametrize("gone", ["d1", "d2"])
def test_where_another_disk_is_mounted_all_moves_end_with_this_batch(gone: str, tops: list[Path]) -> None:
    workers = Workers({gone: LogDirReplacedError("/x", expected="the log dir", found="another", fix="mount it")})
    counted = Counting()
    with pytest.raises(LogDirError, match="another"):
        apply(tops, workers, Locks(), counted)
    assert counted.moved == 2
    assert workers.told.count(("begun", gone)) == 1
    assert {top.name: left(top) for top in tops} == {"d1": EACH - 2, "d2": EACH - 2, gone: EACH}
