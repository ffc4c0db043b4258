"""What layout, uninstall and refusals say is so: nothing is announced before it is, nor printed as Python has it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from logdir.errors import DiskError, shown
from tests.builders import partition
from tests.tools.ctl import ctl, ctl_json, held, two_disks
from tests.tools.layout_fleet import Planned
from tools.cli.arguments import Exit


def test_no_layout_apply_says_that_no_broker_can_start_while_one_runs(broker: Planned) -> None:
    words = ("layout", "apply", broker.plan, *broker.words, "--apply")
    with held(broker.log_dirs[1] / ".lock"):
        said = ctl(*words)
    assert (said.status, "no broker can start" in said.err) == (Exit.BROKER_RUNS, False)
    said = ctl(*words)
    assert (said.status, "no broker can start" in said.err) == (Exit.DONE, True)


@pytest.mark.parametrize("words", [(), ("--apply",)])
def test_no_rollback_of_an_untouched_broker_lists_steps(words: tuple[str, ...], broker: Planned) -> None:
    said = ctl("layout", "rollback", *broker.words, *words)
    assert (said.status, "lift the start block" in said.out, "nothing to do" in said.out) == (Exit.DONE, False, True)
    _, result = ctl_json("layout", "rollback", *broker.words, *words)
    assert (result["steps"], result["items"], result["finished"]) == ([], [], bool(words))


def test_a_start_block_without_a_layout_json_is_still_lifted_and_listed(broker: Planned) -> None:
    assert ctl("layout", "apply", broker.plan, *broker.words, "--apply").status == Exit.DONE
    assert ctl("layout", "rollback", *broker.words, "--apply").status == Exit.DONE
    _, status = ctl_json("layout", "status", *broker.words)
    assert {one["start_block"] for one in status["items"]} == {"none"}
    (broker.log_dirs[0] / "start-block.json").write_bytes(b"{}")
    _, plan = ctl_json("layout", "rollback", *broker.words)
    assert "lift the start block" in [step["detail"] for step in plan["steps"]]


def test_uninstall_with_nothing_there_says_so(tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    for words in ((), ("--apply",)):
        said = ctl("uninstall", "--log-dirs", f"{disks[0]},{disks[1]}", *words)
        assert (said.status, said.out.splitlines()[0].startswith("nothing")) == (Exit.DONE, True), said


def test_layout_status_counts_nothing_on_a_log_dir_it_did_not_read(tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    shutil.rmtree(disks[1])
    said = ctl("layout", "status", "--log-dirs", f"{disks[0]},{disks[1]}")
    (line,) = (line for line in said.out.splitlines() if line.lstrip("| ").startswith(str(disks[1])))
    assert not any(character.isdigit() for character in line.replace(str(disks[1]), ""))


@pytest.mark.parametrize(
    ("value", "words"), [(None, "none"), (["/d1", "/d2"], "/d1, /d2"), ((1, None), "1, none"), ([], "an empty list")]
)
def test_no_error_prints_a_value_as_python_has_it(value: object, words: str) -> None:
    assert shown(value) == words
    assert str(DiskError("/d", expected="a thing", found=value)).endswith(f"found {words}")


def test_no_refused_plan_prints_a_list_or_none_of_python(broker: Planned) -> None:
    other = ("--log-dirs", str(broker.log_dirs[0]))
    said = ctl("layout", "check", broker.plan, *other)
    assert said.status == Exit.REFUSED
    assert "log dirs" in said.err
    for text in ("[", "None"):
        assert text not in said.err, said.err


def test_no_refused_restore_names_an_id_that_is_none(tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    partition(disks[0] / "plain-0", topic_id=None)
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert ctl("stage", "plain-0", "--even-if-unknown", "--even-over-limit", *named, "--apply").status == Exit.DONE
    partition(disks[0] / "plain-0", topic_id=None)
    said = ctl("staged", "restore", "plain-0", "--even-if-unknown", *named)
    assert (said.status, str(disks[0] / "plain-0") in said.err, "None" in said.err) == (Exit.REFUSED, True, False)
