"""The start block is in every log dir or in none, and lifting it gives back the bytes and the time of change."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.host import Call, HostDirectory, HostDisk
from logdir.disk.record.start_block import StartBlockState, lift_block, set_block, state, true_properties
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import FormatError, LogDirError, NotFormattedError, ReadOnlyDiskError, RefusedError, StateError
from logdir.formats.kafka import meta_properties
from logdir.formats.own import start_block_file
from logdir.formats.own.start_block_file import FALSE_NODE_ID
from logdir.observe.classify import Type
from tests.builders import CLUSTER, DIRECTORY, META, log_dir
from tests.crash.model import Failure, ModelHost
from tests.logdir.disk import staged_rig
from tests.logdir.disk.layout_rig import WORK, add_work, opened, snapshot

META_TEXT = META.format(node=1, directory=DIRECTORY, cluster=CLUSTER).encode()


@pytest.fixture
def tops(tmp_path: Path) -> list[Path]:
    made = [log_dir(tmp_path / f"d{number}") for number in range(1, 4)]
    (made[1] / "meta.properties").write_bytes(b"#mine\nbroker.id = 1\ncluster.id=x\\\n  y\nextra=1\n")
    (made[2] / "meta.properties").write_bytes(b"version=0\ncluster.id=x")
    for number, top in enumerate(made):
        add_work(top)
        (top / "meta.properties.tmp").write_bytes(b"Kafka's")
        (top / "meta.properties").chmod(0o640)
        os.utime(top / "meta.properties", ns=(1, 1_500_000_000_123_456_789 + number))
    return made


@pytest.fixture
def open_dirs(tops: list[Path]) -> Iterator[tuple[OpenLogDir, ...]]:
    with opened(HostDisk(), [str(top) for top in tops]) as found:
        yield found


def test_it_is_set_in_every_log_dir_and_lifted_to_the_same_bytes_and_times(
    tops: list[Path], open_dirs: tuple[OpenLogDir, ...]
) -> None:
    before = snapshot(*tops)
    assert state(open_dirs) is StartBlockState.NONE
    set_block(open_dirs)
    assert state(open_dirs) is StartBlockState.SET
    for top, open_dir in zip(tops, open_dirs, strict=True):
        original = before[f"{top.name}/meta.properties"][-1]
        data = (top / "meta.properties").read_bytes()
        assert meta_properties.parse(data).node_id == FALSE_NODE_ID
        assert data == start_block_file.blocked(bytes(original))  # type: ignore[call-overload]
        assert start_block_file.parse((top / "start-block.json").read_bytes()).original == original
        assert true_properties(open_dir.top) == original
        text = (top / "logdird-start-block.txt").read_text("ascii")
        assert "logdirctl layout" in text
        assert str(FALSE_NODE_ID) in text
        assert (top / "meta.properties").stat().st_mode & 0o777 == 0o640
    after = snapshot(*tops)
    set_block(open_dirs)
    assert snapshot(*tops) == after
    lift_block(open_dirs)
    assert state(open_dirs) is StartBlockState.NONE
    assert snapshot(*tops) == before
    lift_block(open_dirs)
    assert snapshot(*tops) == before


class _CutError(Exception):
    pass


@pytest.mark.parametrize("direction", ["set", "lift"])
def test_a37_cut_off_at_every_call_it_is_half_and_goes_either_way(direction: str, tops: list[Path]) -> None:
    paths = [str(top) for top in tops]
    before = snapshot(*tops)
    calls = 0
    seen = set()
    for at in range(1000):
        told: list[Call] = []

        def tell(call: Call, told: list[Call] = told, at: int = at) -> None:
            told.append(call)
            if len(told) > at:
                raise _CutError

        with opened(HostDisk(), paths) as open_dirs:
            if direction == "lift":
                set_block(open_dirs)
        with opened(HostDisk(tell), paths) as cut:
            try:
                (set_block if direction == "set" else lift_block)(cut)
            except _CutError:
                calls += 1
            is_whole = len(told) <= at
        with opened(HostDisk(), paths) as open_dirs:
            seen.add(state(open_dirs))
            metas = [start_block_file.is_blocked((top / "meta.properties").read_bytes()) for top in tops]
            if any(metas):
                assert all((top / "start-block.json").exists() for top in tops)
            for open_dir, top in zip(open_dirs, tops, strict=True):
                assert true_properties(open_dir.top) == before[f"{top.name}/meta.properties"][-1]
            if at % 2:
                set_block(open_dirs)
                assert state(open_dirs) is StartBlockState.SET
            lift_block(open_dirs)
            assert state(open_dirs) is StartBlockState.NONE
        assert snapshot(*tops) == before
        if is_whole:
            break
    assert calls > 15
    assert seen == set(StartBlockState)


def test_without_start_block_json_it_is_not_guessed(tops: list[Path], open_dirs: tuple[OpenLogDir, ...]) -> None:
    set_block(open_dirs)
    (tops[1] / "start-block.json").unlink()
    before = snapshot(*tops)
    for ask in (state, set_block, lift_block):
        with pytest.raises(StateError, match=r"d2/meta.properties: expected start-block.json beside .* backup"):
            ask(open_dirs)
    assert snapshot(*tops) == before


def test_what_was_changed_under_the_start_block_is_not_overwritten(
    tops: list[Path], open_dirs: tuple[OpenLogDir, ...]
) -> None:
    set_block(open_dirs)
    with (tops[0] / "meta.properties").open("ab") as file:
        file.write(b"later=1\n")
    before = snapshot(*tops)
    with pytest.raises(StateError, match="changed since it was blocked"):
        lift_block(open_dirs)
    assert snapshot(*tops) == before


@pytest.mark.parametrize("left", [None, b"", b" \n"], ids=["gone", "empty", "blank"])
def test_a37_a_lost_meta_properties_is_said_to_stand_in_the_start_block_and_nothing_is_lifted(
    left: bytes | None, tops: list[Path], open_dirs: tuple[OpenLogDir, ...]
) -> None:
    """Formatted again it would have another directory id; lifting the start block would take the true one with it."""
    set_block(open_dirs)
    lost = tops[0] / "meta.properties"
    lost.unlink()
    if left is not None:
        lost.write_bytes(left)
    before = [snapshot(top) for top in tops]
    for attempt in (lambda: state(open_dirs), lambda: lift_block(open_dirs), lambda: true_properties(open_dirs[0].top)):
        with pytest.raises(StateError, match=r"do not format it: start-block\.json holds the true one"):
            attempt()
    assert [snapshot(top) for top in tops] == before


@pytest.mark.parametrize("data", [b"", b"{}\n", b'{"start_block":2}\n'])
def test_a_start_block_json_that_is_torn_or_newer_is_refused(
    data: bytes, tops: list[Path], open_dirs: tuple[OpenLogDir, ...]
) -> None:
    set_block(open_dirs)
    (tops[1] / "start-block.json").write_bytes(data)
    before = snapshot(*tops)
    with pytest.raises(FormatError, match=r"d2/start-block\.json"):
        lift_block(open_dirs)
    assert snapshot(*tops) == before


def test_one_log_dir_that_cannot_be_blocked_leaves_all_as_they_were(
    tops: list[Path], open_dirs: tuple[OpenLogDir, ...]
) -> None:
    (tops[2] / "meta.properties").write_bytes(b"version=1\n")
    before = snapshot(*tops)
    with pytest.raises(FormatError, match=r"d3/meta\.properties"):
        set_block(open_dirs)
    assert snapshot(*tops) == before
    (tops[2] / "meta.properties").unlink()
    with pytest.raises(NotFormattedError):
        set_block(open_dirs)
    with pytest.raises(NotFormattedError):
        state(open_dirs)
    assert true_properties(open_dirs[2].top) is None


@pytest.mark.parametrize(("seconds", "is_blocked"), [(0, True), (-1, False)])
def test_no_time_of_change_is_lost_that_the_start_block_can_keep(
    tops: list[Path], open_dirs: tuple[OpenLogDir, ...], seconds: int, is_blocked: bool
) -> None:
    os.utime(tops[1] / "meta.properties", (seconds, seconds))
    before = snapshot(*tops)
    if is_blocked:
        set_block(open_dirs)
        assert state(open_dirs) is StartBlockState.SET
        lift_block(open_dirs)
    else:
        with pytest.raises(RefusedError, match="since 1970"):
            set_block(open_dirs)
    assert snapshot(*tops) == before


def test_no_meta_properties_is_replaced_by_what_does_not_read_back(
    tops: list[Path], open_dirs: tuple[OpenLogDir, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(directory: HostDirectory, name: str, limit: int) -> bytes:
        data = real(directory, name, limit)
        return data[:-1] if name == "start-block.json.tmp" and not data.startswith(b"{") else data

    real = HostDirectory.read
    before = snapshot(*tops)
    monkeypatch.setattr(HostDirectory, "read", read)
    with pytest.raises(RefusedError, match="just written"):
        set_block(open_dirs)
    assert snapshot(*tops) == before


def model() -> ModelHost:
    host = ModelHost.with_disks("/d1", "/d2", uid=7, gid=8)
    for number in (1, 2):
        host.plant(f"/d{number}/k/meta.properties", META_TEXT, mtime_ns=5)
        for name in ("deleting", "incoming"):
            host.plant(f"/d{number}/k{WORK}/{name}", kind=Type.DIRECTORY, owner=Owner(7, 8, 0o755))
    return host


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a37_an_error_at_any_call_bars_all_or_none_that_answer(number: int) -> None:
    paths = ["/d1/k", "/d2/k"]
    whole = model()
    with opened(whole, paths) as open_dirs:
        set_block(open_dirs)
    for at, record in enumerate(whole.records):
        host = model().fail(Failure(at, number))
        with opened(host, paths) as open_dirs:
            with pytest.raises(LogDirError) as raised:
                set_block(open_dirs)
            assert raised.value.found == os.strerror(number)
            sick = isinstance(raised.value, ReadOnlyDiskError)
            assert sick == (number in (errno.EIO, errno.EROFS) or not record.is_change)
            failed = record.call.path[:3]
            files = host.world().files()
            for disk in ("/d1", "/d2"):
                if not sick or disk != failed:
                    assert files[f"{disk}/k/meta.properties"] == META_TEXT
                    assert f"{disk}/k/start-block.json" not in files
            lift_block(open_dirs)
            assert state(open_dirs) is StartBlockState.NONE
        left = {path for path in host.world().files() if path.count("/") == 3}
        assert left == {"/d1/k/meta.properties", "/d2/k/meta.properties"}


def test_a10_a_text_that_a_full_disk_cut_off_is_written_whole_with_the_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without ``O_TMPFILE`` gives the file its name before all of it is written."""
    top = staged_rig.make_log_dir(tmp_path / "one")
    real, cut = HostDirectory.write, list[str]()

    def write(self: HostDirectory, name: str, data: bytes, *more: Any) -> None:
        if name == "logdird-start-block.txt" and not cut:
            cut.append(name)
            real(self, name, data[:10], *more)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        real(self, name, data, *more)

    monkeypatch.setattr(HostDirectory, "write", write)
    with staged_rig.opened(top) as open_dir:
        set_block([open_dir])
        assert (cut, state([open_dir])) == (["logdird-start-block.txt"], StartBlockState.SET)
    assert "which lifts the start block.\n" in (top / "logdird-start-block.txt").read_text("ascii")
