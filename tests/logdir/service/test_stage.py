"""A staging goes on without a log dir that falls silent under the locks (``tests/hung`` has real ones)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from logdir.decide.staged.deadline import DelayPolicy
from logdir.disk.batch_loop import Held
from logdir.errors import Problem, RefusedError
from logdir.refusal_slug import Why
from logdir.service import stage
from logdir.service.batch.use_cases import spec_of
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.reporter import SILENT
from logdir.service.report.result import ItemState
from logdir.service.stage import StageRequest
from tests.tools.ctl import ctl, two_disks
from tools.cli.arguments import Exit

STAGE_ALL = StageRequest(
    source=SourceRequest(),
    selector="pay",
    delays=DelayPolicy(),
    is_held=False,
    protected=(),
    is_even_over_limit=True,
    is_even_if_last=False,
    is_even_if_unknown=True,
)
RELEASED = RefusedError("/d2", why=Why.NOT_STAGED, expected="locks that are held", found="locks released", fix="wait")


@contextmanager
def refused_once(monkeypatch: pytest.MonkeyPatch, silent: Path | None) -> Iterator[list[int]]:
    """Let the first hold of the locks be refused, because a log dir falls silent then, or for another reason.

    Yields how many holds there were, in a list that grows.
    """
    batch, holds = OpenBroker.batch, [0]

    @contextmanager
    def hold(self: OpenBroker) -> Iterator[Held]:
        holds[0] += 1
        if holds[0] == 1:
            if silent is not None:
                self.ports.let_go(str(silent), Problem("log-dir-suspect", str(silent), "an answer within 10 s", "none"))
            raise RELEASED
        with batch(self) as held:
            yield held

    with monkeypatch.context() as patch:
        patch.setattr(OpenBroker, "batch", hold)
        yield holds


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    made = two_disks(tmp_path)
    assert ctl("init", "--log-dirs", f"{made[0]},{made[1]}", "--apply").status == Exit.DONE
    return made


def opened_for_stage(disks: tuple[Path, Path]) -> AbstractContextManager[OpenBroker]:
    """Open the log dirs as the command does."""
    return spec_of("stage").opening(BrokerRequest(log_dirs=f"{disks[0]},{disks[1]}"), changes=True)


def test_it_goes_on_without_the_log_dir_that_fell_silent(
    disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened_for_stage(disks) as broker:
        shown = stage.plan(broker, STAGE_ALL)
        assert [row.state for row in shown.items] == [ItemState.PLANNED] * 3
        with refused_once(monkeypatch, disks[1]) as holds:
            rows, _ = stage.apply(broker, shown, SILENT)
    assert {row.path for row in rows if row.state is ItemState.DONE} == {"pay-0", "pay-2"}
    assert {row.path for row in rows if row.state is not ItemState.DONE} == {"pay-1"}
    assert [one.name for disk in disks for one in disk.glob("pay-*")] == ["pay-1"]
    assert holds[0] == 2


def test_it_ends_where_the_locks_are_refused_and_no_log_dir_fell_silent(
    disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened_for_stage(disks) as broker:
        shown = stage.plan(broker, STAGE_ALL)
        with refused_once(monkeypatch, None) as holds, pytest.raises(RefusedError, match="locks released"):
            stage.apply(broker, shown, SILENT)
    assert holds[0] == 1
    assert sorted(one.name for disk in disks for one in disk.glob("pay-*")) == ["pay-0", "pay-1", "pay-2"]
