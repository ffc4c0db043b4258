"""``logdirctl init`` and ``uninstall``: made where it was said, and nothing left when it is taken back."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from logdir import clock
from logdir.formats.own import heartbeat_file, quarantine_file
from logdir.formats.own.quarantine_file import QuarantinedDisk, QuarantineFile
from tests.builders import log_dir, partition
from tests.tools.ctl import ctl, ctl_json, held, tree, two_disks
from tools.cli.arguments import Exit

VERBS = ("restore", "hold", "export")
IS_ROOT = os.geteuid() == 0
MADE = [
    "staging-limit.json",
    "controller.json",
    "deleting",
    "heartbeat.json",
    "incoming",
    "owner.lock",
    "probe",
    "reserve",
    "work-root.json",
]


def test_the_plan_changes_nothing_and_says_what_is_kept_and_where(tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    before = tree(tmp_path)
    status, out, err = ctl("init", "--log-dirs", f"{disks[0]},{disks[1]}")
    assert status == Exit.DONE
    assert f"{disks[0]}.logdird" in out
    assert "What is kept on this host" in err
    assert f"nowhere else: {disks[0]}.logdird, {disks[1]}.logdird\n" in err
    assert "nothing of them is deleted before" in err
    assert "logdirctl staged restore brings it back" in err
    assert out.splitlines()[-1] == f"next: logdirctl init --log-dirs {disks[0]},{disks[1]} --apply"
    assert tree(tmp_path) == before


@pytest.mark.parametrize("kind", ["auto", "beside", "in-place", "inside"])
def test_made_where_asked_for_with_a_staging_limit_and_a_heartbeat(tmp_path: Path, kind: str) -> None:
    disks = two_disks(tmp_path)
    before = tree(*disks)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    word = ("--even-if-found", "work-root-inside") if kind == "inside" else ()
    status, result = ctl_json("init", *named, "--work-root", kind, *word, "--apply")
    assert (status, result["applied"]) == (Exit.DONE, True)
    for made, top in zip(result["items"], disks, strict=True):
        assert (made["log_dir"], made["state"]) == (str(top), "done")
        assert made["kind"] == ("beside" if kind == "auto" else kind)
        root = Path(made["path"])
        assert set(MADE) <= set(os.listdir(root))
        heartbeat_file.parse((root / "heartbeat.json").read_bytes())
        assert (root / "reserve").stat().st_size == made["reserve_bytes"] == 4 << 20
        stat = (root / "deleting").stat()
        assert (stat.st_uid, stat.st_gid, stat.st_mode) == (top.stat().st_uid, top.stat().st_gid, top.stat().st_mode)
    after = tree(tmp_path)
    assert {path: told for path, told in after.items() if path in before} == before
    assert ctl("init", *named, "--apply").err == ""  # only the first time is it told what is kept
    status, result = ctl_json("uninstall", *named, "--apply")
    assert (status, result["start_block"], {item["state"] for item in result["items"]}) == (Exit.DONE, "none", {"done"})
    assert tree(tmp_path).keys() - before.keys() == {str(top) for top in disks}
    assert tree(*disks) == before
    assert ctl("uninstall", *named, "--apply").status == Exit.DONE


@pytest.mark.root
@pytest.mark.skipif(not IS_ROOT, reason="needs root, to give files away")
def test_a09_root_gives_everything_it_makes_to_the_owner_of_the_log_dir(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    partition(top / "pay-0")
    for path in (top, *top.rglob("*")):
        os.chown(path, 1234, 2345)
    named = ("--log-dirs", top)
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert ctl("stage", "pay", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    assert ctl("staged", "hold", "pay", *named, "--apply").status == Exit.DONE
    for path in tmp_path.rglob("*"):
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345), path


def test_an_interrupted_init_is_finished_and_a_used_root_keeps_its_staging_limit(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    partition(top / "pay-0")
    root = tmp_path / "d1.logdird"
    named = ("--log-dirs", top)
    ctl("init", *named, "--apply")
    (root / "heartbeat.json").unlink()
    (root / "staging-limit.json").unlink()
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert {"heartbeat.json", "staging-limit.json"} <= set(os.listdir(root))
    (root / "staging-limit.json").unlink()
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert "staging-limit.json" not in os.listdir(root)
    (root / "controller.json").unlink()
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert "controller.json" not in os.listdir(root)
    status, result = ctl_json("stage", "pay", "--even-if-unknown", *named, "--apply")
    assert (status, result["items"][0]["state"]) == (Exit.REFUSED, "waiting")
    assert (top / "pay-0").is_dir()
    assert ctl("stage", "pay", "--even-if-unknown", *named, "--apply", "--even-over-limit").status == Exit.DONE


@pytest.mark.parametrize("lost", ["owner.lock", "deleting", "incoming"])
def test_a_lost_part_of_a_work_root_does_not_send_to_an_init_that_sends_to_itself(tmp_path: Path, lost: str) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    root = tmp_path / "d2.logdird"
    ctl("init", *named, "--apply")
    if lost != "deleting":
        assert ctl("stage", "other", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    (root / lost).unlink() if lost == "owner.lock" else (root / lost).rmdir()
    refused = ctl("stage", "pay", "--even-if-unknown", *named, "--apply")
    assert (refused.status, "no-work-root" in refused.err) == (Exit.REFUSED, True)
    assert "logdirctl init" in refused.err

    status, planned = ctl_json("init", *named)
    (why,) = {one["detail"] for one in planned["items"] if one["log_dir"] == str(disks[1])}
    assert (status, lost in why) == (Exit.DONE, True)
    assert "is there" not in ctl("init", *named).out.splitlines()[2].replace(why, "")
    assert not (root / lost).exists()
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert (root / lost).exists()
    assert lost not in ctl_json("init", *named)[1]["items"][1]["detail"]
    if lost != "deleting":
        assert ctl("staged", "restore", "other", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    assert ctl("uninstall", *named, "--apply").status == Exit.DONE
    assert not root.exists()


@pytest.mark.parametrize("data", [b"", b"garbage\n", b"\0" * 200])
def test_a_broken_work_root_file_does_not_stop_all_without_a_way_out(tmp_path: Path, data: bytes) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    ctl("init", *named, "--apply")
    assert ctl("stage", "pay-1", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    broken = tmp_path / "d2.logdird" / "work-root.json"
    broken.write_bytes(data)
    for line in ("init", "staged ls", "staged restore pay-1 --even-if-unknown", "uninstall"):
        said = ctl(*line.split(), *named, *([] if line == "staged ls" else ["--apply"]))
        assert (said.status, f"malformed-file: {broken}: " in said.err) == (Exit.PROBLEMS, True), line
        assert "move the file out of that directory, then logdirctl init" in said.err
        assert "next: logdirctl staged restore" not in said.out
    broken.rename(tmp_path / "moved.json")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert ctl("staged", "restore", "pay-1", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    assert (disks[1] / "pay-1").is_dir()


@pytest.mark.parametrize("make", ["mkdir", "fifo", "link"])
@pytest.mark.parametrize(
    "name",
    [
        "heartbeat.json",
        "staging-limit.json",
        "quarantine.json",
        "owner.lock",
        "work-root.json",
        "reserve",
        "d2/meta.properties",
    ],
)
def test_something_else_under_the_name_of_a_file_of_ours_is_no_failed_disk(
    tmp_path: Path, name: str, make: str
) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    ctl("init", *named, "--apply")
    path = tmp_path / (name if "/" in name else f"d2.logdird/{name}")
    path.unlink(missing_ok=True)
    match make:
        case "mkdir":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "link":
            path.symlink_to("elsewhere")
    for line in ("init", *(["stage pay --even-if-unknown"] if name != "reserve" else [])):
        said = ctl(*line.split(), *named, "--apply")
        if said.status == Exit.DONE:
            assert (name, line) in {("reserve", line), ("staging-limit.json", "init")}
            continue
        assert f"{path}: expected" in said.err, line
        assert "kernel's log" not in said.err
        assert "log-dir-offline" not in said.err
        assert "--skip-log-dir" not in said.err
        assert "as the owner" not in said.err
        assert f"{disks[0]}: " not in said.err
    if name == "reserve" and make == "mkdir":
        removed = ctl("uninstall", *named, "--apply")
        assert f"wrong-file-type: {path}: expected a regular file, found a directory" in removed.err
        assert "owner" not in removed.err
        assert (path.parent / "work-root.json").exists()


def test_a_file_that_is_not_ours_is_not_called_staged(tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    ctl("init", *named, "--apply")
    foreign = tmp_path / "d2.logdird" / "mine.txt"
    foreign.write_text("hi")
    for more in ((), ("--apply",)):
        said = ctl("uninstall", *named, *more)
        assert (said.status in (Exit.PROBLEMS, Exit.REFUSED), f"work-root-conflict: {foreign}: " in said.err) == (
            True,
            True,
        )
        assert "staged" not in said.err + said.out
        assert said.out.splitlines()[-1] == f"next: logdirctl uninstall {' '.join(named)}"
    foreign.unlink()
    assert ctl("uninstall", *named, "--apply").status == Exit.DONE


def test_a_path_is_not_named_twice_where_a_work_root_may_not_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = two_disks(tmp_path)

    def forbidden(name: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)

    with monkeypatch.context() as patched:
        patched.setattr(os, "mkdir", forbidden)
        said = ctl("init", "--log-dirs", disks[0], "--work-root", "in-place", "--apply")
    assert f"{disks[0]}/__cluster_metadata-2147483647: expected" in said.err
    (refused,) = [line for line in said.err.splitlines() if ": expected " in line]
    assert refused.count("__cluster_metadata-2147483647") == 1


def test_what_was_made_before_a_log_dir_refused_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    real = os.mkdir

    def forbidden(name: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        if dir_fd is not None and Path(f"/proc/self/fd/{dir_fd}").readlink().is_relative_to(disks[1]):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        real(name, mode, dir_fd=dir_fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "mkdir", forbidden)
        said = ctl("init", *named, "--work-root", "in-place", "--apply", "--json")
    assert said.status == Exit.PROBLEMS
    (problem,) = json.loads(said.out)["problems"]
    assert str(disks[1]) in problem["path"]
    made = json.loads(said.out)["result"]["items"]
    assert [(one["log_dir"], one["state"]) for one in made] == [(str(disks[0]), "done"), (str(disks[1]), "undone")]
    assert (disks[0] / "__cluster_metadata-2147483647/work-root.json").exists()
    assert ctl("init", *named, "--work-root", "in-place", "--apply").status == Exit.DONE


def test_a_full_disk_is_not_refused_as_if_nothing_had_been_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = two_disks(tmp_path)

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        said = ctl("init", "--log-dirs", disks[0], "--apply")
    begun = f"{disks[0]}.logdird"
    assert said.status == Exit.PROBLEMS
    assert f"disk-full: {begun}/" in said.err
    assert "/: expected" not in said.err
    assert f"what was begun at {begun};" in said.err
    assert said.err.startswith("What is kept on this host"), "it is said before anything is made"
    assert ctl("uninstall", "--log-dirs", disks[0], "--apply").status == Exit.DONE
    assert not Path(begun).exists()


@pytest.mark.parametrize(
    "line",
    [
        "init --even-if-stale-disk /nope",
        "init --skip-log-dir /nope",
        *(f"staged {verb} pay --disk /nope" for verb in VERBS),
    ],
)
def test_no_option_that_names_a_log_dir_takes_one_of_nobody(tmp_path: Path, line: str) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    ctl("init", *named, "--apply")
    said = ctl(*line.split(), *named, *(["-o", tmp_path] if "export" in line else []))
    assert (said.status, "config-error" in said.err, "/nope" in said.err) == (Exit.USAGE, True, True)


def test_a_plan_does_not_pass_over_a_lost_owner_lock(tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    ctl("init", *named, "--apply")
    (tmp_path / "d2.logdird" / "owner.lock").unlink()
    said = ctl("stage", "pay", "--even-if-unknown", *named)
    assert (said.status, f"{tmp_path}/d2.logdird/owner.lock" in said.err) == (Exit.PROBLEMS, True)


def test_an_owner_lock_is_not_put_back_while_somebody_is_in_a_batch(tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    ctl("init", *named, "--apply")
    lock = tmp_path / "d2.logdird" / "owner.lock"
    lock.unlink()
    (disks[1] / ".lock").touch()
    with held(disks[1] / ".lock"):
        said = ctl("init", *named, "--apply")
    assert (said.status, f"lock-held: {disks[1]}/.lock" in said.err, lock.exists()) == (Exit.BROKER_RUNS, True, False)


def test_a_disk_whose_sync_failed_gets_no_owner_lock_back(tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    ctl("init", *named, "--apply")
    failed = QuarantinedDisk(str(disks[1]), "AAAAAAAAAAAAAAAAAAAABA", "a failed sync", 1)
    told = quarantine_file.render(QuarantineFile(clock.boot_id(), (failed,)))
    (tmp_path / "d1.logdird" / "quarantine.json").write_bytes(told)
    lock = tmp_path / "d2.logdird" / "owner.lock"
    lock.unlink()
    assert ctl("init", *named, "--apply").status == Exit.REFUSED
    assert not lock.exists()


def test_bad_input_of_all_kinds_makes_nothing(tmp_path: Path) -> None:
    good, other = log_dir(tmp_path / "good"), log_dir(tmp_path / "other", cluster="AAAAAAAAAAAAAAAAAAAAAA")
    node = log_dir(tmp_path / "node", node=2)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(good)
    taken = log_dir(tmp_path / "taken")
    (tmp_path / "taken.logdird").write_text("mine")
    properties = tmp_path / "server.properties"
    properties.write_text(f"node.id=2\nlog.dirs={good}\n")
    before = tree(tmp_path)
    for status, *argv in (
        (Exit.USAGE, "--log-dirs", f"{good},,"),
        (Exit.USAGE, "--log-dirs", f"{good},{good}"),
        (Exit.USAGE, "--server-properties", tmp_path / "none"),
        (Exit.USAGE, "--log-dirs", good, "--skip-log-dir", tmp_path / "elsewhere"),
        (Exit.USAGE, "--log-dirs", good, "--work-root", "somewhere"),
        (Exit.USAGE, "--log-dirs", tmp_path / "absent", "--skip-log-dir", tmp_path / "absent"),
        (Exit.PROBLEMS, "--log-dirs", f"{good},{tmp_path / 'absent'}"),
        (Exit.REFUSED, "--log-dirs", f"{good},{other}"),
        (Exit.REFUSED, "--log-dirs", f"{good},{node}"),
        (Exit.REFUSED, "--server-properties", properties),
        (Exit.REFUSED, "--log-dirs", f"{good},{tmp_path / 'empty'}"),
        (Exit.REFUSED, "--log-dirs", tmp_path / "link"),
        (Exit.REFUSED, "--log-dirs", f"{good},{taken}", "--work-root", "beside"),
    ):
        said = ctl("init", *argv, "--apply")
        assert said.status == status, (argv, said)
        assert said.out == ""
        assert said.err
        assert all(line for line in said.err.splitlines())
        assert tree(tmp_path) == before, argv


def test_every_log_dir_that_is_wrong_is_named_at_once(tmp_path: Path) -> None:
    good = log_dir(tmp_path / "good")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    status, out, err = ctl("init", "--log-dirs", f"{tmp_path}/a,{good},{tmp_path}/b", "--json")
    assert (status, err.count("not-formatted")) == (Exit.REFUSED, 2)
    assert out.count("not-formatted") == 2


def test_init_without_a_dead_disk_makes_the_others(tmp_path: Path) -> None:
    good, dead = log_dir(tmp_path / "good"), tmp_path / "dead"
    named = ("--log-dirs", f"{good},{dead}")
    assert f"--skip-log-dir {dead}" in ctl("init", *named, "--skip-log-dir", dead).out
    said = ctl("init", *named, "--skip-log-dir", dead, "--apply")
    assert (said.status, "log-dir-offline" in said.err) == (Exit.PROBLEMS, True)
    assert (tmp_path / "good.logdird" / "heartbeat.json").exists()
    assert not dead.exists()
    assert said.out.endswith(f"next: logdirctl staged ls --log-dirs {good},{dead}\n")


def test_uninstall_stays_away_while_a_broker_runs_and_while_something_is_staged(tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    ctl("init", *named, "--apply")
    ctl("stage", "pay-0", "--even-if-unknown", *named, "--apply")
    before = tree(tmp_path)
    with held(disks[0] / ".lock") as pid:
        said = ctl("uninstall", *named, "--restore", "--even-if-unknown", "--apply")
    assert (said.status, f"pid {pid}" in said.err) == (Exit.BROKER_RUNS, True)
    assert tree(tmp_path) == before
    status, result = ctl_json("uninstall", *named)
    assert (status, tree(tmp_path)) == (Exit.REFUSED, before)  # the second root is empty, and stays beside the first
    assert [item["state"] for item in result["items"]] == ["waiting", "refused", "waiting"]
    status, result = ctl_json("uninstall", *named, "--apply")
    assert status == Exit.REFUSED
    assert [item["state"] for item in result["items"]] == ["waiting", "refused", "waiting"]
    for top in disks:
        assert Path(f"{top}.logdird", "deleting").is_dir()
    assert ctl("uninstall", *named, "--apply", "--restore", "--even-if-unknown").status == Exit.DONE
    assert sorted(os.listdir(tmp_path)) == ["d1", "d2"]


def test_uninstall_lifts_a_start_block_and_refuses_a_layout_no_stock_broker_reads(tmp_path: Path) -> None:
    from contextlib import ExitStack

    from logdir.disk.kernel.host import HostDisk
    from logdir.disk.record import start_block
    from logdir.disk.root.work_root import open_root

    disks = two_disks(tmp_path)
    before = tree(*disks)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    ctl("init", *named, "--apply")
    with ExitStack() as stack:
        start_block.set_block([stack.enter_context(open_root(HostDisk(), str(top))).open_dir for top in disks])
    assert ctl("stage", "pay", "--even-if-unknown", *named, "--apply").status == Exit.REFUSED
    partition(disks[0] / "eX" / "eXOy6xj-Q8ivrWAlsZGnkw_9", topic_name="pay")
    blocked = tree(tmp_path)
    said = ctl("uninstall", *named, "--apply")
    assert (said.status, "rollback" in said.err) == (Exit.REFUSED, True)
    assert tree(tmp_path) == blocked
    for path in sorted((disks[0] / "eX").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (disks[0] / "eX").rmdir()
    status, result = ctl_json("uninstall", *named, "--apply")
    assert (status, result["start_block"]) == (Exit.DONE, "set")
    assert tree(*disks) == before
