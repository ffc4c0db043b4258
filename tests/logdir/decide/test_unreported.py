"""Space that a purge has freed counts as free before the file system reports it, and growth counts at once."""

from __future__ import annotations

from dataclasses import replace

from logdir.decide.capture import CaptureRoom
from logdir.decide.staged.unreported import Freed, Unreported, read, shrunk_bytes
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import StagedReplica
from tests.logdir.decide.builders import MARKER, staged_replicas


def room(free_bytes: int, free_inodes: int = 50) -> CaptureRoom:
    return CaptureRoom(free_bytes=free_bytes, total_bytes=100, free_inodes=free_inodes, total_inodes=100)


def after(*rooms: tuple[CaptureRoom, int], freed: tuple[Freed, ...]) -> CaptureRoom:
    """Return what is expected once all of this was freed at 5 bytes free, and these were read later."""
    one = Unreported(room=room(5), freed=freed)
    for found, now_ms in rooms:
        one = read(one, found, now_ms)
    return one.expected


def test_without_a_purge_it_is_what_is_reported() -> None:
    assert read(None, room(5), 0).expected == room(5)


def test_a50_what_was_freed_counts_until_it_is_reported() -> None:
    freed = (Freed(8, 3, 0),)
    assert after(freed=freed) == room(13, 53)
    assert after((room(5), 2_000), freed=freed) == room(13, 53)
    assert after((room(9, 51), 2_000), freed=freed) == room(13, 53)
    assert after((room(9, 51), 2_000), (room(13, 53), 3_000), (room(13, 53), 4_000), freed=freed) == room(13, 53)


def test_a50_and_for_a_minute_at_the_longest() -> None:
    freed = (Freed(4, 1, 0), Freed(4, 1, 30_000))
    assert after((room(5), 59_999), freed=freed) == room(13, 52)
    assert after((room(5), 60_000), freed=freed) == room(9, 51)
    assert after((room(5), 90_000), freed=freed) == room(5)


def test_a50_what_a_broker_writes_meanwhile_counts_at_once() -> None:
    freed = (Freed(8, 0, 0),)
    assert after((room(3), 1_000), freed=freed) == room(11)
    assert after((room(1), 1_000), freed=freed) == room(9)
    assert after((room(1), 1_000), (room(9), 2_000), freed=freed) == room(9)
    assert after((room(1), 1_000), (room(9), 2_000), (room(4), 3_000), freed=freed) == room(4)


def test_what_is_written_while_freed_space_is_reported_is_hidden_for_the_rest_of_the_minute_alone() -> None:
    freed = (Freed(8, 0, 0),)
    assert after((room(10), 1_000), freed=freed) == room(13)
    assert after((room(10), 1_000), (room(10), 60_000), freed=freed) == room(10)


def test_the_oldest_removal_is_reported_first() -> None:
    one = Unreported(room=room(5)).plus(Freed(4, 0, 0)).plus(Freed(4, 0, 10_000)).read(room(10), 20_000)
    assert one.freed == (Freed(3, 0, 10_000),)


def test_a_claimed_replica_has_freed_what_it_is_smaller_and_one_that_is_gone_all_of_it() -> None:
    first, second = staged_replicas(MARKER), staged_replicas(MARKER, counter=2)
    first, second = (_sized(one, inode, 100) for one, inode in ((first, 1), (second, 2)))
    claimed = _sized(staged_replicas(MARKER, kind=Kind.PURGING), 1, 30)
    assert shrunk_bytes([first, second], [claimed]) == 170
    assert shrunk_bytes([first], [first, second]) == 0


def _sized(one: StagedReplica, inode: int, log_bytes: int) -> StagedReplica:
    return replace(one, inode=inode, log_bytes=log_bytes)
