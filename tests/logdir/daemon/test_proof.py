"""A daemon that cannot link or lease files of its broker does not start; its check says so for every log dir."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.logdir.daemon.rig import Daemon, daemon, until
from tests.tools.ctl import HOME, ctl_without_rights

OTHER = 4242


def run(one: Daemon, *words: str) -> tuple[int, str, list[str]]:
    """Run a daemon that is expected to end by itself."""
    done = subprocess.run(one.command(*words), cwd=HOME, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, [line for line in done.stderr.splitlines() if line.startswith("logdird: ")]


def test_every_log_dir_without_a_work_root_is_named_and_what_to_type(tmp_path: Path) -> None:
    one = Daemon(tmp_path, disks=3)
    for path in one.log_dirs[1:]:
        shutil.rmtree(f"{path}.logdird")
    status, out, lines = run(one, "--check-config")
    assert (status, out) == (4, "")
    assert [line.split(": ")[1:3] for line in lines] == [["no-work-root", str(path)] for path in one.log_dirs[1:]]
    assert all("logdirctl init" in line for line in lines)


def test_a_log_dir_that_is_not_there_is_named_and_the_others_are_proven(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    one.log_dirs[0].rename(tmp_path / "away")
    status, _, (line,) = run(one, "--check-config")
    assert (status, line.startswith(f"logdird: log-dir-offline: {one.log_dirs[0]}: ")) == (1, True)


def test_a_configuration_can_be_checked_beside_the_daemon_that_has_the_log_dirs(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        status, out, lines = run(one, "--check-config")
        assert (status, out.startswith("OK: "), lines) == (0, True, [])


@pytest.mark.root
@pytest.mark.parametrize(("mode", "slug"), [(0o644, "link-not-permitted"), (0o666, "lease-not-permitted")])
def test_files_of_another_user_keep_a_daemon_from_starting_by_name(tmp_path: Path, mode: int, slug: str) -> None:
    """A file that others may write can be linked, and not leased."""
    if Path("/proc/sys/fs/protected_hardlinks").read_text().strip() != "1":
        pytest.skip("needs sysctl fs.protected_hardlinks=1")
    one = Daemon(tmp_path)
    for path in one.log_dirs:
        os.chown(path / "meta.properties", OTHER, OTHER)
        (path / "meta.properties").chmod(mode)
    status, out, lines = run(one, "--check-config")
    assert (status, out) == (4, "")
    assert [line.split(": ")[1:3] for line in lines] == [[slug, f"{path}/meta.properties"] for path in one.log_dirs]
    status, _, lines = run(one)
    assert (status, lines[0].split(": ")[1:3]) == (4, [slug, f"{one.log_dirs[0]}/meta.properties"])
    shutil.rmtree(f"{one.log_dirs[0]}.logdird")
    said = ctl_without_rights("init", "--server-properties", one.server_properties, "--apply")
    assert (said.status, f"{slug}: {one.log_dirs[0]}/meta.properties" in said.err) == (4, True), said
    assert not Path(f"{one.log_dirs[0]}.logdird").exists()


@pytest.mark.root
def test_a_file_that_is_given_away_later_stops_no_other_log_dir(tmp_path: Path) -> None:
    if Path("/proc/sys/fs/protected_hardlinks").read_text().strip() != "1":
        pytest.skip("needs sysctl fs.protected_hardlinks=1")
    with daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        assert one.process is not None
        os.chown(one.log_dirs[1] / "meta.properties", OTHER, OTHER)
        one.process.send_signal(1)
        until("it is quarantined", lambda: one.status().log_dirs[1].state.value == "quarantined")
        problem = one.status().log_dirs[1].problem
        assert problem is not None
        assert problem.slug == "link-not-permitted"
        one.delete(one.make())
        until("the other one captures", lambda: one.status().captured == 1)
        os.chown(one.log_dirs[1] / "meta.properties", 0, 0)
        one.process.send_signal(1)
        until("it is taken back", lambda: one.status().log_dirs[1].state.value == "online")
        assert one.stop() == 0
