"""By whom the tests of the daemon ask to be run: a run as root, or as two users, is refused."""

from __future__ import annotations

import pytest

from tests.kafka.no_rights import is_one_user


def status(uid: int, capabilities: int, *, effective: int | None = None) -> str:
    users = (uid, uid if effective is None else effective, uid, uid)
    lines = ("Name:\tjava", "Uid:\t" + "\t".join(map(str, users)), f"CapEff:\t{capabilities:016x}")
    return "\n".join(lines)


CASES = {
    "one user": ([status(1000, 0), status(1000, 0)], True),
    "root": ([status(0, 0x1FF)], False),
    "root without capabilities": ([status(0, 0)], False),
    "a user with a capability": ([status(1000, 0), status(1000, 1 << 1)], False),
    "a user who is root at the moment": ([status(1000, 0, effective=0)], False),
    "two users": ([status(1000, 0), status(1001, 0)], False),
    "root beside a user": ([status(1000, 0), status(0, 0x1FF)], False),
}


@pytest.mark.parametrize("case", CASES)
def test_processes_of_root_with_capabilities_or_of_two_users_are_refused(case: str) -> None:
    statuses, expected = CASES[case]
    assert is_one_user(statuses) is expected
