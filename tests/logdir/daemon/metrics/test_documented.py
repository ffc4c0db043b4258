"""docs/metrics.md, what is exposed and the tests that make each metric move name the same metrics."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from logdir.daemon.metrics.exposition import textfile_of
from logdir.daemon.metrics.families import FAMILIES, Type
from logdir.daemon.report.counters import Counters
from logdir.errors import Problem
from logdir.service.report.exit_status import Exit
from tests.logdir.daemon.metrics import test_exposition, test_moves
from tests.logdir.daemon.metrics.scrape import Fake, Scrape, scrape_of
from tests.logdir.daemon.metrics.test_exposition import SICK, STATUS, WELL

PAGE = (Path(__file__).parents[4] / "docs" / "metrics.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in PAGE.splitlines()
    if re.match(r"\| `(?:logdird|process)_\w+` \| (?:gauge|counter|histogram) \|", line)
]
DOCUMENTED = {row[0].strip("`"): row[1:] for row in ROWS}
"""Type, labels, unit, meaning, and when it is absent, by name."""


def full() -> Fake:
    """Return a daemon of which every metric has a value."""
    counters = Counters()
    counters.note_looks({"/d1": 1})
    counters.note_error(Problem("disk-error", "/d1", "one thing", "another thing"), ["/d1"])
    counters.note_request("stage", Exit.DONE)
    status = replace(
        STATUS,
        log_dirs=(WELL, SICK),
        metadata_lag=1,
        last_gap_to_ms=1,
        waiting=(SICK.problem or Problem("", "", "", ""),),
    )
    fake = Fake(status, counters=counters)
    fake.looks.note("server.properties", 60_000, is_running=True)
    return fake


def names_of(found: Scrape) -> set[str]:
    """Return the metrics that have a value."""
    return {re.sub(r"_(?:bucket|count|sum)$", "", name) if "look_seconds" in name else name for name, _ in found.values}


def test_the_page_lists_what_is_exposed_and_nothing_else() -> None:
    found = scrape_of(full())
    assert len(ROWS) == len(DOCUMENTED)
    assert found.types().keys() == DOCUMENTED.keys() == names_of(found)
    assert {name: row[0] for name, row in DOCUMENTED.items()} == found.types()


def test_the_page_has_the_labels_of_each_metric() -> None:
    for family in FAMILIES:
        labels = tuple(re.findall(r"`(\w+)`", DOCUMENTED[family.name][1]))
        assert labels == family.labels, family.name


def test_the_page_says_of_each_metric_its_unit_what_it_means_and_when_it_is_absent() -> None:
    for name, row in DOCUMENTED.items():
        assert len(row) == 5, name
        assert all(row), name


def test_names_follow_the_conventions_of_prometheus() -> None:
    for family in FAMILIES:
        assert re.fullmatch(r"logdird_[a-z]+(_[a-z]+)*", family.name)
        assert family.name.endswith("_total") is (family.type is Type.COUNTER)
        assert family.help.endswith(".")
        assert "ms" not in family.name.split("_"), "Prometheus' unit of time is the second"


def test_the_textfile_has_the_same_metrics() -> None:
    found = Scrape(textfile_of(full()))
    own = {name for name in DOCUMENTED if name.startswith("logdird_")}
    process = {f"logdird_{name}" for name in DOCUMENTED.keys() - own}
    assert found.types().keys() == own | process


def test_the_buckets_of_the_page_are_those_of_a_look() -> None:
    named = re.findall(r"[\d.]+", DOCUMENTED["logdird_look_seconds"][3].partition("buckets")[2])
    text = scrape_of(full()).text
    found = re.findall(r'logdird_look_seconds_bucket\{le="([\d.]+)"', text)
    assert [float(one) for one in named] == [float(one) for one in found]


MOVED: dict[str, tuple[ModuleType, str]] = {
    "logdird_info": (test_moves, "test_the_daemon_says_who_it_is_and_whether_its_broker_runs"),
    "logdird_broker_state": (test_moves, "test_the_state_moves_from_starting_to_running"),
    "logdird_state_since_timestamp_seconds": (test_moves, "test_the_state_moves_from_starting_to_running"),
    "logdird_broker_running": (test_moves, "test_the_daemon_says_who_it_is_and_whether_its_broker_runs"),
    "logdird_metadata_lag": (test_moves, "test_the_metadata_log_is_followed_before_a_purge"),
    "logdird_offline_log_directory_count": (test_moves, "test_a_disk_that_fails_shows_and_comes_back"),
    "logdird_log_dir_state": (test_moves, "test_a_disk_that_fails_shows_and_comes_back"),
    "logdird_log_dir_free_bytes": (test_moves, "test_a_disk_that_fills_up_shows"),
    "logdird_log_dir_size_bytes": (test_moves, "test_a_disk_that_fills_up_shows"),
    "logdird_log_dir_free_inodes": (test_moves, "test_a_disk_that_fills_up_shows"),
    "logdird_undo_off": (test_moves, "test_a_disk_that_fills_up_shows"),
    "logdird_log_dir_bytes": (test_moves, "test_a_capture_and_its_purge_move_what_counts_them"),
    "logdird_log_dir_entries": (test_moves, "test_a_capture_and_its_purge_move_what_counts_them"),
    "logdird_log_dir_read_timestamp_seconds": (test_moves, "test_a_request_moves_what_counts_it"),
    "logdird_log_dir_watched": (test_moves, "test_a_watch_that_ends_shows"),
    "logdird_staged_replicas": (test_moves, "test_a_capture_and_its_purge_move_what_counts_them"),
    "logdird_staged_bytes": (test_moves, "test_a_capture_and_its_purge_move_what_counts_them"),
    "logdird_held_replicas": (test_moves, "test_a_stray_is_held"),
    "logdird_purging_replicas": (test_moves, "test_claimed_replicas_and_partial_captures_are_counted"),
    "logdird_partial_captures": (test_moves, "test_claimed_replicas_and_partial_captures_are_counted"),
    "logdird_next_purge_timestamp_seconds": (test_moves, "test_a_capture_and_its_purge_move_what_counts_them"),
    "logdird_captured_total": (test_moves, "test_a_capture_and_its_purge_move_what_counts_them"),
    "logdird_missed_total": (test_moves, "test_what_the_broker_removes_first_is_missed"),
    "logdird_purged_total": (test_moves, "test_a_capture_and_its_purge_move_what_counts_them"),
    "logdird_purged_bytes_total": (test_moves, "test_a_capture_and_its_purge_move_what_counts_them"),
    "logdird_purged_early_total": (test_moves, "test_what_goes_for_room_before_its_deadline_is_counted_once"),
    "logdird_gaps_total": (test_moves, "test_a_time_without_a_look_is_a_gap"),
    "logdird_last_gap_end_timestamp_seconds": (test_moves, "test_a_time_without_a_look_is_a_gap"),
    "logdird_look_seconds": (test_moves, "test_each_sweep_is_a_look_at_each_disk"),
    "logdird_last_look_timestamp_seconds": (test_moves, "test_each_sweep_is_a_look_at_each_disk"),
    "logdird_errors_total": (test_moves, "test_a_disk_that_fails_shows_and_comes_back"),
    "logdird_waiting": (test_moves, "test_a_capture_and_its_purge_move_what_counts_them"),
    "logdird_failed_replicas": (test_moves, "test_a_disk_that_fails_shows_and_comes_back"),
    "logdird_requests_queued": (test_moves, "test_a_request_that_waits_for_its_turn_shows"),
    "logdird_requests_total": (test_moves, "test_a_request_moves_what_counts_it"),
    "logdird_documents_total": (test_moves, "test_documents_move_what_counts_them"),
    "logdird_history_dropped_total": (test_moves, "test_a_history_that_cannot_be_written_shows"),
    "logdird_config_reload_failed": (test_moves, "test_a_configuration_that_is_not_taken_shows_until_one_is"),
    "process_cpu_seconds_total": (test_exposition, "test_the_process_is_measured_by_the_library"),
    "process_resident_memory_bytes": (test_exposition, "test_the_process_is_measured_by_the_library"),
    "process_virtual_memory_bytes": (test_exposition, "test_the_process_is_measured_by_the_library"),
    "process_start_time_seconds": (test_exposition, "test_the_process_is_measured_by_the_library"),
    "process_open_fds": (test_exposition, "test_the_process_is_measured_by_the_library"),
    "process_max_fds": (test_exposition, "test_the_process_is_measured_by_the_library"),
}
"""Of each metric the test that makes it move."""


def test_each_metric_has_its_test() -> None:
    assert MOVED.keys() == DOCUMENTED.keys()


@pytest.mark.parametrize("name", MOVED)
def test_the_test_of_a_metric_reads_it(name: str) -> None:
    module, test = MOVED[name]
    assert f'"{name}' in inspect.getsource(getattr(module, test))
