"""How many bytes a purge has removed, by the facts from before and after it."""

from __future__ import annotations

from dataclasses import replace

from logdir.daemon.purging.purges import freed_bytes
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import StagedReplica
from logdir.service.report.result import ItemResult, ItemState
from tests.logdir.decide.builders import MARKER, facts, staged_replicas


def staged(number: int, log_bytes: int | None, *, log_dir: str = "/d1", kind: Kind = Kind.STAGED) -> StagedReplica:
    marker = replace(MARKER, partition=number, birth_inode=100 + number)
    return staged_replicas(marker, log_dir=log_dir, log_bytes=log_bytes, kind=kind)


def item(one: StagedReplica) -> ItemResult:
    return ItemResult(log_dir=one.log_dir, path=one.path, state=ItemState.DONE)


def test_what_is_gone_and_what_is_smaller_counts() -> None:
    whole, part, other = staged(0, 100), staged(1, 80), staged(2, 60)
    # The second was claimed, which gives it another name, and half of its segments are gone.
    claimed = staged(1, 30, kind=Kind.PURGING)
    before = facts(staged_replicas=(whole, part, other))
    after = facts(staged_replicas=(claimed,))
    assert freed_bytes([before], [after], [item(whole), item(part)]) == 150
    assert freed_bytes([before], [after], []) == 0


def test_replicas_of_two_disks_count_and_a_disk_that_cannot_be_read_does_not() -> None:
    one, two = (
        staged(0, 100),
        staged(1, None),
    )
    far = staged(2, 7, log_dir="/d2")
    before = [facts(staged_replicas=(one, two)), facts(log_dir="/d2", staged_replicas=(far,))]
    problem = Problem("log-dir-offline", "/d2", "a log dir that can be read", "none")
    after = [facts(), facts(log_dir="/d2", problem=problem)]
    items = [item(one), item(two), item(far)]
    assert freed_bytes(before, after, items) == 100
    assert freed_bytes(before, [after[0], facts(log_dir="/d2")], items) == 107
