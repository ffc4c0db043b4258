"""docs/json.md, the dataclasses of the use cases and what the commands print have the same keys, at any depth."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import NewType, Union, get_args, get_origin, get_type_hints

import pytest

from logdir.daemon.operations import Operation
from logdir.daemon.report.failed_replicas import FailedReplicas, FailedTopic
from logdir.daemon.report.figures import KindFigures as KindOfLogDir
from logdir.daemon.report.figures import UndoWindow
from logdir.daemon.report.status import EventStatus, LogDirStatus, StatusResult
from logdir.decide.adopt import Adopt
from logdir.decide.staged.guide import GuideStep
from logdir.decide.strays import Stray
from logdir.disk.root.plan import Candidate
from logdir.errors import Problem
from logdir.evidence import Absent, Evidence, Present, Proof, Removed, Unknown
from logdir.formats.own.inventory import Disk
from logdir.formats.own.inventory import Entry as InventoryEntry
from logdir.ids import Uuid
from logdir.metadata.dump_item import DumpedBatch, DumpedRecord
from logdir.replica_ref import ReplicaRef
from logdir.service.adopt import AdoptingTopic, AdoptResult
from logdir.service.batch import use_cases
from logdir.service.bug_report.report import BugReportResult, ReportedFile
from logdir.service.describe import DescribeResult
from logdir.service.explain import Entry, ExplainResult
from logdir.service.init import InitResult, WorkRootItem
from logdir.service.inventory import InventoryDisk, InventoryResult
from logdir.service.layout_status import LayoutStatusItem
from logdir.service.metadata import DirectoryItem, LeafItem, MetadataLog, ShellItem
from logdir.service.metadata_dump import DumpItem
from logdir.service.report.describe_item import ClusterItem, DescribedItem
from logdir.service.report.json_form import EvidenceForm, keys_of, to_json
from logdir.service.report.layout_result import LayoutItem, LayoutResult, LayoutStep
from logdir.service.report.reconcile_item import ReconcileItem
from logdir.service.report.reconcile_result import AnswerItem, ReconcileResult
from logdir.service.report.result import HandoverResult, ItemResult, PurgeResult, UninstallResult
from logdir.service.report.source_item import SourceItem
from logdir.service.restore import RestoreResult
from logdir.service.staged_listing import StagedItem, StagedListing
from logdir.service.strays import StraysResult
from logdir.service.systemd.set_up import DropIn, SystemdResult
from logdir.worker.inventory import KindFigures
from migrate.plan.summary import MintedId, Summary
from migrate.use_case import PlanResult, ReportResult, ScanResult
from tests.logdir.wire.golden_metadata import METADATA
from tests.tools.cluster_log import elsewhere
from tests.tools.command_lines import leaf_commands, parser
from tests.tools.ctl import ctl, ctl_json, two_disks
from tests.tools.layout_fleet import apply, big

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
CHANGES = "stage, capture, staged restore, staged hold, staged purge, staged export, handover, uninstall, disk release"
LAYOUT = "layout check, layout apply, layout verify, layout rollback, layout finalize"
SEVERAL = "Objects of several commands"
OPERATIONS = "Operations over the control socket"
TREE = "metadata ls, metadata cat, metadata find, metadata shell"
DOCUMENTED: dict[str, tuple[tuple[type, ...], ...]] = {
    SEVERAL: ((Problem,), (EvidenceForm,)),
    OPERATIONS: ((Operation,),),
    "status": (
        (StatusResult,),
        (LogDirStatus,),
        (KindOfLogDir,),
        (UndoWindow,),
        (EventStatus,),
        (FailedReplicas,),
        (FailedTopic,),
    ),
    "explain": ((ExplainResult,), (Entry,)),
    "bug-report": ((BugReportResult,), (ReportedFile,)),
    "inventory": ((InventoryResult,), (InventoryDisk,), (KindFigures,), (Disk,), (InventoryEntry,)),
    "init": ((InitResult, SystemdResult), (WorkRootItem,), (Candidate,), (DropIn,)),
    CHANGES: ((PurgeResult, HandoverResult, UninstallResult, RestoreResult), (ItemResult,), (GuideStep,)),
    "staged ls": ((StagedListing,), (StagedItem,)),
    "staged adopt": ((AdoptResult,), (AdoptingTopic,), (Adopt,)),
    LAYOUT: ((LayoutResult,), (LayoutStep,), (LayoutItem,)),
    "layout status": ((LayoutStatusItem,),),
    "reconcile": ((ReconcileResult,), (AnswerItem,), (ReconcileItem,)),
    "strays": ((StraysResult,), (SourceItem,), (Stray,)),
    "describe": ((DescribeResult,), (DescribedItem,), (ClusterItem,)),
    TREE: ((MetadataLog,), (DirectoryItem, LeafItem), (ShellItem,)),
    "metadata dump": ((DumpItem,), (DumpedBatch,), (DumpedRecord,)),
    "fleet scan": ((ScanResult,),),
    "fleet plan": ((PlanResult,), (Summary,), (MintedId,)),
    "fleet report": ((ReportResult,),),
}
"""Of each section the objects of its tables, in their order; the keys of several types stand in one table."""
SHARED = "Keys of all commands"
REQUESTS = "Requests over the control socket"
"""Compared by ``test_requests_documented``."""
OF_FILES = frozenset((Disk, InventoryEntry, Summary, MintedId))
"""Lines of an inventory file, and ``summary.json``: their keys are those of the file, and an id is a text there."""
TWO_THINGS = {"replicas"}
"""Keys that stood for two things when they were released: of a step their number, of a partition node ids."""
OTHER_WORDS = {
    "says", "why", "what", "loses", "do", "place", "class", "missing", "name", "strays", "disks", "work_roots", "nodes",
    "lines", "files", "log_dirs",
}  # fmt: skip
"""Keys that once stood for what a key of the shared table stands for."""


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


def test_every_section_is_compared() -> None:
    assert SECTIONS.keys() == DOCUMENTED.keys() | {SHARED, REQUESTS}


def described() -> Counter[str]:
    """Return the commands that the titles of the sections name."""
    others = {SHARED, SEVERAL, REQUESTS, OPERATIONS}
    return Counter(name for title in SECTIONS.keys() - others for name in title.split(", "))


COMMANDS = dict(leaf_commands(parser()))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_json_and_one_section_that_describes_it(command: str) -> None:
    assert "--json" in COMMANDS[command]._option_string_actions
    assert described()[command] == 1


def test_no_section_describes_a_command_that_is_none() -> None:
    assert described().keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", use_cases.NAMES)
def test_the_section_of_a_command_has_the_keys_of_what_its_use_case_returns(name: str) -> None:
    printed = set(keys_of(use_cases.spec_of(name).result).values())
    titles = [title for title in DOCUMENTED if name in title.split(", ") or (name == "layout" and title == LAYOUT)]
    assert [printed <= SECTIONS[title][0] for title in titles] == [True], printed


@pytest.mark.parametrize("title", DOCUMENTED)
def test_the_page_has_the_keys_of_the_dataclasses(title: str) -> None:
    assert SECTIONS[title] == [set().union(*(keys_of(kind).values() for kind in kinds)) for kinds in DOCUMENTED[title]]


def objects_in(annotation: object) -> Iterator[type]:
    """Yield every type in an annotation that is an object in JSON; a ``ReplicaRef`` is none of its own."""
    if annotation in (Removed, Absent, Present, Unknown):
        yield EvidenceForm
    elif isinstance(annotation, NewType):
        yield from objects_in(annotation.__supertype__)
    elif isinstance(annotation, type) and (is_dataclass(annotation) or hasattr(annotation, "_fields")):
        yield from () if annotation is ReplicaRef else (annotation,)
    else:
        for one in get_args(annotation):
            yield from objects_in(one)


def objects_below(kinds: Iterable[type]) -> dict[type, str]:
    """Return every object that these hold, at any depth, and below which key."""
    found: dict[type, str] = {}
    todo = list(kinds)
    while todo:
        kind = todo.pop()
        hints = get_type_hints(kind)
        for name, key in keys_of(kind).items():
            for one in objects_in(hints.get(name)):
                if one not in found:
                    found[one] = f"{kind.__name__}.{key}"
                    todo.append(one)
    return found


RETURNED = {use_cases.spec_of(name).result for name in use_cases.NAMES} | {
    kind for tables in DOCUMENTED.values() for kind in tables[0]
}
"""What commands print, and the control socket answers."""


def test_every_object_in_a_result_has_a_table() -> None:
    assert {kind: where for kind, where in objects_below(RETURNED).items() if kind not in RESULTS} == {}


@dataclass
class Leaf:
    size: int


@dataclass
class Branch:
    leaves: Mapping[str, tuple[Leaf | None, ...]]
    evidence: Evidence | None
    ref: ReplicaRef | None
    hidden: Disk = field(metadata={"json": None})


def test_an_object_is_found_at_any_depth() -> None:
    @dataclass
    class Tree:
        branches: tuple[Branch, ...]

    found = objects_below([Tree])
    assert found == {Branch: "Tree.branches", Leaf: "Branch.leaves", EvidenceForm: "Branch.evidence"}


@pytest.mark.parametrize("evidence", [Removed(proof=Proof.OPERATOR, as_of_ms=1), Absent(as_of_ms=1), Unknown()])
def test_evidence_of_every_kind_has_the_keys_of_its_table(evidence: Evidence) -> None:
    assert keys(to_json(evidence)) == set(EvidenceForm._fields)


def test_no_object_is_open_but_by_names_that_the_page_explains() -> None:
    """A mapping has no keys to compare; what its names are stands on the page."""
    opened = {
        key
        for kind in RESULTS
        for name, hint in get_type_hints(kind).items()
        if "Mapping" in str(hint) and (key := keys_of(kind).get(name)) is not None
    }
    assert opened == {"kinds", "problem_counts", "brokers", "conflicts"}


def shared() -> dict[str, str]:
    """Return the type of every key of the table of all commands."""
    text = PAGE.read_text("utf-8").partition(f"## {SHARED}\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:3] for row in text.splitlines() if row.startswith("| `")]
    return {key: kind.strip() for cell, kind in rows for key in re.findall(r"`(\w+)`", cell)}


RESULTS = {kind for tables in DOCUMENTED.values() for kinds in tables for kind in kinds}


def types_of(annotation: object) -> set[str]:
    """Return by which words of the table an annotation may be called."""
    if get_origin(annotation) in (Union, UnionType):
        return set().union(*(types_of(one) for one in get_args(annotation) if one is not NoneType))
    if isinstance(annotation, NewType):
        return types_of(annotation.__supertype__)
    if annotation in PLAIN:
        return PLAIN[annotation]
    if get_origin(annotation) is tuple:
        return {"list"}
    assert isinstance(annotation, type), annotation
    if issubclass(annotation, Enum):
        return {"code", "number"} if all(isinstance(one.value, int) for one in annotation) else {"code"}
    return {"id"} if issubclass(annotation, Uuid) else {"object"}


PLAIN: dict[object, set[str]] = {str: {"text", "code"}, int: {"number"}, bool: {"flag"}, object: {"any"}}


def test_a_key_that_two_results_have_is_in_the_table_of_all_commands() -> None:
    counts = Counter(key for kind in RESULTS - OF_FILES for key in keys_of(kind).values())
    assert {key for key, count in counts.items() if count > 1} - TWO_THINGS <= shared().keys()


@pytest.mark.parametrize("kind", sorted(RESULTS, key=str), ids=str)
def test_one_thing_has_one_key_of_one_type_in_every_result(kind: type) -> None:
    table = shared()
    hints = get_type_hints(kind) | {f"ref.{name}": one for name, one in get_type_hints(ReplicaRef).items()}
    for name, key in keys_of(kind).items():
        assert key not in OTHER_WORDS or kind in OF_FILES
        word = table.get(key)
        if word == "id" and kind in OF_FILES:
            word = "text"
        assert word is None or word in types_of(hints[name]), (kind.__name__, key)


def test_no_section_has_another_word_for_a_key_of_all_commands() -> None:
    for title in SECTIONS.keys() - {REQUESTS}:
        kinds = [()] if title == SHARED else DOCUMENTED[title]
        own = [keys for keys, of in zip(SECTIONS[title], kinds, strict=True) if OF_FILES.isdisjoint(of)]
        assert not set().union(*own) & OTHER_WORDS, title


def test_no_text_for_people_carries_a_code(tmp_path: Path) -> None:
    """What a program asks for has a key of its own: the slug stands in the problem of an item.

    ``test_refusals`` looks for codes in the answers to every kind of refusal.
    """
    one, two = two_disks(tmp_path)
    named = ["--log-dirs", f"{one},{two}"]
    assert ctl("init", *named, "--apply").status == 0
    _, refused = ctl_json("stage", "pay", *named)
    assert {item["detail"] for item in refused["items"]} == {""}
    assert {item["problem"]["slug"] for item in refused["items"]} == {"assignment-unknown"}


def keys(value: object) -> set[str]:
    assert isinstance(value, dict)
    return set(value)


def test_what_is_printed_has_the_keys_of_the_page(tmp_path: Path) -> None:
    one, two = two_disks(tmp_path)
    broker = ["--log-dirs", f"{one},{two}"]
    source = list(elsewhere(tmp_path))
    _, found = ctl_json("inventory", *broker, "-o", tmp_path / "inventories")
    disk = found["items"][0]
    assert [keys(found), keys(disk), keys(disk["kinds"]["live"]), keys(disk["disk"])] == SECTIONS["inventory"][:4]
    _, found = ctl_json("inventory", *broker)
    assert keys(found["items"][0]) == SECTIONS["inventory"][1] | {"entries"}
    assert all(keys(entry) == SECTIONS["inventory"][4] for entry in found["items"][0]["entries"])
    _, made = ctl_json("init", *broker, "--apply")
    assert [keys(made) | {"unit"}, keys(made["items"][0])] == SECTIONS["init"][:2]
    _, staged = ctl_json("stage", "other", *source, *broker, "--apply")
    own = {"start_block", "next_due_ms", "guide"}
    assert [keys(staged) | own, keys(staged["items"][0])] == SECTIONS[CHANGES][:2]
    _, purged = ctl_json("staged", "purge", *source, *broker)
    assert keys(purged) == SECTIONS[CHANGES][0] - {"start_block", "guide"}
    _, handed = ctl_json("handover", *broker)
    assert [keys(handed), keys(handed["items"][0])] == [
        SECTIONS[CHANGES][0] - {"next_due_ms", "guide"},
        SECTIONS[CHANGES][1],
    ]
    _, away = ctl_json("uninstall", *source, *broker)
    assert keys(away) == SECTIONS[CHANGES][0] - {"next_due_ms", "guide"}
    _, restored = ctl_json("staged", "restore", "other", *source, *broker)
    assert keys(restored) == SECTIONS[CHANGES][0] - {"next_due_ms", "start_block"}
    _, listed = ctl_json("staged", "ls", *source, *broker)
    assert [keys(listed), keys(listed["items"][0])] == SECTIONS["staged ls"]
    _, strays = ctl_json("strays", *source, *broker)
    assert [keys(strays), keys(strays["source"])] == SECTIONS["strays"][:2]
    assert all(keys(stray) == SECTIONS["strays"][2] for stray in strays["items"])
    _, described = ctl_json("describe", *source, *broker)
    assert [keys(described), keys(described["items"][0])] == SECTIONS["describe"][:2]
    said = [item["cluster"] for item in described["items"] if item["cluster"] is not None]
    assert all(keys(cluster) == SECTIONS["describe"][2] for cluster in said)
    _, followed = ctl_json("reconcile", *source, *broker)
    assert keys(followed) == SECTIONS["reconcile"][0]
    assert all(keys(item) == SECTIONS["reconcile"][2] for item in followed["items"])


def test_what_a_layout_verb_prints_has_the_keys_of_the_page(tmp_path: Path) -> None:
    broker = big(tmp_path, 41)
    _, checked = ctl_json("layout", "check", broker.plan, *broker.words)
    gone = Path(broker.steps[0]["log_dir"], broker.steps[0]["from"])
    gone.rename(gone.with_name("elsewhere-0"))
    _, applied = apply(broker)
    states = {item["state"] for found in (checked, applied) for item in found["items"]}
    assert states == {"planned", "done", "refused"}
    for found in (checked, applied):
        assert found["steps"]
        assert found["items"]
        assert keys(found) == SECTIONS[LAYOUT][0]
        assert all(keys(step) == SECTIONS[LAYOUT][1] for step in found["steps"])
        assert all(keys(item) == SECTIONS[LAYOUT][2] for item in found["items"])
    _, shown = ctl_json("layout", "status", *broker.words)
    assert all(keys(item) == SECTIONS["layout status"][0] for item in shown["items"])


def test_what_needs_no_broker_has_the_keys_of_the_page() -> None:
    _, explained = ctl_json("explain")
    assert [keys(explained), keys(explained["items"][0])] == SECTIONS["explain"]
    log = METADATA / "4.3.1-dynamic"
    _, tree = ctl_json("metadata", "ls", "--directory", log, "/", "/image/features/metadataVersion")
    assert keys(tree["log"]) == SECTIONS[TREE][0]
    assert set().union(*map(keys, tree["items"])) == SECTIONS[TREE][1]
    _, dump = ctl_json("metadata", "dump", log / "00000000000000000000.log")
    batches = [batch for file in dump["items"] for batch in file["batches"]]
    assert [keys(dump["items"][0]), keys(batches[0])] == SECTIONS["metadata dump"][:2]
    assert all(keys(record) == SECTIONS["metadata dump"][2] for batch in batches for record in batch["records"])


def test_a_path_that_is_no_utf8_never_breaks_the_json(tmp_path: Path) -> None:
    said = ctl("inventory", "--log-dirs", f"{tmp_path}/\udcff", "--json")
    assert "\ufffd" in said.out
    said.out.encode()
