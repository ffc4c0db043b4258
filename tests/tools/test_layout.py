"""``logdirctl layout``: a plan brought about and taken back on the demonstration's brokers, refusals, kills."""

from __future__ import annotations

import io
import json
import random
import shutil
import tempfile
from pathlib import Path

import pytest

from examples import demo
from logdir.formats.own import layout_file
from logdir.formats.own.layout_file import LayoutState
from tests.builders import partition
from tests.oracle.oracle import answer
from tests.tools.ctl import ctl, ctl_json, ctl_without_rights, held, tree
from tests.tools.layout_fleet import CLEAN, OTHER, Planned, apply, at, big, fleet_of, rollback
from tools.cli import progress
from tools.cli.arguments import Exit
from tools.logdirctl.main import main

BROKERS = [f"{member.cluster}/{member.node_id}" for member in demo.FLEET if member.cluster in CLEAN]
FOR = ("--for-broker", "kafka 9 of team x")
NOTICE = "No released Kafka (2.8 to 4.3) reads topic-id directories."
ITEM = ["log_dir", "new_path", "partition", "path", "problem", "state", "topic", "topic_id"]
RESULT = ["applied", "done_before", "finished", "items", "plan_sha256", "steps"]


@pytest.mark.parametrize("name", BROKERS)
def test_check_apply_status_verify_and_rollback_give_the_first_tree(name: str, unpacked: dict[str, Planned]) -> None:
    broker = unpacked[name]
    before, count = tree(*broker.log_dirs), len(broker.steps)
    assert count > 20

    status, checked = ctl_json("layout", "check", broker.plan, *broker.words)
    assert (status, checked["applied"], checked["finished"]) == (Exit.DONE, False, False)
    assert sorted(checked) == RESULT
    assert [sorted(item) for item in checked["items"]] == [ITEM] * count
    assert len(at(checked, "planned")) == count
    assert ctl("layout", "apply", broker.plan, *broker.words).status == Exit.DONE
    assert tree(*broker.log_dirs) == before

    status, applied = apply(broker)
    assert (status, applied["applied"], applied["finished"]) == (Exit.DONE, True, True)
    assert at(applied, "done") == {f"{step['log_dir']}/{step['from']}" for step in broker.steps}
    for step in broker.steps:
        place = Path(step["log_dir"], step["to"])
        assert f"topic_name: {step['topic']}" in (place / "partition.metadata").read_text()
        assert not Path(step["log_dir"], step["from"]).exists()
    for top in broker.log_dirs:
        assert ".id=2147483647" in (top / "meta.properties").read_text()

    status, said = ctl_json("layout", "status", *broker.words)
    assert status == Exit.DONE
    assert [
        (one["layout"], one["state"], one["start_block"], one["by_name"], one["held"]) for one in said["items"]
    ] == [("topic-id", "applied", "set", 0, 0)] * len(broker.log_dirs)
    assert sum(one["by_id"] for one in said["items"]) == count
    footer = json.loads(broker.plan.read_text().splitlines()[-1])
    assert {one["plan_sha256"] for one in said["items"]} == {footer["sha256"], applied["plan_sha256"]}

    after = tree(*broker.log_dirs)
    status, again = apply(broker)
    assert (status, again["finished"], again["done_before"], again["items"]) == (Exit.DONE, True, count, [])
    assert ctl_json("layout", "verify", broker.plan, *broker.words)[1]["finished"] is False
    assert tree(*broker.log_dirs) == after
    status, verified = ctl_json("layout", "verify", broker.plan, *broker.words, "--apply")
    assert (status, verified["finished"]) == (Exit.DONE, True)

    status, planned = ctl_json("layout", "rollback", *broker.words)
    assert (status, len(at(planned, "planned"))) == (Exit.DONE, count)
    status, back = rollback(broker)
    assert (status, back["finished"], len(at(back, "done"))) == (Exit.DONE, True, count)
    assert tree(*broker.log_dirs) == before
    assert ctl_json("layout", "rollback", *broker.words)[0] == Exit.DONE
    assert tree(*broker.log_dirs) == before


