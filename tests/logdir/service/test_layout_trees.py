"""Every real tree: to ids and back gives the same bytes, names and times of change."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.record.start_block import StartBlockState, state
from logdir.errors import RefusedError
from logdir.formats.kafka import meta_properties, partition_metadata
from logdir.formats.own import start_block_file
from logdir.service.batch.layout_phases import look_all
from tests import trees
from tests.logdir.disk import layout_rig as layout
from tests.logdir.disk.layout_rig import add_work, opened, plan_of, snapshot, unlocked


def copied(name: str, tmp_path: Path) -> list[Path]:
    found = []
    for log_dir in trees.manifest(name)["log_dirs"]:
        target = tmp_path / log_dir
        shutil.copytree(trees.unpack(name) / log_dir, target, symlinks=True)
        add_work(target)
        found.append(target)
    return found


@pytest.mark.parametrize("name", trees.NAMES)
def test_a_tree_taken_to_ids_and_back_is_the_same(name: str, tmp_path: Path) -> None:
    log_dirs = copied(name, tmp_path)
    before = snapshot(*log_dirs)
    with opened(HostDisk(), [str(path) for path in log_dirs]) as open_dirs:
        plan = plan_of(open_dirs)
        assert plan.steps
        moving = {future for seen in look_all(open_dirs) for future in seen.futures}
        assert bool(moving) == (name == "4.3.1-kill9")
        report = layout.apply(open_dirs, plan, unlocked)
        assert report.is_finished
        assert {"-future" in error.expected for error in report.refused} == ({True} if moving else set())
        assert state(open_dirs) is StartBlockState.SET
        for path in log_dirs:
            node_id = meta_properties.parse((path / "meta.properties").read_bytes()).node_id
            assert node_id == start_block_file.FALSE_NODE_ID
        steps = [step for step in plan.steps if (step.topic, step.partition) not in moving]
        assert len(steps) == len(plan.steps) - len(report.refused)
        for step in steps:
            place = Path(step.log_dir) / step.place
            assert not (Path(step.log_dir) / step.name).exists()
            said = partition_metadata.parse((place / "partition.metadata").read_bytes())
            assert (said.topic_id, said.topic_name) == (step.topic_id, step.topic)
        again = layout.apply(open_dirs, plan, unlocked)
        assert (again.decision.phases, again.decision.done) == ((), len(steps))
        with pytest.raises(RefusedError, match="layout verify first"):
            layout.finalize(open_dirs, "kafka 9", unlocked)
        assert layout.verify(open_dirs, plan, unlocked).is_finished == (not moving)
        back = layout.rollback(open_dirs, unlocked)
        assert (back.is_finished, back.refused, back.failed) == (True, (), {})
        assert state(open_dirs) is StartBlockState.NONE
    assert snapshot(*log_dirs) == before


@pytest.mark.parametrize("name", ["2.8.2-zk", "4.3.1-kraft"])
def test_a51_no_tree_that_is_final_is_kept_from_going_back(name: str, tmp_path: Path) -> None:
    log_dirs = copied(name, tmp_path)
    before = snapshot(*log_dirs)
    with opened(HostDisk(), [str(path) for path in log_dirs]) as open_dirs:
        plan = plan_of(open_dirs)
        layout.apply(open_dirs, plan, unlocked)
        assert layout.verify(open_dirs, plan, unlocked).is_finished
        assert layout.finalize(open_dirs, "kafka 9", unlocked).is_finished
        after = snapshot(*log_dirs)
        with pytest.raises(RefusedError, match="expected a log dir to apply to, found a finalize that is finished"):
            layout.apply(open_dirs, plan, unlocked)
        assert layout.finalize(open_dirs, "kafka 9", unlocked).decision.phases == ()
        assert state(open_dirs) is StartBlockState.NONE
        assert snapshot(*log_dirs) == after
        # The start block is lifted: each meta.properties has the bytes and the time of change it had at first.
        assert {path: said for path, said in after.items() if path.endswith("meta.properties")} == {
            path: said for path, said in before.items() if path.endswith("meta.properties")
        }
        assert layout.rollback(open_dirs, unlocked).is_finished
    assert snapshot(*log_dirs) == before


class _CutError(Exception):
    pass


@pytest.mark.parametrize("name", trees.NAMES)
def test_a_tree_cut_off_on_its_way_goes_back_to_the_same(name: str, tmp_path: Path) -> None:
    log_dirs = copied(name, tmp_path)
    paths = [str(path) for path in log_dirs]
    before = snapshot(*log_dirs)
    told: list[Call] = []
    with opened(HostDisk(told.append), paths) as open_dirs:
        plan = plan_of(open_dirs)
        layout.apply(open_dirs, plan, unlocked)
        calls = len(told)
        layout.rollback(open_dirs, unlocked)
        both = len(told)
    draw = random.Random(name)
    for at in (draw.randrange(calls), draw.randrange(calls), draw.randrange(calls, both)):
        left = [at]

        def tell(call: Call, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise _CutError

        with opened(HostDisk(tell), paths) as open_dirs, pytest.raises(_CutError):  # noqa: PT012
            layout.apply(open_dirs, plan, unlocked)
            layout.rollback(open_dirs, unlocked)
        with opened(HostDisk(), paths) as open_dirs:
            assert layout.rollback(open_dirs, unlocked).is_finished
        assert snapshot(*log_dirs) == before, told[at]
