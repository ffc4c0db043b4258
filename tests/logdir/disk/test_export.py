"""Export on real directories: a copy that was verified, or nothing with its name."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from logdir.disk.kernel import atomic_directory
from logdir.disk.kernel.host import HostDisk
from logdir.disk.replica.capture import capture
from logdir.disk.replica.capture_item import CaptureItem
from logdir.disk.replica.export import MANIFEST, Exported, export, note_of
from logdir.disk.replica.replica_dir import require_marker
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import DiskError, DiskFullError, LogDirError, RefusedError
from logdir.formats.own.replica_marker import Checkpoints, Intent, render
from logdir.observe import outside
from logdir.observe.outside import kept_free
from logdir.refusal_slug import Why
from tests.logdir.disk.rescue import DELAY_MS, DELETED, FILES, OLD, SEGMENT, instant, make_root, meta, open_site, put
from tests.whole_refusal import require_whole

PLACE = f"deleting/{OLD}_0"
HARD = {"name\nwith\\all": b"x", f"{SEGMENT}.timeindex": bytes(3 << 20) + b"tail", "empty": b""}
PREALLOCATED = {"00000000000000000009.index": bytes(10 << 20), "00000000000000000009.timeindex": bytes(10 << 20)}


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    path = tmp_path / "kafka"
    put(path, {"meta.properties": meta(0)})
    make_root(HostDisk(), str(path))
    put(path / DELETED, {**FILES, "00000000000000000009.log": b"third", **HARD, **PREALLOCATED})
    with opened(path) as open_dir:
        assert capture(open_dir, [CaptureItem(name=DELETED, delay_ms=DELAY_MS)], instant)[0].place == PLACE
    return path


@contextmanager
def opened(log_dir: Path) -> Iterator[OpenLogDir]:
    with open_site(HostDisk(), str(log_dir)) as root:
        yield root.open_dir


def run(log_dir: Path, destination: Path | str, place: str = PLACE, others: tuple[str, ...] = ()) -> Exported:
    with opened(log_dir) as open_dir:
        return export(open_dir, place, str(destination), tuple(one for other in others for one in kept_free(other)))


def content(path: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in path.iterdir()}


def test_a_copy_holds_every_byte_and_its_manifest_agrees(log_dir: Path, tmp_path: Path) -> None:
    source = content(log_dir.with_name("kafka.logdird") / PLACE)
    destination = tmp_path / "out" / "rescued"
    destination.parent.mkdir()
    done = run(log_dir, destination)
    found = content(destination)
    manifest = found.pop(MANIFEST)
    del found["COPY-BY-HAND.txt"]
    copied = {name: data for name, data in source.items() if name not in PREALLOCATED}
    assert found == copied
    assert (done.files, done.size_bytes, done.is_whole) == (len(copied), sum(map(len, copied.values())), True)
    checked = subprocess.run(["sha256sum", "-c", "--strict", MANIFEST], cwd=destination, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout.count(": OK")) == (0, len(copied) + 1)
    assert manifest.endswith(b"\n")
    assert os.listdir(destination.parent) == ["rescued"]
    assert {p.stat().st_mode & 0o777 for p in destination.iterdir()} == {0o600}
    sparse = destination / f"{SEGMENT}.timeindex"
    assert sparse.stat().st_blocks * 512 < sparse.stat().st_size
    assert content(log_dir.with_name("kafka.logdird") / PLACE) == source


def test_a36_no_index_of_the_last_segment_is_exported_and_a_note_says_so(log_dir: Path, tmp_path: Path) -> None:
    run(log_dir, tmp_path / "out")
    found = content(tmp_path / "out")
    assert not found.keys() & PREALLOCATED.keys()
    assert {"00000000000000000005.index", f"{SEGMENT}.timeindex"} <= found.keys()
    note = found["COPY-BY-HAND.txt"].decode()
    assert f"Topic id: {OLD}\n" in note
    assert all(name in note for name in PREALLOCATED)
    # What a copy by hand must change (kafka-behaviour 10.5): the id, the indexes, the log start, every replica.
    assert all(
        word in note for word in ("partition.metadata", "no index", "log-start-offset-checkpoint", "every broker")
    )
    assert max(map(len, note.splitlines())) <= 120


def test_the_note_of_a_copy_has_the_entry_of_its_log_start(log_dir: Path, tmp_path: Path) -> None:
    topic = DELETED.partition("-")[0]
    with opened(log_dir) as open_dir, open_dir.deleting.open(f"{OLD}_0") as source:
        marker = require_marker(open_dir, source)
    known = replace(marker, checkpoints=replace(marker.checkpoints, log_start=17))
    assert f'"{topic} 0 17"' in note_of(known, ())
    unknown = note_of(replace(known, checkpoints=Checkpoints(), topic_id=None), ())
    assert "without an entry" in unknown
    assert "Topic id: not known\n" in unknown


def test_a17_a_partial_capture_can_be_exported_and_says_so(log_dir: Path, tmp_path: Path) -> None:
    other = DELETED.replace("t-0", "t-1")
    put(log_dir / other, {name: data for name, data in FILES.items() if name != "partition.metadata"})
    with opened(log_dir) as open_dir:
        (outcome,) = capture(open_dir, [CaptureItem(name=other, delay_ms=DELAY_MS)], instant)
    assert outcome.place == "incoming/no-id.t_1"
    assert not run(log_dir, tmp_path / "out", outcome.place).is_whole


@pytest.mark.parametrize(
    "where",
    ["kafka/out", "kafka.logdird/out", "kafka.logdird/deleting/out", "link/out", "other/out", "link/../kafka/out"],
)
def test_nothing_is_put_into_a_log_dir_or_work_root(log_dir: Path, tmp_path: Path, where: str) -> None:
    (tmp_path / "link").symlink_to("kafka.logdird/incoming")
    (tmp_path / "other").mkdir()
    with pytest.raises(RefusedError, match="outside all log dirs"):
        run(log_dir, tmp_path / where, others=(str(tmp_path / "other"), str(tmp_path / "not-there")))
    assert not (tmp_path / where).exists()
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.parametrize("mark", ["meta.properties", "work-root.json"])
@pytest.mark.parametrize("inner", ["", "deleting"])
def test_nothing_is_put_into_a_log_dir_or_work_root_of_another_broker(
    log_dir: Path, tmp_path: Path, mark: str, inner: str
) -> None:
    """It would be a live replica there, or keep that broker from starting."""
    other = tmp_path / "other"
    (other / "deleting").mkdir(parents=True)
    (other / mark).write_bytes(b"")
    link = tmp_path / "link"
    link.symlink_to(other)
    for place in (other / inner / "a-0", link / inner / "a-0"):
        with pytest.raises(RefusedError, match="outside all log dirs"):
            run(log_dir, place)
    assert sorted(path.name for path in other.rglob("*")) == sorted(["deleting", mark])


@pytest.mark.parametrize("kind", ["directory", "file", "dangling"])
def test_a_name_that_is_taken_is_refused(log_dir: Path, tmp_path: Path, kind: str) -> None:
    taken = tmp_path / "out"
    match kind:
        case "directory":
            taken.mkdir()
        case "file":
            taken.touch()
        case _:
            taken.symlink_to("nothing")
    with pytest.raises(RefusedError, match="free"):
        run(log_dir, taken)
    assert sorted(os.listdir(tmp_path)) == ["kafka", "kafka.logdird", "out"]


@pytest.mark.parametrize("destination", ["out", "/", "/no/such/parent/out"])
def test_a_destination_that_is_no_place_is_refused(log_dir: Path, destination: str) -> None:
    with pytest.raises(RefusedError):
        run(log_dir, destination)


@pytest.mark.parametrize("destination", ["out", "./out", "/", "/.", "/no/such/parent/out"])
def test_no_directory_is_made_where_the_command_happens_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, destination: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError), atomic_directory.new_directory(destination, ()):
        pytest.fail("made")
    assert os.listdir(tmp_path) == []


def test_no_directory_above_a_destination_is_passed_over(tmp_path: Path) -> None:
    """One that is bound elsewhere has another path, and is the same."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    found = [outside._identity(path) for path in outside._upwards(str(tmp_path / "a" / "b"))]
    above = [path.stat() for path in (tmp_path / "a" / "b", *(tmp_path / "a" / "b").parents)]
    assert found == [(one.st_dev, one.st_ino) for one in above]


