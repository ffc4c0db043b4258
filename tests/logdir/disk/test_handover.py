"""``handover.json`` of a real log dir: which copies it has after failed starts, and what a comparison finds."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logdir.clock import Instant
from logdir.decide.checkpoint_copies import Losses, LostEntries, LostLogStart
from logdir.disk.kernel.calls import Directory
from logdir.disk.record import handover
from logdir.disk.record.checkpoints import put_back_log_starts
from logdir.disk.record.handover import compare, keep
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import FormatError, RefusedError, UnsupportedVersionError
from logdir.formats.kafka.offset_checkpoint import NAMES, TopicPartition
from logdir.formats.own import handover_file, own_json
from tests.logdir.disk.staged_rig import make_log_dir, opened, seen

POINTS, STARTS, WATERMARKS, CLEANER = NAMES
A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)
EMPTY = b"0\n0\n"


@pytest.fixture
def open_dir(tmp_path: Path) -> Iterator[OpenLogDir]:
    """Open a log dir with two partitions, whose logs begin at 0, and the checkpoint files of a stopped broker."""
    top = make_log_dir(tmp_path / "d1", "a-0", "b-0")
    (top / POINTS).write_bytes(b"0\n3\na 0 40\nb 0 9\ngone 7 1\n")
    (top / STARTS).write_bytes(b"0\n1\na 0 12\n")
    (top / WATERMARKS).write_bytes(b"0\n1\na 0 40\n")
    with opened(top) as one:
        yield one


def now(second: int) -> Instant:
    return Instant(boot_id="boot", boottime_ms=1000 * second, wall_ms=1000 * second, is_synchronised=True)


def fail_a_start(open_dir: OpenLogDir) -> None:
    """Leave what a broker leaves whose registration times out."""
    for name in (POINTS, STARTS):
        Path(open_dir.log_dir, name).write_bytes(EMPTY)


LOST = Losses(
    log_starts=(LostLogStart(A0, 12, None, 1000),),
    entries=(LostEntries(POINTS, (A0, B0), 1000),),
)


def copies(open_dir: OpenLogDir) -> list[int]:
    """Return when the copies were made."""
    file = handover.read(open_dir)
    assert file is not None
    return [copy.wall_ms for copy in file.copies]


def test_without_a_handover_nothing_is_known_to_be_lost(open_dir: OpenLogDir) -> None:
    fail_a_start(open_dir)
    assert compare(open_dir).losses == Losses()
    assert keep(open_dir, now(1)) == Losses()


def test_a30_a_failed_start_is_seen_at_each_comparison_and_the_good_copy_stays(open_dir: OpenLogDir) -> None:
    assert keep(open_dir, now(1)) == Losses()
    assert compare(open_dir).losses == Losses()
    fail_a_start(open_dir)
    assert compare(open_dir).losses == LOST
    for second in range(2, 8):
        assert keep(open_dir, now(second)) == LOST
        assert copies(open_dir) == [1000 * second, 1000]
        assert compare(open_dir).losses == LOST


def test_a_broker_that_runs_writes_the_recovery_points_anew_and_the_log_start_stays_lost(open_dir: OpenLogDir) -> None:
    keep(open_dir, now(1))
    fail_a_start(open_dir)
    Path(open_dir.log_dir, POINTS).write_bytes(b"0\n2\na 0 41\nb 0 9\n")
    assert compare(open_dir).losses == LOST._replace(entries=())
    keep(open_dir, now(2))
    # Retention removes the segments that were deleted before: the log begins behind its lost start.
    for name in ("00000000000000000000.log", "00000000000000000007.log"):
        Path(open_dir.log_dir, "a-0", name).rename(Path(open_dir.log_dir, "a-0", f"{name}.deleted"))
    Path(open_dir.log_dir, "a-0", "00000000000000000012.log").write_bytes(b"x")
    assert compare(open_dir).losses == Losses()


def test_a_partition_that_was_made_anew_has_lost_nothing(open_dir: OpenLogDir) -> None:
    keep(open_dir, now(1))
    fail_a_start(open_dir)
    top = Path(open_dir.log_dir)
    (top / "a-0").rename(top / "a-0.0123456789abcdef0123456789abcdef-delete")
    (top / "a-0").mkdir()
    (top / "a-0" / "00000000000000000000.log").write_bytes(b"")
    (top / "b-0").rename(top / "b-0.0123456789abcdef0123456789abcdef-stray")
    assert compare(open_dir).losses == Losses()


def test_a_directory_of_another_topic_id_has_lost_no_log_start_though_its_inode_is_the_same(
    open_dir: OpenLogDir,
) -> None:
    keep(open_dir, now(1))
    fail_a_start(open_dir)
    metadata = Path(open_dir.log_dir, "a-0", "partition.metadata")
    before = metadata.read_bytes()
    metadata.write_text("version: 0\ntopic_id: MkU3OEVBNTcwNTJENDM2Qg")
    assert compare(open_dir).losses == LOST._replace(log_starts=())
    metadata.write_text("nothing of the kind")
    with pytest.raises(FormatError, match=r"a-0/partition\.metadata"):
        compare(open_dir)
    with pytest.raises(FormatError):
        keep(open_dir, now(2))
    assert copies(open_dir) == [1000], "the copy stays as long as it is not known"
    metadata.write_bytes(before)
    assert keep(open_dir, now(3)) == LOST


@pytest.mark.parametrize(
    ("epochs", "is_lost"), [("", True), ("3 12\n", True), ("3 11\n", False), ("3 12\n4 2\n", False)]
)
def test_a_log_that_was_cut_below_its_log_start_has_lost_none(
    open_dir: OpenLogDir, epochs: str, *, is_lost: bool
) -> None:
    keep(open_dir, now(1))
    fail_a_start(open_dir)
    count = epochs.count("\n")
    Path(open_dir.log_dir, "a-0", "leader-epoch-checkpoint").write_text(f"0\n{count}\n{epochs}" if count else "")
    losses = compare(open_dir).losses
    assert losses is not None
    assert bool(losses.log_starts) is is_lost


def test_log_starts_that_are_put_back_are_lost_no_more_and_the_other_entries_stay(open_dir: OpenLogDir) -> None:
    keep(open_dir, now(1))
    Path(open_dir.log_dir, STARTS).write_bytes(b"0\n2\nother 1 5\nb 0 8\n")
    put_back_log_starts(open_dir, {A0: 12, B0: 3})
    assert Path(open_dir.log_dir, STARTS).read_bytes() == b"0\n3\nother 1 5\nb 0 8\na 0 12\n"
    assert Path(open_dir.log_dir, f"{STARTS}.old").read_bytes() == b"0\n2\nother 1 5\nb 0 8\n"
    assert compare(open_dir).losses == Losses()
    before = seen(Path(open_dir.log_dir))
    put_back_log_starts(open_dir, {A0: 11})  # An entry that is higher stays, and nothing is written.
    assert seen(Path(open_dir.log_dir)) == before


def test_a_file_that_is_not_whole_is_never_rewritten(open_dir: OpenLogDir) -> None:
    keep(open_dir, now(1))
    Path(open_dir.log_dir, STARTS).write_bytes(b"0\n7\nnothing\n")
    before = seen(Path(open_dir.log_dir))
    with pytest.raises(FormatError, match=STARTS):
        put_back_log_starts(open_dir, {A0: 12})
    assert seen(Path(open_dir.log_dir)) == before
    assert compare(open_dir).losses == Losses(malformed=(STARTS,))


def test_what_an_operator_accepts_needs_no_older_copy(open_dir: OpenLogDir) -> None:
    keep(open_dir, now(1))
    fail_a_start(open_dir)
    assert keep(open_dir, now(2), is_accepted=True) == Losses()
    assert copies(open_dir) == [2000]
    assert compare(open_dir).losses == Losses()


def test_a_comparison_reads_again_only_what_has_changed(open_dir: OpenLogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(open_dir, now(1))
    stamp, losses = compare(open_dir)
    assert losses == Losses()
    with monkeypatch.context() as patched:
        patched.setattr(handover, "read", lambda _: pytest.fail("nothing has changed"))
        assert compare(open_dir, stamp) == (stamp, None)
    fail_a_start(open_dir)
    later, losses = compare(open_dir, stamp)
    assert (losses, later != stamp) == (LOST, True)
    keep(open_dir, now(2))
    assert compare(open_dir, later)[0] != later
    Path(open_dir.log_dir, CLEANER).write_bytes(b"")  # One that comes, or goes, counts as well.
    assert compare(open_dir, later).losses == LOST


@pytest.mark.parametrize("data", [b"", b'{"handover":2', b"garbage\n"])
def test_a_file_of_ours_that_is_malformed_is_written_anew(open_dir: OpenLogDir, data: bytes) -> None:
    place = Path(open_dir.work.path, "handover.json")
    place.write_bytes(data)
    with pytest.raises(FormatError):
        compare(open_dir)
    assert keep(open_dir, now(1)) == Losses()
    assert copies(open_dir) == [1000]


@pytest.mark.parametrize("is_accepted", [False, True])
def test_a_file_of_a_newer_release_stays(open_dir: OpenLogDir, *, is_accepted: bool) -> None:
    place = Path(open_dir.work.path, "handover.json")
    data = own_json.render("handover", 3, {"later": 1})
    place.write_bytes(data)
    with pytest.raises(UnsupportedVersionError):
        keep(open_dir, now(1), is_accepted=is_accepted)
    assert place.read_bytes() == data


def test_copies_that_have_no_room_leave_the_one_that_is_needed(
    open_dir: OpenLogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(open_dir, now(1))
    Path(open_dir.log_dir, CLEANER).write_bytes(b"0\n1\na 0 1\n")
    size = Path(open_dir.work.path, "handover.json").stat().st_size
    monkeypatch.setattr(handover_file, "MAX_BYTES", size + 200)
    keep(open_dir, now(2))  # The older copy is only a courtesy.
    assert copies(open_dir) == [2000]
    fail_a_start(open_dir)
    with pytest.raises(RefusedError, match="the older copies stay; logdirctl handover --log-starts accept"):
        keep(open_dir, now(3))
    assert copies(open_dir) == [2000]
    assert compare(open_dir).losses is not None
    assert keep(open_dir, now(4), is_accepted=True) == Losses()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE, errno.ENOMEM], ids=errno.errorcode.get)
def test_a_log_that_cannot_be_looked_at_gives_up_no_copy(
    open_dir: OpenLogDir, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(directory: Directory) -> int:
        raise OSError(number, os.strerror(number), directory.path)

    keep(open_dir, now(1))
    fail_a_start(open_dir)
    with monkeypatch.context() as patched:
        patched.setattr(handover, "_first_offset", fails)
        with pytest.raises(OSError, match=os.strerror(number)):
            keep(open_dir, now(2))
    assert copies(open_dir) == [1000]
    assert compare(open_dir).losses == LOST
