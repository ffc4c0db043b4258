"""``logdirctl layout`` many times: random changes between plan and apply, and a process killed at random moments.

Spec: design §2 law 2, §7.7.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from logdir.names import DirForm, parse_partition_dir
from tests.proof.claims import LAYOUT_KILLS, STALE_STEPS
from tests.proof.plugin import Recorder
from tests.tools.ctl import launch, tree
from tests.tools.layout_fleet import Planned, apply, as_it_was, at, big, brokers_of, change, rollback
from tools.cli.arguments import Exit


def contents(found: dict[str, tuple[object, ...]]) -> dict[str, object]:
    """Return the bytes of files, and the kinds of everything: not when our own files were written."""
    return {path: (said[0], said[4]) for path, said in found.items()}


def without_step(broker: Planned) -> set[str]:
    """Return the live replicas under names that no step names."""
    named = {f"{step['log_dir']}/{step['from']}" for step in broker.steps}
    found = {str(path) for top in broker.log_dirs for path in top.iterdir() if path.is_symlink() or path.is_dir()}
    parts = {path: parse_partition_dir(path.rpartition("/")[2]) for path in found - named}
    live = {path for path, one in parts.items() if one is not None and one.form is DirForm.CURRENT}
    return {path for path in live if not path.endswith("/__cluster_metadata-0")}


@pytest.mark.slow
def test_after_random_changes_stale_steps_are_refused_by_name_and_the_rest_applied(
    tmp_path: Path, record_proof: Recorder
) -> None:
    wanted, done, rounds = STALE_STEPS.count("changes"), 0, 0
    broker = brokers_of(tmp_path)["orders/1"]
    while done < wanted:
        draw = random.Random(f"stale {rounds}")
        number = min(10, wanted - done)
        with as_it_was(broker):
            stale, words = change(broker, number, draw)
            changed, more = tree(*broker.log_dirs), without_step(broker)
            status, result = apply(broker)
            assert at(result, "refused") == stale | more, (rounds, words)
            assert status == (Exit.PROBLEMS if stale else Exit.DONE), (rounds, words)
            assert result["finished"] == (not more), (rounds, words)
            for step in broker.steps:
                is_stale = f"{step['log_dir']}/{step['from']}" in stale
                assert Path(step["log_dir"], step["to"]).exists() != is_stale, (rounds, step, words)
            status, back = rollback(broker)
            assert (status, back["finished"]) == (Exit.DONE, True), (rounds, words)
            assert tree(*broker.log_dirs) == changed, (rounds, words)
        done, rounds = done + number, rounds + 1
    record_proof(STALE_STEPS, {"changes": done})


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_or_back_to_the_same_end(tmp_path: Path, record_proof: Recorder) -> None:
    broker = big(tmp_path)
    before = tree(*broker.log_dirs)
    wanted, draw, began = LAYOUT_KILLS.count("kills"), random.Random("kill"), time.monotonic()
    child = launch("layout", "apply", broker.plan, *broker.words, "--apply")
    child.communicate()
    took = time.monotonic() - began
    assert child.returncode == Exit.DONE
    applied = tree(*broker.log_dirs)
    is_applied = True
    kills = amid = 0
    while kills < wanted:
        verb = ["rollback"] if is_applied else ["apply", str(broker.plan)]
        child = launch("layout", *verb, *broker.words, "--apply")
        time.sleep(draw.uniform(0.1, took))
        child.kill()
        child.communicate()
        found = tree(*broker.log_dirs)
        kills += 1
        amid += found not in (before, applied)
        # On, or back; either ends where it would have ended.
        is_applied = draw.random() < 0.5
        status, result = apply(broker) if is_applied else rollback(broker)
        if status == Exit.REFUSED or not result["finished"]:
            # A rollback that was begun is finished before anything else.
            assert is_applied
            is_applied = False
            assert rollback(broker)[1]["finished"]
        now = tree(*broker.log_dirs)
        if is_applied:
            assert contents(now) == contents(applied), kills
        else:
            assert now == before, kills
    record_proof(LAYOUT_KILLS, {"kills": kills, "kills amid a change": amid})
