"""The text of a scrape: what the status shows and what is counted, absent where it is not known."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from logdir.daemon.looks import Look, Looks
from logdir.daemon.metrics.exposition import CONTENT_TYPE, text_of, textfile_of
from logdir.daemon.report.counters import Counters
from logdir.daemon.report.failed_replicas import FailedReplicas, FailedTopic
from logdir.daemon.report.figures import KindFigures
from logdir.daemon.report.history import History
from logdir.daemon.report.status import LogDirStatus, blank_status
from logdir.daemon.state import DaemonState, LogDirState
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.ids import TopicId
from logdir.service.report.exit_status import Exit
from tests.builders import TOPIC_ID
from tests.logdir.daemon.metrics.scrape import Fake, Scrape, scrape_of

TOP = Path(__file__).parents[4]
PROBLEM = Problem("log-dir-suspect", "/d2", "an answer within 10 s", "none")
STATUS = replace(
    blank_status("b1", "1.2.3"),
    state=DaemonState.RUNNING.name,
    state_number=int(DaemonState.RUNNING),
    since_ms=1_700_000_000_500,
    looked_at_ms=1_700_000_001_000,
    node_id=7,
    cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
    broker_runs=True,
)
WELL = LogDirStatus(
    log_dir="/d1",
    state=LogDirState.ONLINE,
    free_bytes=5,
    total_bytes=100,
    free_inodes=9,
    is_undo_off=True,
    staged=4,
    staged_bytes=40,
    held=1,
    purging=2,
    partial=3,
    next_due_ms=1_700_000_002_000,
    kinds=(
        KindFigures(kind=Kind.LIVE, entries=10, log_bytes=1000),
        KindFigures(kind=Kind.STAGED, entries=4, log_bytes=40),
    ),
    read_at_ms=1_700_000_000_000,
)
SICK = LogDirStatus(log_dir="/d2", state=LogDirState.SUSPECT, problem=PROBLEM, is_watched=False)


def of(**changed: object) -> Scrape:
    return scrape_of(Fake(replace(STATUS, **changed)))  # type: ignore[arg-type]


def test_a_daemon_that_has_not_looked_yet_says_only_what_it_knows() -> None:
    found = scrape_of(Fake())
    assert found.of("logdird_info", daemon="b1", version="1.2.3", node_id="", cluster_id="") == 1
    known = {name for name, _ in found.values if name.startswith("logdird_")}
    assert known == {
        "logdird_info",
        "logdird_broker_state",
        "logdird_state_since_timestamp_seconds",
        "logdird_captured_total",
        "logdird_missed_total",
        "logdird_purged_total",
        "logdird_purged_bytes_total",
        "logdird_purged_early_total",
        "logdird_gaps_total",
        "logdird_failed_replicas",
        "logdird_requests_queued",
        "logdird_documents_total",
        "logdird_history_dropped_total",
        "logdird_config_reload_failed",
    }


def test_the_state_of_the_daemon_is_that_of_kip_631() -> None:
    found = of()
    assert found.of("logdird_broker_state") == 3
    assert found.of("logdird_state_since_timestamp_seconds") == 1_700_000_000.5
    assert found.of("logdird_info", daemon="b1", version="1.2.3", node_id=7, cluster_id="MkU3OEVBNTcwNTJENDM2Qk") == 1
    assert of(state_number=6).of("logdird_broker_state") == 6


def test_whether_the_broker_runs_is_1_0_or_absent() -> None:
    runs = [of(broker_runs=runs).of("logdird_broker_running") for runs in (True, False, None)]
    assert runs == [1, 0, None]


def test_the_lag_of_the_metadata_log_is_absent_until_it_was_read() -> None:
    assert [of(metadata_lag=lag).of("logdird_metadata_lag") for lag in (None, 0, 25)] == [None, 0, 25]


def test_a_log_dir_has_one_state_and_the_disk_its_figures() -> None:
    found = of(log_dirs=(WELL, SICK))
    states = found.all_of("logdird_log_dir_state")
    assert len(states) == 10
    assert {key for key, value in states.items() if value} == {("/d1", "online"), ("/d2", "suspect")}
    assert found.of("logdird_offline_log_directory_count") == 1
    names = "log_dir_free_bytes", "log_dir_size_bytes", "log_dir_free_inodes", "log_dir_read_timestamp_seconds"
    assert [found.of(f"logdird_{name}", log_dir="/d1") for name in names] == [5, 100, 9, 1_700_000_000]
    assert [found.of(f"logdird_{name}", log_dir="/d2") for name in names] == [None] * 4
    assert found.all_of("logdird_log_dir_watched") == {("/d1",): 1, ("/d2",): 0}


def test_what_lies_on_a_disk_is_told_by_kind() -> None:
    found = of(log_dirs=(WELL,))
    # Labels in the order of their names: kind, log_dir.
    assert found.all_of("logdird_log_dir_bytes") == {("live", "/d1"): 1000, ("staged", "/d1"): 40}
    assert found.all_of("logdird_log_dir_entries") == {("live", "/d1"): 10, ("staged", "/d1"): 4}


def test_what_is_staged_is_told_by_disk() -> None:
    found = of(log_dirs=(WELL, SICK))
    names = "undo_off", "staged_replicas", "staged_bytes", "held_replicas", "purging_replicas", "partial_captures"
    assert [found.of(f"logdird_{name}", log_dir="/d1") for name in names] == [1, 4, 40, 1, 2, 3]
    assert [found.of(f"logdird_{name}", log_dir="/d2") for name in names] == [0] * 6
    assert found.all_of("logdird_next_purge_timestamp_seconds") == {("/d1",): 1_700_000_002}


def test_counters_go_up() -> None:
    counters = Counters(captured=3, missed=1, purged=2, purged_bytes=240, purged_early=1)
    counters.note_document(is_done=True)
    counters.note_document(is_done=False)
    counters.note_document(is_done=False)
    counters.note_request("staged purge", Exit.DONE)
    counters.note_request("staged purge", Exit.DONE)
    counters.note_request("stage", Exit.REFUSED)
    counters.note_error(Problem("disk-error", "/d1/x", "one thing", "another thing"), ["/d1"])
    counters.note_error(Problem("config-error", "/etc/x", "one thing", "another thing"), ["/d1"])
    found = scrape_of(Fake(STATUS, counters=counters))
    names = "captured_total", "missed_total", "purged_total", "purged_bytes_total", "purged_early_total"
    assert [found.of(f"logdird_{name}") for name in names] == [3, 1, 2, 240, 1]
    assert found.all_of("logdird_documents_total") == {("done",): 1, ("refused",): 2}
    assert found.of("logdird_requests_total", use_case="staged purge", exit=0) == 2
    assert found.of("logdird_requests_total", use_case="stage", exit=4) == 1
    assert found.of("logdird_errors_total", log_dir="/d1", slug="disk-error") == 1
    assert found.of("logdird_errors_total", log_dir="", slug="config-error") == 1


def test_looks_are_a_histogram_whose_buckets_contain_those_before_them() -> None:
    counters = Counters()
    counters.note_looks({"/d1": 800_000})
    counters.note_looks({"/d1": 30_000_000})
    counters.note_looks({"/d1": 12_000_000_000})
    found = scrape_of(Fake(STATUS, counters=counters))
    bounds = {"0.001": 1, "0.025": 1, "0.05": 2, "10.0": 2, "+Inf": 3}
    assert {bound: found.of("logdird_look_seconds_bucket", log_dir="/d1", le=bound) for bound in bounds} == bounds
    assert found.of("logdird_look_seconds_count", log_dir="/d1") == 3
    assert found.of("logdird_look_seconds_sum", log_dir="/d1") == pytest.approx(12.0308)
    assert len(found.all_of("logdird_look_seconds_bucket")) == 14


def test_gaps_and_the_last_look_are_those_of_all_starts(tmp_path: Path) -> None:
    found = of(gaps=2, last_gap_from_ms=1_700_000_000_000, last_gap_to_ms=1_700_000_100_000)
    assert found.of("logdird_gaps_total") == 2
    assert found.of("logdird_last_gap_end_timestamp_seconds") == 1_700_000_100
    assert of().of("logdird_last_gap_end_timestamp_seconds") is None
    (tmp_path / "last-look").write_text(" ".join(map(str, Look("boot", 5, 1_700_000_003_000))) + "\n")
    looks = Looks(str(tmp_path), lambda look, gaps: None)
    before = time.time()
    assert scrape_of(Fake(looks=looks)).of("logdird_last_look_timestamp_seconds") == 1_700_000_003
    looks.note("server.properties", 60_000, is_running=True)
    assert before - 1 < (scrape_of(Fake(looks=looks)).of("logdird_last_look_timestamp_seconds") or 0) < before + 60


def test_what_waits_is_counted_by_slug() -> None:
    full = Problem("disk-full", "/d1", "one thing", "another thing")
    found = of(waiting=(PROBLEM, full, full._replace(path="/d3")), queued=4)
    assert found.all_of("logdird_waiting") == {("disk-full",): 2, ("log-dir-suspect",): 1}
    assert found.of("logdird_requests_queued") == 4
    assert of().all_of("logdird_waiting") == {}


def test_failed_replicas_are_counted_over_their_topics() -> None:
    topic = FailedTopic(TopicId.parse(TOPIC_ID), (0, 4))
    failed = FailedReplicas(1, (topic, FailedTopic(TopicId.parse(TOPIC_ID), (7,))))
    assert [of(failed_replicas=one).of("logdird_failed_replicas") for one in (None, failed)] == [0, 3]


def test_lines_of_the_history_that_are_dropped_are_counted(tmp_path: Path) -> None:
    history = History(str(tmp_path / "none"))
    history.add("state", state="RUNNING")
    assert history.close(30)
    assert scrape_of(Fake(STATUS, history=history)).of("logdird_history_dropped_total") == 1


def test_a_configuration_that_was_not_taken_shows() -> None:
    refused = (Problem("config-error", "/etc/logdird/b1.yaml: x", "a key that docs/config.md lists", "an unknown key"),)
    found = [scrape_of(Fake(reload_problems=one)).of("logdird_config_reload_failed") for one in ((), refused)]
    assert found == [0, 1]


def test_the_process_is_measured_by_the_library() -> None:
    before = scrape_of(Fake())
    with open(__file__, "rb"), open(__file__, "rb"):
        held, used = bytearray(os.urandom(1)) * (64 << 20), 0
        until = time.process_time() + 0.05
        while time.process_time() < until:
            used += 1
        after = scrape_of(Fake())
    grown = len(held) / 2
    for name in ("process_resident_memory_bytes", "process_virtual_memory_bytes"):
        assert (after.of(name) or 0) - (before.of(name) or 0) > grown, name
    assert (after.of("process_open_fds") or 0) - (before.of("process_open_fds") or 0) == 2
    assert (after.of("process_cpu_seconds_total") or 0) > (before.of("process_cpu_seconds_total") or 0)
    assert (after.of("process_max_fds") or 0) >= (after.of("process_open_fds") or 0)
    started = after.of("process_start_time_seconds") or 0
    assert 0 < started <= time.time()


ODD = {
    "a quotation mark": ('/d"1', '/d"1'),
    "a backslash": ("/d\\1", "/d\\1"),
    "a line end": ("/d\n1", "/d\\n1"),
    "a byte that is no UTF-8": ("/d\udcff1", "/d\\udcff1"),
    "another script": ("/däta", "/däta"),
}


@pytest.mark.parametrize("name", ODD)
def test_any_path_of_a_log_dir_is_a_label(name: str) -> None:
    path, label = ODD[name]
    found = of(log_dirs=(replace(WELL, log_dir=path),))
    assert found.of("logdird_staged_replicas", log_dir=label) == 4
    assert all(line.startswith(("logdird_", "process_", "# ")) for line in found.text.splitlines())


def test_the_text_is_of_the_format_that_is_said() -> None:
    assert CONTENT_TYPE == "text/plain; version=0.0.4; charset=utf-8"
    text = text_of(Fake(replace(STATUS, log_dirs=(WELL, SICK))))
    assert text.endswith(b"\n")
    assert b"# TYPE logdird_captured_total counter\n" in text
    assert b"# TYPE logdird_look_seconds histogram\n" in text
    assert b"# EOF" not in text


def test_a_textfile_has_a_label_of_its_daemon_and_no_metric_of_another_process() -> None:
    found = Scrape(textfile_of(Fake(replace(STATUS, log_dirs=(WELL,)))))
    assert all(("daemon", "b1") in labels for _, labels in found.values)
    assert found.of("logdird_staged_replicas", daemon="b1", log_dir="/d1") == 4
    assert found.of("logdird_info", daemon="b1", version="1.2.3", node_id=7, cluster_id=STATUS.cluster_id) == 1
    assert all(name.startswith("logdird_") for name in found.types())
    assert found.of("logdird_process_open_fds", daemon="b1") is not None


def test_two_scrapes_side_by_side_have_nothing_in_common() -> None:
    one, other = Fake(replace(STATUS, queued=1)), Fake(replace(STATUS, queued=2))
    assert [scrape_of(daemon).of("logdird_requests_queued") for daemon in (one, other, one)] == [1, 2, 1]


LOADED = """
import sys
import logdir.daemon.process
assert "prometheus_client" not in sys.modules, "loaded by a daemon that nobody scrapes"
from tests.logdir.daemon.metrics.scrape import Fake, text_of
text = text_of(Fake())
from prometheus_client import REGISTRY
assert "logdird" not in str(list(REGISTRY.collect())), "in the registry of the whole process"
assert b"python_info" not in text and b"python_gc" not in text
"""


def test_the_library_is_loaded_with_the_first_scrape_and_its_own_registry_is_not_used() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        cwd=TOP,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TOP), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_status_of_20_000_partitions_has_as_many_lines_as_one_of_two() -> None:
    """No topic and no partition is a label: what a scrape costs depends on the disks alone."""

    def lines(entries: int) -> int:
        kinds = (KindFigures(kind=Kind.LIVE, entries=entries, log_bytes=entries),)
        disks = tuple(replace(WELL, log_dir=f"/d{number}", kinds=kinds) for number in range(12))
        return of(log_dirs=disks).text.count("\n")

    assert lines(2) == lines(20_000) < 1000
