"""docs/json.md, the dataclasses of the use cases and what the commands print have the same keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from logdir.decide.adopt import Adopt
from logdir.decide.strays import Stray
from logdir.disk.root.plan import Candidate
from logdir.service.describe import DescribeResult
from logdir.service.explain import Entry, ExplainResult
from logdir.service.init import InitResult, WorkRootItem
from logdir.service.inventory import InventoryDisk, InventoryResult
from logdir.service.metadata import DirectoryItem, LeafItem, MetadataLog, ShellItem
from logdir.service.report.describe_item import ClusterItem, DescribedItem
from logdir.service.report.json_form import keys_of
from logdir.service.report.reconcile_item import ReconcileItem
from logdir.service.report.reconcile_result import AnswerItem, ReconcileResult
from logdir.service.report.result import AdoptingTopic, AdoptResult, ItemResult, PurgeResult, UninstallResult
from logdir.service.report.source_item import SourceItem
from logdir.service.staged_listing import StagedItem, StagedListing
from logdir.service.strays import StraysResult
from logdir.worker.inventory import KindFigures
from tests.logdir.wire.golden_metadata import METADATA
from tests.tools.cluster_log import elsewhere
from tests.tools.ctl import ctl, ctl_json, two_disks

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
CHANGES = "stage, capture, staged restore, staged hold, staged purge, staged export, uninstall"
TREE = "metadata ls, metadata cat, metadata find, metadata shell"
DOCUMENTED: dict[str, tuple[tuple[type, ...], ...]] = {
    "explain": ((ExplainResult,), (Entry,)),
    "inventory": ((InventoryResult,), (InventoryDisk,), (KindFigures,)),
    "init": ((InitResult,), (WorkRootItem,), (Candidate,)),
    CHANGES: ((PurgeResult, UninstallResult), (ItemResult,)),
    "staged ls": ((StagedListing,), (StagedItem,)),
    "staged adopt": ((AdoptResult,), (AdoptingTopic,), (Adopt,)),
    "reconcile": ((ReconcileResult,), (AnswerItem,), (ReconcileItem,)),
    "strays": ((StraysResult,), (SourceItem,), (Stray,)),
    "describe": ((DescribeResult,), (DescribedItem,), (ClusterItem,)),
    TREE: ((MetadataLog,), (DirectoryItem, LeafItem), (ShellItem,)),
}
"""Of each section the objects of its tables, in their order; the keys of several types stand in one table."""
NOT_YET = {
    "layout check, layout apply, layout verify, layout rollback, layout finalize",
    "layout status",
    "metadata dump",
    "fleet scan, fleet plan, fleet report",
}
"""Sections whose objects are no dataclasses; this may only shrink."""


def tables(text: str) -> Iterator[set[str]]:
    """Yield the keys of every table of a section."""
    for table in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        rows = table.splitlines()[2:]
        yield {key for row in rows for key in re.findall(r"`(\w+)`", row.split("|")[1])}


def sections() -> dict[str, list[set[str]]]:
    """Return the tables of every section."""
    parts = re.split(r"^## (.*)\n", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return {title: list(tables(text)) for title, text in zip(parts[1::2], parts[2::2], strict=True)}


SECTIONS = sections()


def test_every_section_is_compared_or_excused() -> None:
    assert SECTIONS.keys() == DOCUMENTED.keys() | NOT_YET
    assert not DOCUMENTED.keys() & NOT_YET


@pytest.mark.parametrize("title", DOCUMENTED)
def test_the_page_has_the_keys_of_the_dataclasses(title: str) -> None:
    assert SECTIONS[title] == [set().union(*(keys_of(kind).values() for kind in kinds)) for kinds in DOCUMENTED[title]]


def keys(value: object) -> set[str]:
    assert isinstance(value, dict)
    return set(value)


def test_what_is_printed_has_the_keys_of_the_page(tmp_path: Path) -> None:
    one, two = two_disks(tmp_path)
    broker = ["--log-dirs", f"{one},{two}"]
    source = list(elsewhere(tmp_path))
    _, found = ctl_json("inventory", *broker, "-o", tmp_path / "inventories")
    disk = found["disks"][0]
    assert [keys(found), keys(disk), keys(disk["kinds"]["live"])] == SECTIONS["inventory"]
    _, found = ctl_json("inventory", *broker)
    assert keys(found["disks"][0]) == SECTIONS["inventory"][1] | {"entries"}
    _, made = ctl_json("init", *broker, "--apply")
    assert [keys(made), keys(made["work_roots"][0])] == SECTIONS["init"][:2]
    _, staged = ctl_json("stage", "other", *source, *broker, "--apply")
    assert [keys(staged) | {"start_block", "next_due_ms"}, keys(staged["items"][0])] == SECTIONS[CHANGES]
    _, purged = ctl_json("staged", "purge", *source, *broker)
    assert keys(purged) == SECTIONS[CHANGES][0] - {"start_block"}
    _, away = ctl_json("uninstall", *source, *broker)
    assert keys(away) == SECTIONS[CHANGES][0] - {"next_due_ms"}
    _, listed = ctl_json("staged", "ls", *source, *broker)
    assert [keys(listed), keys(listed["items"][0])] == SECTIONS["staged ls"]
    _, strays = ctl_json("strays", *source, *broker)
    assert [keys(strays), keys(strays["source"])] == SECTIONS["strays"][:2]
    assert all(keys(stray) == SECTIONS["strays"][2] for stray in strays["strays"])
    _, described = ctl_json("describe", *source, *broker)
    assert [keys(described), keys(described["items"][0])] == SECTIONS["describe"][:2]
    said = [item["cluster"] for item in described["items"] if item["cluster"] is not None]
    assert all(keys(cluster) == SECTIONS["describe"][2] for cluster in said)
    _, followed = ctl_json("reconcile", *source, *broker)
    assert keys(followed) == SECTIONS["reconcile"][0]
    assert all(keys(item) == SECTIONS["reconcile"][2] for item in followed["items"])


def test_what_needs_no_broker_has_the_keys_of_the_page() -> None:
    _, explained = ctl_json("explain")
    assert [keys(explained), keys(explained["entries"][0])] == SECTIONS["explain"]
    log = METADATA / "4.3.1-dynamic"
    _, tree = ctl_json("metadata", "ls", "--directory", log, "/", "/image/features/metadataVersion")
    assert keys(tree["log"]) == SECTIONS[TREE][0]
    assert set().union(*map(keys, tree["nodes"])) == SECTIONS[TREE][1]


def test_a_path_that_is_no_utf8_never_breaks_the_json(tmp_path: Path) -> None:
    said = ctl("inventory", "--log-dirs", f"{tmp_path}/\udcff", "--json")
    assert "\ufffd" in said.out
    said.out.encode()
