"""What a batch opens under Kafka's locks: as much as it changes, however many replicas the broker has.

Counted are the calls of the kernel that open, read and list, in a batch that changes two replicas, beside twelve more
replicas in each log dir and beside sixty.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from unittest import mock

import pytest

from logdir.decide.staged.deadline import DelayPolicy
from logdir.service import adopt, reconcile, restore, stage
from logdir.service.adopt import AdoptRequest
from logdir.service.batch import reconcile_apply
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.kafka_locks import HeldLocks
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.opening import opened
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.reconcile import Policy
from logdir.service.report.reporter import SILENT
from logdir.service.report.result import ItemState
from logdir.service.report.staged import Selection
from logdir.service.restore import RestoreRequest
from logdir.service.stage import StageRequest
from tests.builders import partition
from tests.logdir.cluster.log_dir import remove
from tests.tools.adopt_rig import OLD, AdoptRig
from tests.tools.ctl import ctl
from tests.tools.reconcile_rig import GONE, OTHER, Rig, age, raw
from tools.cli.arguments import Exit

FEW, MANY = 12, 60
"""Replicas beside, in each log dir."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(OpenBroker):
    """A broker that counts what is opened and read while its locks are held."""

    calls: Counter[str] = field(default_factory=Counter)
    listed: Counter[str] = field(default_factory=Counter)
    """Directories of ours and log dirs, each time they were listed."""

    @classmethod
    def of(cls, broker: OpenBroker) -> Counted:
        return cls(**{one.name: getattr(broker, one.name) for one in fields(OpenBroker) if one.init})

    @contextmanager
    def batch(self) -> Iterator[HeldLocks]:
        never = mock.patch.object(HeldLocks, "expired", return_value=False)
        # On a machine that is busy a hold may be over after its first step, and the rest would be looked at once more.
        with OpenBroker.batch(self) as held, never, counting(self.calls, self.listed):
            yield held


@contextmanager
def counting(calls: Counter[str], listed: Counter[str]) -> Iterator[None]:
    """Count the calls of this process that open, read, look at and list."""
    real: dict[str, Callable[..., object]] = {
        name: getattr(os, name) for name in ("open", "read", "stat", "scandir", "listdir")
    }

    def counted(name: str) -> Callable[..., object]:
        def call(*arguments: object, **more: object) -> object:
            calls[name] += 1
            if name in ("scandir", "listdir"):
                (where,) = arguments
                listed[str(Path(f"/proc/self/fd/{where}").readlink() if isinstance(where, int) else where)] += 1
            return real[name](*arguments, **more)

        return call

    with ExitStack() as stack:
        for name in real:
            stack.enter_context(mock.patch.object(os, name, counted(name)))
        yield


def padded(disks: tuple[Path, ...], replicas: int) -> None:
    for disk in disks:
        for number in range(replicas):
            partition(disk / f"{disk.name}-{number}", topic_id=OTHER)
    age(*disks)


def staged(folder: Path, replicas: int) -> Counted:
    rig = Rig(folder).with_removal()
    padded(rig.disks, replicas)
    asked = StageRequest(
        source=SourceRequest(),
        selector="gone",
        delays=DelayPolicy(),
        is_held=False,
        protected=(),
        is_even_over_limit=True,
        is_even_if_last=False,
        is_even_if_unknown=True,
    )
    with opened(BrokerRequest(log_dirs=rig.named[1]), changes=True) as found:
        broker = Counted.of(found)
        rows, problems = stage.apply(broker, stage.plan(broker, asked), SILENT)
    assert ([row.state for row in rows], problems) == ([ItemState.DONE] * 2, [])
    return broker


def restored(folder: Path, replicas: int) -> Counted:
    rig = Rig(folder)
    padded(rig.disks, replicas)
    assert ctl("stage", "gone", "--even-if-unknown", "--even-over-limit", *rig.named, "--apply").status == Exit.DONE
    asked = RestoreRequest(source=SourceRequest(), selection=Selection("gone"), is_even_if_unknown=True)
    with opened(BrokerRequest(log_dirs=rig.named[1]), changes=True) as found:
        broker = Counted.of(found)
        rows, problems = restore.apply(broker, restore.plan(broker, asked), SILENT)
    assert ([row.state for row in rows], problems) == ([ItemState.DONE] * 2, [])
    return broker