def test_a_stale_step_is_one_line_with_its_path(broker: Planned) -> None:
    gone = Path(broker.steps[3]["log_dir"], broker.steps[3]["from"])
    shutil.rmtree(gone)
    said = ctl("layout", "apply", broker.plan, *broker.words, "--apply")
    assert said.status == Exit.PROBLEMS
    kept, notice, line = [line for line in said.err.splitlines() if line.startswith("logdirctl")]
    assert kept.startswith("logdirctl layout apply: What is kept on this host")
    assert notice.endswith(NOTICE)
    assert line.startswith(
        f"logdirctl layout apply: changed-since-plan: {gone}: expected the directory that was planned"
    )
    last = said.out.splitlines()[-2:]
    assert last == [
        "layout apply: finished, 1 refused by name",
        f"next: logdirctl inventory {' '.join(broker.words)} -o inventories",
    ]
    assert ctl_json("layout", "verify", broker.plan, *broker.words, "--apply")[0] == Exit.PROBLEMS
    assert ctl("layout", "finalize", *FOR, *broker.words, "--apply").status == Exit.REFUSED


def test_an_apply_is_finished_beside_a_replica_that_is_refused_only_as_it_is_moved(broker: Planned) -> None:
    """A link within its directory is found only by the move; the step is stale, as if the plan had refused it."""
    stale = Path(broker.steps[3]["log_dir"], broker.steps[3]["from"])
    (stale / f"{9999:020}.log").symlink_to("/dev/null")
    before = tree(*broker.log_dirs)
    status, result = apply(broker)
    assert (status, result["finished"], at(result, "refused")) == (Exit.PROBLEMS, True, {str(stale)})
    assert len(at(result, "done")) == len(broker.steps) - 1
    _, shown = ctl_json("layout", "status", *broker.words)
    assert {one["state"] for one in shown["items"]} == {"applied"}
    # Applied again, as after an interruption: there is nothing left to do.
    status, again = apply(broker)
    assert (status, again["finished"], at(again, "refused")) == (Exit.PROBLEMS, True, {str(stale)})
    assert rollback(broker)[1]["finished"]
    assert tree(*broker.log_dirs) == before


def test_no_apply_is_finished_beside_a_live_replica_that_no_step_names(broker: Planned) -> None:
    """Created after the plan was made: it would lie under its name beside the others for ever."""
    new = partition(broker.log_dirs[0] / "new-7", topic_id=OTHER)
    status, result = apply(broker)
    assert (status, result["finished"]) == (Exit.PROBLEMS, False)
    assert at(result, "refused") == {str(new)}
    assert at(result, "done") == {f"{step['log_dir']}/{step['from']}" for step in broker.steps}
    # Also when all steps were done before.
    said = ctl("layout", "apply", broker.plan, *broker.words, "--apply")
    assert said.status == Exit.PROBLEMS
    assert sum(f": {new}: " in line for line in said.err.splitlines()) == 1
    assert not any("finished" in line and "not finished" not in line for line in said.out.splitlines())
    # The next command makes what another plan is made of.
    assert said.out.endswith(f"next: logdirctl inventory {' '.join(broker.words)} -o inventories\n")
    assert ctl("layout", "check", broker.plan, *broker.words).status == Exit.PROBLEMS
    assert rollback(broker)[0] == Exit.DONE
    assert new.is_dir()


def test_no_way_out_of_an_unfinished_apply_leads_to_a_plan_that_is_refused(broker: Planned, tmp_path: Path) -> None:
    """Every log dir is blocked by then: the inventory tells whose they are all the same."""
    partition(broker.log_dirs[0] / "new-7", topic_id=OTHER)
    said = ctl("layout", "apply", broker.plan, *broker.words, "--apply")
    assert said.status == Exit.PROBLEMS
    line = said.out.splitlines()[-1].removeprefix("next: logdirctl ")
    assert ctl(*line.replace("-o inventories", f"-o {tmp_path}/inventories").split()).status == Exit.DONE
    names = sorted(path.name for path in (tmp_path / "inventories").iterdir())
    assert [name.partition("-")[0] for name in names] == ["1", "1"]
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "clusters:\n  - name: orders\n    brokers:\n      - node_id: 1\n        inventories: [inventories/*.jsonl]\n"
    )
    (again,) = answer(fleet).documents.values()
    plan = tmp_path / "again.jsonl"
    plan.write_bytes(again)
    status, result = ctl_json("layout", "apply", plan, *broker.words, "--apply")
    assert (status, result["finished"], len(at(result, "done"))) == (Exit.DONE, True, 1)
    assert ctl_json("layout", "verify", plan, *broker.words, "--apply")[0] == Exit.DONE


