"""Each metric moves with what it measures: a daemon captures, purges, loses a disk, refuses a reload."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logdir.daemon.config import parse
from logdir.daemon.look import Staged, look_at
from logdir.daemon.purging.purges import early_of
from logdir.daemon.report.history import History
from logdir.daemon.session import Kept, Session
from logdir.daemon.supervisor import Supervisor
from logdir.daemon.work import Work
from logdir.disk.kernel.calls import Space
from logdir.disk.kernel.host import HostDirectory
from logdir.service.log_dirs.glances import Glances
from logdir.service.report.result import ItemResult, ItemState
from logdir.worker.start import placed
from tests.builders import TOPIC_ID
from tests.logdir.cluster.log_dir import noop, remove
from tests.logdir.daemon.metrics.scrape import Fake, Scrape, scrape_of, scraped
from tests.logdir.daemon.rig import UNIQUE, Daemon, daemon, until
from tests.logdir.daemon.test_inbox import WITH_GONE, broker, put, until_handled
from tests.logdir.daemon.test_pressure import captured, partitions, reported
from tests.tools.ctl import ctl, held
from tests.tools.reconcile_rig import GONE, Rig, raw
from tools.cli.arguments import Exit

SWEEP = "sweep.interval.ms: 500\n"
BYTES = 120
"""Of the segments of a replica that ``Daemon.make`` makes."""


def measured(work: Work) -> Scrape:
    """Scrape a daemon whose work a test does in this process."""
    return scrape_of(Fake(work.status(), counters=work.supervisor.counters, looks=work.supervisor.looks))


@contextmanager
def opened(config: Path) -> Iterator[Work]:
    """Open the log dirs as a daemon does that has just started, in this process."""
    supervisor = unstarted(config)
    session = Session.open(supervisor.config, Kept(timed=supervisor.counters.note_looks))
    try:
        work = Work(session, supervisor)
        work.begin()
        yield work
    finally:
        session.close()


def unstarted(file: Path) -> Supervisor:
    """Return a supervisor whose thread was not started."""
    config = parse(file.read_bytes(), str(file))
    os.makedirs(config.state_dir)
    return Supervisor(config, version="0", history=History(config.state_dir))


def sighup(one: Daemon) -> None:
    assert one.process is not None
    one.process.send_signal(signal.SIGHUP)


def test_the_state_moves_from_starting_to_running(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    before = time.time()
    supervisor = unstarted(one.config)
    first = scrape_of(supervisor)
    assert first.of("logdird_broker_state") == 1
    since = first.of("logdird_state_since_timestamp_seconds") or 0
    assert before - 1 < since < before + 60
    supervisor.start()
    try:
        supervisor.started.result(30)
        until("it runs", lambda: scrape_of(supervisor).of("logdird_broker_state") == 3)
        assert (scrape_of(supervisor).of("logdird_state_since_timestamp_seconds") or 0) >= since
    finally:
        supervisor.stop()
        assert supervisor.join(30)
    last = scrape_of(supervisor)
    assert last.of("logdird_broker_state") == 7


def test_the_daemon_says_who_it_is_and_whether_its_broker_runs(tmp_path: Path) -> None:
    with daemon(tmp_path, more=SWEEP) as one:
        found = scraped(one)
        version = one.status().version
        named = {"daemon": "b1", "version": version, "node_id": 1, "cluster_id": one.status().cluster_id}
        assert found.of("logdird_info", **named) == 1
        assert found.of("logdird_broker_running") == 0
        (one.log_dirs[1] / ".lock").touch()
        with held(one.log_dirs[1] / ".lock"):
            until("the broker runs", lambda: scraped(one).of("logdird_broker_running") == 1)


def test_a_capture_and_its_purge_move_what_counts_them(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False, more=f"delete.topic.delay.ms: 1s\n{SWEEP}") as one:
        pause = one.folder / "state" / "pause-purge"
        pause.parent.mkdir()
        pause.touch()
        path = one.make()
        one.start()
        top = str(one.log_dirs[0])
        first = scraped(one)
        assert first.all_of("logdird_log_dir_entries") == {("live", top): 1}
        assert first.all_of("logdird_log_dir_bytes") == {("live", top): BYTES}
        names = "logdird_captured_total", "logdird_purged_total", "logdird_purged_bytes_total"
        assert [first.of(name) for name in names] == [0, 0, 0]
        assert first.of("logdird_staged_replicas", log_dir=top) == first.of("logdird_staged_bytes", log_dir=top) == 0
        assert first.of("logdird_next_purge_timestamp_seconds", log_dir=top) is None
        gone = one.delete(path)
        # It is counted at once; what is shown of the log dirs is from the look after it.
        until("it is seen to be staged", lambda: scraped(one).of("logdird_staged_replicas", log_dir=top) == 1)
        found = scraped(one)
        assert found.of("logdird_captured_total") == 1
        assert found.all_of("logdird_log_dir_entries") == {("delete", top): 1, ("staged", top): 1}
        assert found.all_of("logdird_log_dir_bytes") == {("delete", top): BYTES, ("staged", top): BYTES}
        assert found.of("logdird_staged_bytes", log_dir=top) == BYTES
        due = found.of("logdird_next_purge_timestamp_seconds", log_dir=top) or 0
        assert abs(due - time.time()) < 60
        one.remove(gone)
        until("it is seen to be gone", lambda: ("delete", top) not in scraped(one).all_of("logdird_log_dir_entries"))
        assert scraped(one).of("logdird_waiting", slug="pause-file") == 1
        pause.unlink()
        until("it is purged", lambda: scraped(one).of("logdird_purged_total") == 1)
        until("nothing waits", lambda: scraped(one).of("logdird_waiting", slug="pause-file") is None)
        until("nothing is staged", lambda: scraped(one).of("logdird_staged_replicas", log_dir=top) == 0)
        last = scraped(one)
        assert last.of("logdird_purged_bytes_total") == BYTES
        assert last.all_of("logdird_log_dir_entries") == {}
        assert last.of("logdird_next_purge_timestamp_seconds", log_dir=top) is None


def test_what_goes_for_room_before_its_deadline_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported(monkeypatch)
    name = "logdird_purged_early_total"
    with captured(tmp_path, 6) as (_, work, deleting):
        assert measured(work).of(name) == 0
        work.sweep()
        assert partitions(deleting) == ["3", "4", "5"]
        assert measured(work).of(name) == measured(work).of("logdird_purged_total") == 3


def test_a_removal_that_goes_on_after_it_began_early_is_not_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported(monkeypatch)
    with captured(tmp_path, 2, more="purge.bytes.per.second: 2000\n") as (_, work, deleting):
        with monkeypatch.context() as patched:
            patched.setattr("logdir.daemon.purging.purges.STEP_MS", 1)
            work.sweep()
        assert partitions(deleting) == ["0.purging", "1"]
        assert measured(work).of("logdird_purged_early_total") == 1
        assert measured(work).of("logdird_purged_total") == 0
        work.purge_due()
        assert partitions(deleting) == ["1"]
        assert measured(work).of("logdird_purged_early_total") == measured(work).of("logdird_purged_total") == 1


def test_what_goes_after_its_deadline_is_no_loss_of_time(tmp_path: Path) -> None:
    """On a disk that is nearly full what is due goes first, and could not be counted on any more."""
    one = Daemon(tmp_path, disks=1)
    with opened(one.config) as work:
        for number in range(3):
            one.delete(one.make(number=number))
        work.sweep()
        look = look_at(work.session)
        (log_dir,) = look.staged
        items, (first, second, third) = look.staged[log_dir]
        now_ms = look.now.boottime_ms
        assert min(filter(None, (first, second, third))) > now_ms
        changed = look._replace(staged={log_dir: Staged(items, (now_ms - 1, now_ms, now_ms + 1))})
        done = [ItemResult(log_dir=log_dir, path=item.path, ref=item.ref, state=ItemState.DONE) for item in items]
        assert early_of(look, done) == 3
        assert early_of(changed, done) == 1
        assert early_of(changed, done[:2]) == 0


def test_a_stray_is_held(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        top = str(one.log_dirs[0])
        assert scraped(one).of("logdird_held_replicas", log_dir=top) == 0
        one.delete(one.make(), "stray")
        until("it is captured", lambda: scraped(one).of("logdird_held_replicas", log_dir=top) == 1)
        (window,) = one.status().windows
        assert (window.topic, str(window.topic_id), window.replicas, window.due_ms) == ("pay", TOPIC_ID, 1, None)


def test_what_the_broker_removes_first_is_missed(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    with opened(one.config) as work:
        gone = one.delete(one.make())
        glances = work.session.glance()
        one.remove(gone)
        assert measured(work).of("logdird_missed_total") == 0
        work.capture(glances)
        assert measured(work).of("logdird_missed_total") == 1


def test_claimed_replicas_and_partial_captures_are_counted(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    top = str(one.log_dirs[0])
    with opened(one.config) as work:
        for number in range(2):
            one.delete(one.make(number=number))
        work.sweep()
        first = measured(work)
        assert first.of("logdird_purging_replicas", log_dir=top) == 0
        assert first.of("logdird_partial_captures", log_dir=top) == 0
        root = Path(f"{top}.logdird")
        (root / "deleting" / f"{TOPIC_ID}_0").rename(root / "deleting" / f"{TOPIC_ID}_0.purging")
        (root / "deleting" / f"{TOPIC_ID}_1").rename(root / "incoming" / f"{TOPIC_ID}_1")
        work.rescan()
        found = measured(work)
        assert found.of("logdird_purging_replicas", log_dir=top) == 1
        assert found.of("logdird_partial_captures", log_dir=top) == 1


@pytest.mark.slow
def test_the_metadata_log_is_followed_before_a_purge(tmp_path: Path) -> None:
    """What is committed is known up to its newest snapshot; the records behind that are the lag."""
    rig = Rig(tmp_path)
    log = rig.log()
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    for _ in range(5):
        log.append(noop())
    (tmp_path / "server.properties").write_text(f"broker.id=1\nlog.dirs={','.join(map(str, rig.disks))}\n")
    config = tmp_path / "b1.yaml"
    config.write_text(
        "server.properties: server.properties\nstate.dir: state\nsocket: s.sock\nstaged.min.free: 1\n"
        "auto.while.stopped: true\n"
        "delete.topic.delay.ms: 1s\n"
    )
    with opened(config) as work:
        path = rig.disks[0] / "gone-0"
        path.rename(path.with_name(f"gone-0.{UNIQUE}-delete"))
        work.sweep()
        assert measured(work).of("logdird_metadata_lag") is None
        time.sleep(1.1)
        work.sweep()
        work.purge_due()
        assert measured(work).of("logdird_metadata_lag") == 5


def test_a_disk_that_fails_shows_and_comes_back(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False, more=SWEEP) as one:
        one.make(disk=1)
        one.make("pay", 4, disk=1)
        one.start()
        top, away = str(one.log_dirs[1]), tmp_path / "away"
        first = scraped(one)
        assert first.of("logdird_offline_log_directory_count") == 0
        assert first.of("logdird_log_dir_state", log_dir=top, state="online") == 1
        assert first.of("logdird_failed_replicas") == 0
        assert first.all_of("logdird_errors_total") == {}
        one.log_dirs[1].rename(away)
        until("it has failed", lambda: scraped(one).of("logdird_failed_replicas") == 2)
        found = scraped(one)
        assert found.of("logdird_offline_log_directory_count") == 1
        assert found.of("logdird_log_dir_state", log_dir=top, state="online") == 0
        assert found.of("logdird_log_dir_entries", log_dir=top, kind="live") == 2
        assert found.of("logdird_log_dir_free_bytes", log_dir=top) is None
        errors = found.all_of("logdird_errors_total")
        assert sum(count for (log_dir, _), count in errors.items() if log_dir == top) >= 1
        assert {log_dir for log_dir, _ in errors} <= {top, ""}
        away.rename(one.log_dirs[1])
        sighup(one)  # By itself it looks again after a minute.
        until("it is back", lambda: scraped(one).of("logdird_log_dir_state", log_dir=top, state="online") == 1)
        until("its replicas are", lambda: scraped(one).of("logdird_failed_replicas") == 0)


def test_a_disk_that_fills_up_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Daemon(tmp_path, disks=1, more="staged.min.free: 10\n")
    top = str(one.log_dirs[0])
    space = Space(free_bytes=5_000, free_inodes=700, total_bytes=10_000, total_inodes=1000)
    monkeypatch.setattr(HostDirectory, "space", lambda _: space)
    monkeypatch.setattr(Glances, "space_of", lambda *_: space)

    def found(work: Work) -> list[float | None]:
        seen = measured(work)
        return [
            seen.of("logdird_log_dir_free_bytes", log_dir=top),
            seen.of("logdird_log_dir_size_bytes", log_dir=top),
            seen.of("logdird_log_dir_free_inodes", log_dir=top),
            seen.of("logdird_undo_off", log_dir=top),
        ]

    with opened(one.config) as work:
        assert found(work) == [5_000, 10_000, 700, 0]
        space = space._replace(free_bytes=900, total_bytes=20_000, free_inodes=600)
        assert found(work) == [900, 20_000, 600, 1]
        space = space._replace(total_inodes=0, free_inodes=0)
        assert found(work) == [900, 20_000, None, 1]


@pytest.mark.usefixtures("workers")
def test_each_sweep_is_a_look_at_each_disk(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    with opened(one.config) as work:
        before = measured(work)
        first = before.of("logdird_last_look_timestamp_seconds") or 0
        counts = [before.of("logdird_look_seconds_count", log_dir=top) or 0 for top in one.log_dirs]
        for _ in range(2):
            work.sweep()
        after = measured(work)
        assert [after.of("logdird_look_seconds_count", log_dir=top) for top in one.log_dirs] == [n + 2 for n in counts]
        for top in one.log_dirs:
            total = after.of("logdird_look_seconds_sum", log_dir=top) or 0
            assert 0 < total < 60
            assert after.of("logdird_look_seconds_bucket", log_dir=top, le="+Inf") == counts[0] + 2
        assert (after.of("logdird_last_look_timestamp_seconds") or 0) > first


def test_a_watch_that_ends_shows(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        watched = {(str(top),): 1.0 for top in one.log_dirs}
        until("both have their process", lambda: len(one.watches()) == 2)
        until("both are watched", lambda: scraped(one).all_of("logdird_log_dir_watched") == watched)
        for pid in one.watches():
            os.kill(pid, signal.SIGKILL)
        # A new one is started half a minute later.
        until("none is", lambda: set(scraped(one).all_of("logdird_log_dir_watched").values()) == {0})
        assert {disk.is_watched for disk in one.status().log_dirs} == {False}


def test_a_request_moves_what_counts_it(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        top = str(one.log_dirs[0])
        assert scraped(one).all_of("logdird_requests_total") == {}
        assert ctl("staged", "hold", "nothing-there", "--config", one.config, "--apply").status == Exit.PROBLEMS
        one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        before = scraped(one).of("logdird_log_dir_read_timestamp_seconds", log_dir=top) or 0
        assert ctl("staged", "hold", "pay", "--config", one.config, "--apply").status == Exit.DONE
        found = scraped(one)
        assert found.of("logdird_requests_total", use_case="staged hold", exit=1) == 1
        assert found.of("logdird_requests_total", use_case="staged hold", exit=0) == 1
        assert (found.of("logdird_log_dir_read_timestamp_seconds", log_dir=top) or 0) > before
        assert found.of("logdird_held_replicas", log_dir=top) == 1


def test_a_request_that_waits_for_its_turn_shows(tmp_path: Path) -> None:
    supervisor = unstarted(Daemon(tmp_path).config)
    assert scrape_of(supervisor).of("logdird_requests_queued") == 0
    for _ in range(3):
        supervisor.submit("staged hold", lambda work: None)
    assert scrape_of(supervisor).of("logdird_requests_queued") == 3


def test_a_status_in_which_nothing_has_changed_is_the_same_object(tmp_path: Path) -> None:
    supervisor = unstarted(Daemon(tmp_path).config)
    first = supervisor.status()
    assert supervisor.status() is first
    supervisor.submit("staged hold", lambda work: None)
    assert supervisor.status() is not first


def test_documents_move_what_counts_them(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False, more=SWEEP) as one:
        broker(one)
        one.start()
        assert scraped(one).all_of("logdird_documents_total") == {("done",): 0, ("refused",): 0}
        put(one, "1.json", WITH_GONE)
        put(one, "2.json", b"{")
        until_handled(one, done=1, refused=1)
        found = {("done",): 1, ("refused",): 1}
        until("both are counted", lambda: scraped(one).all_of("logdird_documents_total") == found)
        assert [log_dir for log_dir, _ in scraped(one).all_of("logdird_errors_total")] == [""]


def test_a_time_without_a_look_is_a_gap(tmp_path: Path) -> None:
    with daemon(tmp_path, delete_delay_ms=4000, more=SWEEP) as one:
        path = tmp_path / "state" / "last-look"
        until("it has looked", path.exists)
        first = scraped(one)
        assert first.of("logdird_gaps_total") == 0
        assert first.of("logdird_last_gap_end_timestamp_seconds") is None
        one.stop(signal.SIGKILL)
        boot_id, boottime_ms, wall_ms = path.read_text().split()
        path.write_text(f"{boot_id} {int(boottime_ms) - 60_000} {int(wall_ms) - 60_000}\n")
        one.start()
        until("it is counted", lambda: scraped(one).of("logdird_gaps_total") == 1)
        assert abs((scraped(one).of("logdird_last_gap_end_timestamp_seconds") or 0) - time.time()) < 60


def test_a_history_that_cannot_be_written_shows(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False) as one:
        (one.folder / "state" / "history.jsonl").mkdir(parents=True)
        one.start()
        until("its lines are dropped", lambda: (scraped(one).of("logdird_history_dropped_total") or 0) >= 1)


def test_a_configuration_that_is_not_taken_shows_until_one_is(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        assert scraped(one).of("logdird_config_reload_failed") == 0
        one.configure("x: 1\n")
        sighup(one)
        until("it is refused", lambda: scraped(one).of("logdird_config_reload_failed") == 1)
        assert scraped(one).of("logdird_errors_total", log_dir="", slug="config-error") == 1
        one.configure("capture.exclude: []\n")
        sighup(one)
        until("one is taken", lambda: scraped(one).of("logdird_config_reload_failed") == 0)


def test_a_textfile_appears_beside_a_running_daemon_and_goes_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "collector"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    path = folder / "logdird-b1.prom"
    with daemon(tmp_path, more=f"metrics.textfile: {path}\n") as one:
        until("it is written", path.exists)
        until("it runs", lambda: Scrape(path.read_bytes()).of("logdird_broker_state", daemon="b1") is not None)
        assert path.stat().st_mode & 0o777 == 0o644
        elsewhere = folder / "other.prom"
        one.configure(f"metrics.textfile: {elsewhere}\n")
        sighup(one)
        until("it is written elsewhere", lambda: elsewhere.exists() and not path.exists())
        assert one.stop() == 0
    assert list(folder.iterdir()) == []


def test_a_textfile_that_cannot_be_written_waits_for_an_operator_and_stops_nothing(tmp_path: Path) -> None:
    with daemon(tmp_path, more=f"metrics.textfile: {tmp_path}/none/b1.prom\n") as one:
        until("it is named", lambda: scraped(one).of("logdird_waiting", slug="metrics-unwritten") == 1)
        assert scraped(one).of("logdird_errors_total", log_dir="", slug="metrics-unwritten") == 1
        one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        assert one.log.count("metrics.unwritten") == 1


def test_the_time_of_a_look_at_a_disk_that_does_not_answer_is_counted(tmp_path: Path) -> None:
    """The worker stands still; the call is given up after the time that the configuration allows."""
    one = Daemon(tmp_path, more="disk.timeout.ms: 1000\n")
    with placed(is_here=False), opened(one.config) as work:
        port = work.session.broker.ports.port(str(one.log_dirs[1]))
        assert port.pid is not None
        os.kill(port.pid, signal.SIGSTOP)
        work.session.glance(is_same_required=False)
        found = measured(work)
        sick = str(one.log_dirs[1])
        slow = found.of("logdird_look_seconds_sum", log_dir=sick) or 0
        assert 0.9 < slow < 60
        assert found.of("logdird_log_dir_state", log_dir=sick, state="suspect") == 1
        before = found.of("logdird_look_seconds_count", log_dir=sick)
        # Nothing more is asked of it: a call that is refused at once is no quick look.
        work.session.glance(is_same_required=False)
        assert measured(work).of("logdird_look_seconds_count", log_dir=sick) == before
