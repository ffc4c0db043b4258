"""A change of layout over all log dirs of a broker: cut off at every call, stale steps, locks, a disk that fails."""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from logdir.disk.batch_loop import Held
from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.record.start_block import StartBlockState, set_block, state
from logdir.errors import DiskError, DiskFullError, FormatError, LockHeldError, ReadOnlyDiskError, RefusedError
from logdir.formats.own.layout_file import LayoutState
from logdir.ids import TopicId
from logdir.observe.classify import Type
from logdir.service.batch.layout_phases import look_all
from logdir.service.log_dirs.kafka_locks import hold_all
from tests.builders import TOPIC_ID, log_dir, partition
from tests.crash.model import Failure, ModelHost
from tests.local_ports import ports_here
from tests.logdir.disk import layout_rig as layout
from tests.logdir.disk.layout_rig import WORK, add_work, opened, plan_of, snapshot, unlocked

OTHER = "bXOy6xj-Q8ivrWAlsZGnkw"


@pytest.fixture
def tops(tmp_path: Path) -> list[Path]:
    made = [log_dir(tmp_path / f"d{number}") for number in (1, 2)]
    for top in made:
        add_work(top)
    partition(made[0] / "a-0")
    partition(made[0] / "b-0", topic_id=None)
    hexed = partition(made[1] / "c-0", topic_id=None)
    (hexed / "partition.metadata").write_text(f"version: 0\ntopic_id: {TopicId.parse(OTHER).hex()}\n")
    partition(made[1] / "a-1")
    return made


def paths(tops: list[Path]) -> list[str]:
    return [str(top) for top in tops]


class _CutError(Exception):
    pass