# Final.


def verified(broker: Planned) -> None:
    assert apply(broker)[0] == Exit.DONE
    assert ctl_json("layout", "verify", broker.plan, *broker.words, "--apply")[0] == Exit.DONE


def test_a51_no_layout_is_finalized_unless_the_broker_that_reads_it_is_named(broker: Planned) -> None:
    before = tree(*broker.log_dirs)
    apply(broker)
    applied = tree(*broker.log_dirs)
    said = ctl("layout", "finalize", *FOR, *broker.words, "--apply")
    assert said.status == Exit.REFUSED
    assert "layout verify first" in said.err
    assert ctl_json("layout", "verify", broker.plan, *broker.words, "--apply")[0] == Exit.DONE
    verified = tree(*broker.log_dirs)
    for more in ((), ("--apply",), ("--for-broker", "", "--apply"), ("--for-broker", "a\nb", "--apply")):
        said = ctl("layout", "finalize", *more, *broker.words)
        assert (said.status, said.err.count("\n")) == (Exit.REFUSED, 1)
        assert " for-broker-missing: --for-broker: " in said.err
        assert "no released Kafka (2.8 to 4.3)" in said.err
    assert ctl_json("layout", "finalize", *FOR, *broker.words)[0] == Exit.DONE
    assert tree(*broker.log_dirs) == verified != applied
    status, result = ctl_json("layout", "finalize", *FOR, *broker.words, "--apply")
    assert (status, result["finished"]) == (Exit.DONE, True)
    # Kept in layout.json, and shown.
    status, said_of = ctl_json("layout", "status", *broker.words)
    assert status == Exit.DONE
    assert {(one["state"], one["for_broker"], one["start_block"]) for one in said_of["items"]} == {
        ("final", "kafka 9 of team x", "none")
    }
    # The start block is lifted: every meta.properties is the true one, with its time of change.
    now = tree(*broker.log_dirs)
    for top in broker.log_dirs:
        assert now[f"{top}/meta.properties"] == before[f"{top}/meta.properties"]
        assert not (top / "start-block.json").exists()
        # What lies there stops a stock broker by itself: a directory that is no replica's.
        assert any(len(path.name) == 2 and path.is_dir() for path in top.iterdir())


def test_a51_no_state_of_a_layout_is_without_a_rollback(broker: Planned) -> None:
    before = tree(*broker.log_dirs)
    verified(broker)
    assert ctl("layout", "finalize", *FOR, *broker.words, "--apply").status == Exit.DONE
    final = tree(*broker.log_dirs)
    assert ctl("layout", "apply", broker.plan, *broker.words, "--apply").status == Exit.REFUSED
    status, planned = ctl_json("layout", "rollback", *broker.words)
    assert (status, len(at(planned, "planned"))) == (Exit.DONE, len(broker.steps))
    assert tree(*broker.log_dirs) == final
    status, back = rollback(broker)
    assert (status, back["finished"], len(at(back, "done"))) == (Exit.DONE, True, len(broker.steps))
    assert tree(*broker.log_dirs) == before


@pytest.mark.parametrize("verbs", [(), ("verify",), ("verify", "finalize")], ids=["applied", "verified", "final"])
def test_a51_uninstall_never_names_a_way_back_that_is_refused(verbs: tuple[str, ...], broker: Planned) -> None:
    """Its refusal names ``layout rollback``, which works; after that it takes everything back."""
    before = tree(*broker.log_dirs)
    apply(broker)
    for verb in verbs:
        more = {"verify": (broker.plan,), "finalize": FOR}[verb]
        assert ctl("layout", verb, *more, *broker.words, "--apply").status == Exit.DONE
    amid = tree(*broker.log_dirs)
    said = ctl("uninstall", *broker.words, "--apply")
    assert (said.status, "logdirctl layout rollback" in said.err) == (Exit.REFUSED, True)
    assert tree(*broker.log_dirs) == amid
    assert rollback(broker)[0] == Exit.DONE
    assert ctl("uninstall", *broker.words, "--apply").status == Exit.DONE
    assert tree(*broker.log_dirs) == before
    assert not any(Path(f"{top}.logdird").exists() for top in broker.log_dirs)


