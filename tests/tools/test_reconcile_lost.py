"""One ``controller.json`` is lost: what the other disks recorded is neither forgotten nor taken for the whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdir.formats.own import controller_file
from logdir.formats.own.controller_file import MetadataMark, RequestMark
from tests.logdir.cluster.log_dir import noop
from tests.reconcile.universe import document, listed, stopped
from tests.tools.reconcile_rig import GONE, PARTITIONS, PAY, Rig, age, gone_records
from tools.cli.arguments import Exit

EVERY = tuple(range(PARTITIONS))
FULL = 2
NAME = controller_file.FILE_NAME
ANYWAY = "--even-if-older-metadata"
LAST = RequestMark(controller_epoch=5, sequence=500)
FAR = MetadataMark(epoch=7, offset=9000)
WITHOUT_GONE = document(listed(pay=(PAY, EVERY)), type=FULL, sequence=501)
OLD_STOP = document(stopped(delete=True, gone=(None, (0, 1))), api="StopReplica", sequence=7)


def record_of(disk: Path) -> Path:
    return Path(f"{disk}.logdird") / NAME


def with_records(rig: Rig, lost: Sequence[int], **known: Any) -> Rig:
    """Let requests have been followed up to (5, 500), and tear the records of some disks."""
    for number, disk in enumerate(rig.disks):
        path = record_of(disk)
        value = replace(controller_file.parse(path.read_bytes()), requests=LAST, broker_epoch=40, **known)
        data = controller_file.render(replace(value, is_full_wanted=False))
        path.write_bytes(data[: len(data) // 2] if number in lost else data)
    return rig


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def znodes(rig: Rig) -> str:
    path = rig.folder / "znodes.json"
    partitions = {str(number): [1, 2] for number in EVERY}
    values = {"/brokers/topics/pay": {"version": 3, "id": PAY, "partitions": partitions}}
    path.write_text(json.dumps(values))
    return f"znodes:{path}"


@pytest.mark.parametrize("lost", [(0,), (1,)], ids=["first", "second"])
@pytest.mark.parametrize("is_log", [False, True], ids=["znodes", "metadata"])
def test_a03_the_way_out_keeps_how_far_requests_were_followed(rig: Rig, lost: tuple[int], is_log: bool) -> None:
    """``--even-if-older-metadata`` speaks of metadata: an old request stays overtaken."""
    with_records(rig, lost)
    if is_log:
        rig.snapshot(rig.log())
    assert rig.reconcile("metadata:" if is_log else znodes(rig), "--apply", ANYWAY).status == Exit.PROBLEMS
    assert {(one.requests, one.broker_epoch, one.is_full_wanted) for one in rig.controller()} == {(LAST, 40, True)}
    said = rig.reconcile(rig.document(OLD_STOP), "--apply", "--even-over-limit")
    assert (said.status, "request-overtaken" in said.err) == (Exit.REFUSED, True), said
    assert rig.deleting() == []


def test_a43_the_way_out_does_not_lower_what_was_applied_of_the_same_log(rig: Rig) -> None:
    """A watermark of the quorum took it farther than its newest snapshot, and that stays committed."""
    log = rig.log()
    rig.snapshot(log, *gone_records())
    log.append(noop())
    end = MetadataMark(epoch=1, offset=log.offset)
    with_records(rig, (0,), metadata=end)
    assert rig.reconcile("metadata:", "--apply", ANYWAY).status == Exit.DONE
    assert {one.metadata for one in rig.controller()} == {end}


@pytest.mark.parametrize("lost", [(0,), (1,), (0, 1)], ids=["first", "second", "both"])
def test_a43_no_unconfirmed_full_makes_a_record_whole_whose_metadata_mark_is_lost(
    rig: Rig, lost: tuple[int, ...]
) -> None:
    with_records(rig, lost, metadata=FAR)
    before = [record_of(disk).read_bytes() for disk in rig.disks]
    # ``gone`` is left out, or named: then nothing at all would be left to do.
    everything = document(listed(pay=(PAY, EVERY), gone=(GONE, (0, 1))), type=FULL, sequence=502)
    for value in (WITHOUT_GONE, everything, everything | {"sequence": 503}):
        said = rig.reconcile(rig.document(value), "--apply")
        assert (said.status, "last-applied-unknown: " in said.err) == (Exit.PROBLEMS, True), said
        assert f"logdirctl reconcile --from request:FILE {ANYWAY} --apply" in said.err
    assert (rig.deleting(), [record_of(disk).read_bytes() for disk in rig.disks]) == ([], before)
    # An image that is far behind what was applied is still held.
    rig.snapshot(rig.log())
    said = rig.reconcile("metadata:", "--apply")
    assert (said.status, "last-applied-unknown" in said.err) == (Exit.REFUSED, True)


def test_a43_a_confirmed_full_keeps_the_metadata_mark_of_the_other_disks(rig: Rig) -> None:
    with_records(rig, (1,), metadata=FAR)
    source = rig.document(WITHOUT_GONE)
    assert rig.reconcile(source, "--apply", ANYWAY, "--even-over-limit").status == Exit.DONE
    assert {(one.requests.sequence, one.metadata) for one in rig.controller() if one.requests} == {(501, FAR)}
    assert rig.deleting() == [f"{GONE}_0", f"{GONE}_1"]
    rig.snapshot(rig.log())
    said = rig.reconcile("metadata:", "--apply")
    assert (said.status, "older, or rolled back" in said.err) == (Exit.REFUSED, True)


def test_a03_no_documents_fed_in_again_act_until_one_is_confirmed(rig: Rig) -> None:
    """All records are lost: the first FULL of ``inbox/done`` sets no mark that its successors could exceed."""
    with_records(rig, (0, 1))
    named = document(listed(pay=(PAY, EVERY), gone=(GONE, (0, 1))), type=FULL, sequence=3)
    for value in (named, WITHOUT_GONE | {"sequence": 4}, OLD_STOP | {"sequence": 5}):
        rig.reconcile(rig.document(value), "--apply", "--even-over-limit")
    assert rig.deleting() == []
    assert rig.reconcile(rig.document(named), "--apply", ANYWAY).status == Exit.DONE
    assert {one.requests for one in rig.controller()} == {RequestMark(controller_epoch=5, sequence=3)}


def test_a03_an_image_that_an_operator_confirms_makes_no_request_count_where_every_record_is_lost(rig: Rig) -> None:
    """As on a broker with one disk: how far requests were followed is not known, whatever is known of metadata."""
    with_records(rig, (0, 1))
    assert rig.reconcile(znodes(rig), "--apply", ANYWAY).status == Exit.PROBLEMS
    for value in (OLD_STOP, WITHOUT_GONE | {"sequence": 4}, OLD_STOP | {"sequence": 900}):
        said = rig.reconcile(rig.document(value), "--apply", "--even-over-limit")
        assert said.status in (Exit.PROBLEMS, Exit.REFUSED)
        assert f"logdirctl reconcile --from request:FILE {ANYWAY} --apply" in said.err
    assert rig.deleting() == []
    source = rig.document(WITHOUT_GONE)
    assert rig.reconcile(source, "--apply", ANYWAY, "--even-over-limit").status == Exit.DONE
    assert rig.deleting() == [f"{GONE}_0", f"{GONE}_1"]
    assert {one.requests for one in rig.controller()} == {RequestMark(controller_epoch=5, sequence=501)}


def test_a03_no_image_that_is_done_in_part_lowers_the_mark_of_requests(rig: Rig) -> None:
    """A confirmed image stops before its end: its record is that of the begin."""
    with_records(rig.with_removal(), (1,))
    (rig.disks[1] / "gone-1" / "odd").mkdir()
    rig.reconcile("metadata:", "--apply", ANYWAY)
    assert {one.requests for one in rig.controller()} == {LAST}


@pytest.mark.parametrize("high", [{"epoch": 2**31 - 1}, {"broker_epoch": 2**63 - 1}], ids=str)
def test_a_document_of_the_highest_epochs_locks_out_none_that_an_operator_confirms(
    rig: Rig, high: dict[str, Any]
) -> None:
    """ZooKeeper was restored: its epochs start again. What is done in part may be given again."""
    states = listed(pay=(PAY, EVERY), gone=(GONE, (0, 1)))
    bad = rig.document(document(states, type=FULL, sequence=9, **high))
    assert rig.reconcile(bad, "--apply").status == Exit.DONE
    source = rig.document(WITHOUT_GONE)
    refused = rig.reconcile(source, "--apply", "--even-over-limit")
    assert (refused.status, f"{ANYWAY} --apply" in refused.err, rig.deleting()) == (Exit.REFUSED, True, [])
    odd = rig.disks[1] / "gone-1" / "odd"
    odd.mkdir()
    assert rig.reconcile(source, "--apply", ANYWAY, "--even-over-limit").status == Exit.PROBLEMS
    assert {(one.requests, one.broker_epoch, one.is_full_wanted) for one in rig.controller()} == {
        (RequestMark(controller_epoch=5, sequence=500), 40, True)
    }
    odd.rmdir()
    age(*rig.disks)
    assert rig.reconcile(source, "--apply", "--even-over-limit").status == Exit.DONE
    assert rig.deleting() == [f"{GONE}_0", f"{GONE}_1"]
    assert {one.requests for one in rig.controller()} == {RequestMark(controller_epoch=5, sequence=501)}
