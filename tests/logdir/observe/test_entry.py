"""Entries of a scan: typed in memory, and the same rows in an inventory file as ever."""

from __future__ import annotations

import marshal
from pathlib import Path

import pytest

from logdir.formats.own.inventory import Kind
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.ids import TopicId
from logdir.observe.classify import Named
from logdir.observe.entry import ScannedEntry, from_plain, to_plain
from logdir.observe.inventory_row import row_of
from logdir.observe.replica import Contents
from logdir.observe.replicas import look
from logdir.observe.scan import scan_log_dir
from logdir.replica_ref import ReplicaRef
from logdir.worker.look import Deep, look_deep
from tests.builders import TOPIC_ID, log_dir, partition

ID = TopicId.parse(TOPIC_ID)
OTHER = "AAAAAAAAQACAAAAAAAAAEA"
FUTURE = "0123456789abcdef0123456789abcdef-future"
HIDDEN = "__cluster_metadata-2147483647"
ID_DIR = f"{TOPIC_ID}_3"


@pytest.fixture
def d1(tmp_path: Path) -> Path:
    return log_dir(tmp_path / "d1")


def found(top: Path, name: str) -> ScannedEntry:
    (entry,) = [entry for entry in scan_log_dir(str(top)).entries if entry.name == name]
    return entry


def test_an_entry_is_typed(d1: Path) -> None:
    partition(d1 / "orders-3")
    entry = found(d1, "orders-3")
    assert (entry.kind, entry.root, entry.metadata_id) == (Kind.LIVE, None, ID)
    assert entry.ref == ReplicaRef(topic="orders", topic_id=ID, partition=3)
    assert entry.contents is not None
    assert found(d1, "meta.properties").ref is None


def test_an_entry_names_the_root_that_holds_it(d1: Path) -> None:
    name = f"deleting/{ID_DIR}"
    for place in (d1, d1 / HIDDEN, Path(f"{d1}.logdird")):
        partition(place / name)
    entries = [entry for entry in scan_log_dir(str(d1)).entries if entry.name == name]
    assert [entry.root for entry in entries] == [None, WorkRootKind.IN_PLACE, WorkRootKind.BESIDE]
    assert [row_of(entry).root for entry in entries] == ["log-dir", "work-root", "work-root"]


def test_rows_of_two_work_roots_are_sorted_by_name(d1: Path) -> None:
    for place, numbers in ((d1 / HIDDEN, (1, 4)), (Path(f"{d1}.logdird"), (2, 3))):
        for number in numbers:
            partition(place / "deleting" / f"{TOPIC_ID}_{number}")
    rows = [row_of(entry) for entry in scan_log_dir(str(d1)).entries]
    staged = [row.partition for row in rows if row.kind == "staged"]
    assert staged == [1, 2, 3, 4]


def test_a_staged_replica_lies_in_the_root_that_holds_it(d1: Path) -> None:
    for place in (d1, d1 / HIDDEN, Path(f"{d1}.logdird")):
        partition(place / "deleting" / ID_DIR)
    staged = look(str(d1)).staged
    assert [item.root for item in staged] == [None, f"{d1}/{HIDDEN}", f"{d1}.logdird"]
    # Only the two outside the log dir's own tree are in doubt.
    assert [item.inode is None for item in staged] == [False, True, True]


@pytest.mark.parametrize("text", [None, OTHER, "no id"])
def test_the_name_has_the_id_and_a_row_the_one_of_the_file(d1: Path, text: str | None) -> None:
    name = f"{TOPIC_ID[:2]}/{ID_DIR}"
    partition(d1 / name, topic_id=text if text != "no id" else None, topic_name="orders")
    if text == "no id":
        (d1 / name / "partition.metadata").write_text("version: 0\ntopic_id: no id")
    entry = found(d1, name)
    assert entry.ref is not None
    assert entry.ref.topic_id == ID
    assert row_of(entry).topic_id == (OTHER if text == OTHER else None)
    problem = "partition-metadata-missing" if text is None else "partition-metadata-broken"
    assert entry.problems == row_of(entry).problems == (problem,)


def test_a_selector_opens_a_directory_by_the_id_in_its_name(d1: Path) -> None:
    partition(d1 / TOPIC_ID[:2] / ID_DIR, topic_id=OTHER, topic_name="orders")
    (replica,) = look_deep(str(d1), Deep(selector=f"id:{TOPIC_ID}")).replicas
    assert replica.inode is not None


def test_a_link_with_a_future_name_is_a_future_replica_and_unknown_in_a_file(d1: Path, tmp_path: Path) -> None:
    (d1 / f"orders-0.{FUTURE}").symlink_to(tmp_path)
    (d1 / "deleting").mkdir()
    (d1 / "deleting" / f"orders-0.{FUTURE}").symlink_to(tmp_path)
    entry = found(d1, f"orders-0.{FUTURE}")
    assert (entry.kind, entry.ref) == (Kind.FUTURE, ReplicaRef(topic="orders", topic_id=None, partition=0))
    row = row_of(entry)
    assert (row.kind, row.topic, row.topic_id, row.partition) == ("unknown", None, None, None)
    assert row.problems == ("symlink",)
    assert found(d1, f"deleting/orders-0.{FUTURE}").kind is Kind.UNKNOWN


@pytest.mark.parametrize(
    "entry",
    [
        ScannedEntry("b\ufffd", "62ff", None, Named(Kind.UNKNOWN, problems=("plain-file", "unreadable")), None, None),
        ScannedEntry(
            "a-0", None, WorkRootKind.BESIDE, Named(Kind.LIVE, "a", ID, 0),
            TopicId.parse(OTHER), Contents(1, 2, 3, 4, 5, 6, 7, None, True, False, False),
        ),
        ScannedEntry("x", None, None, Named(Kind.LIVE, None, ID, 7, ('unreadable',), True), None, None),
    ],
)  # fmt: skip
def test_an_entry_comes_through_a_pipe_as_it_is(entry: ScannedEntry) -> None:
    again = from_plain(marshal.loads(marshal.dumps(to_plain(entry))), entry.root)
    assert again == entry
    assert [type(part) for part in again] == [type(part) for part in entry]