def test_a51_no_listing_proposes_to_finalize_and_the_command_it_proposes_works(broker: Planned) -> None:
    line = f"layout check {broker.plan} {' '.join(broker.words)}"
    seen: list[str] = []
    for _ in range(12):
        said = ctl(*line.split())
        assert said.status == Exit.DONE, said.err
        last = said.out.splitlines()[-1]
        assert last.startswith("next: logdirctl "), last
        if not seen:
            seen.append("layout check")
        line = last.removeprefix("next: logdirctl ")
        assert "--even-" not in line
        assert "PLAN" not in line
        step = " ".join(line.split()[:2]) + (" --apply" if line.endswith("--apply") else "")
        seen.append(step)
        if not step.startswith("layout"):
            break
    assert seen == [
        "layout check", "layout apply --apply", "layout verify --apply", "layout status", "layout rollback",
        "layout rollback --apply", "layout status", "inventory --log-dirs",
    ]  # fmt: skip


def test_a51_no_state_of_a_layout_is_listed_with_finalize_as_the_next_command(broker: Planned) -> None:
    verified(broker)
    for state in LayoutState:
        for top in broker.log_dirs:
            said = layout_file.parse((top / "layout.json").read_bytes())
            (top / "layout.json").write_bytes(layout_file.render(said._replace(state=state)))
        for argv in (["status"], ["finalize", *FOR], ["rollback"], ["verify", broker.plan], ["check", broker.plan]):
            out = ctl("layout", *argv, *broker.words).out
            assert not any("finalize" in line for line in out.splitlines() if line.startswith("next: ")), (state, argv)


def test_a51_no_verb_is_silent_about_what_no_released_kafka_reads(broker: Planned) -> None:
    for verb in (["check", broker.plan], ["apply", broker.plan, "--apply"], ["verify", broker.plan, "--apply"],
                 ["finalize", *FOR, "--apply"], ["rollback", "--apply"], ["status"]):  # fmt: skip
        for as_json in ((), ("--json",)):
            said = ctl("layout", *verb, *broker.words, *as_json)
            assert sum(NOTICE in line for line in said.err.splitlines()) == 1, verb
            if as_json and verb[0] == "finalize":
                assert json.loads(said.out)["exit"] == Exit.DONE


def test_a_running_broker_is_exit_3_and_nothing_changes(broker: Planned) -> None:
    before = tree(*broker.log_dirs)
    with held(broker.log_dirs[1] / ".lock") as pid:
        said = ctl("layout", "apply", broker.plan, *broker.words, "--apply")
        assert said.status == Exit.BROKER_RUNS
        assert f"pid {pid} (" in said.err
        assert tree(*broker.log_dirs) == before
        assert ctl("layout", "check", broker.plan, *broker.words).status == Exit.DONE
    apply(broker)
    applied = tree(*broker.log_dirs)
    with held(broker.log_dirs[0] / ".lock"):
        assert ctl("layout", "rollback", *broker.words, "--apply").status == Exit.BROKER_RUNS
        assert ctl("layout", "verify", broker.plan, *broker.words, "--apply").status == Exit.BROKER_RUNS
    assert tree(*broker.log_dirs) == applied


