"""The bar is in every log dir or in none, and lifting it gives back the bytes and the time of change."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.host import Call, HostDirectory, HostDisk
from logdir.disk.record.start_block import BarState, bar, state, true_properties, unbar
from logdir.disk.root.open_log_dir import Site
from logdir.errors import FormatError, LogDirError, NotFormattedError, ReadOnlyDiskError, RefusedError, StateError
from logdir.formats.kafka import meta_properties
from logdir.formats.own import start_block_file
from logdir.formats.own.start_block_file import FALSE_NODE_ID
from logdir.observe.classify import Type
from tests.builders import CLUSTER, DIRECTORY, META, log_dir
from tests.crash.model import Failure, ModelHost
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
def sites(tops: list[Path]) -> Iterator[tuple[Site, ...]]:
    with opened(HostDisk(), [str(top) for top in tops]) as found:
        yield found


def test_it_is_set_in_every_log_dir_and_lifted_to_the_same_bytes_and_times(
    tops: list[Path], sites: tuple[Site, ...]
) -> None:
    before = snapshot(*tops)
    assert state(sites) is BarState.OPEN
    bar(sites)
    assert state(sites) is BarState.BARRED
    for top, site in zip(tops, sites, strict=True):
        original = before[f"{top.name}/meta.properties"][-1]
        data = (top / "meta.properties").read_bytes()
        assert meta_properties.parse(data).node_id == FALSE_NODE_ID
        assert data == start_block_file.barred(bytes(original))  # type: ignore[call-overload]
        assert start_block_file.parse((top / "bar.json").read_bytes()).original == original
        assert true_properties(site.top) == original
        text = (top / "logdird-bar.txt").read_text("ascii")
        assert "logdirctl layout" in text
        assert str(FALSE_NODE_ID) in text
        assert (top / "meta.properties").stat().st_mode & 0o777 == 0o640
    after = snapshot(*tops)
    bar(sites)
    assert snapshot(*tops) == after
    unbar(sites)
    assert state(sites) is BarState.OPEN
    assert snapshot(*tops) == before
    unbar(sites)
    assert snapshot(*tops) == before


class _CutError(Exception):
    pass


@pytest.mark.parametrize("direction", ["bar", "unbar"])
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

        with opened(HostDisk(), paths) as sites:
            if direction == "unbar":
                bar(sites)
        with opened(HostDisk(tell), paths) as cut:
            try:
                (bar if direction == "bar" else unbar)(cut)
            except _CutError:
                calls += 1
            is_whole = len(told) <= at
        with opened(HostDisk(), paths) as sites:
            seen.add(state(sites))
            metas = [start_block_file.is_barred((top / "meta.properties").read_bytes()) for top in tops]
            if any(metas):
                assert all((top / "bar.json").exists() for top in tops)
            for site, top in zip(sites, tops, strict=True):
                assert true_properties(site.top) == before[f"{top.name}/meta.properties"][-1]
            if at % 2:
                bar(sites)
                assert state(sites) is BarState.BARRED
            unbar(sites)
            assert state(sites) is BarState.OPEN
        assert snapshot(*tops) == before
        if is_whole:
            break
    assert calls > 15
    assert seen == set(BarState)


def test_without_bar_json_it_is_not_guessed(tops: list[Path], sites: tuple[Site, ...]) -> None:
    bar(sites)
    (tops[1] / "bar.json").unlink()
    before = snapshot(*tops)
    for ask in (state, bar, unbar):
        with pytest.raises(StateError, match=r"d2/meta.properties: expected bar.json beside .* backup"):
            ask(sites)
    assert snapshot(*tops) == before


def test_what_was_changed_under_the_bar_is_not_overwritten(tops: list[Path], sites: tuple[Site, ...]) -> None:
    bar(sites)
    with (tops[0] / "meta.properties").open("ab") as file:
        file.write(b"later=1\n")
    before = snapshot(*tops)
    with pytest.raises(StateError, match="changed since it was barred"):
        unbar(sites)
    assert snapshot(*tops) == before


@pytest.mark.parametrize("left", [None, b"", b" \n"], ids=["gone", "empty", "blank"])
def test_a37_a_lost_meta_properties_is_said_to_stand_in_the_bar_and_nothing_is_lifted(
    left: bytes | None, tops: list[Path], sites: tuple[Site, ...]
) -> None:
    """Formatted anew it would have another directory id; a bar that is lifted would take the true one with it."""
    bar(sites)
    lost = tops[0] / "meta.properties"
    lost.unlink()
    if left is not None:
        lost.write_bytes(left)
    before = [snapshot(top) for top in tops]
    for attempt in (lambda: state(sites), lambda: unbar(sites), lambda: true_properties(sites[0].top)):
        with pytest.raises(StateError, match=r"do not format it: bar\.json holds the true one"):
            attempt()
    assert [snapshot(top) for top in tops] == before


@pytest.mark.parametrize("data", [b"", b"{}\n", b'{"bar":2}\n'])
def test_a_bar_json_that_is_torn_or_newer_is_refused(data: bytes, tops: list[Path], sites: tuple[Site, ...]) -> None:
    bar(sites)
    (tops[1] / "bar.json").write_bytes(data)
    before = snapshot(*tops)
    with pytest.raises(FormatError, match=r"d2/bar\.json"):
        unbar(sites)
    assert snapshot(*tops) == before


def test_one_log_dir_that_cannot_be_barred_leaves_all_as_they_were(tops: list[Path], sites: tuple[Site, ...]) -> None:
    (tops[2] / "meta.properties").write_bytes(b"version=1\n")
    before = snapshot(*tops)
    with pytest.raises(FormatError, match=r"d3/meta\.properties"):
        bar(sites)
    assert snapshot(*tops) == before
    (tops[2] / "meta.properties").unlink()
    with pytest.raises(NotFormattedError):
        bar(sites)
    with pytest.raises(NotFormattedError):
        state(sites)
    assert true_properties(sites[2].top) is None


@pytest.mark.parametrize(("seconds", "is_barred"), [(0, True), (-1, False)])
def test_no_time_of_change_is_lost_that_the_bar_can_keep(
    tops: list[Path], sites: tuple[Site, ...], seconds: int, is_barred: bool
) -> None:
    os.utime(tops[1] / "meta.properties", (seconds, seconds))
    before = snapshot(*tops)
    if is_barred:
        bar(sites)
        assert state(sites) is BarState.BARRED
        unbar(sites)
    else:
        with pytest.raises(RefusedError, match="since 1970"):
            bar(sites)
    assert snapshot(*tops) == before


def test_no_meta_properties_is_replaced_by_what_does_not_read_back(
    tops: list[Path], sites: tuple[Site, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(directory: HostDirectory, name: str, limit: int) -> bytes:
        data = real(directory, name, limit)
        return data[:-1] if name == "bar.json.tmp" and not data.startswith(b"{") else data

    real = HostDirectory.read
    before = snapshot(*tops)
    monkeypatch.setattr(HostDirectory, "read", read)
    with pytest.raises(RefusedError, match="just written"):
        bar(sites)
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
    with opened(whole, paths) as sites:
        bar(sites)
    for at, record in enumerate(whole.records):
        host = model().fail(Failure(at, number))
        with opened(host, paths) as sites:
            with pytest.raises(LogDirError) as raised:
                bar(sites)
            assert raised.value.found == os.strerror(number)
            sick = isinstance(raised.value, ReadOnlyDiskError)
            assert sick == (number in (errno.EIO, errno.EROFS) or not record.is_change)
            failed = record.call.path[:3]
            files = host.world().files()
            for disk in ("/d1", "/d2"):
                if not sick or disk != failed:
                    assert files[f"{disk}/k/meta.properties"] == META_TEXT
                    assert f"{disk}/k/bar.json" not in files
            unbar(sites)
            assert state(sites) is BarState.OPEN
        left = {path for path in host.world().files() if path.count("/") == 3}
        assert left == {"/d1/k/meta.properties", "/d2/k/meta.properties"}
