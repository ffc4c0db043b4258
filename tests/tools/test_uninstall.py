"""``logdirctl uninstall``: all work roots or none, a way out of what keeps one, and no start block lifted too soon."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from logdir.disk.kernel.host import HostDisk
from logdir.disk.record import start_block
from logdir.disk.root.removal import remove_root
from logdir.disk.root.work_root import open_root
from logdir.errors import RefusedError
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.refusal_slug import Why
from tests.tools.ctl import ctl, ctl_json, tree, two_disks
from tests.tools.layout_fleet import Planned, apply, rollback
from tools.cli.arguments import Exit

INSIDE = ("--work-root", "inside", "--even-if-found", "work-root-inside")
ROOT_DIRECTORIES = ("deleting", "incoming", "probe", "spare-inodes")


@pytest.fixture
def named(tmp_path: Path) -> tuple[str, str]:
    """Two disks with work roots, ``pay-0`` of the first staged."""
    disks = two_disks(tmp_path)
    words = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *words, "--apply").status == Exit.DONE
    assert ctl("stage", "pay-0", "--even-if-unknown", *words, "--apply").status == Exit.DONE
    return words


def only(folder: Path) -> Path:
    (found,) = (one for one in folder.iterdir() if one.name != "probe")
    return found


def test_no_work_root_is_removed_while_another_stays(tmp_path: Path, named: tuple[str, str]) -> None:
    before = tree(tmp_path)
    said = ctl("uninstall", *named, "--apply")
    assert (said.status, tree(tmp_path).keys()) == (Exit.REFUSED, before.keys())
    # What it says to do can be done, as it is said.
    assert "next: logdirctl staged ls" in said.out
    for words in (["purge", "pay"], ["export", "pay", "-o", tmp_path], ["restore", "pay", "--even-if-unknown"]):
        said = ctl("staged", *words, *named)
        assert "no-work-root" not in said.err
    assert ctl("staged", "restore", "pay", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    assert ctl("uninstall", *named, "--apply").status == Exit.DONE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d1", "d2"]


@pytest.mark.parametrize("place", ["deleting", "incoming"])
def test_a_file_of_somebody_else_is_not_called_staged_wherever_it_lies(tmp_path: Path, place: str) -> None:
    disks = two_disks(tmp_path)
    words = ("--log-dirs", f"{disks[0]},{disks[1]}")
    ctl("init", *words, "--apply")
    notes = tmp_path / "d2.logdird" / place / "notes.txt"
    notes.write_text("x")
    for more in ((), ("--apply",), ("--restore", "--apply")):
        said = ctl("uninstall", *words, *more)
        assert said.status == Exit.REFUSED
        (line,) = (line for line in said.err.splitlines() if "work-root-conflict" in line)
        assert str(notes) in line
        assert not {"restore", "purge", "--restore"} & set(line.split("; ")[-1].split())
        assert said.out.splitlines()[-1] == f"next: logdirctl uninstall {' '.join(words)}"
        assert (tmp_path / "d1.logdird").is_dir()
    notes.unlink()
    assert ctl("uninstall", *words, "--apply").status == Exit.DONE


def test_a_broken_marker_is_not_sent_to_a_restore_that_refuses_it(tmp_path: Path, named: tuple[str, str]) -> None:
    (only(tmp_path / "d1.logdird" / "deleting") / "replica.json").write_text("{")
    for more in ((), ("--restore",), ("--restore", "--even-if-unknown")):
        said = ctl("uninstall", *named, *more, "--apply")
        assert said.status == Exit.REFUSED
        assert "docs/undo.md" in said.err
        assert not any(words in said.out + said.err for words in ("add --restore", "restore or purge"))


def test_a_refused_restore_is_not_sent_to_itself(tmp_path: Path, named: tuple[str, str]) -> None:
    said = ctl("uninstall", *named)
    assert "add --restore" in said.err
    said = ctl("uninstall", *named, "--restore")
    assert "assignment-unknown" in said.err
    assert "add --restore" not in said.err


@pytest.mark.parametrize("place", ["probe", "deleting/probe", "incoming/probe"])
def test_no_work_root_goes_beside_one_whose_probe_holds_something(tmp_path: Path, place: str) -> None:
    disks = two_disks(tmp_path)
    words = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *words, "--apply").status == Exit.DONE
    top = Path(f"{disks[1]}.logdird") / place
    top.mkdir(exist_ok=True)
    (top / "notes").touch()
    before = [sorted(path.name for path in Path(f"{disk}.logdird").iterdir()) for disk in disks]
    for more in ((), ("--apply",)):
        said = ctl("uninstall", *words, *more)
        assert said.status == Exit.REFUSED, said
        assert str(top) in said.err
    assert [sorted(path.name for path in Path(f"{disk}.logdird").iterdir()) for disk in disks] == before
    (top / "notes").unlink()
    assert ctl("uninstall", *words, "--apply").status == Exit.DONE


def test_no_work_root_goes_after_one_that_could_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disks = two_disks(tmp_path)
    words = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *words, "--apply").status == Exit.DONE

    def sticky(disk: HostDisk, log_dir: str) -> tuple[WorkRootKind, ...]:
        raise RefusedError(
            log_dir,
            why=Why.NO_PERMISSION,
            expected="the right to take it away",
            found="Operation not permitted",
            fix="run as the owner of the log dirs",
        )

    monkeypatch.setattr("logdir.service.uninstall.remove_root", sticky)
    status, result = ctl_json("uninstall", *words, "--apply")
    assert status != Exit.DONE
    assert [item["state"] for item in result["items"]] == ["refused", "waiting"]


def test_a_begun_removal_is_not_sent_to_a_restore_that_refuses_it(tmp_path: Path, named: tuple[str, str]) -> None:
    staged = only(tmp_path / "d1.logdird" / "deleting")
    staged.rename(f"{staged}.purging")
    for more in ((), ("--restore",)):
        said = ctl("uninstall", *named, *more)
        assert said.status == Exit.REFUSED
        assert not any(words in said.out + said.err for words in ("add --restore", "restore or purge"))
        assert said.out.splitlines()[-1] == f"next: logdirctl staged purge {' '.join(named)}"
    assert ctl("staged", "purge", *named, "--apply").status == Exit.DONE
    assert ctl("uninstall", *named, "--apply").status == Exit.DONE


@pytest.mark.parametrize("more", [(), ("--apply",)], ids=["plan", "apply"])
def test_the_staging_limit_is_not_forgotten_unsaid(
    tmp_path: Path, named: tuple[str, str], more: tuple[str, ...]
) -> None:
    assert "within 24 hours" not in ctl("uninstall", *named).err  # it stays: nothing is forgotten
    assert ctl("staged", "restore", "pay", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    said = ctl("uninstall", *named, *more)
    assert said.status == Exit.DONE
    (line,) = said.err.splitlines()
    assert "1 partition was staged within 24 hours" in line


def test_a_start_block_that_is_lifted_beside_staged_replicas_is_not_called_nothing(
    tmp_path: Path, named: tuple[str, str]
) -> None:
    disks = (tmp_path / "d1", tmp_path / "d2")
    before = tree(*disks)
    with ExitStack() as stack:
        start_block.set_block([stack.enter_context(open_root(HostDisk(), str(top))).open_dir for top in disks])
    status, result = ctl_json("uninstall", *named, "--apply")
    states = [item["state"] for item in result["items"]]
    assert (status, states) == (Exit.PROBLEMS, ["waiting", "done", "done", "refused", "waiting"])
    assert tree(*disks) == before
    assert ctl("staged", "restore", "pay", "--even-if-unknown", *named, "--apply").status == Exit.DONE


# A work root inside a log dir: a stock broker stops over its directories.


@pytest.mark.parametrize("is_empty", [False, True], ids=["topic-name", "empty"])
def test_no_work_root_is_made_inside_a_log_dir_of_a_stock_broker_unsaid(tmp_path: Path, is_empty: bool) -> None:
    disks = two_disks(tmp_path, 0 if is_empty else 3)
    if is_empty:
        for path in sorted((disks[0] / "other-0").rglob("*")):
            path.unlink()
        (disks[0] / "other-0").rmdir()
    words = ("--log-dirs", f"{disks[0]},{disks[1]}", "--work-root", "inside")
    before = tree(tmp_path)
    for more in ((), ("--apply",)):
        said = ctl("init", *words, *more)
        assert (said.status, said.err.count(" work-root-inside: ")) == (Exit.REFUSED, 2)
        assert "--even-if-found work-root-inside" in said.err
        assert f"{disks[0]}/deleting: " in said.err
        assert ("found an empty log dir" in said.err, "found the topic-name layout" in said.err) == (
            is_empty,
            not is_empty,
        )
    assert tree(tmp_path) == before
    assert ctl("init", *words, "--even-if-found", "work-root-inside", "--apply").status == Exit.DONE
    assert (disks[0] / "deleting").is_dir()
    assert ctl("init", *words, "--apply").status == Exit.DONE  # it is there


def lose_root(broker: Planned) -> Path:
    """Take the work root of a broker's first log dir away; return the log dir."""
    (top, *_) = broker.log_dirs
    assert remove_root(HostDisk(), str(top))
    return top