def damaged(plan: bytes, way: str, others: dict[str, bytes]) -> bytes:
    """Return a plan document that must not be used."""
    match way:
        case "empty":
            return b""
        case "garbage":
            return random.Random(7).randbytes(500)
        case "torn":
            return plan[: len(plan) // 2]
        case "line lost":
            lines = plan.splitlines(keepends=True)
            return b"".join([*lines[:3], *lines[4:]])
        case "altered":
            return plan.replace(b'"partition":0', b'"partition":1', 1)
        case "newer":
            return plan.replace(b'"plan":1', b'"plan":2', 1)
        case _:
            return others[way]


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("empty", Exit.PROBLEMS), ("garbage", Exit.PROBLEMS), ("torn", Exit.PROBLEMS), ("line lost", Exit.PROBLEMS),
        ("altered", Exit.PROBLEMS), ("newer", Exit.PROBLEMS), ("orders/2", Exit.REFUSED), ("billing/1", Exit.REFUSED),
    ],
)  # fmt: skip
def test_a_plan_that_is_not_whole_or_not_this_brokers_changes_nothing(
    way: str, expected: Exit, broker: Planned, unpacked: dict[str, Planned], tmp_path: Path
) -> None:
    everything = broker.log_dirs[0].parent
    before = tree(everything)
    bad = tmp_path / "bad.jsonl"
    others = {name: other.plan.read_bytes() for name, other in unpacked.items()}
    bad.write_bytes(damaged(broker.plan.read_bytes(), way, others))
    for verb in ("check", "apply", "verify"):
        more = () if verb == "check" else ("--apply",)
        said = ctl("layout", verb, bad, *broker.words, *more)
        assert said.status == expected, (verb, said.err)
        assert said.err.count("\n") == 1
    assert tree(everything) == before
    # Nor may it take over a change that stands.
    apply(broker)
    applied = tree(everything)
    assert ctl("layout", "apply", bad, *broker.words, "--apply").status == expected
    assert ctl("layout", "verify", bad, *broker.words, "--apply").status == expected
    assert tree(everything) == applied


def test_no_plan_and_no_work_root_change_nothing(broker: Planned, tmp_path: Path) -> None:
    everything = broker.log_dirs[0].parent
    before = tree(everything)
    for plan in (tmp_path / "none.jsonl", tmp_path):
        said = ctl("layout", "apply", plan, *broker.words, "--apply")
        assert (said.status, said.err.count("\n")) == (Exit.USAGE, 1)
    assert tree(everything) == before
    shutil.rmtree(f"{broker.log_dirs[0]}.logdird")
    without = tree(everything)
    said = ctl("layout", "apply", broker.plan, *broker.words, "--apply")
    assert said.status == Exit.REFUSED
    assert "logdirctl init" in said.err
    assert ctl("layout", "status", *broker.words).status == Exit.DONE
    assert tree(everything) == without


def test_without_the_right_to_it_nothing_changes() -> None:
    # Where others may look: a test's own folder is closed to them, which would prove less.
    with tempfile.TemporaryDirectory(prefix="logdird-rights-") as home:
        Path(home).chmod(0o755)
        broker = big(Path(home), 10)
        for top in broker.log_dirs:
            top.chmod(0o555)
        before = tree(Path(home))
        for verb in (["apply", str(broker.plan)], ["rollback"]):
            said = ctl_without_rights("layout", *verb, *broker.words, "--apply")
            assert said.status in (Exit.PROBLEMS, Exit.REFUSED), said.err
            assert "Permission denied" in said.err
            assert tree(Path(home)) == before
        for top in broker.log_dirs:
            top.chmod(0o755)


def test_no_rollback_is_finished_while_a_log_dir_is_left_out_and_no_other_verb_leaves_one_out(broker: Planned) -> None:
    before = tree(broker.log_dirs[0])
    apply(broker)
    gone = broker.log_dirs[1]
    gone.rename(gone.with_name("away"))
    assert ctl_json("layout", "status", *broker.words)[0] == Exit.PROBLEMS
    assert ctl("layout", "rollback", *broker.words, "--apply").status == Exit.PROBLEMS
    for argv in (["verify", broker.plan], ["apply", broker.plan], ["finalize", *FOR]):
        assert ctl("layout", *argv, *broker.words, "--apply", "--skip-log-dir", gone).status == Exit.REFUSED
    assert ctl("layout", "rollback", *broker.words, "--skip-log-dir", gone).status == Exit.PROBLEMS
    back = ctl("layout", "rollback", *broker.words, "--skip-log-dir", gone, "--apply")
    assert back.status == Exit.PROBLEMS
    assert tree(broker.log_dirs[0]) == before
    # Not one word says that all was taken back, and the one that was left out is a line of its own.
    assert sum(f" log-dir-offline: {gone}: " in line for line in back.err.splitlines()) == 1
    assert not any("finished" in line and "not finished" not in line for line in back.out.splitlines())
    status, again = rollback(broker, "--skip-log-dir", gone)
    assert (status, again["finished"]) == (Exit.PROBLEMS, False)
    # It comes back under its ids and its start block: loud, and taken back like any other.
    gone.with_name("away").rename(gone)
    said_of = ctl("layout", "status", *broker.words)
    assert said_of.out.endswith(f"next: logdirctl layout rollback {' '.join(broker.words)}\n")
    status, said = ctl_json("layout", "status", *broker.words)
    assert (status, [one["start_block"] for one in said["items"]]) == (Exit.PROBLEMS, ["none", "set"])
    status, back_too = rollback(broker)
    assert (status, back_too["finished"]) == (Exit.DONE, True)
    assert [one["start_block"] for one in ctl_json("layout", "status", *broker.words)[1]["items"]] == ["none", "none"]