class _Cutting:
    """Cuts off before the call of this number."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.told: list[Call] = []

    def __call__(self, call: Call) -> None:
        self.told.append(call)
        if len(self.told) > self.at:
            raise _CutError

    @property
    def has_cut(self) -> bool:
        return len(self.told) > self.at


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["apply", "rollback"])
def test_cut_off_at_every_call_it_goes_on_or_back_to_the_same_end(verb: str, tops: list[Path], tmp_path: Path) -> None:
    before = snapshot(*tops)
    with opened(HostDisk(), paths(tops)) as open_dirs:
        plan = plan_of(open_dirs)
        layout.apply(open_dirs, plan, unlocked, batch=2)
    applied = snapshot(*tops)
    ends = set()
    for at in range(10_000):
        with opened(HostDisk(), paths(tops)) as open_dirs:
            if verb == "apply":
                assert layout.rollback(open_dirs, unlocked).is_finished
        cutting = _Cutting(at)
        with opened(HostDisk(cutting), paths(tops)) as open_dirs:
            try:
                if verb == "apply":
                    layout.apply(open_dirs, plan, unlocked, batch=2)
                else:
                    layout.rollback(open_dirs, unlocked, batch=2)
            except _CutError:
                pass
        if at % 3 == 0 or not cutting.has_cut:
            with opened(HostDisk(), paths(tops)) as open_dirs:
                ends.add(state(open_dirs))
                if verb == "apply":
                    assert layout.apply(open_dirs, plan, unlocked).is_finished
                    assert {p: s[-1] for p, s in snapshot(*tops).items()} == {p: s[-1] for p, s in applied.items()}
        with opened(HostDisk(), paths(tops)) as open_dirs:
            assert layout.rollback(open_dirs, unlocked).is_finished
            assert state(open_dirs) is StartBlockState.NONE
        assert snapshot(*tops) == before
        if verb == "rollback":
            with opened(HostDisk(), paths(tops)) as open_dirs:
                assert layout.apply(open_dirs, plan, unlocked).is_finished
        if not cutting.has_cut:
            break
    assert at > 30
    assert ends == set(StartBlockState)


def test_every_batch_is_under_the_locks_and_no_call_is_outside(tops: list[Path]) -> None:
    held = [0]
    outside: list[Call] = []

    def tell(call: Call) -> None:
        if not held[0]:
            outside.append(call)

    @contextmanager
    def locked() -> Iterator[Held]:
        held[0] += 1
        with hold_all(ports_here(paths(tops)), without=(), now_boottime_ms=0) as batch:
            yield batch
        held[0] -= 1

    for top in tops:
        (top / ".lock").touch()
    with opened(HostDisk(tell), paths(tops)) as open_dirs:
        plan = plan_of(open_dirs)
        assert layout.apply(open_dirs, plan, locked, batch=1).is_finished
        assert layout.verify(open_dirs, plan, locked).is_finished
        assert layout.rollback(open_dirs, locked, batch=1).is_finished
    assert outside == []


def test_a_broker_that_runs_is_named_and_nothing_is_changed(tops: list[Path]) -> None:
    before = snapshot(*tops)

    def locked() -> AbstractContextManager[Held]:
        raise LockHeldError("/d1/.lock", expected="no process that holds it", found="pid 1 (java)")

    with opened(HostDisk(), paths(tops)) as open_dirs:
        plan = plan_of(open_dirs)
        with pytest.raises(LockHeldError):
            layout.apply(open_dirs, plan, locked)
    assert snapshot(*tops) == before


def test_steps_that_changed_since_are_refused_by_name_and_the_rest_is_applied(tmp_path: Path) -> None:
    tops = [log_dir(tmp_path / f"d{number}") for number in (1, 2)]
    for top in tops:
        add_work(top)
        for number in range(40):
            partition(top / f"t{top.name}-{number}", segments={})
    draw = random.Random(516)
    with opened(HostDisk(), paths(tops)) as open_dirs:
        # All of one id, so that every prefix is shared; partitions do not collide across the log dirs.
        for top in tops:
            for path in top.glob("t*"):
                text = f"version: 0\ntopic_id: {TOPIC_ID if top.name == 'd1' else OTHER}"
                (path / "partition.metadata").write_text(text)
        plan = plan_of(open_dirs)
        assert len(plan.steps) == 80
        stale = set()
        for step in draw.sample(plan.steps, 30):
            path = Path(step.log_dir) / step.name
            match draw.randrange(6):
                case 0:
                    shutil.rmtree(path)
                case 1:
                    path.rename(path.with_name(f"renamed-{step.partition}"))
                case 2:
                    (path / "partition.metadata").write_text("version: 0\ntopic_id: cXOy6xj-Q8ivrWAlsZGnkw")
                case 3:
                    (path / "partition.metadata").unlink()
                case 4:
                    (path / "inner").mkdir()
                case _:
                    partition(Path(step.log_dir) / f"{step.name}.{'0' * 32}-future")
            stale.add(str(path))
        changed = snapshot(*tops)
        report = layout.apply(open_dirs, plan, unlocked, batch=7)
        # What was renamed is live under a name that no step has.
        renamed = {str(path) for top in tops for path in top.glob("renamed-*") if path.is_dir()}
        assert (bool(renamed), report.is_finished) == (True, False)
        names = {str(error).split(": ")[1] for error in report.refused}
        assert len(names) == len(report.refused) == 30 + len(renamed)
        assert renamed < names
        assert {n for n in names - renamed if n not in stale and str(Path(n).parent) not in stale} == set()
        assert sum(outcome.error is None for _, outcome in report.outcomes) == 50
        for step in plan.steps:
            if f"{step.log_dir}/{step.name}" not in stale:
                assert (Path(step.log_dir) / step.place / "partition.metadata").exists()
        verified = layout.verify(open_dirs, plan, unlocked)
        assert not verified.is_finished
        with pytest.raises(RefusedError, match="layout verify first"):
            layout.finalize(open_dirs, "kafka 9", unlocked)
        assert layout.rollback(open_dirs, unlocked).is_finished
        assert snapshot(*tops) == changed


def test_growth_since_the_plan_makes_no_step_stale(tops: list[Path]) -> None:
    with opened(HostDisk(), paths(tops)) as open_dirs:
        plan = plan_of(open_dirs)
        with (tops[0] / "a-0" / "00000000000000000000.log").open("ab") as file:
            file.write(b"more")
        assert layout.apply(open_dirs, plan, unlocked).refused == ()


def test_a37_a_half_start_block_is_made_whole_or_lifted(tops: list[Path]) -> None:
    before = snapshot(*tops)
    with opened(HostDisk(), paths(tops)) as open_dirs:
        plan = plan_of(open_dirs)
        set_block(open_dirs[:1])
        assert state(open_dirs) is StartBlockState.PARTIAL
        assert layout.apply(open_dirs, plan, unlocked).is_finished
        assert state(open_dirs) is StartBlockState.SET
        assert layout.rollback(open_dirs, unlocked).is_finished
        set_block(open_dirs[1:])
        assert layout.rollback(open_dirs, unlocked).is_finished
    assert snapshot(*tops) == before


def test_a21_a_lost_layout_json_holds_until_somebody_says_which_way(tops: list[Path]) -> None:
    before = snapshot(*tops)
    with opened(HostDisk(), paths(tops)) as open_dirs:
        plan = plan_of(open_dirs)
        layout.apply(open_dirs, plan, unlocked)
        (tops[1] / "layout.json").unlink()
        held = snapshot(*tops)
        lost = r"/layout\.json: expected"
        with pytest.raises(RefusedError, match=lost):
            layout.apply(open_dirs, plan, unlocked)
        with pytest.raises(RefusedError, match=lost):
            layout.verify(open_dirs, plan, unlocked)
        with pytest.raises(RefusedError, match=lost):
            layout.finalize(open_dirs, "kafka 9", unlocked)
        with pytest.raises(RefusedError, match=lost):
            layout.rollback(open_dirs, unlocked)
        assert snapshot(*tops) == held
        assert layout.rollback(open_dirs, unlocked, confirmed=True).is_finished
    assert snapshot(*tops) == before


def test_a_layout_json_that_is_torn_or_newer_touches_nothing(tops: list[Path]) -> None:
    with opened(HostDisk(), paths(tops)) as open_dirs:
        plan = plan_of(open_dirs)
        layout.apply(open_dirs, plan, unlocked)
        (tops[0] / "layout.json").write_bytes(b'{"layout":2}\n')
        before = snapshot(*tops)
        with pytest.raises(FormatError, match=r"d1/layout\.json"):
            layout.rollback(open_dirs, unlocked)
        assert snapshot(*tops) == before


def test_what_lies_in_a_prefix_directory_beside_replicas_keeps_the_start_block(tops: list[Path]) -> None:
    with opened(HostDisk(), paths(tops)) as open_dirs:
        plan = plan_of(open_dirs)
        layout.apply(open_dirs, plan, unlocked)
        (tops[0] / "eX" / "mine").write_text("x")
        report = layout.rollback(open_dirs, unlocked)
        assert not report.is_finished
        assert "d1/eX: expected an empty prefix directory" in str(report.failed[str(tops[0])])
        assert state(open_dirs) is StartBlockState.SET
        assert (tops[0] / "eX" / "mine").read_text() == "x"
        (tops[0] / "eX" / "mine").unlink()
        assert layout.rollback(open_dirs, unlocked).is_finished


def test_a44_a_link_is_told_and_not_followed(tops: list[Path], tmp_path: Path) -> None:
    outside = partition(tmp_path / "elsewhere")
    (tops[0] / "z-0").symlink_to(outside)
    before = snapshot(*tops, outside)
    with opened(HostDisk(), paths(tops)) as open_dirs:
        plan = plan_of(open_dirs)
        assert "z-0" not in {step.name for step in plan.steps}
        applied = layout.apply(open_dirs, plan, unlocked)
        assert (applied.is_finished, [error.path for error in applied.refused]) == (False, [f"{tops[0]}/z-0"])
        verified = layout.verify(open_dirs, plan, unlocked)
        assert "found a symbolic link" in str(verified.refused[0])
        assert layout.rollback(open_dirs, unlocked).is_finished
    assert snapshot(*tops, outside) == before


def test_one_disk_that_fails_does_not_keep_the_other_from_its_steps() -> None:
    def start() -> ModelHost:
        host = ModelHost.with_disks("/d1", "/d2", uid=7, gid=8)
        for number in (1, 2):
            host.plant(f"/d{number}/k/meta.properties", b"version=1\nnode.id=1\ncluster.id=x\n", mtime_ns=5)
            host.plant(f"/d{number}/k/a-{number}/0.log", b"x", mtime_ns=6)
            for name in ("deleting", "incoming"):
                host.plant(f"/d{number}/k{WORK}/{name}", kind=Type.DIRECTORY, owner=Owner(7, 8, 0o755))
        return host

    logs = ["/d1/k", "/d2/k"]
    host = start().fail(Failure(0, errno.EIO, name="syncfs"))
    with opened(host, logs) as open_dirs:
        plan = plan_of(open_dirs)
        report = layout.apply(open_dirs, plan, unlocked)
        assert not report.is_finished
        assert isinstance(report.failed["/d1/k"], ReadOnlyDiskError)
        seen = {of.log_dir: of for of in look_all(open_dirs)}
        assert [of.file.state for of in seen.values() if of.file] == [LayoutState.APPLYING, LayoutState.APPLIED]
        assert seen["/d2/k"].is_under_ids
        assert not seen["/d1/k"].is_under_ids
        host.failures.clear()
        assert layout.apply(open_dirs, plan, unlocked).is_finished
        assert layout.verify(open_dirs, plan, unlocked).is_finished

    # A start block that cannot be set everywhere is set nowhere, and nothing is moved.
    host = start().fail(Failure(0, errno.EACCES, name="replace", for_ever=True))
    with opened(host, logs) as open_dirs:
        report = layout.apply(open_dirs, plan, unlocked)
        assert not report.is_finished
        assert state(open_dirs) is StartBlockState.NONE
        assert not any(of.is_under_ids for of in look_all(open_dirs))


def test_a_full_disk_under_a_change_of_layout_is_called_full() -> None:
    def start() -> ModelHost:
        host = ModelHost.with_disks("/d1", uid=7, gid=8)
        host.plant("/d1/k/meta.properties", b"version=1\nnode.id=1\ncluster.id=x\n", mtime_ns=5)
        host.plant("/d1/k/a-1/0.log", b"x", mtime_ns=6)
        for name in ("deleting", "incoming"):
            host.plant(f"/d1/k{WORK}/{name}", kind=Type.DIRECTORY, owner=Owner(7, 8, 0o755))
        return host

    whole = start()
    with opened(whole, ["/d1/k"]) as open_dirs:
        plan = plan_of(open_dirs)
        assert layout.apply(open_dirs, plan, unlocked).is_finished
    said = [number for number, made in enumerate(whole.records) if made.call.path.endswith("/layout.json.tmp")]
    host = start().fail(Failure(said[0], errno.ENOSPC, for_ever=True))
    with opened(host, ["/d1/k"]) as open_dirs:
        report = layout.apply(open_dirs, plan, unlocked)
    assert isinstance(report.failed["/d1/k"], DiskFullError)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM], ids=errno.errorcode.get)
def test_a_call_that_the_kernel_refuses_fails_its_log_dir_by_name(number: int) -> None:
    host = ModelHost.with_disks("/d1", uid=7, gid=8)
    host.plant("/d1/k/meta.properties", b"version=1\nnode.id=1\ncluster.id=x\n", mtime_ns=5)
    host.plant("/d1/k/a-1/0.log", b"x", mtime_ns=6)
    for name in ("deleting", "incoming"):
        host.plant(f"/d1/k{WORK}/{name}", kind=Type.DIRECTORY, owner=Owner(7, 8, 0o755))
    with opened(host, ["/d1/k"]) as open_dirs:
        plan = plan_of(open_dirs)
        host.fail(Failure(0, number, name="replace", for_ever=True))
        report = layout.apply(open_dirs, plan, unlocked)
    assert (report.is_finished, type(report.failed["/d1/k"])) == (False, DiskError)
    assert "expected a call that succeeds" in str(report.failed["/d1/k"])


def test_replicas_in_another_spelling_of_their_id_are_held(tops: list[Path]) -> None:
    with opened(HostDisk(), paths(tops)) as open_dirs:
        plan = plan_of(open_dirs)
        layout.apply(open_dirs, plan, unlocked)
        hexed = TopicId.parse(OTHER).hex()
        (tops[1] / hexed[:2]).mkdir()
        (tops[1] / "bX" / f"{OTHER}_0").rename(tops[1] / hexed[:2] / f"{hexed}_0")
        (tops[0] / "eX" / f"{TOPIC_ID}_0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
        said = "\n".join(map(str, layout.verify(open_dirs, plan, unlocked).refused))
        assert "a topic id in a different spelling" in said
        assert "partition.metadata without the topic's name" in said
        back = layout.rollback(open_dirs, unlocked)
        assert not back.is_finished
        assert len(back.refused) == 2
        assert state(open_dirs) is StartBlockState.SET