def test_a_name_that_was_taken_while_it_was_copied_is_refused_and_left_alone(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(atomic_directory.NewDirectory):
        def write(self, name: str, data: bytes) -> None:
            super().write(name, data)
            (tmp_path / "out").mkdir(exist_ok=True)
            (tmp_path / "out" / "theirs").write_bytes(b"x")

    monkeypatch.setattr(atomic_directory, "NewDirectory", Late)
    with pytest.raises(RefusedError, match="free"):
        run(log_dir, tmp_path / "out")
    assert content(tmp_path / "out") == {"theirs": b"x"}
    assert sorted(os.listdir(tmp_path)) == ["kafka", "kafka.logdird", "out"]


def test_a_manifest_that_does_not_read_back_is_found_out(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lie(descriptor: int, data: memoryview) -> int:
        return written(descriptor, bytes(data).swapcase())

    written = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lie)
        with pytest.raises(DiskError, match="do not trust the disk"):
            run(log_dir, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["kafka", "kafka.logdird"]


def test_a_copy_leaves_no_file_open(log_dir: Path, tmp_path: Path) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    run(log_dir, tmp_path / "out")
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_no_copy_on_its_way_in_is_exported(log_dir: Path, tmp_path: Path) -> None:
    with opened(log_dir) as open_dir, open_dir.deleting.open(f"{OLD}_0") as source:
        marker = replace(require_marker(open_dir, source), intent=Intent.INCOMING, delay_ms=None)
    (log_dir.with_name("kafka.logdird") / PLACE / "replica.json").write_bytes(render(marker))
    with pytest.raises(RefusedError) as raised:
        run(log_dir, tmp_path / "out")
    require_whole(
        raised.value,
        Why.NOT_STAGED,
        path=f"{log_dir.with_name('kafka.logdird')}/{PLACE}",
        expected="a replica that was staged",
        found="an incoming replica",
        fix="run logdirctl staged ls, which shows what is staged now",
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory to another group")
@pytest.mark.parametrize(("mode", "group"), [(0o755, os.getegid()), (0o2755, 2345)])
def test_a_copy_has_the_group_of_its_parent_only_where_that_hands_it_down(
    log_dir: Path, tmp_path: Path, mode: int, group: int
) -> None:
    parent = tmp_path / "out"
    parent.mkdir()
    os.chown(parent, -1, 2345)
    parent.chmod(mode)
    run(log_dir, parent / "rescued")
    found = (parent / "rescued").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (os.geteuid(), group, 0o700)


@pytest.mark.parametrize("name", ["x" * 255, "ä" * 127])
def test_a_destination_may_have_the_longest_name_there_is(log_dir: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "out").mkdir()
    run(log_dir, tmp_path / "out" / name)
    assert os.listdir(tmp_path / "out") == [name]


@pytest.mark.parametrize("place", ["deleting/x", f"deleting/{OLD}_1", f"{PLACE}.purging", "t-0", f"../kafka/{OLD}_0"])
def test_only_what_was_staged_is_exported(log_dir: Path, tmp_path: Path, place: str) -> None:
    with pytest.raises(LogDirError):
        run(log_dir, tmp_path / "out", place)
    assert not (tmp_path / "out").exists()


def test_a_disk_that_does_not_give_back_what_was_written_is_found_out(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lie(descriptor: int, data: memoryview, at: int) -> int:
        return written(descriptor, bytes(reversed(bytes(data))), at)

    written = os.pwrite
    monkeypatch.setattr(os, "pwrite", lie)
    with pytest.raises(DiskError, match="do not trust the disk"):
        run(log_dir, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["kafka", "kafka.logdird"]


def test_a_source_that_changes_is_found_out(log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = log_dir.with_name("kafka.logdird") / PLACE

    class Slow(atomic_directory.NewDirectory):
        def copy(self, descriptor: int, name: str) -> tuple[int, str]:
            copied = super().copy(descriptor, name)
            (source / "00000000000000000005.log").write_bytes(b"FIRST SEGMENT")
            return copied

    monkeypatch.setattr(atomic_directory, "NewDirectory", Slow)
    with pytest.raises(DiskError, match="files that do not change"):
        run(log_dir, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["kafka", "kafka.logdird"]


class Stop(BaseException):
    """The process is gone: nothing is cleared away."""


@pytest.mark.parametrize("is_kill", [True, False])
def test_what_is_interrupted_has_a_name_that_ends_in_partial_or_is_gone(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kill: bool
) -> None:
    synced = os.fsync
    calls: list[int] = []
    allowed = 0

    def fail(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) > allowed:
            raise Stop if is_kill else OSError(errno.ENOSPC, "full")
        synced(descriptor)

    if is_kill:
        monkeypatch.setattr(atomic_directory, "_clear", lambda parent, name: None)
    monkeypatch.setattr(os, "fsync", fail)
    out = tmp_path / "out"
    out.mkdir()
    files = len(os.listdir(log_dir.with_name("kafka.logdird") / PLACE))
    files -= len(PREALLOCATED)
    # Each file, the note, the manifest, the directory; the last sync is that of the new name: all is durable under it.
    for count in range(files + 3):
        calls.clear()
        allowed = count
        with pytest.raises((Stop, DiskError)):
            run(log_dir, out / "rescued")
        assert all(name.endswith(".partial") for name in os.listdir(out))
    assert (os.listdir(out) != []) == is_kill
    calls.clear()
    allowed = files + 4
    run(log_dir, out / "rescued")
    assert len(calls) == files + 4
    assert len(content(out / "rescued")) == files + 2


@pytest.mark.parametrize("call", ["pwrite", "ftruncate", "fsync", "write", "open"])
def test_a_full_disk_outside_is_not_blamed_on_the_source(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    destination = tmp_path / "out"
    real = getattr(os, call)

    def full(*arguments: object, **more: object) -> object:
        if call == "open" and not int(str(arguments[1])) & os.O_CREAT:
            return real(*arguments, **more)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with opened(log_dir) as open_dir, monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with pytest.raises(DiskFullError) as caught:
            export(open_dir, PLACE, str(destination), ())
    assert caught.value.path.startswith(f"{destination}/")
    assert list(tmp_path.glob("out*")) == []


def test_a_place_where_no_directory_can_be_made_is_named_whole(log_dir: Path) -> None:
    with pytest.raises(DiskError) as caught:
        run(log_dir, "/proc/rescued")
    assert caught.value.path == "/proc/rescued"


def test_a_sync_that_finds_no_room_is_not_blamed_on_the_source_whichever_it_is(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    destination = tmp_path / "out"
    real = os.fsync
    blamed = []
    for at in range(100):
        calls = iter(range(100))

        def full(descriptor: int, calls: Iterator[int] = calls, at: int = at) -> None:
            if next(calls) == at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(descriptor)

        with opened(log_dir) as open_dir, monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            try:
                export(open_dir, PLACE, str(destination), ())
                break
            except DiskFullError as error:
                blamed.append(error.path)
        assert not destination.exists()
    assert len(blamed) > 8
    assert {path for path in blamed if not f"{path}/".startswith(f"{destination}/")} == set()
    assert str(destination) in blamed


def test_no_error_of_clearing_away_hides_why_a_copy_failed(tmp_path: Path) -> None:
    def fail() -> None:
        with atomic_directory.new_directory(str(tmp_path / "out"), ()) as directory:
            directory.write("file", b"data")
            (left,) = tmp_path.iterdir()
            (left / "of somebody else").mkdir()
            raise RefusedError("/x", why=Why.CHANGED, expected="no error", found="what went wrong", fix="look again")

    with pytest.raises(RefusedError, match="what went wrong"):
        fail()
    assert [path.name.endswith(".partial") for path in tmp_path.iterdir()] == [True]
