"""``logdirctl handover`` as a gate: what a failed start lost, how it is put back, and how the gate is passed."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from logdir.decide.checkpoint_copies import Losses, LostEntries
from logdir.disk.record import handover as record
from logdir.disk.record.handover import Compared
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirReplacedError, LogDirSuspectError, Problem
from logdir.formats.kafka.offset_checkpoint import TopicPartition
from logdir.formats.own import handover_file
from logdir.service.batch import checkpoint_losses, handover
from logdir.service.batch.checkpoint_losses import Comparisons, Restorable, problems_of, restorable
from logdir.service.log_dirs import opening
from logdir.service.log_dirs.kafka_locks import HeldLocks
from logdir.service.log_dirs.open_broker import OpenBroker
from tests.tools.adopt_rig import AdoptRig, failing
from tests.tools.ctl import Said, ctl, ctl_json, tree, two_disks
from tools.cli.arguments import Exit

POINTS, STARTS = "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"
EMPTY = b"0\n0\n"
LOST = "checkpoint-log-starts-lost", "checkpoint-entries-lost"
SKIP = "LOGDIRD_SKIP_GATE"


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    """Make a stopped broker: the log of ``pay-0`` begins at 5, though it has older records, and ends at 7."""
    made = two_disks(tmp_path)
    (made[0] / STARTS).write_bytes(b"0\n1\npay 0 5\n")
    assert ctl("init", *named(*made), "--apply").status == Exit.DONE
    return made


def named(*disks: Path) -> tuple[str, str]:
    return "--log-dirs", ",".join(map(str, disks))


def fail_a_start(*disks: Path) -> None:
    """Leave what a broker leaves whose registration times out."""
    for disk in disks:
        for name in (POINTS, STARTS):
            (disk / name).write_bytes(EMPTY)


def handed_over_and_failed(disks: tuple[Path, Path]) -> None:
    assert ctl("handover", *named(*disks), "--quiet") == Said(Exit.DONE, "", "")
    fail_a_start(*disks)


def slugs(said: Said) -> list[str]:
    """Return the slugs of the problems that were printed."""
    return [line.split(": ")[1] for line in said.err.splitlines()]


def test_a30_a_file_that_a_failed_start_emptied_is_named_at_the_next_ones_and_keeps_no_broker_down(
    disks: tuple[Path, Path],
) -> None:
    handed_over_and_failed(disks)
    for words in (["--plan"], [], [], ["--quiet"], ["--plan"]):
        said = ctl("handover", *named(*disks), *words)
        assert (said.status, slugs(said)) == (Exit.DONE, [*LOST, LOST[1]]), said
        first = said.err.splitlines()[0]
        assert f"{disks[0] / STARTS}: expected the log starts of the copy of " in first
        assert "(UTC): pay-0 at 5, found none, or lower ones; " in first
        assert "stop the broker, then logdirctl handover --log-starts restore" in first
        assert f"{disks[1] / POINTS}: expected the entries of the copy of " in said.err
    kept = handover_file.parse(Path(f"{disks[0]}.logdird/handover.json").read_bytes())
    assert [copy.checkpoints[STARTS] for copy in kept.copies] == [EMPTY, b"0\n1\npay 0 5\n"]


def test_log_starts_are_restored_and_nothing_else_is(disks: tuple[Path, Path]) -> None:
    handed_over_and_failed(disks)
    before = tree(*disks)
    said = ctl("handover", *named(*disks), "--log-starts", "restore", "--plan")
    assert f"{disks[0]}: no change of layout is unfinished; log starts to be restored: 1" in said.out
    assert f"{disks[1]}: no change of layout is unfinished; log starts to be restored: 0" in said.out
    assert tree(*disks) == before
    said = ctl("handover", *named(*disks), "--log-starts", "restore")
    assert (said.status, slugs(said)) == (Exit.DONE, [LOST[1]] * 2)
    assert f"{disks[0]}: no change of layout is unfinished; log starts restored: 1" in said.out
    assert (disks[0] / STARTS).read_bytes() == b"0\n1\npay 0 5\n"
    assert (disks[0] / POINTS).read_bytes() == EMPTY
    changed = {path for path, seen in tree(*disks).items() if before.get(path) != seen}
    assert changed == {str(disks[0] / STARTS), str(disks[0] / f"{STARTS}.old")}
    assert LOST[0] not in slugs(ctl("handover", *named(*disks)))


def test_no_log_start_is_restored_behind_the_end_of_its_log(disks: tuple[Path, Path]) -> None:
    """A broker that found one there would remove every segment (kafka-behaviour §10.7)."""
    (disks[0] / STARTS).write_bytes(b"0\n2\npay 0 8\npay 2 5\n")
    handed_over_and_failed(disks)
    status, result = ctl_json("handover", *named(*disks), "--log-starts", "restore")
    assert status == Exit.DONE
    assert result["items"][0]["detail"] == (
        "no change of layout is unfinished; log starts restored: 1; "
        "left, because the ends of their logs lie before them or are not known: 1"
    )
    assert (disks[0] / STARTS).read_bytes() == b"0\n1\npay 2 5\n"
    said = ctl("handover", *named(*disks))
    assert "(UTC): pay-0 at 8, found " in said.err


def test_what_was_written_while_the_ends_of_the_logs_were_read_stays_as_it_is(
    disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No lock is held meanwhile: a broker may have run and ended."""
    handed_over_and_failed(disks)

    def read(broker: OpenBroker, open_dir: OpenLogDir) -> Restorable:
        found = restorable(broker, open_dir)
        (disks[0] / STARTS).write_bytes(b"0\n1\nother 0 3\n")
        return found

    monkeypatch.setattr(handover, "restorable", read)
    said = ctl("handover", *named(*disks), "--log-starts", "restore")
    assert (said.status, f"changed-since-plan: {disks[0] / STARTS}: " in said.err) == (Exit.REFUSED, True), said
    assert (disks[0] / STARTS).read_bytes() == b"0\n1\nother 0 3\n"
    monkeypatch.undo()
    said = ctl("handover", *named(*disks), "--log-starts", "restore")
    assert (said.status, "log starts restored: 1" in said.out) == (Exit.DONE, True), said
    assert (disks[0] / STARTS).read_bytes() == b"0\n2\nother 0 3\npay 0 5\n"


