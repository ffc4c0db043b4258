"""One log dir, every kind of entry, and everything that can go wrong while looking."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from logdir.formats.own import start_block_file
from logdir.formats.own.inventory import Entry, parse, render
from logdir.observe.inventory_row import row_of
from logdir.observe.scan import Scanned, scan_log_dir
from tests.builders import CLUSTER, DIRECTORY, TOPIC_ID, log_dir, partition

U = "0123456789abcdef0123456789abcdef"
ID_DIR = f"{TOPIC_ID}_3"


def by_name(scanned: Scanned) -> dict[str, Entry]:
    return {f"{e.root}:{e.name}" if e.root != "log-dir" else e.name: e for e in map(row_of, scanned.entries)}


def test_disk_line_tells_identity_and_room(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1", node=7)
    scanned = scan_log_dir(str(top), log_dirs=(str(top), "/x"), rack="r1", taken_at_ms=5)
    disk = scanned.disk
    room = os.statvfs(top)
    assert (disk.log_dir, disk.taken_at_ms, disk.exact, disk.status, disk.problems) == (
        str(top),
        5,
        False,
        "ok",
        (),
    )
    assert (disk.cluster_id, disk.node_id, disk.directory_id, disk.rack) == (CLUSTER, 7, DIRECTORY, "r1")
    assert disk.log_dirs == (str(top), "/x")
    assert disk.total_bytes == room.f_blocks * room.f_frsize
    assert disk.device == f"{os.major(top.stat().st_dev)}:{os.minor(top.stat().st_dev)}"
    assert disk.layout == "empty"
    expected = (
        subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "-T", str(top)], capture_output=True, text=True, check=False)
        if Path("/usr/bin/findmnt").exists()
        else None
    )
    if expected is not None and expected.returncode == 0:
        assert disk.fs_type == expected.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "kind", "topic", "index"),
    [
        ("x-y-3-0", "live", "x-y-3", 0),
        (f"a.b-1.{U}-delete", "delete", "a.b", 1),
        (f"a-2.{U}-future", "future", "a", 2),
        (f"a-2.{U}-stray", "stray", "a", 2),
        ("__cluster_metadata-0", "metadata", "__cluster_metadata", 0),
        (".Trash-1000", "live", ".Trash", 1000),
        ("a-00", "unknown", None, None),
        ("lost+found", "unknown", None, None),
        ("foo-0-delete", "unknown", None, None),
        ("__cluster_metadata-1", "unknown", None, None),
        ("a-99999999999", "unknown", None, None),
        (f"a-1.{U.upper()}-delete", "unknown", None, None),
        (f"eX/{ID_DIR}", "live", "named", 3),
        ("eX/other", "unknown", None, None),
        (f"ab/{ID_DIR}", "unknown", None, None),
        (f"deleting/{ID_DIR}", "staged", "named", 3),
        (f"deleting/{ID_DIR}.2", "staged", "named", 3),
        (f"deleting/{ID_DIR}.purging", "purging", "named", 3),
        ("deleting/no-id.t_5", "staged", "t", 5),
        ("deleting/else", "unknown", None, None),
        (f"incoming/{ID_DIR}", "incoming", "named", 3),
        (f"incoming/{ID_DIR}.ready", "incoming", "named", 3),
        (f"incoming/{ID_DIR}.purging", "unknown", None, None),
    ],
)
def test_every_directory_has_one_kind(
    tmp_path: Path, name: str, kind: str, topic: str | None, index: int | None
) -> None:
    top = log_dir(tmp_path / "d1")
    partition(top / name, topic_name="named")
    found = by_name(scan_log_dir(str(top)))
    assert set(found) == {"meta.properties", name}
    entry = found[name]
    assert (entry.kind, entry.topic, entry.partition) == (kind, topic, index)
    assert (entry.log_bytes, entry.segments, entry.files) == (10, 1, 3)
    assert entry.topic_id == (None if kind == "unknown" else TOPIC_ID)
    assert entry.problems == ()


@pytest.mark.parametrize(
    "name",
    [
        ".lock",
        ".kafka_cleanshutdown",
        "bootstrap.checkpoint",
        "recovery-point-offset-checkpoint.tmp",
        "layout.json",
    ],
)
def test_files_kafka_or_we_keep_are_files(tmp_path: Path, name: str) -> None:
    top = log_dir(tmp_path / "d1")
    (top / name).write_bytes(b"12345")
    assert by_name(scan_log_dir(str(top), exact=True))[name][:3] == ("file", "log-dir", name)
    assert by_name(scan_log_dir(str(top), exact=True))[name].bytes == 5


def test_links_and_special_files_are_told_and_not_followed(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    target = partition(tmp_path / "elsewhere-0")
    (top / "linked-0").symlink_to(target)
    (top / "dangling").symlink_to("nowhere")
    (top / "plain").write_text("x")
    (top / "ghost-0").write_text("x")
    os.mkfifo(top / "fifo-0")
    inner = partition(top / "t-0", segments={0: 5})
    (inner / "00000000000000000007.log").symlink_to(target / "00000000000000000000.log")
    found = by_name(scan_log_dir(str(top), exact=True))
    assert (found["linked-0"].kind, found["linked-0"].problems) == ("live", ("symlink",))
    assert found["linked-0"].log_bytes is None
    assert found["linked-0"].topic_id is None
    assert (found["dangling"].kind, found["dangling"].problems) == ("unknown", ("symlink",))
    assert (found["plain"].kind, found["plain"].problems) == ("unknown", ("plain-file",))
    assert (found["ghost-0"].kind, found["ghost-0"].problems) == ("unknown", ("plain-file",))
    assert (found["fifo-0"].kind, found["fifo-0"].problems) == ("unknown", ())
    assert (found["t-0"].log_bytes, found["t-0"].segments) == (5, 1)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "partition-metadata-missing"),
        ("", "partition-metadata-broken"),
        ("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "partition-metadata-broken"),
        ("\0" * 43, "partition-metadata-broken"),
    ],
)
def test_metadata_files_are_judged_as_kafka_would(tmp_path: Path, text: str | None, problem: str) -> None:
    top = log_dir(tmp_path / "d1")
    made = partition(top / "t-0", topic_id=None)
    if text is not None:
        (made / "partition.metadata").write_text(text)
    entry = by_name(scan_log_dir(str(top)))["t-0"]
    assert (entry.problems, entry.topic_id) == ((problem,), None)


def test_metadata_file_that_contradicts_its_directory_is_broken(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    other = "AAAAAAAAAAAAAAAAAAAABA"
    partition(top / "eX" / ID_DIR, topic_id=other, topic_name="t")
    partition(top / "eX" / f"{TOPIC_ID}_4")
    found = by_name(scan_log_dir(str(top)))
    assert found[f"eX/{ID_DIR}"].problems == ("partition-metadata-broken",)
    assert found[f"eX/{ID_DIR}"].topic_id == other
    assert found[f"eX/{TOPIC_ID}_4"].problems == ("partition-metadata-broken",)
    assert found[f"eX/{TOPIC_ID}_4"].topic is None


def test_staged_topic_comes_from_the_marker_when_the_file_has_none(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    made = partition(top / "deleting" / ID_DIR)
    (made / "replica.json").write_text('{"replica":1,"topic":"from-marker"}\n')
    assert by_name(scan_log_dir(str(top)))[f"deleting/{ID_DIR}"].topic == "from-marker"


def test_work_roots_beside_and_in_place_are_scanned(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    beside = tmp_path / "d1.logdird"
    partition(beside / "deleting" / ID_DIR, topic_name="t")
    (beside / "owner.lock").write_text("1")
    (beside / "probe").mkdir()
    (beside / "strange").mkdir()
    partition(top / "__cluster_metadata-2147483647" / "incoming" / f"{ID_DIR}.ready", topic_name="t")
    found = by_name(scan_log_dir(str(top)))
    assert {name: entry.kind for name, entry in found.items()} == {
        "meta.properties": "file",
        f"work-root:deleting/{ID_DIR}": "staged",
        f"work-root:incoming/{ID_DIR}.ready": "incoming",
        "work-root:owner.lock": "file",
        "work-root:probe": "file",
        "work-root:strange": "unknown",
    }


def test_names_that_are_not_utf8_keep_all_their_bytes(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    os.mkdir(os.fsencode(top) + b"/b\xff-0")  # noqa: PTH102 - no path type holds such bytes
    scanned = scan_log_dir(str(top))
    rows = tuple(map(row_of, scanned.entries))
    entry = next(e for e in rows if e.kind == "unknown")
    assert (entry.name, entry.name_hex) == ("b\ufffd-0", "62ff2d30")
    again = parse(b"".join(render(scanned.disk, rows)).splitlines(keepends=True), "x")
    assert (again.disk, again.entries) == (scanned.disk, rows)


def test_truncated_delete_name_says_so(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    name = f"{'t' * 213}-0.{U}-delete"
    assert len(name) == 255
    partition(top / name)
    entry = by_name(scan_log_dir(str(top)))[name]
    assert (entry.kind, entry.topic, entry.problems) == ("delete", "t" * 213, ("name-truncated",))


def test_exact_counts_everything_below_and_fast_only_segments(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    made = partition(top / "t-0", segments={0: 100, 50: 20})
    (made / "sub").mkdir()
    (made / "sub" / "f").write_bytes(bytes(7))
    os.utime(made / f"{0:020}.log", ns=(0, 1_999_999))
    os.utime(made / f"{50:020}.log", ns=(0, 5_000_000))
    fast = by_name(scan_log_dir(str(top)))["t-0"]
    exact = by_name(scan_log_dir(str(top), exact=True))["t-0"]
    metadata = (made / "partition.metadata").stat().st_size
    assert (fast.log_bytes, fast.bytes, exact.log_bytes, exact.bytes) == (
        120,
        120,
        120,
        120 + 8 + 7 + metadata,
    )
    assert (fast.first_offset, fast.last_base_offset, fast.oldest_ms, fast.newest_ms) == (0, 50, 1, 5)
    assert fast.files == 6


def test_replicas_renamed_while_we_look_are_found_once_under_their_new_name(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    for index in range(600):
        partition(top / f"t-{index}", segments={})
    renamed = False

    def rename_all(count: int) -> None:
        nonlocal renamed
        if not renamed:
            renamed = True
            for index in range(0, 600, 2):
                (top / f"t-{index}").rename(top / f"t-{index}.{U}-delete")

    entries = [e for e in map(row_of, scan_log_dir(str(top), progress=rename_all).entries) if e.kind != "file"]
    assert renamed
    assert sorted(e.partition or 0 for e in entries) == list(range(600))
    assert {e.kind for e in entries if (e.partition or 0) % 2} == {"live"}
    assert {e.kind for e in entries if not (e.partition or 0) % 2} == {"delete"}


def test_directories_deleted_while_we_look_are_no_problem(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    for index in range(600):
        (top / f"t-{index}").mkdir()

    def remove(count: int) -> None:
        for path in top.glob("t-*"):
            path.rmdir()

    scanned = scan_log_dir(str(top), progress=remove)
    assert scanned.disk.status == "ok"
    assert [e.name for e in scanned.entries] == ["meta.properties"]


@pytest.mark.parametrize(("make", "slug"), [(None, "absent"), ("file", "absent")])
def test_disk_that_is_not_there_is_unreadable_never_empty(tmp_path: Path, make: str | None, slug: str) -> None:
    top = tmp_path / "gone"
    if make:
        top.write_text("x")
    scanned = scan_log_dir(str(top))
    assert (scanned.disk.status, scanned.disk.problems, scanned.entries) == ("unreadable", (slug,), ())
    assert scanned.disk.layout is None


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        (None, "meta-properties-missing"),
        ("version=2\n", "meta-properties-malformed"),
        ("", "meta-properties-malformed"),
    ],
)
def test_identity_that_a_broker_would_refuse_is_a_problem(tmp_path: Path, text: str | None, slug: str) -> None:
    top = log_dir(tmp_path / "d1")
    (top / "meta.properties").unlink()
    if text is not None:
        (top / "meta.properties").write_text(text)
    disk = scan_log_dir(str(top)).disk
    assert (disk.status, disk.problems, disk.node_id) == ("ok", (slug,), None)


_AS_NOBODY = """
import json, os, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
from logdir.observe.scan import scan_log_dir
from logdir.observe.inventory_row import row_of
s = scan_log_dir(sys.argv[1])
rows = {e.name: [e.kind, e.problems, e.log_bytes] for e in map(row_of, s.entries)}
print(json.dumps([s.disk.status, s.disk.problems, rows]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_what_we_may_not_read_is_a_problem_of_that_entry(tmp_path: Path) -> None:
    import json

    for parent in [tmp_path, *tmp_path.parents][:3]:
        parent.chmod(0o755)
    top = log_dir(tmp_path / "d1")
    partition(top / "open-0")
    partition(top / "closed-0").chmod(0)
    partition(top / "half-0")
    (top / "half-0" / "partition.metadata").chmod(0)
    (top / "de").mkdir(mode=0)
    run = [sys.executable, "-c", _AS_NOBODY, str(top)]
    home = Path(__file__).parents[3]
    done = subprocess.run(run, capture_output=True, text=True, cwd=home, check=False)
    if "Permission denied" in done.stderr or "ModuleNotFoundError" in done.stderr:
        pytest.skip("needs a checkout that other users can read")
    status, problems, entries = json.loads(done.stdout)
    assert (status, problems) == ("ok", [])
    assert entries["open-0"] == ["live", [], 10]
    assert entries["closed-0"] == ["live", ["unreadable"], None]
    assert entries["half-0"] == ["live", ["unreadable"], 10]
    assert entries["de"] == ["unknown", ["unreadable"], None]
    top.chmod(0)
    done = subprocess.run(run, capture_output=True, text=True, cwd=home, check=False)
    assert json.loads(done.stdout)[:2] == ["unreadable", ["no-permission"]]


def test_a_scan_changes_nothing(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    partition(top / "t-0")
    (tmp_path / "d1.logdird" / "deleting").mkdir(parents=True)

    def state() -> list[tuple[str, int, int, int]]:
        return sorted(
            (str(p), p.lstat().st_mtime_ns, p.lstat().st_ctime_ns, p.lstat().st_size) for p in tmp_path.rglob("*")
        )

    before = state()
    scan_log_dir(str(top), exact=True)
    assert state() == before


@pytest.mark.parametrize("lost", ["nothing", "start-block.json", "its bytes"])
def test_a_start_block_is_never_taken_for_the_node_of_a_disk(tmp_path: Path, lost: str) -> None:
    top = log_dir(tmp_path / "d1", node=7)
    true = (top / "meta.properties").read_bytes()
    (top / "meta.properties").write_bytes(start_block_file.blocked(true))
    if lost != "start-block.json":
        original = true if lost == "nothing" else true + b"x=y\n"
        (top / "start-block.json").write_bytes(start_block_file.render(start_block_file.StartBlockFile(original, 1, 7)))
    disk = scan_log_dir(str(top)).disk
    assert (disk.status, disk.cluster_id) == ("ok", CLUSTER)
    expected = (7, ()) if lost == "nothing" else (None, ("meta-properties-malformed",))
    assert (disk.node_id, disk.problems) == expected
