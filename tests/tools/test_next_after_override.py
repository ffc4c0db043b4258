"""What is proposed after a plan that rests on an override is not refused when it is typed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.tools.cluster_log import elsewhere
from tests.tools.ctl import Said, ctl, two_disks
from tests.tools.reconcile_rig import Rig
from tools.cli.arguments import Exit
from tools.cli.broker import SAME_WITH_APPLY


def proposed(said: Said) -> list[str]:
    (line,) = (line for line in said.out.splitlines() if line.startswith("next: logdirctl "))
    return shlex.split(line.removeprefix("next: logdirctl "))


PLANS = {
    "stage over the limit": (False, ("stage", "*", "--even-if-unknown", "--even-over-limit")),
    "stage unknown": (False, ("stage", "pay-0", "--even-if-unknown", "--even-over-limit")),
    "purge early": (True, ("staged", "purge", "pay-0", "--even-if-early")),
    "restore unknown": (True, ("staged", "restore", "pay-0", "--even-if-unknown")),
    "uninstall unknown": (True, ("uninstall", "--restore", "--even-if-unknown")),
}


@pytest.mark.parametrize(("is_staged", "words"), PLANS.values(), ids=PLANS)
def test_no_plan_proposes_the_same_without_its_override(
    is_staged: bool, words: tuple[str, ...], tmp_path: Path
) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    source = elsewhere(tmp_path) if words[1] == "purge" else ("--even-if-unknown",)
    if is_staged:
        assert ctl("stage", "pay-0", *source, *named, "--even-over-limit", "--apply").status == Exit.DONE
    plan = ctl(*words, *named)
    assert (plan.status, SAME_WITH_APPLY in plan.out) == (Exit.DONE, True), plan
    assert ctl(*proposed(plan)).status == Exit.DONE, proposed(plan)
    # As it says.
    assert ctl(*words, *named, "--apply").status == Exit.DONE


def test_no_reconcile_over_the_limit_proposes_what_the_limit_refuses(tmp_path: Path) -> None:
    rig = Rig(tmp_path).with_removal()
    source = ("--from", f"metadata:{rig.disks[0]}/__cluster_metadata-0")
    for name in ("pay-0", "pay-1"):
        assert ctl("stage", name, *rig.named, *source, "--even-over-limit", "--apply").status == Exit.DONE
    plan = rig.reconcile("metadata:", "--even-over-limit")
    assert (plan.status, SAME_WITH_APPLY in plan.out) == (Exit.DONE, True)
    assert ctl(*proposed(plan)).status == Exit.DONE
    assert rig.reconcile("metadata:", "--even-over-limit", "--apply").status == Exit.DONE