def test_a21_a_lost_layout_json_asks_for_the_operators_word(broker: Planned) -> None:
    before = tree(*broker.log_dirs)
    apply(broker)
    (broker.log_dirs[0] / "layout.json").unlink()
    lost = tree(*broker.log_dirs)
    said = ctl("layout", "rollback", *broker.words, "--apply")
    assert said.status == Exit.REFUSED
    assert " layout-file-missing: " in said.err
    assert "--even-if-found layout-file-missing" in said.err
    assert tree(*broker.log_dirs) == lost
    status = ctl("layout", "status", *broker.words)
    assert status.status == Exit.PROBLEMS
    assert "layout-file-missing: " in status.err
    assert status.out.endswith(f"next: logdirctl layout rollback {' '.join(broker.words)}\n")
    # An override of another refusal lifts nothing.
    said = ctl("layout", "rollback", *broker.words, "--apply", "--even-if-found", "for-broker-missing")
    assert said.status == Exit.USAGE
    assert tree(*broker.log_dirs) == lost
    assert rollback(broker, "--even-if-found", "layout-file-missing")[0] == Exit.DONE
    assert tree(*broker.log_dirs) == before


def test_before_the_first_change_it_says_what_is_kept_and_where(broker: Planned) -> None:
    first = ctl("layout", "apply", broker.plan, *broker.words, "--apply")
    assert "start-block.json" in first.err
    assert "no broker can start" in first.err
    assert "start-block.json" not in ctl("layout", "apply", broker.plan, *broker.words, "--apply").err


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_a_terminal_only(broker: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_QUIET_S", 0.0)
    monkeypatch.setattr(progress, "_NOTE_EVERY_S", 0.0)
    err = _Terminal()
    assert main(["layout", "apply", str(broker.plan), *broker.words, "--apply", "--json"], io.StringIO(), err) == 0
    count = len(broker.steps)
    assert f"\rmoving replicas: {count} of {count}" in err.getvalue()
    assert "\r\x1b[K" in err.getvalue()
    said = ctl("layout", "rollback", *broker.words, "--apply")
    assert "\r" not in said.err + said.out


@pytest.mark.slow
@pytest.mark.spark
def test_a_plan_of_spark_is_the_oracles_and_applies(spark: object, tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path)
    assert main(["fleet", "plan", str(fleet), "-o", str(tmp_path / "plan")], io.StringIO(), io.StringIO()) == 0
    documents = answer(fleet).documents
    assert len(documents) == len(BROKERS)
    for name, data in documents.items():
        assert (tmp_path / "plan" / name).read_bytes() == data
        header = json.loads(data.splitlines()[0])
        broker = Planned(tuple(map(Path, header["log_dirs"])), tmp_path / "plan" / name)
        before = tree(*broker.log_dirs)
        assert ctl("init", *broker.words, "--apply").status == Exit.DONE
        assert apply(broker)[0] == Exit.DONE
        assert ctl_json("layout", "verify", broker.plan, *broker.words, "--apply")[0] == Exit.DONE
        assert rollback(broker)[0] == Exit.DONE
        assert tree(*broker.log_dirs) == before
