"""A sync that fails is final, also where its error does not tell of a sick disk (design §3.4)."""

from __future__ import annotations

import errno

import pytest

from logdir.errors import ReadOnlyDiskError
from tests.crash.families import CASES, case
from tests.crash.model import Failure, ModelHost
from tests.crash.recording import Acks, record
from tests.proof.sizes import SIZE, Size

SYNCS = ("fsync", "fsync-dir", "syncfs")
TAKEN = tuple(
    name
    for name in CASES
    # An export writes outside of log dirs, and has errors of its own; what is taken up makes the same syncs again.
    if name != "export" and "taken up" not in name and (SIZE is not Size.SAMPLE or not name.startswith("init "))
)


@pytest.mark.parametrize("name", TAKEN)
def test_no_disk_is_written_to_after_a_sync_of_it_failed_for_want_of_room(name: str) -> None:
    one = case(name)
    whole = record(one.start.world(), one.run).records
    for at, made in enumerate(whole):
        if made.call.name not in SYNCS:
            continue
        host, acks = ModelHost(one.start.world()).fail(Failure(at, errno.ENOSPC)), Acks()
        with pytest.raises(ReadOnlyDiskError):
            one.run(host, acks)
        disk = "/".join(made.call.path.split("/")[:2])
        assert [later.call for later in host.records[at + 1 :] if later.call.path.startswith(disk)] == [], made.call
