"""What ``logdirctl reconcile`` writes into ``controller.json``, and whose file it believes."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdir import clock
from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.record import controller
from logdir.disk.replica import staging
from logdir.disk.replica.outcome import Outcome
from logdir.disk.replica.staging import StageItem
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import Problem, ReadOnlyDiskError
from logdir.formats.own import controller_file, staging_limit_file
from logdir.formats.own.controller_file import ControllerFile, MetadataMark, RequestMark
from logdir.formats.own.staging_limit_file import Count
from logdir.service import reconcile
from logdir.service.batch import reconcile_apply
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.worker import state
from tests.builders import CLUSTER, partition
from tests.reconcile.universe import document, listed, stopped
from tests.tools.ctl import ctl, ctl_json
from tests.tools.reconcile_rig import GONE, OTHER, PARTITIONS, PAY, Rig, age
from tools.cli.arguments import Exit

EVERY = tuple(range(PARTITIONS))
FULL = 2
ELSEWHERE = "AAAAAAAAAAAAAAAAAAAABQ"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def record_of(disk: Path) -> Path:
    return Path(f"{disk}.logdird") / "controller.json"


def rewrite(disk: Path, change: Callable[[ControllerFile], ControllerFile]) -> None:
    """Replace the record of a log dir by a changed one, whole and with a true digest."""
    path = record_of(disk)
    path.write_bytes(controller_file.render(change(controller_file.parse(path.read_bytes()))))


def another_clusters(record: ControllerFile) -> ControllerFile:
    return replace(record, cluster_id=ELSEWHERE)


def another_nodes(record: ControllerFile) -> ControllerFile:
    return replace(record, node_id=2)


@pytest.mark.parametrize("foreign", [another_clusters, another_nodes], ids=["cluster", "node"])
@pytest.mark.parametrize("count", [1, 2], ids=["of-one-disk", "of-both-disks"])
def test_no_controller_json_of_another_cluster_or_node_is_believed(
    foreign: Callable[[ControllerFile], ControllerFile], count: int, rig: Rig
) -> None:
    """It says that nothing was followed yet, so believing it lets any image through."""
    rig.with_removal()
    for disk in rig.disks[:count]:
        rewrite(disk, foreign)
    before = [record_of(disk).read_bytes() for disk in rig.disks]
    for more in ((), ("--apply",)):
        said = rig.reconcile("metadata:", *more)
        assert (said.status, "controller.json" in said.err) == (Exit.REFUSED, True), said
    assert rig.deleting() == []
    assert [record_of(disk).read_bytes() for disk in rig.disks] == before
    # Once an operator says that the source is right, the records are this broker's again.
    assert rig.reconcile("metadata:", "--apply", "--even-if-older-metadata").status == Exit.DONE
    assert rig.deleting() == [f"{GONE}_0", f"{GONE}_1"]
    assert {(one.cluster_id, one.node_id) for one in rig.controller()} == {(CLUSTER, 1)}


def test_no_position_of_another_cluster_holds_back_an_image_of_ours(rig: Rig) -> None:
    """A foreign mark far ahead does not make our own image rolled back; the record counts as lost."""
    rig.with_removal()
    for disk in rig.disks:
        rewrite(disk, lambda one: replace(another_clusters(one), metadata=MetadataMark(epoch=90, offset=9000)))
    said = rig.reconcile("metadata:", "--apply")
    assert (said.status, "rolled back" in said.err) == (Exit.REFUSED, False)
    assert rig.reconcile("metadata:", "--apply", "--even-if-older-metadata").status == Exit.DONE
    assert {one.metadata for one in rig.controller()} == {MetadataMark(epoch=1, offset=21)}


def test_no_request_is_acted_on_by_the_word_of_another_clusters_controller_json(rig: Rig) -> None:
    rewrite(rig.disks[1], another_clusters)
    source = rig.document(document(listed(pay=(PAY, EVERY)), type=FULL, sequence=9))
    rig.reconcile(source, "--apply", "--even-over-limit")
    assert rig.deleting() == []


def test_no_replica_of_a_log_dir_is_staged_with_a_sync_of_its_own(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    real, parts = staging.stage, []

    def stage(open_dir: OpenLogDir, items: Sequence[StageItem]) -> tuple[Outcome, ...]:
        parts.append((open_dir.log_dir, len(items)))
        return real(open_dir, items)

    monkeypatch.setattr(staging, "stage", stage)
    source = rig.document(document(listed(gone=(GONE, (0, 1))), type=FULL, sequence=9))
    assert rig.reconcile(source, "--apply", "--even-over-limit").status == Exit.DONE
    assert parts == [(str(disk), PARTITIONS // 2) for disk in rig.disks]


def test_no_request_is_marked_applied_though_a_row_failed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """``gone-1`` is replaced by a copy of itself after the last look: its staging is refused at the directory."""
    real = staging.stage
    spare = rig.folder / "spare"

    def replaced(open_dir: OpenLogDir, items: Sequence[StageItem]) -> tuple[Outcome, ...]:
        path = rig.disks[1] / "gone-1"
        if any(item.path == "gone-1" for item in items) and not spare.exists():
            path.rename(spare)
            shutil.copytree(spare, path)
        return real(open_dir, items)

    monkeypatch.setattr(staging, "stage", replaced)
    source = rig.document(document(listed(pay=(PAY, EVERY)), type=FULL, sequence=9))
    status, result = ctl_json("reconcile", "--from", source, *rig.named, "--apply", "--even-over-limit")
    assert status == Exit.PROBLEMS
    assert {item["path"]: item["state"] for item in result["items"]} == {"gone-0": "done", "gone-1": "undone"}
    # Nothing older than the request is followed from now on, and the request itself may be given again.
    assert {one.requests for one in rig.controller()} == {RequestMark(controller_epoch=5, sequence=8)}
    assert all(one.is_full_wanted for one in rig.controller())
    age(*rig.disks)
    status, result = ctl_json("reconcile", "--from", source, *rig.named, "--apply", "--even-over-limit")
    assert (status, result["items"][0]["path"]) == (Exit.DONE, "gone-1")
    assert rig.deleting() == [f"{GONE}_0", f"{GONE}_1"]
    assert {(one.requests, one.is_full_wanted) for one in rig.controller()} == {
        (RequestMark(controller_epoch=5, sequence=9), False)
    }


@pytest.mark.parametrize("sick_disk", [0, 1])
@pytest.mark.parametrize(
    "error",
    [
        ReadOnlyDiskError("d", expected="a sync that succeeds", found="EIO"),
        OSError(errno.EIO, os.strerror(errno.EIO)),
    ],
    ids=["read-only", "EIO"],
)
def test_no_request_is_marked_applied_though_a_disk_took_no_changes(
    error: Exception, sick_disk: int, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = staging.stage

    def sick(open_dir: OpenLogDir, items: Sequence[StageItem]) -> tuple[Outcome, ...]:
        if open_dir.log_dir == str(rig.disks[sick_disk]):
            raise error
        return real(open_dir, items)

    monkeypatch.setattr(staging, "stage", sick)
    source = rig.document(document(listed(pay=(PAY, EVERY)), type=FULL, sequence=9))
    status, result = ctl_json("reconcile", "--from", source, *rig.named, "--apply", "--even-over-limit")
    assert status == Exit.PROBLEMS
    # The other disk's row is done, whichever comes first.
    assert {item["path"]: item["state"] for item in result["items"]} == {
        f"gone-{sick_disk}": "undone",
        f"gone-{1 - sick_disk}": "done",
    }
    assert {one.requests for one in rig.controller()} == {RequestMark(controller_epoch=5, sequence=8)}


def test_no_request_is_marked_applied_though_a_replica_changed_before_its_batch(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, look = reconcile_apply.apply, OpenBroker.look_again
    looks: list[str] = []

    def looking(self: OpenBroker, *given: Any, **more: Any) -> Any:
        looks.append("one right before the locks, then one under them")
        if len(looks) == 2:
            (rig.disks[1] / "gone-1" / "odd").mkdir()
        return look(self, *given, **more)

    def begun(*given: Any) -> Any:
        monkeypatch.setattr(OpenBroker, "look_again", looking)
        return real(*given)

    monkeypatch.setattr(reconcile_apply, "apply", begun)
    source = rig.document(document(listed(pay=(PAY, EVERY)), type=FULL, sequence=9))
    status, result = ctl_json("reconcile", "--from", source, *rig.named, "--apply", "--even-over-limit")
    assert status == Exit.PROBLEMS
    assert {item["path"]: item["state"] for item in result["items"]} == {"gone-0": "done", "gone-1": "refused"}
    assert {one.requests for one in rig.controller()} == {RequestMark(controller_epoch=5, sequence=8)}


def stop(topic: str, topic_id: str, numbers: tuple[int, ...]) -> dict[str, Any]:
    """Return a StopReplica document that is the first of its controller."""
    topics: dict[str, Any] = {topic: (topic_id, numbers)}
    return document(stopped(delete=True, **topics), api="StopReplica", form="kip", sequence=1)


def followed(rig: Rig) -> list[RequestMark | None]:
    return [one.requests for one in rig.controller()]


@pytest.mark.parametrize("numbers", [(0,), (0, 1)], ids=["nothing else follows", "the rest is done"])
def test_no_request_is_marked_applied_though_a_replica_of_it_is_held(numbers: tuple[int, ...], rig: Rig) -> None:
    """A sub-directory in ``gone-0`` is in the way; once it is taken away the request is given again."""
    odd = rig.disks[0] / "gone-0" / "sub"
    odd.mkdir()
    source = rig.document(stop("gone", GONE, numbers))
    for _ in range(2):
        said = rig.reconcile(source, "--apply", "--even-over-limit")
        assert (said.status, f"{odd}" in said.err) == (Exit.PROBLEMS, True), said
        assert RequestMark(controller_epoch=5, sequence=1) not in followed(rig)
        assert rig.deleting() == [f"{GONE}_{number}" for number in numbers if number != 0]
    odd.rmdir()
    age(*rig.disks)
    assert rig.reconcile(source, "--apply", "--even-over-limit").status == Exit.DONE
    assert rig.deleting() == [f"{GONE}_{number}" for number in numbers]
    assert followed(rig) == [RequestMark(controller_epoch=5, sequence=1)] * 2
    said = rig.reconcile(source, "--apply")
    assert (said.status, "nothing to do" in said.out) == (Exit.DONE, True)


def test_no_request_is_marked_applied_though_a_topic_of_it_was_protected(rig: Rig) -> None:
    source = rig.document(stop("gone", GONE, (0, 1)))
    said = rig.reconcile(source, "--apply", "--protect", "go*", "--even-over-limit")
    assert (said.status, rig.deleting(), followed(rig)) == (Exit.PROBLEMS, [], [None, None])
    plan = rig.reconcile(source, "--protect", "go*", "--even-over-limit")
    assert "reconcile" not in plan.out.splitlines()[-1]  # there is nothing to apply
    assert rig.reconcile(source, "--apply", "--even-over-limit").status == Exit.DONE
    assert rig.deleting() == [f"{GONE}_0", f"{GONE}_1"]


def test_no_request_is_marked_applied_though_an_internal_topic_of_it_was_kept(rig: Rig) -> None:
    offsets = partition(rig.disks[0] / "__consumer_offsets-0", topic_id=OTHER)
    age(offsets)
    source = rig.document(stop("__consumer_offsets", OTHER, (0,)))
    said = rig.reconcile(source, "--apply", "--even-over-limit")
    assert (said.status, "--internal" in said.err, followed(rig)) == (Exit.PROBLEMS, True, [None, None])
    assert rig.reconcile(source, "--apply", "--internal", "--even-over-limit").status == Exit.DONE
    assert rig.deleting() == [f"{OTHER}_0"]


def test_no_request_is_marked_applied_though_a_log_dir_was_left_out(rig: Rig) -> None:
    """``gone-1`` lies on the disk that was left out; it is staged when that is there again."""
    source = rig.document(stop("gone", GONE, (0, 1)))
    away = rig.folder / "away"
    rig.disks[1].rename(away)
    said = rig.reconcile(source, "--apply", "--even-over-limit", "--skip-log-dir", rig.disks[1])
    assert (said.status, rig.deleting()) == (Exit.PROBLEMS, [f"{GONE}_0"]), said
    away.rename(rig.disks[1])
    assert rig.reconcile(source, "--apply", "--even-over-limit").status == Exit.DONE
    assert rig.deleting() == [f"{GONE}_0", f"{GONE}_1"]
    assert followed(rig) == [RequestMark(controller_epoch=5, sequence=1)] * 2


def test_no_request_is_marked_applied_though_a_replica_of_it_came_between(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``gone-2`` was not shown, so it is not staged; the request is given again for it."""
    real, look = reconcile_apply.apply, OpenBroker.look_again
    looks: list[str] = []

    def looking(self: OpenBroker, *given: Any, **more: Any) -> Any:
        looks.append("one right before the locks, then one under them")
        if len(looks) == 2:
            age(partition(rig.disks[1] / "gone-2", topic_id=GONE))
        return look(self, *given, **more)

    def begun(*given: Any) -> Any:
        monkeypatch.setattr(OpenBroker, "look_again", looking)
        return real(*given)

    monkeypatch.setattr(reconcile_apply, "apply", begun)
    source = rig.document(document(listed(pay=(PAY, EVERY)), type=FULL, sequence=9))
    rig.reconcile(source, "--apply", "--even-over-limit")
    assert rig.deleting() == [f"{GONE}_0", f"{GONE}_1"]
    assert followed(rig) == [RequestMark(controller_epoch=5, sequence=8)] * 2


