"""A sync that fails is final, also where its error does not tell of a sick disk (design §3.4)."""

from __future__ import annotations

import errno

import pytest

from logdir.errors import ReadOnlyDiskError
from tests.crash.model import Failure, ModelHost
from tests.crash.recording import Acks, record
from tests.operations.operation import REPLICA, Trait
from tests.operations.registry import case, cases, family_of, having
from tests.proof.sizes import SIZE, Size

SYNCS = ("fsync", "fsync-dir", "syncfs")
_LEFT = having(Trait.OUTSIDE, Trait.TAKEN_UP) | (having(Trait.LONG_SYNCS) if SIZE is Size.SAMPLE else frozenset())
TAKEN = tuple(name for name in cases() if name not in _LEFT and family_of(name) != REPLICA)


@pytest.mark.parametrize("name", TAKEN)
def test_no_disk_is_written_to_after_a_sync_of_it_failed_for_want_of_room(name: str) -> None:
    one = case(name)
    whole = record(one.start.world(), one.do).records
    for at, made in enumerate(whole):
        if made.call.name not in SYNCS:
            continue
        host, acks = ModelHost(one.start.world()).fail(Failure(at, errno.ENOSPC)), Acks()
        with pytest.raises(ReadOnlyDiskError):
            one.do(host, acks)
        disk = "/".join(made.call.path.split("/")[:2])
        assert [later.call for later in host.records[at + 1 :] if later.call.path.startswith(disk)] == [], made.call
