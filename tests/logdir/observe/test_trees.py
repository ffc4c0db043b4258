"""Every tree a real broker wrote: the inventory agrees with the manifest, topic by topic and id by id."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from logdir.formats.own.inventory import Entry
from logdir.ids import Uuid
from logdir.observe.inventory_row import row_of
from logdir.observe.scan import scan_log_dir
from tests import trees
from tests.proof.claims import TREES
from tests.proof.plugin import Recorder

HIDDEN = {"__cluster_metadata-0"}


def _files(manifest: dict[str, list[list[object]]], log_dir: str) -> dict[str, dict[str, int]]:
    """Directory in a log dir to its files and their sizes; plain files under ``""``."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for path, size in manifest["files"]:
        parts = Path(str(path)).parts
        if parts[0] == log_dir:
            assert isinstance(size, int)
            found["" if len(parts) == 2 else parts[1]]["/".join(parts[1:] if len(parts) == 2 else parts[2:])] = size
    return found


@pytest.mark.parametrize("name", trees.NAMES)
@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_inventory_agrees_with_the_manifest(name: str, exact: bool, record_proof: Recorder) -> None:
    compared = 0
    manifest = trees.manifest(name)
    root = trees.unpack(name)
    live: dict[str, dict[int, list[Entry]]] = defaultdict(lambda: defaultdict(list))
    for log_dir in manifest["log_dirs"]:
        scanned = scan_log_dir(str(root / log_dir), exact=exact)
        assert (scanned.disk.status, scanned.disk.problems) == ("ok", ())
        # Releases up to 3.6 wrote the id normalised (kafka-formats §3.1).
        assert scanned.disk.cluster_id is not None
        assert Uuid.parse(scanned.disk.cluster_id) == Uuid.parse(manifest["cluster_id"])
        assert scanned.disk.node_id == manifest["node_id"]
        expected = _files(manifest, log_dir)
        plain = expected.pop("", {})
        assert {e.name for e in scanned.entries} == set(expected) | set(plain)
        compared += len(scanned.entries)
        for entry in map(row_of, scanned.entries):
            if entry.name in plain:
                assert entry.kind == "file"
                assert entry.bytes == (plain[entry.name] if exact else 0)
                continue
            files = expected[entry.name]
            segments = {n: s for n, s in files.items() if n.endswith(".log") and len(n) == 24}
            assert entry.files == len(files)
            assert entry.segments == len(segments)
            assert entry.log_bytes == sum(segments.values())
            assert entry.bytes == (sum(files.values()) if exact else entry.log_bytes)
            assert entry.first_offset == min((int(n[:20]) for n in segments), default=None)
            assert entry.last_base_offset == max((int(n[:20]) for n in segments), default=None)
            has_id = "partition.metadata" in files
            assert ("partition-metadata-missing" in entry.problems) is not has_id
            assert (entry.topic_id is not None) is has_id
            if entry.kind == "live":
                assert entry.topic is not None
                assert entry.partition is not None
                live[entry.topic][entry.partition].append(entry)
    assert set(live) == set(manifest["topics"])
    for topic, said in manifest["topics"].items():
        assert {str(p) for p in live[topic]} == set(said["partitions"])
        for copies in live[topic].values():
            assert len(copies) == 1
            assert copies[0].topic_id in (said["id"], None)
    record_proof(TREES, {f"trees walked {'exactly' if exact else 'fast'}": 1, "entries compared": compared})


@pytest.mark.parametrize("name", trees.NAMES)
def test_moved_partitions_left_deletes_and_a_kill_left_futures(name: str) -> None:
    manifest = trees.manifest(name)
    kinds: dict[str, set[str]] = defaultdict(set)
    for log_dir in manifest["log_dirs"]:
        for entry in map(row_of, scan_log_dir(str(trees.unpack(name) / log_dir)).entries):
            kinds[entry.kind].add(f"{entry.topic}-{entry.partition}")
    assert kinds["unknown"] == set()
    assert kinds["delete"] >= set(manifest["moved"]) - kinds["future"] or not kinds["delete"]
    assert len(kinds["future"]) == (3 if manifest["shutdown"] != "clean" else 0)