def reconciled(folder: Path, replicas: int) -> Counted:
    rig = Rig(folder)
    log = rig.log()
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    padded(rig.disks, replicas)
    policy = Policy(
        delays=DelayPolicy(), protected=(), percent=100, max_age_ms=1 << 60, is_confirmed=True, is_image_confirmed=False
    )
    with opened(BrokerRequest(log_dirs=rig.named[1]), changes=True) as found:
        broker = Counted.of(found)
        shown = reconcile.plan(broker, SourceRequest(), policy, is_stopped=True)
        done = reconcile_apply.apply(broker, shown.desired, policy, shown.decided, SILENT)
    assert [row.path for row in done.rows if row.state is ItemState.DONE] == ["gone-0", "gone-1"]
    return broker


def adopted(folder: Path, replicas: int) -> Counted:
    rig = AdoptRig(folder, partitions=2)
    padded(rig.disks, replicas)
    asked = AdoptRequest(source=SourceRequest(), selection=Selection(OLD), as_topic="pay")
    with opened(BrokerRequest(server_properties=rig.named[1]), changes=True) as found:
        broker = Counted.of(found)
        rows, problems = adopt.apply(broker, adopt.plan(broker, asked), SILENT)
    assert ([row.state for row in rows], problems) == ([ItemState.DONE] * 2, [])
    return broker


USES = {"stage": staged, "restore": restored, "reconcile": reconciled, "adopt": adopted}


@pytest.mark.parametrize("use", USES)
def test_a_batch_opens_as_much_as_it_changes(tmp_path: Path, use: str) -> None:
    few = USES[use](tmp_path / "few", FEW)
    many = USES[use](tmp_path / "many", MANY)
    assert many.calls == few.calls
    assert few.calls["open"] > 0


@pytest.mark.parametrize("use", USES)
def test_a_batch_lists_a_log_dir_once_and_no_replica_beside(tmp_path: Path, use: str) -> None:
    broker = USES[use](tmp_path, FEW)
    for port in broker.ports.ports:
        # Before each adoption the names on every disk are compared once more: it is finished or undone over all.
        assert broker.listed[port.log_dir] == (3 if use == "adopt" else 1)
        assert not [path for path in broker.listed if path.startswith(f"{port.log_dir}/{Path(port.log_dir).name}-")]


def _twin(rig: Rig) -> None:
    partition(rig.disks[1] / "gone-0", topic_id=OTHER)


def _future(rig: Rig) -> None:
    (rig.disks[1] / "gone-0.0123456789abcdef0123456789abcdef-future").mkdir()


def _gets_its_id(rig: Rig) -> None:
    """Do what a broker does that runs meanwhile: no name changes."""
    (rig.disks[1] / "nameless-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {GONE}")


def _made_again(rig: Rig) -> None:
    other = rig.disks[1] / "nameless-0"
    other.rename(rig.folder / "aside")
    partition(other, topic_id=GONE)


@pytest.mark.parametrize("meanwhile", [_twin, _future, _gets_its_id, _made_again])
def test_a15_what_came_since_the_plan_was_shown_is_seen_under_the_locks(
    tmp_path: Path, meanwhile: Callable[[Rig], None]
) -> None:
    rig = Rig(tmp_path)
    partition(rig.disks[1] / "nameless-0", topic_id=None)
    assert ctl("stage", "gone-0", "--even-if-unknown", "--even-over-limit", *rig.named, "--apply").status == Exit.DONE
    asked = RestoreRequest(source=SourceRequest(), selection=Selection("gone"), is_even_if_unknown=True)
    with opened(BrokerRequest(log_dirs=rig.named[1]), changes=True) as broker:
        shown = restore.plan(broker, asked)
        assert [row.state for row in shown.items] == [ItemState.PLANNED]
        meanwhile(rig)
        rows, _ = restore.apply(broker, shown, SILENT)
    assert [row.state for row in rows] == [ItemState.REFUSED]
    assert not (rig.disks[0] / "gone-0").exists()
