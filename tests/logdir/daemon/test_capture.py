"""What a broker removes is kept: by a hint, by the sweep alone, at a start, after a kill."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from logdir.daemon.state import LogDirState
from logdir.formats.own import heartbeat_file, replica_marker
from logdir.formats.own.heartbeat_file import Boot
from tests.builders import TOPIC_ID
from tests.logdir.daemon.rig import UNIQUE, daemon, until
from tests.tools.ctl import ctl, ctl_json

OTHER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


def test_a_deletion_is_captured_before_its_broker_removes_it(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        path = one.make()
        before = {file.name: file.read_bytes() for file in path.iterdir()}
        gone = one.delete(path)
        until("it is captured", lambda: one.status().captured == 1)
        one.remove(gone)
        (name,) = one.staged()
        kept = Path(f"{one.log_dirs[0]}.logdird/deleting/{name}")
        assert {f.name: f.read_bytes() for f in kept.iterdir() if f.name != "replica.json"} == before
        status = one.status()
        assert (status.captured, status.missed, status.log_dirs[0].staged) == (1, 0, 1)
        assert status.next_due_ms == status.log_dirs[0].next_due_ms
        assert abs((status.next_due_ms or 0) - (time.time() * 1000 + 14_400_000)) < 60_000
        assert '"level": "WARNING"' in next(line for line in one.log.splitlines() if "replica.captured" in line)
        assert f"path={kept}" in one.log
        assert "purge_at=" in one.log
        assert [event["path"] for event in one.events() if event["event"] == "captured"] == [gone.name]


def test_the_log_start_is_known_that_its_broker_took_out_of_the_checkpoint_file(tmp_path: Path) -> None:
    """A broker renames the directory of a deleted replica, and writes the file again without its entry (§10.5)."""
    with daemon(tmp_path, is_started=False, more="sweep.interval.ms: 500\n") as one:
        path = one.make()
        checkpoint = one.log_dirs[0] / "log-start-offset-checkpoint"
        checkpoint.write_text("0\n1\npay 0 5\n")
        one.start()
        first_ms = one.status().looked_at_ms or 0
        until("it has looked again", lambda: (one.status().looked_at_ms or 0) >= first_ms + 400)
        gone = one.delete(path)
        checkpoint.write_text("0\n0\n")
        until("it is captured", lambda: one.staged() == [f"{TOPIC_ID}_0"])
        one.remove(gone)
        marker = Path(f"{one.log_dirs[0]}.logdird/deleting/{TOPIC_ID}_0/replica.json").read_bytes()
        assert replica_marker.parse(marker).checkpoints.log_start == 5


def test_a_stray_is_captured_and_held(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        one.delete(one.make(), "stray")
        until("it is captured", lambda: one.status().captured == 1)
        (disk, _) = one.status().log_dirs
        assert (disk.staged, disk.held, disk.next_due_ms) == (1, 1, None)


def make_stale(log_dir: Path) -> Path:
    """Put a disk back to two hours ago, in the boot before this one; return its heartbeat."""
    file = Path(f"{log_dir}.logdird/heartbeat.json")
    known = heartbeat_file.parse(file.read_bytes())
    before = (Boot(boot_id="before", seen_ms=60_000, credited_ms=0),)
    file.write_bytes(heartbeat_file.render(replace(known, boots=before, wall_ms=known.wall_ms - 2 * 3_600_000)))
    return file


def test_a25_a_deletion_is_captured_whose_replica_lies_on_a_disk_that_was_away(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False) as one:
        make_stale(one.log_dirs[1])
        one.make(disk=1)
        one.start()
        one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        assert (one.staged(), "passed-over" in one.log) == ([f"{TOPIC_ID}_0"], False)
        said = ctl("staged", "ls", "--server-properties", one.server_properties)
        assert "not-known-yet" in said.out


def test_a25_a_deletion_on_a_disk_that_was_away_is_captured(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False) as one:
        file = make_stale(one.log_dirs[1])
        stale = file.read_bytes()
        one.start()
        gone = one.delete(one.make(disk=1))
        until("it is captured", lambda: one.status().captured == 1)
        one.remove(gone)
        assert (one.staged(0), one.staged(1)) == ([], [f"{TOPIC_ID}_0"])
        disk = one.status().log_dirs[1]
        assert (disk.state, disk.problem and disk.problem.slug) == (LogDirState.QUARANTINED, "stale-disk")
        assert abs((disk.next_due_ms or 0) - (time.time() * 1000 + 14_400_000)) < 60_000
        assert file.read_bytes() == stale


def test_a_hundred_deletions_at_once_are_captured_on_two_disks(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        paths = [one.make(number=n, disk=n % 2) for n in range(100)]
        for path in paths:
            one.delete(path)
        until("all are captured", lambda: one.status().captured == 100)
        assert (len(one.staged(0)), len(one.staged(1)), one.status().missed) == (50, 50, 0)


def test_the_sweep_finds_what_no_event_told(tmp_path: Path) -> None:
    with daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        # Without their watch processes, and with the start of new ones half a minute away.
        until("they are there", lambda: len(one.watches()) == 2)
        for pid in one.watches():
            os.kill(pid, signal.SIGKILL)
        until("they are missed", lambda: one.log.count("watch.failed") == 2)
        one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1, 5)


def test_a_broker_that_removes_too_soon_is_named(tmp_path: Path) -> None:
    with daemon(tmp_path, delete_delay_ms=5000) as one:
        (problem,) = one.status().waiting
        assert (problem.slug, problem.path) == ("delete-delay-short", str(one.server_properties))
        one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        said = ctl("staged", "hold", "pay", "--config", one.config, "--apply")
        assert (said.status, said.err) == (0, "")  # What the status warns of fails no request.


@pytest.mark.slow
def test_what_was_deleted_while_the_daemon_was_down_is_captured_at_its_start(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        path = one.make()
        assert one.stop() == 0
        one.delete(path)
        one.start()
        until("it is captured", lambda: one.status().captured == 1)


def test_a_daemon_killed_and_started_again_captures_nothing_twice(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        one.stop(signal.SIGKILL)
        one.start()
        until("it is looked at", lambda: one.status().looked_at_ms is not None)
        one.delete(one.make(number=1))
        until("the other one is captured", lambda: len(one.staged()) == 2)
        assert not any("-delete" in name for name in one.staged())


@pytest.mark.slow
def test_a41_no_process_and_no_lock_outlives_a_daemon_that_is_killed(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        until("a worker and a watch for each log dir", lambda: len(one.children()) == 4)
        children = one.children()
        one.stop(signal.SIGKILL)
        until("they end", lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))
        one.start()


def test_what_was_moved_to_another_disk_is_not_kept(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        path = one.make()
        one.make(disk=1)
        gone = one.delete(path)
        until("it is passed over", lambda: "passed-over" in one.log)
        assert (one.staged(0), one.status().captured) == ([], 0)
        (event,) = [event for event in one.events() if event["event"] == "passed-over"]
        assert (event["path"], event["detail"]) == (gone.name, f"moved to {one.log_dirs[1]}")


def test_excluded_topics_and_a_delay_of_0_are_not_kept(tmp_path: Path) -> None:
    more = "capture.exclude: [scratch*]\ntopics: {tmp: {delete.topic.delay.ms: 0}}\n"
    with daemon(tmp_path, more=more) as one:
        one.delete(one.make("scratch-7"))
        one.delete(one.make("tmp", topic_id=OTHER_ID))
        until("both are passed over", lambda: one.log.count("passed-over") == 2)
        assert one.staged(0) == []


def test_delays_are_those_of_the_topic(tmp_path: Path) -> None:
    more = "delete.topic.delay.ms: 2h\ntopics: {'pay*': {delete.topic.delay.ms: 3d}}\n"
    with daemon(tmp_path, more=more) as one:
        one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        left = (one.status().next_due_ms or 0) - time.time() * 1000
        assert abs(left - 3 * 24 * 60 * 60 * 1000) < 60_000


@pytest.mark.slow
def test_a_directory_that_cannot_be_captured_is_named_once(tmp_path: Path) -> None:
    with daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        path = one.make()
        (path / "odd").mkdir()
        one.delete(path)
        until("it is refused", lambda: "not-captured" in one.log)
        one.delete(one.make(number=1))
        until("the other one is captured", lambda: one.status().captured == 1)
        time.sleep(1.5)
        assert one.log.count("not-captured") == 1
        assert one.staged(0) == ["eXOy6xj-Q8ivrWAlsZGnkw_1"]


def test_what_was_captured_is_listed_by_the_command_as_ever(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        said = ctl("staged", "ls", "--server-properties", one.server_properties)
        assert "pay" in said.out
        assert "not-known-yet" in said.out
        _, listed = ctl_json("staged", "ls", "--server-properties", one.server_properties)
        assert [(item["reason"], item["removal"]) for item in listed["items"]] == [("captured", "not-known-yet")]


def test_a_name_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    with daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        odd = one.log_dirs[0] / f"__cluster_metadata-0.{UNIQUE}-delete"
        odd.mkdir()
        (odd / "00000000000000000000.log").write_bytes(b"x")
        (one.log_dirs[0] / "x-delete").mkdir()
        one.delete(one.make())
        until("the replica is captured", lambda: one.status().captured == 1)
        assert one.staged(0) == ["eXOy6xj-Q8ivrWAlsZGnkw_0"]
        assert os.listdir(odd) == ["00000000000000000000.log"]
