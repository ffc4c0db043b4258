"""``logdirctl handover``: what is ended before a broker starts, what keeps it from its start, and what is kept."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from logdir.clock import Instant
from logdir.decide.checkpoint_copies import Losses
from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.record import handover, layout, start_block
from logdir.disk.record.start_block import StartBlockState
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, LogDirSuspectError, Problem
from logdir.formats.own import handover_file, layout_file
from logdir.formats.own.layout_file import LayoutState
from logdir.service.batch.handover import HandoverRequest, run
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.opening import opened
from logdir.service.log_dirs.ports import BrokerPorts
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.reporter import SILENT
from logdir.worker import state
from tests.builders import log_dir
from tests.tools.adopt_rig import AdoptRig, failing
from tests.tools.ctl import ctl, ctl_json, held, tree, two_disks
from tests.tools.layout_fleet import Planned, apply, big
from tools.cli.arguments import Exit

NAMES = [
    "cleaner-offset-checkpoint", "log-start-offset-checkpoint", "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
]  # fmt: skip


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    """Make a stopped broker with two log dirs and their work roots."""
    made = two_disks(tmp_path)
    assert ctl("init", *named(*made), "--apply").status == Exit.DONE
    return made


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    """Make a stopped broker with a plan of a layout change."""
    return big(tmp_path, 6)


def named(*disks: Path) -> tuple[str, str]:
    return "--log-dirs", ",".join(map(str, disks))


def sha256_of(planned: Planned) -> str:
    sha256: str = json.loads(planned.plan.read_text().splitlines()[-1])["sha256"]
    return sha256


@contextmanager
def open_dirs_of(planned: Planned) -> Iterator[tuple[OpenLogDir, ...]]:
    """Open the log dirs for changes, to leave what a process leaves that was killed amid them."""
    request = BrokerRequest(log_dirs=planned.words[1])
    with opened(request, changes=True, is_start_block_allowed=True) as broker:
        yield broker.open_dirs


def kept(disk: Path) -> handover_file.HandoverFile:
    return handover_file.parse(Path(f"{disk}.logdird/handover.json").read_bytes())


def without_copies(found: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    return {path: one for path, one in found.items() if not path.endswith(("/handover.json", "/heartbeat.json"))}


def test_where_nothing_is_unfinished_it_keeps_the_checkpoints_and_says_nothing(disks: tuple[Path, Path]) -> None:
    before = tree(disks[0].parent)
    said = ctl("handover", *named(*disks), "--plan")
    assert (said.status, said.err) == (Exit.DONE, "")
    assert said.out.splitlines()[-2:] == [
        "2 log dirs would be handed over",
        f"next: logdirctl handover {' '.join(named(*disks))}",
    ]
    assert tree(disks[0].parent) == before
    assert ctl("handover", *named(*disks), "--quiet") == (Exit.DONE, "", "")
    assert without_copies(tree(disks[0].parent)) == without_copies(before)
    for disk in disks:
        copy = kept(disk)
        assert sorted(copy.checkpoints) == NAMES
        points = (disk / "recovery-point-offset-checkpoint").read_bytes()
        assert copy.checkpoints["recovery-point-offset-checkpoint"] == points
        assert copy.checkpoints["cleaner-offset-checkpoint"] is None
    status, result = ctl_json("handover", *named(*disks))
    assert (status, result["applied"], result["start_block"]) == (Exit.DONE, True, "none")
    assert [(one["log_dir"], one["state"]) for one in result["items"]] == [(str(disk), "done") for disk in disks]


def test_of_two_handovers_the_last_is_kept(disks: tuple[Path, Path]) -> None:
    assert ctl("handover", *named(*disks)).status == Exit.DONE
    (disks[0] / "cleaner-offset-checkpoint").write_bytes(b"0\n1\npay 0 17\n")
    first = kept(disks[0])
    assert ctl("handover", *named(*disks)).status == Exit.DONE
    assert kept(disks[0]).checkpoints["cleaner-offset-checkpoint"] == b"0\n1\npay 0 17\n"
    assert kept(disks[0]).copies[1:] == first.copies
    assert kept(disks[0]).boottime_ms >= first.boottime_ms
    assert not list(Path(f"{disks[0]}.logdird").glob("handover.json.*"))


def test_beside_a_running_broker_it_is_refused(disks: tuple[Path, Path]) -> None:
    (disks[1] / ".lock").touch()
    with held(disks[1] / ".lock"):
        said = ctl("handover", *named(*disks))
    assert (said.status, "lock-held" in said.err) == (Exit.BROKER_RUNS, True), said
    assert not Path(f"{disks[0]}.logdird/handover.json").exists()


def test_without_one_of_its_log_dirs_no_broker_starts_unless_that_is_accepted(disks: tuple[Path, Path]) -> None:
    disks[1].rename(disks[1].with_name("away"))
    said = ctl("handover", *named(*disks), "--quiet")
    assert said.status in (Exit.REFUSED, Exit.PROBLEMS), said
    assert str(disks[1]) in said.err
    assert f"--skip-log-dir {disks[1]}" in said.err
    assert not Path(f"{disks[0]}.logdird/handover.json").exists()
    assert ctl("handover", *named(*disks), "--skip-log-dir", disks[1]).status == Exit.DONE
    assert ctl("handover", *named(*disks), "--skip-log-dir", "/elsewhere").status == Exit.USAGE


def test_a_log_dir_that_lost_its_mount_is_no_log_dir_of_the_broker(disks: tuple[Path, Path]) -> None:
    """An empty directory under a mount point is what a broker would take for a new disk."""
    shutil.rmtree(disks[1])
    disks[1].mkdir()
    said = ctl("handover", *named(*disks), "--quiet")
    assert said.status not in (Exit.DONE, Exit.INTERNAL), said
    assert str(disks[1]) in said.err


def test_a_change_of_layout_half_way_is_the_operators_to_decide(planned: Planned) -> None:
    assert apply(planned)[0] == Exit.DONE
    before = tree(*planned.log_dirs)
    for words in ([], ["--plan"]):
        said = ctl("handover", *planned.words, *words)
        assert (said.status, "layout-change-under-way" in said.err) == (Exit.REFUSED, True), said
        assert "logdirctl layout rollback" in said.err
    assert tree(*planned.log_dirs) == before


@pytest.mark.parametrize("is_blocked", [True, False], ids=["blocked", "begun"])
def test_a_change_of_layout_that_moved_nothing_is_taken_back(planned: Planned, *, is_blocked: bool) -> None:
    before = without_copies(tree(*planned.log_dirs))
    with open_dirs_of(planned) as open_dirs:
        for open_dir in open_dirs[: 2 if is_blocked else 1]:
            layout.write_state(open_dir, LayoutState.APPLYING, "0" * 64, None)
        if is_blocked:
            start_block.set_block(open_dirs)
    assert ctl_json("handover", *planned.words, "--plan")[1]["start_block"] == ("set" if is_blocked else "none")
    said = ctl("handover", *planned.words)
    assert (said.status, said.err) == (Exit.DONE, ""), said
    assert said.out.count("a change of layout was ended, and the start block lifted") == 2
    assert without_copies(tree(*planned.log_dirs)) == before


def test_a_finalize_that_was_cut_off_is_finished_for_the_broker_that_was_named(planned: Planned) -> None:
    assert apply(planned)[0] == Exit.DONE
    assert ctl("layout", "verify", planned.plan, *planned.words, "--apply").status == Exit.DONE
    with open_dirs_of(planned) as open_dirs:
        layout.write_state(open_dirs[0], LayoutState.FINALIZING, sha256_of(planned), "kafka 9")
    assert ctl("handover", *planned.words).status == Exit.DONE
    for top in planned.log_dirs:
        file = layout_file.parse((top / "layout.json").read_bytes())
        assert (file.state, file.for_broker) == (LayoutState.FINAL, "kafka 9")
        assert "node.id=1\n" in (top / "meta.properties").read_text()
    # The next start finds nothing unfinished.
    after = without_copies(tree(*planned.log_dirs))
    said = ctl("handover", *planned.words)
    assert (said.status, said.out.count("no change of layout is unfinished")) == (Exit.DONE, 2)
    assert without_copies(tree(*planned.log_dirs)) == after


def test_topic_ids_that_no_layout_file_explains_are_refused(planned: Planned) -> None:
    assert apply(planned)[0] == Exit.DONE
    (planned.log_dirs[0] / "layout.json").unlink()
    before = tree(*planned.log_dirs)
    said = ctl("handover", *planned.words)
    assert (said.status, "layout-file-missing" in said.err) == (Exit.REFUSED, True), said
    assert tree(*planned.log_dirs) == before


def cut_off_a_rollback(planned: Planned) -> None:
    """Leave what a rollback leaves that was killed before its first move."""
    assert apply(planned)[0] == Exit.DONE
    for top in planned.log_dirs:
        path = top / "layout.json"
        file = layout_file.parse(path.read_bytes())
        path.write_bytes(layout_file.render(file._replace(state=LayoutState.ROLLING_BACK)))


@contextmanager
def opened_as_a_daemon(planned: Planned) -> Iterator[OpenBroker]:
    request = BrokerRequest(log_dirs=planned.words[1])
    with opened(request, changes=True, needs_all=False, is_start_block_allowed=True) as broker:
        yield broker


def let_go(broker: OpenBroker, log_dir: str) -> None:
    """Let go a log dir of an open broker, as ``logdirctl disk release`` does."""
    broker.ports.let_go(log_dir, Problem("log-dir-released", log_dir, "one that is open", "one let go"))


def blocked(planned: Planned) -> list[bool]:
    """Whether the start block is in each log dir."""
    return ["node.id=2147483647\n" in (top / "meta.properties").read_text() for top in planned.log_dirs]


def test_a_rollback_that_was_cut_off_is_finished(planned: Planned) -> None:
    before = without_copies(tree(*planned.log_dirs))
    cut_off_a_rollback(planned)
    said = ctl("handover", *planned.words)
    assert (said.status, said.err) == (Exit.DONE, ""), said
    assert "a change of layout was ended, and the start block lifted" in said.out
    assert without_copies(tree(*planned.log_dirs)) == before


@pytest.mark.parametrize("away", [0, 1])
@pytest.mark.parametrize("is_skipped", [False, True], ids=["all needed", "skipped"])
@pytest.mark.parametrize("has_failed", [False, True], ids=["let go", "failed"])
def test_a21_no_start_block_is_lifted_where_a_log_dir_drops_out_before_that(
    planned: Planned, away: int, monkeypatch: pytest.MonkeyPatch, *, is_skipped: bool, has_failed: bool
) -> None:
    """It was whole at the beginning, and is not any more once the replicas of all log dirs were moved."""
    cut_off_a_rollback(planned)
    where = str(planned.log_dirs[away])
    moved = []
    check = layout.require_no_prefixes
    with opened_as_a_daemon(planned) as broker:

        def drop_out_after_the_last(open_dir: OpenLogDir) -> None:
            check(open_dir)
            moved.append(open_dir.log_dir)
            if len(moved) == len(planned.log_dirs):
                if has_failed:
                    broker.quarantined[where] = Problem("sync-failed", where, "a disk without a failed sync", "one")
                else:
                    let_go(broker, where)

        monkeypatch.setattr(layout, "require_no_prefixes", drop_out_after_the_last)
        asked = HandoverRequest(skipped=(where,) if is_skipped else ())
        with pytest.raises(LogDirError) as raised:
            run(broker, asked, is_applied=True, reporter=SILENT)
    assert raised.value.path == where
    assert len(moved) == len(planned.log_dirs)
    assert blocked(planned) == [True, True]


@pytest.mark.parametrize("away", [0, 1])
def test_a21_no_start_block_is_lifted_beside_a_log_dir_that_is_let_go_before_the_layout_is_read(
    planned: Planned, away: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off_a_rollback(planned)
    where = str(planned.log_dirs[away])
    read = start_block.state
    with opened_as_a_daemon(planned) as broker:

        def let_go_after_that(open_dirs: Sequence[OpenLogDir]) -> StartBlockState:
            found = read(open_dirs)
            let_go(broker, where)
            return found

        monkeypatch.setattr(start_block, "state", let_go_after_that)
        with pytest.raises(LogDirError, match=r"^log-dirs-incomplete: "):
            run(broker, HandoverRequest(), is_applied=True, reporter=SILENT)
    assert blocked(planned) == [True, True]


@pytest.mark.parametrize("is_applied", [False, True])
def test_what_would_be_ended_is_refused_at_once_beside_a_log_dir_that_may_not_be_changed(
    planned: Planned, *, is_applied: bool
) -> None:
    """Also by a plan: nobody starts a broker on what a plan promises and the command refuses."""
    cut_off_a_rollback(planned)
    where = str(planned.log_dirs[1])
    with opened_as_a_daemon(planned) as broker:
        broker.quarantined[where] = Problem("sync-failed", where, "a disk without a failed sync", "one")
        with pytest.raises(LogDirError, match=r"^sync-failed: "):
            run(broker, HandoverRequest(), is_applied=is_applied, reporter=SILENT)
    assert blocked(planned) == [True, True]


def test_an_adoption_that_was_cut_off_is_finished(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    with failing("rename", str(rig.adopted())) as calls:
        assert rig.adopt("--apply").status != Exit.DONE
    assert calls
    assert not rig.adopted().exists()
    assert not rig.live().exists()
    said = ctl("handover", *rig.named)
    assert said.status == Exit.DONE, said
    assert rig.adopted().is_dir()
    assert not list(Path(f"{rig.disks[0]}.logdird/incoming").iterdir())


def test_an_adoption_that_cannot_be_finished_keeps_the_broker_from_its_start(tmp_path: Path) -> None:
    """A broker would make the replica anew, empty."""
    rig = AdoptRig(tmp_path)
    with failing("rename", str(rig.adopted())):
        rig.adopt("--apply")
    (ready,) = Path(f"{rig.disks[0]}.logdird/incoming").iterdir()
    marker = (ready / "replica.json").read_bytes()
    (ready / "replica.json").write_bytes(marker[:40])
    said = ctl("handover", *rig.named)
    assert said.status == Exit.REFUSED, said
    assert f"recovery-failed: {ready}: " in said.err
    (ready / "replica.json").write_bytes(marker)
    assert ctl("handover", *rig.named).status == Exit.DONE
    assert rig.adopted().is_dir()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES], ids=errno.errorcode.get)
def test_checkpoints_that_cannot_be_kept_keep_no_broker_down(disks: tuple[Path, Path], number: int) -> None:
    def tell(call: Call) -> None:
        if "handover.json" in f"{call.path} {call.to}" and str(disks[0]) in call.path:
            raise OSError(number, os.strerror(number))

    with mock.patch.object(state, "HostDisk", return_value=HostDisk(tell)):
        said = ctl("handover", *named(*disks), "--quiet")
    assert (said.status, said.out) == (Exit.DONE, ""), said
    assert f"checkpoints-not-kept: {disks[0]}: " in said.err
    assert not Path(f"{disks[0]}.logdird/handover.json").exists()
    assert kept(disks[1]).checkpoints.keys() == set(NAMES)


def test_uninstall_takes_the_copies_with_it(disks: tuple[Path, Path]) -> None:
    assert ctl("handover", *named(*disks)).status == Exit.DONE
    assert ctl("uninstall", *named(*disks), "--apply").status == Exit.DONE
    assert not Path(f"{disks[0]}.logdird").exists()


def test_an_adoption_waits_for_a_disk_that_may_not_be_changed_and_says_which(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    with failing("rename", str(rig.adopted())):
        rig.adopt("--apply")
    (ready,) = Path(f"{rig.disks[0]}.logdird/incoming").iterdir()
    for words in ([], ["--plan"]):
        said = ctl("handover", *rig.named, "--skip-log-dir", rig.disks[1], *words)
        assert said.status == Exit.REFUSED, said
        assert f"recovery-failed: {ready}: " in said.err
        assert f"once {rig.disks[1]} may be changed: its replica may live there" in said.err
    assert ctl("handover", *rig.named, "--plan").status == Exit.DONE
    assert not rig.adopted().exists()


def test_a_disk_that_stops_answering_while_its_checkpoints_are_kept_is_not_handed_over(
    disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = handover.keep

    def keep(open_dir: OpenLogDir, now: Instant, *, is_accepted: bool = False) -> Losses:
        if open_dir.log_dir == str(disks[1]):
            raise LogDirSuspectError(open_dir.log_dir, expected="an answer", found="none for 10 s")
        return before(open_dir, now, is_accepted=is_accepted)

    monkeypatch.setattr(handover, "keep", keep)
    monkeypatch.setattr(BrokerPorts, "suspect", property(lambda ports: frozenset({str(disks[1])})), raising=True)
    said = ctl("handover", *named(*disks), "--quiet")
    assert said.status == Exit.REFUSED, said
    assert f"log-dirs-incomplete: {disks[1]}: " in said.err


def test_a_disk_added_to_a_final_layout_keeps_no_broker_down(planned: Planned, tmp_path: Path) -> None:
    assert apply(planned)[0] == Exit.DONE
    assert ctl("layout", "verify", planned.plan, *planned.words, "--apply").status == Exit.DONE
    assert ctl("layout", "finalize", "--for-broker", "kafka 9", *planned.words, "--apply").status == Exit.DONE
    new = log_dir(tmp_path / "d3", directory="AAAAAAAAAAAAAAAAAAAACA")
    words = named(*planned.log_dirs, new)
    assert ctl("init", *words, "--apply").status in (Exit.DONE, Exit.PROBLEMS)
    before = without_copies(tree(*planned.log_dirs, new))
    said = ctl("handover", *words)
    assert said.status == Exit.DONE, said
    assert without_copies(tree(*planned.log_dirs, new)) == before


def test_a_new_disk_without_a_work_root_is_named_and_may_be_skipped(disks: tuple[Path, Path], tmp_path: Path) -> None:
    new = log_dir(tmp_path / "d3", directory="AAAAAAAAAAAAAAAAAAAACA")
    said = ctl("handover", *named(*disks, new))
    assert (said.status, "no-work-root" in said.err) == (Exit.REFUSED, True), said
    assert ctl("handover", *named(*disks, new), "--skip-log-dir", new).status == Exit.DONE


def test_quiet_json_is_one_object(disks: tuple[Path, Path]) -> None:
    status, result = ctl_json("handover", *named(*disks), "--quiet")
    assert (status, len(result["items"])) == (Exit.DONE, 2)


def test_a_work_root_inside_a_log_dir_stops_a_stock_broker_and_is_named(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    inside = ("--work-root", "inside", "--even-if-found", "work-root-inside")
    assert ctl("init", *named(top), *inside, "--apply").status == Exit.DONE
    for words in ([], ["--plan"]):
        said = ctl("handover", *named(top), *words)
        assert (said.status, "work-root-inside: " in said.err) == (Exit.REFUSED, True), said


@pytest.mark.parametrize("call", ["_ready", "start_block.state"])
def test_a_disk_that_cannot_be_read_is_one_line(
    disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(f"logdir.service.batch.handover.{call}", fails)
    said = ctl("handover", *named(*disks))
    assert said.status in (Exit.PROBLEMS, Exit.REFUSED), said
    assert (str(disks[0]) in said.err, said.err.count("\n")) == (True, 1)
