"""The commands killed with ``kill -9`` at random moments: the next one recovers, and nothing is lost."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.tools.cluster_log import elsewhere
from tests.tools.ctl import ctl, ctl_json, launch, tree, two_disks
from tools.cli.arguments import Exit

# Its runs are as long as the machine is slow, and it judges when kills came: the soak of make proof, not of make test.
pytestmark = pytest.mark.slow
SEED = int(os.environ.get("LOGDIRD_SEED", "11"))
KILLS = 14
ROUNDS = 40
"""At most so many until enough kills came in time: how long a command takes, a busy machine does not say beforehand."""
REPLICAS = 60


def _killed(draw: random.Random, takes: float, *argv: object) -> bool:
    with launch(*argv) as child:
        time.sleep(draw.uniform(0.3, 1.0) * takes)
        child.kill()
        child.communicate()
        return child.returncode == -9


def _timed(*argv: object) -> float:
    began = time.monotonic()
    with launch(*argv) as child:
        assert child.communicate()
        assert child.returncode == Exit.DONE
    return time.monotonic() - began


def test_stage_and_restore_killed_at_any_moment_lose_nothing(tmp_path: Path) -> None:
    disks = two_disks(tmp_path, replicas=REPLICAS)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    before = tree(*disks)
    staging = ("stage", "*", "--even-if-unknown", *named, "--apply", "--even-over-limit")
    restoring = ("staged", "restore", "*", "--even-if-unknown", *named, "--apply")
    takes = (_timed(*staging), _timed(*restoring))
    assert tree(*disks) == before
    draw = random.Random(SEED)
    between: set[int] = set()
    came_early = rounds = 0
    while rounds < KILLS // 2 or came_early < KILLS // 2 or len(between) < 2:
        rounds += 1
        assert rounds <= ROUNDS, f"{came_early} kills came before the end, at {len(between)} different steps"
        came_early += _killed(draw, takes[0], *staging)
        status, result = ctl_json("staged", "ls", *named)
        assert status == Exit.DONE
        between.add(len(result["items"]))
        came_early += _killed(draw, takes[1], *restoring)
        said = ctl(*restoring)
        assert said.status == Exit.DONE or "nothing-selected" in said.err, said
        assert tree(*disks) == before
    assert ctl("uninstall", *named, "--apply").status == Exit.DONE
    assert tree(*disks) == before


def test_init_and_uninstall_killed_at_any_moment_can_be_done_again(tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    before = tree(*disks)
    making, taking = ("init", *named, "--apply"), ("uninstall", *named, "--apply")
    takes = (_timed(*making), _timed(*taking))
    draw = random.Random(SEED)
    for _ in range(KILLS // 2):
        _killed(draw, takes[0], *making)
        assert ctl(*making).status == Exit.DONE
        assert ctl("stage", "other", "--even-if-unknown", *named, "--apply").status == Exit.DONE
        assert ctl("staged", "restore", "other", "--even-if-unknown", *named, "--apply").status == Exit.DONE
        _killed(draw, takes[1], *taking)
        said = ctl(*taking)
        assert said.status == Exit.DONE, said
        assert tree(*disks) == before
        assert sorted(os.listdir(tmp_path)) == ["d1", "d2"]


@pytest.mark.parametrize("rate", ["0", "20000"])
def test_a_purge_killed_at_any_moment_is_finished_and_takes_nothing_else(tmp_path: Path, rate: str) -> None:
    disks = two_disks(tmp_path, replicas=REPLICAS)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    ctl("init", *named, "--apply")
    ctl("stage", "pay", *elsewhere(tmp_path), *named, "--apply", "--delay-ms", 0)
    kept = tree(*disks)
    purging = ("staged", "purge", *named, "--apply", "--bytes-per-second", rate)
    draw = random.Random(SEED)
    for _ in range(4):
        _killed(draw, 0.6, *purging)
        assert ctl_json("staged", "ls", *named)[0] == Exit.DONE
        # Whole, or claimed: never live again, and never back.
        assert ctl("staged", "restore", "pay-0", "--even-if-unknown", *named).status in (
            Exit.DONE,
            Exit.PROBLEMS,
            Exit.REFUSED,
        )
    assert ctl("staged", "purge", *named, "--apply", "--bytes-per-second", "0").status == Exit.DONE
    for disk in ("d1", "d2"):
        assert os.listdir(tmp_path / f"{disk}.logdird" / "deleting") == []
    assert tree(*disks) == kept
