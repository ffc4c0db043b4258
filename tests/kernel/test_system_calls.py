"""System calls of a real process: they are what the model says, and whichever fails or is the last one, all is kept.

Spec: issue "Build 6", (c); reliability §4.3, §4.4 ("bypasses", "errors"), §7 rows 4 to 6.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.crash.recording import record
from tests.kernel.errnos import SEED, Bench, Case, cases
from tests.kernel.operations import kernel_operation, names
from tests.kernel.tracing import events, expected
from tests.proof.claims import REAL_ERRNOS, REAL_KILLS, TRACES
from tests.proof.plugin import Recorder

pytestmark = pytest.mark.root


def test_the_model_makes_the_calls_that_the_kernel_hears(bench: Bench, record_proof: Recorder) -> None:
    calls = 0
    for name in names():
        one = kernel_operation(name)
        model = [event.shown() for event in expected(record(one.world(), one.run))]
        assert [event.shown() for event in bench.heard(name)] == model, name
        calls += len(model)
    record_proof(TRACES, {"operations": len(names()), "system calls": calls})


def test_an_errno_at_any_system_call_ends_done_undone_or_read_only(bench: Bench, record_proof: Recorder) -> None:
    count = REAL_ERRNOS.count("failures")
    found = [bench.fail(case) for case in cases(count, bench)]
    wrong = [str(one) for one in found if one.messages]
    assert not wrong, "\n".join(wrong)
    outcomes = Counter(one.outcome for one in found)
    assert set(outcomes) <= {"done", "undone", "read-only"}
    record_proof(REAL_ERRNOS, {"failures": len(found), **outcomes}, seeds=SEED)


def test_a_kill_at_any_system_call_is_recovered_from(bench: Bench, record_proof: Recorder) -> None:
    count = REAL_KILLS.count("kills")
    found = [bench.fail(case) for case in cases(count, bench, kills=True)]
    wrong = [str(one) for one in found if one.messages]
    assert not wrong, "\n".join(wrong)
    record_proof(REAL_KILLS, {"kills": len(found)}, seeds=SEED)


def test_a_failed_sync_ends_all_writing_to_that_disk(bench: Bench) -> None:
    """Also by what the kernel hears: after a failed fsync of a batch there is no other call."""
    plain = bench.heard("stage 2")
    for at, event in enumerate(plain):
        if event.name not in ("fsync", "syncfs"):
            continue
        found = bench.fail(Case("stage 2", at, "EIO", for_ever=False))
        assert found.messages == ()
        assert found.outcome == "read-only"
        assert [later.name for later in found.heard[at + 1 :]] == []


def test_a_hint_that_fails_is_no_failure(bench: Bench) -> None:
    """To start to write early only saves time: where the kernel refuses it, the syncs that follow do all the work."""
    name = "capture"
    with bench.planted(kernel_operation(name)) as roots:
        run = bench.tracer.run(name, roots, "sync_file_range:error=EIO:when=1+")
        assert "sync_file_range" in run.text
        assert not run.ended.error
        assert [event.shown() for event in events(run.text, roots)] == [event.shown() for event in bench.heard(name)]


def test_a_trace_that_touches_anything_else_is_refused() -> None:
    roots = {"/d0": "/tmp/x"}
    opened = 'openat(AT_FDCWD, "/tmp/x/kafka", O_RDONLY|O_DIRECTORY) = 4\n'
    assert [event.shown() for event in events(opened + 'mkdirat(4, "eX", 0700) = 0\n', roots)] == [
        ("mkdirat", "/d0/kafka/eX", "", 0)
    ]
    for line in (
        'unlinkat(AT_FDCWD, "/tmp/y/a", 0) = 0\n',
        'renameat2(4, "a", AT_FDCWD, "/b", RENAME_NOREPLACE) = 0\n',
    ):
        with pytest.raises(AssertionError, match="something else"):
            events(opened + line, roots)
    for line in ('symlinkat("a", 4, "b") = 0\n', "sync_file_range(4, 0, 0, SYNC_FILE_RANGE_WAIT_AFTER) = 0\n"):
        with pytest.raises(AssertionError, match="nobody makes"):
            events(opened + line, roots)
    assert events(opened + "sync_file_range(4, 0, 0, SYNC_FILE_RANGE_WRITE) = -1 EIO (INJECTED)\n", roots) == []
    (plain,) = events(opened + 'renameat2(4, "a", 4, "b", 0) = 0\n', roots)
    assert plain.name == "renameat2 that replaces"
