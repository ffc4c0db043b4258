"""From a look to a decision to the disk and back: real broker trees come back byte for byte, with their times."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from logdir.decide.image.still_assigned import ClusterState
from logdir.decide.stage import StageRequest, plan_stage
from logdir.decide.staged.restore import RestoreRequest, plan_restore
from logdir.decide.staging_limit import highest
from logdir.disk.kernel.host import HostDisk
from logdir.disk.record import staging_limit
from logdir.disk.replica import staging
from logdir.disk.replica.outcome import Result
from logdir.disk.root.init import init
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.plan import plan_init
from logdir.disk.root.work_root import open_root
from logdir.evidence import Proof, Removed
from logdir.formats.own.inventory import Kind
from logdir.observe.replicas import look
from logdir.reasons import Reason
from logdir.refusal_slug import Why
from tests import trees
from tests.logdir.decide.builders import NOW

Tree = dict[str, tuple[int, int, bytes]]


def tree_of(top: Path) -> Tree:
    """Every file with its mode, time and bytes, every directory with its mode; the work root's and the lock's aside."""
    found: Tree = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if path.is_symlink() or name.startswith("__cluster_metadata-2147483647") or name == ".lock":
            continue
        told = path.lstat()
        is_file = path.is_file()
        found[name] = (told.st_mode, told.st_mtime_ns if is_file else 0, path.read_bytes() if is_file else b"")
    return found


@pytest.mark.parametrize("name", trees.NAMES)
def test_staged_and_at_once_restored_is_what_it_was(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "tree"
    shutil.copytree(trees.unpack(name), folder, symlinks=True)
    tops = [str(folder / d) for d in sorted(os.listdir(folder)) if (folder / d).is_dir()]
    before = tree_of(folder)
    disk = HostDisk()
    with ExitStack() as stack:
        open_dirs: dict[str, OpenLogDir] = {}
        for top in tops:
            init(disk, plan_init(disk, top, fs_type="ext4"), made_at_ms=1, reserve_bytes=4096)
            open_dirs[top] = stack.enter_context(open_root(disk, top)).open_dir
            staging_limit.begin(open_dirs[top])
        facts = [look(top) for top in tops]
        live = [(one.log_dir, r.path) for one in facts for r in one.replicas if r.kind is Kind.LIVE]
        asked = StageRequest(
            selected=tuple(live),
            reason=Reason.OPERATOR,
            evidence=Removed(proof=Proof.OPERATOR, as_of_ms=NOW.wall_ms),
            now=NOW,
            record=highest(staging_limit.read_records(list(open_dirs.values()))),
            is_confirmed=True,
            is_even_if_unknown=True,
        )
        plan = plan_stage(asked, facts)
        # One tree was killed while its broker moved replicas between its disks.
        assert {refusal.why for refusal in plan.refusals} == (
            {Why.FUTURE_REPLICA_EXISTS} if name == "4.3.1-kill9" else set()
        )
        assert len(plan.actions) == len(live) - len(plan.refusals) > 0
        assert plan.record is not None
        staging_limit.write_record(list(open_dirs.values()), plan.record)
        for top, open_dir in open_dirs.items():
            items = [staging.StageItem(path=a.path, marker=a.marker) for a in plan.actions if a.log_dir == top]
            assert all(one.result is Result.DONE for one in staging.stage(open_dir, items))
        facts = [look(top) for top in tops]
        assert not {(r.log_dir, r.path) for one in facts for r in one.replicas} & {
            (a.log_dir, a.path) for a in plan.actions
        }
        names = tuple((item.log_dir, item.name) for one in facts for item in one.staged)
        assert len(names) == len(plan.actions)
        back = plan_restore(RestoreRequest(selected=names, cluster=ClusterState(), is_even_if_unknown=True), facts)
        assert back.refusals == ()
        assert {(a.log_dir, a.path) for a in back.actions} == {(a.log_dir, a.path) for a in plan.actions}
        for action in back.actions:
            item = staging.RestoreItem(
                name=action.name,
                marker=action.marker,
                path=action.path,
                drop_last_indexes=action.drop_last_indexes,
            )
            outcome = staging.restore(open_dirs[action.log_dir], item)
            assert outcome.result is Result.DONE, outcome
    after = tree_of(folder)
    shutil.rmtree(tmp_path / "tree")
    ours = {name for name in after if name.split("/")[0].endswith(".logdird")}
    assert {name: told for name, told in after.items() if name not in ours} == before
