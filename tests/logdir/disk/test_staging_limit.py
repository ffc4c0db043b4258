"""``staging-limit.json`` in every work root, on real directories."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from logdir.decide.staging_limit import highest
from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.record import controller, staging_limit
from logdir.disk.root.init import init
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.plan import plan_init
from logdir.disk.root.work_root import open_root
from logdir.errors import RefusedError
from logdir.formats.own import staging_limit_file
from logdir.formats.own.staging_limit_file import Count
from logdir.refusal_slug import Why
from tests.builders import log_dir, partition
from tests.whole_refusal import require_whole

COUNTS = (Count(instant_ms=5, partitions=9, topics=2),)
MORE = (*COUNTS, Count(instant_ms=6, partitions=1, topics=1))


class Host:
    """Two log dirs with work roots, and every call that changed one of them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.calls: list[Call] = []
        disk = HostDisk(self.calls.append)
        self.open_dirs: list[OpenLogDir] = []
        for name in ("d1", "d2"):
            path = log_dir(folder / name)
            partition(path / "a-0")
            init(disk, plan_init(disk, str(path), fs_type="ext4"), made_at_ms=1, reserve_bytes=4096)
            self.open_dirs.append(stack.enter_context(open_root(disk, str(path))).open_dir)
        self.calls.clear()

    def file(self, number: int) -> Path:
        return Path(self.open_dirs[number].work.path) / "staging-limit.json"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with ExitStack() as stack:
        yield Host(tmp_path, stack)


def test_a_new_work_root_has_an_empty_record_and_begins_only_once(host: Host) -> None:
    for open_dir in host.open_dirs:
        staging_limit.begin(open_dir)
    assert staging_limit.read_records(host.open_dirs) == ((), ())
    with pytest.raises(RefusedError) as raised:
        staging_limit.begin(host.open_dirs[0])
    require_whole(
        raised.value,
        Why.RECORD_EXISTS,
        path=str(host.file(0)),
        expected="a new work root",
        found="a record of what was staged",
        fix="inspect it and move it away, then repeat logdirctl init",
    )


def test_a_record_is_written_to_all_and_read_back(host: Host) -> None:
    for record in (COUNTS, MORE):
        staging_limit.write_record(host.open_dirs, record)
        assert staging_limit.read_records(host.open_dirs) == (record, record)
    assert not list(Path(host.open_dirs[0].work.path).glob("staging-limit.json.*"))


def test_it_is_durable_before_the_call_returns(host: Host) -> None:
    staging_limit.write_record(host.open_dirs[:1], COUNTS)
    names = [call.name for call in host.calls]
    assert names == ["write", "fsync", "replace", "fsync-dir"]


def test_what_stands_there_already_is_not_written(host: Host) -> None:
    staging_limit.write_record(host.open_dirs, COUNTS)
    host.calls.clear()
    staging_limit.write_record(host.open_dirs, COUNTS)
    assert host.calls == []


@pytest.mark.parametrize(
    "damage", [b"", b"{}", staging_limit_file.render(COUNTS)[:-5], b"x" * (1 << 17), None], ids=repr
)
def test_one_that_is_missing_or_unreadable_makes_us_hold(host: Host, damage: bytes | None) -> None:
    staging_limit.write_record(host.open_dirs, COUNTS)
    host.file(1).unlink()
    if damage is not None:
        host.file(1).write_bytes(damage)
    assert staging_limit.read_records(host.open_dirs) == (COUNTS, None)
    assert highest(staging_limit.read_records(host.open_dirs)) is None


def test_a_link_in_its_place_is_not_followed(host: Host, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(staging_limit_file.render(()))
    host.file(0).symlink_to(tmp_path / "elsewhere")
    assert staging_limit.read_records(host.open_dirs[:1]) == (None,)
    with pytest.raises((RefusedError, OSError)):
        staging_limit.write_record(host.open_dirs, COUNTS)
    assert (tmp_path / "elsewhere").read_bytes() == staging_limit_file.render(())


def test_one_that_cannot_be_written_stops_it_and_those_before_say_more(host: Host) -> None:
    for open_dir in host.open_dirs:
        staging_limit.begin(open_dir)
    host.file(1).unlink()
    host.file(1).mkdir()
    with pytest.raises((RefusedError, OSError)):
        staging_limit.write_record(host.open_dirs, COUNTS)
    host.file(1).rmdir()
    staging_limit.begin(host.open_dirs[1])
    assert highest(staging_limit.read_records(host.open_dirs)) == COUNTS


def test_no_record_of_the_cluster_is_begun_for_a_broker_without_a_node_id(host: Host) -> None:
    """It would be taken for another broker's as soon as there is one."""
    nameless = replace(host.open_dirs[0], node_id=None)
    with pytest.raises(RefusedError, match="node id"):
        controller.begin(nameless)
    assert host.calls == []
    assert controller.read_records(host.open_dirs) == (None, None)


def test_a43_no_position_that_was_applied_is_forgotten_by_beginning_again(host: Host) -> None:
    for open_dir in host.open_dirs:
        controller.begin(open_dir)
        with pytest.raises(RefusedError, match="expected a new work root, found a record of"):
            controller.begin(open_dir)