def test_no_log_start_is_written_back_under_a_lock_that_was_replaced(
    disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_over_and_failed(disks)

    def replaced(_: HeldLocks) -> None:
        raise LogDirReplacedError(str(disks[0] / ".lock"), expected="the lock file that is held", found="another")

    monkeypatch.setattr(HeldLocks, "require_held", replaced)
    said = ctl("handover", *named(*disks), "--log-starts", "restore")
    assert (said.status, slugs(said)[0]) == (Exit.REFUSED, "log-dir-replaced"), said
    assert (disks[0] / STARTS).read_bytes() == EMPTY


def failing_comparison(error: LogDirSuspectError | OSError, disk: Path) -> Callable[..., Compared]:
    """Return a comparison of checkpoint files that fails on a disk."""
    compare = record.compare

    def failing_there(open_dir: OpenLogDir, *stamp: str) -> Compared:
        if open_dir.log_dir == str(disk):
            raise error
        return compare(open_dir, *stamp)

    return failing_there


def test_a_disk_that_does_not_answer_to_a_comparison_is_named(
    disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = LogDirSuspectError(str(disks[1]), expected="an answer", found="none for 10 s")
    monkeypatch.setattr(record, "compare", failing_comparison(silent, disks[1]))
    said = ctl("handover", *named(*disks), "--plan")
    assert f"log-dir-suspect: {disks[1]}: expected an answer, found none for 10 s" in said.err


def test_a_disk_that_cannot_be_read_is_named_before_log_starts_are_restored(
    disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_over_and_failed(disks)
    unreadable = OSError(errno.EIO, os.strerror(errno.EIO))
    monkeypatch.setattr(record, "compare", failing_comparison(unreadable, disks[1]))
    said = ctl("handover", *named(*disks), "--log-starts", "restore", "--plan")
    assert (said.status, f"log-dir-offline: {disks[1]}: " in said.err) == (Exit.PROBLEMS, True), said


def test_what_has_not_changed_is_not_compared_again(disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    handed_over_and_failed(disks)
    worded = []

    def noted(log_dir: str, losses: Losses) -> Iterator[Problem]:
        worded.append(log_dir)
        return problems_of(log_dir, losses)

    def thrice(broker: OpenBroker, open_dirs: Sequence[OpenLogDir]) -> tuple[Problem, ...]:
        comparisons = Comparisons()
        first = comparisons.compare(broker, open_dirs)
        assert worded == list(map(str, disks))
        assert [problem.slug for problem in first] == [*LOST, LOST[1]]
        assert comparisons.compare(broker, open_dirs) == first
        assert worded == list(map(str, disks))
        (disks[0] / STARTS).write_bytes(b"0\n1\npay 0 4\n")
        third = comparisons.compare(broker, open_dirs)
        assert worded == [*map(str, disks), str(disks[0])]
        return third

    monkeypatch.setattr(checkpoint_losses, "problems_of", noted)
    monkeypatch.setattr(handover, "compared", thrice)
    said = ctl("handover", *named(*disks), "--plan")
    assert (said.status, slugs(said)) == (Exit.DONE, [*LOST, LOST[1]]), said


def test_three_logs_are_named_and_the_others_counted() -> None:
    def named_of(count: int) -> str:
        partitions = tuple(TopicPartition("pay", number) for number in range(count))
        (problem,) = problems_of("/d1", Losses(entries=(LostEntries(POINTS, partitions, 0),)))
        return problem.expected

    assert named_of(3).endswith(" for pay-0, pay-1, pay-2")
    assert named_of(4).endswith(" for pay-0, pay-1, pay-2 and 1 more")
    assert named_of(5).endswith(" for pay-0, pay-1, pay-2 and 2 more")


def test_what_is_accepted_is_named_no_more(disks: tuple[Path, Path]) -> None:
    handed_over_and_failed(disks)
    assert ctl("handover", *named(*disks), "--log-starts", "accept").err == ""
    assert ctl("handover", *named(*disks), "--quiet") == Said(Exit.DONE, "", "")
    assert (disks[0] / STARTS).read_bytes() == EMPTY


def test_a_file_that_no_broker_reads_is_named(disks: tuple[Path, Path]) -> None:
    (disks[0] / STARTS).write_bytes(b"0\n7\nnothing\n")
    said = ctl("handover", *named(*disks))
    assert (said.status, slugs(said)) == (Exit.DONE, ["checkpoint-unreadable"])
    assert "stop the broker and move the file away" in said.err


def test_without_a_daemon_the_history_of_its_configuration_tells_it(disks: tuple[Path, Path], tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(f"broker.id=1\nlog.dirs={','.join(map(str, disks))}\n")
    config = tmp_path / "b1.yaml"
    config.write_text("server.properties: server.properties\nstate.dir: state\nsocket: s.sock\n")
    (tmp_path / "state").mkdir()
    handed_over_and_failed(disks)
    assert ctl("handover", "--config", config, "--plan").status == Exit.DONE
    assert not (tmp_path / "state" / "history.jsonl").exists()
    assert ctl("handover", "--config", config).status == Exit.DONE
    lines = [json.loads(line) for line in (tmp_path / "state" / "history.jsonl").read_text().splitlines()]
    assert {line["event"] for line in lines} == {"checkpoints-lost"}
    assert [line["problem"].split(":")[0] for line in lines] == [*LOST, LOST[1]]
    (tmp_path / "state" / "history.jsonl").unlink()
    (tmp_path / "state").rmdir()
    assert ctl("handover", "--config", config).status == Exit.DONE, "the history keeps no broker down"


def test_a_recovery_alone_copies_nothing_and_awaits_no_broker(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    with failing("rename", str(rig.adopted())):
        rig.adopt("--apply")
    assert ctl("handover", *rig.named, "--recover-only", "--plan").status == Exit.DONE
    assert not rig.adopted().exists()
    said = ctl("handover", *rig.named, "--recover-only")
    assert (said.status, said.err) == (Exit.DONE, ""), said
    assert "what was interrupted is finished or undone" in said.out
    assert said.out.splitlines()[-1].startswith("next: logdirctl handover ")
    assert rig.adopted().is_dir()
    assert not list(tmp_path.rglob("handover.json"))


def test_a_recovery_alone_without_one_log_dir_is_not_whole(disks: tuple[Path, Path]) -> None:
    disks[1].rename(disks[1].with_name("away"))
    said = ctl("handover", *named(*disks), "--recover-only")
    assert said.status == Exit.PROBLEMS, said


def test_a_recovery_alone_beside_a_quarantined_log_dir_is_not_whole(
    disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = str(disks[1])
    quarantined = {where: Problem("sync-failed", where, "a disk without a failed sync", "one")}
    monkeypatch.setattr(opening, "quarantine_of", lambda open_dirs, accepted: quarantined)
    said = ctl("handover", *named(*disks), "--recover-only")
    assert (said.status, slugs(said)) == (Exit.PROBLEMS, ["sync-failed"]), said


def test_a_recovery_alone_has_no_log_starts(disks: tuple[Path, Path]) -> None:
    said = ctl("handover", *named(*disks), "--recover-only", "--log-starts", "accept")
    assert (said.status, "--log-starts beside it" in said.err) == (Exit.USAGE, True), said


@pytest.mark.parametrize("value", ["1", "yes", "true"])
def test_the_gate_is_passed_by_one_variable_that_is_named_in_each_refusal(
    disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    away = disks[1].with_name("away")
    disks[1].rename(away)
    refused = ctl("handover", *named(*disks), "--quiet")
    assert refused.status not in (Exit.DONE, Exit.INTERNAL)
    assert f"{SKIP}=1 in the environment of the broker's unit lets it start all the same" in refused.err
    before = tree(disks[0].parent)
    monkeypatch.setenv(SKIP, value)
    said = ctl("handover", *named(*disks), "--quiet")
    assert (said.status, said.out, slugs(said)) == (Exit.DONE, "", ["gate-skipped"]), said
    status, out, _ = ctl("handover", *named(*disks), "--json")
    assert (status, [one["slug"] for one in json.loads(out)["problems"]]) == (Exit.DONE, ["gate-skipped"])
    assert tree(disks[0].parent) == before, "nothing was even looked at"
    assert ctl("handover", *named(*disks), "--plan").status == refused.status, "a plan is no gate"


@pytest.mark.parametrize("value", ["", "0", "no", "False"])
def test_the_variable_that_says_no_passes_nothing(
    disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    disks[1].rename(disks[1].with_name("away"))
    monkeypatch.setenv(SKIP, value)
    assert ctl("handover", *named(*disks)).status not in (Exit.DONE, Exit.INTERNAL)


def test_a_plan_names_no_way_round_it(disks: tuple[Path, Path]) -> None:
    disks[1].rename(disks[1].with_name("away"))
    assert SKIP not in ctl("handover", *named(*disks), "--plan").err
