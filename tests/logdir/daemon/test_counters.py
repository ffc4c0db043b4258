"""What the daemon counts: looks in buckets, errors by log dir and slug, requests by exit status."""

from __future__ import annotations

import threading

import pytest

from logdir.daemon.report.counters import BUCKETS_S, NO_TIMES, Counters, Documents, with_time
from logdir.daemon.requests import exit_of
from logdir.errors import ConfigError, DiskError, LockHeldError, Problem
from logdir.service.report.exit_status import Exit
from logdir.service.report.use_case import Ran

LOG_DIRS = ("/data/1", "/data/10", "/data/2")


def problem(slug: str, path: str) -> Problem:
    return Problem(slug, path, "one thing", "another thing")


def test_the_buckets_reach_from_a_millisecond_to_ten_seconds() -> None:
    assert BUCKETS_S == (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@pytest.mark.parametrize(
    ("took_ns", "bucket"),
    [(0, 0), (999_999, 0), (1_000_000, 0), (1_000_001, 1), (9_999_999, 3), (10_000_000_000, 12), (10_000_000_001, 13)],
)
def test_a_time_is_in_the_first_bucket_whose_bound_it_does_not_exceed(took_ns: int, bucket: int) -> None:
    times = with_time(NO_TIMES, took_ns)
    assert [number for number, count in enumerate(times.counts) if count] == [bucket]
    assert (len(times.counts), sum(times.counts), times.sum_ns) == (14, 1, took_ns)


def test_looks_are_counted_by_log_dir() -> None:
    counters = Counters()
    counters.note_looks({"/d1": 2_000_000, "/d2": 500})
    counters.note_looks({"/d1": 3_000_000})
    assert {name: (sum(times.counts), times.sum_ns) for name, times in counters.looks.items()} == {
        "/d1": (2, 5_000_000),
        "/d2": (1, 500),
    }


@pytest.mark.parametrize(
    ("path", "log_dir"),
    [
        ("/data/1", "/data/1"),
        ("/data/1/pay-0", "/data/1"),
        ("/data/10/pay-0", "/data/10"),
        ("/data/2.logdird/deleting", "/data/2"),
        ("/data/12", ""),
        ("/etc/kafka/server.properties", ""),
    ],
)
def test_an_error_is_counted_for_the_log_dir_in_which_its_path_lies(path: str, log_dir: str) -> None:
    counters = Counters()
    counters.note_error(problem("disk-error", path), LOG_DIRS)
    assert counters.errors == {(log_dir, "disk-error"): 1}


def test_a_log_dir_that_stays_sick_is_counted_once_and_again_after_it_was_well() -> None:
    counters = Counters()
    for slugs in (["a"], ["a"], ["b"], [None], ["b"]):
        counters.note_states({"/d1": None if slugs[0] is None else problem(slugs[0], "/d1"), "/d2": None})
    assert counters.errors == {("/d1", "a"): 1, ("/d1", "b"): 2}


def test_documents_are_counted_by_their_end() -> None:
    counters = Counters()
    for is_done in (True, False, True):
        counters.note_document(is_done=is_done)
    assert counters.documents == Documents(done=2, refused=1)


def test_what_several_threads_count_is_counted_whole() -> None:
    counters = Counters()

    def count() -> None:
        for _ in range(2000):
            counters.note_request("staged hold", Exit.DONE)
            dict(counters.requests)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counters.requests == {("staged hold", Exit.DONE): 8000}


def test_a_reader_gets_a_copy() -> None:
    counters = Counters()
    before = counters.requests
    counters.note_request("stage", Exit.REFUSED)
    assert (dict(before), dict(counters.requests)) == ({}, {("stage", Exit.REFUSED): 1})


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ((Ran(exit=Exit.PROBLEMS, problems=(), result=None), ()), Exit.PROBLEMS),
        (None, Exit.DONE),
        (ConfigError((problem("config-error", "x"),)), Exit.USAGE),
        (LockHeldError("/d1/.lock", expected="no process that holds it", found="pid 1"), Exit.BROKER_RUNS),
        (DiskError("/d1", expected="a call that succeeds", found="Input/output error"), Exit.PROBLEMS),
        (OSError(5, "Input/output error"), Exit.INTERNAL),
        (ZeroDivisionError(), Exit.INTERNAL),
    ],
    ids=str,
)
def test_a_request_has_the_exit_status_of_its_command(found: object, status: Exit) -> None:
    assert exit_of(found) is status