def test_no_work_root_comes_to_lie_inside_while_a_layout_may_be_taken_back(broker: Planned) -> None:
    before = tree(*broker.log_dirs)
    assert apply(broker)[0] == Exit.DONE
    top = lose_root(broker)
    assert ctl("init", *broker.words, "--apply").status == Exit.DONE
    assert Path(f"{top}.logdird").is_dir()
    assert rollback(broker)[0] == Exit.DONE
    assert tree(*broker.log_dirs) == before


def test_no_start_block_is_lifted_over_a_work_root_inside(broker: Planned) -> None:
    before = tree(*broker.log_dirs)
    assert apply(broker)[0] == Exit.DONE
    top = lose_root(broker)
    assert ctl("init", *broker.words, "--work-root", "inside", "--apply").status == Exit.REFUSED  # beside elsewhere
    other = str(broker.log_dirs[1])
    remove_root(HostDisk(), other)
    assert ctl("init", *broker.words, "--work-root", "inside", "--apply").status == Exit.DONE
    for _ in range(2):
        said = ctl("layout", "rollback", *broker.words, "--apply")
        assert (said.status, said.err.count(" work-root-inside: ")) == (Exit.PROBLEMS, 2)
        assert all(f"{one}/deleting: expected" in said.err for one in broker.log_dirs), said.err
        assert said.out.splitlines()[-1] == f"next: logdirctl uninstall {' '.join(broker.words)}"
        assert "not finished" in said.out
        _, found = ctl_json("layout", "status", *broker.words)
        assert {(one["layout"], one["start_block"], one["state"]) for one in found["items"]} == {
            ("topic-name", "set", "rolling-back")
        }
    said = ctl("layout", "status", *broker.words)
    assert said.out.splitlines()[-1] == f"next: logdirctl uninstall {' '.join(broker.words)}"
    assert ctl("uninstall", *broker.words).status == Exit.DONE
    assert (top / "start-block.json").exists()
    assert ctl("uninstall", *broker.words, "--apply").status == Exit.DONE
    assert tree(*broker.log_dirs) == before