def test_a_request_is_marked_applied_beside_a_staged_replica_that_is_wanted_and_has_no_deadline(rig: Rig) -> None:
    """There is nothing to take from it: giving the request again would do nothing more."""
    said = ctl("stage", "pay-0", *rig.named, "--even-if-unknown", "--apply")
    assert said.status == Exit.DONE, said
    source = rig.document(document(listed(pay=(PAY, EVERY), gone=(GONE, (0, 1))), type=FULL, sequence=9))
    said = rig.reconcile(source, "--apply")
    assert (said.status, "it has no deadline" in said.err) == (Exit.PROBLEMS, True)
    assert followed(rig) == [RequestMark(controller_epoch=5, sequence=9)] * 2


def test_no_image_is_marked_as_followed_by_a_decision_that_forbids_what_was_shown(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another command of ours uses up the limit between what is shown and what is done."""
    rig.with_removal()
    real = reconcile_apply.apply
    used_up = staging_limit_file.render((Count(instant_ms=clock.now_ms() - 1000, partitions=5, topics=5),))

    def begun(*given: Any) -> Any:
        for disk in rig.disks:
            Path(f"{disk}.logdird", staging_limit_file.FILE_NAME).write_bytes(used_up)
        return real(*given)

    monkeypatch.setattr(reconcile_apply, "apply", begun)
    before = rig.controller()
    status, result = ctl_json("reconcile", "--from", "metadata:", *rig.named, "--apply")
    assert status == Exit.REFUSED
    assert {item["path"]: item["state"] for item in result["items"]} == {"gone-0": "waiting", "gone-1": "waiting"}
    assert (rig.deleting(), rig.controller()) == ([], before)


@pytest.mark.parametrize(
    ("name", "number"),
    [("controller", errno.EIO), ("staging-limit", errno.ENOSPC), ("staging-limit", errno.EACCES)],
    ids=["controller-EIO", "staging limit-ENOSPC", "staging limit-EACCES"],
)
def test_a_record_that_cannot_be_written_lets_nothing_go_and_is_no_fault_of_ours(
    name: str, number: int, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.with_removal()

    def observe(call: Call) -> None:
        if call.path.startswith(f"{rig.disks[1]}.logdird/{name}."):
            raise OSError(number, os.strerror(number), call.path)

    monkeypatch.setattr(state, "HostDisk", lambda: HostDisk(observe))
    said = rig.reconcile("metadata:", "--apply")
    assert said.status not in (Exit.DONE, Exit.INTERNAL), said
    assert f"{rig.disks[1]}.logdird" in said.err or f"{name}.json of every work root" in said.err
    assert rig.deleting() == []


def test_no_position_that_cannot_be_written_at_the_end_is_a_fault_of_ours(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.with_removal()
    write, calls = controller.write_record, []

    def denied(*given: Any, **named: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise PermissionError(errno.EACCES, "Permission denied")
        write(*given, **named)

    monkeypatch.setattr(controller, "write_record", denied)
    said = rig.reconcile("metadata:", "--apply", "--even-over-limit")
    assert (len(calls), said.status, len(rig.deleting())) == (2, Exit.REFUSED, 2), said
    assert "controller.json" in said.err


def test_nothing_goes_of_what_was_shown_once_the_image_is_refused(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.with_removal()
    real, decide = reconcile_apply.apply, reconcile.decide
    why = Problem("refused", "/m", "an image of this cluster", "one of another")

    def refusing(*given: Any, **named: Any) -> Any:
        decided = decide(*given, **named)
        assert decided.plan is not None
        return replace(decided, plan=replace(decided.plan, refused=why))

    def begun(*given: Any) -> Any:
        monkeypatch.setattr(reconcile_apply, "decide", refusing)
        return real(*given)

    monkeypatch.setattr(reconcile_apply, "apply", begun)
    before = rig.controller()
    said = rig.reconcile("metadata:", "--apply", "--even-over-limit")
    assert (said.status, rig.deleting(), rig.controller()) == (Exit.REFUSED, [], before)


def test_no_replica_that_changed_is_answered_with_the_refusal_of_another(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two on one log dir one is away before its batch, the other is refused."""
    rig.with_removal()
    (rig.disks[1] / "gone-1").rename(rig.folder / "away")
    partition(rig.disks[0] / "gone-1", topic_id=GONE)
    age(rig.disks[0] / "gone-1")
    real = reconcile_apply.apply

    def begun(*given: Any) -> Any:
        (rig.disks[0] / "gone-1" / "odd").mkdir()
        (rig.disks[0] / "gone-0").rename(rig.folder / "away too")
        return real(*given)

    monkeypatch.setattr(reconcile_apply, "apply", begun)
    _, result = ctl_json("reconcile", "--from", "metadata:", *rig.named, "--apply", "--even-over-limit")
    assert {item["path"]: item["state"] for item in result["items"]} == {"gone-0": "undone", "gone-1": "refused"}