def test_no_start_block_stays_unseen_where_an_uninstall_was_cut_off(broker: Planned) -> None:
    """Killed between the last work root inside and the start block: no work root is left that says so."""
    before = tree(*broker.log_dirs)
    assert apply(broker)[0] == Exit.DONE
    for top in broker.log_dirs:
        remove_root(HostDisk(), str(top))
    assert ctl("init", *broker.words, "--work-root", "inside", "--apply").status == Exit.DONE
    assert ctl("layout", "rollback", *broker.words, "--apply").status == Exit.PROBLEMS
    for top in broker.log_dirs:
        remove_root(HostDisk(), str(top))
        assert not any((top / name).exists() for name in ROOT_DIRECTORIES)
    said = ctl("uninstall", *broker.words, "--apply")
    assert said.status == Exit.REFUSED
    assert (broker.log_dirs[0] / "start-block.json").exists()
    assert ctl("init", *broker.words, "--apply").status == Exit.DONE
    assert rollback(broker)[0] == Exit.DONE
    assert tree(*broker.log_dirs) == before


def test_what_a_killed_proof_left_in_the_probe_goes_with_its_root(tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    os.link(disks[0] / "meta.properties", f"{disks[0]}.logdird/probe/probe-link")
    assert ctl("uninstall", *named, "--apply").status == Exit.DONE
    assert not Path(f"{disks[0]}.logdird").exists()
    assert (disks[0] / "meta.properties").stat().st_nlink == 1
