"""One log dir of three hangs: every command answers for the others in time, and names that one.

Spec: design §2 laws 4, 6, §5 "A port per log dir", §6 (exit status).
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.hung.rig import Answer, Broker, Sick, all_ended, on_frozen, on_fuse, on_loop, processes_of
from tests.kernel.images import Images

pytestmark = pytest.mark.root

READING = {"staged ls": ("staged", "ls"), "describe": ("describe",), "strays": ("strays",)}
STAGE = ("stage", "pay", "--even-over-limit")
PURGE = ("staged", "purge", "old")
WITHIN_S = 2.5
"""A broker that starts is refused for no longer than two seconds, and half a second to see that one is silent."""
SLACK_S = 1.0
"""This machine has two cores, and others use them."""


def asked(broker: Broker, words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command with the source it needs."""
    return (*words, *(() if words[0] == "describe" or "ls" in words else broker.source))


def rows_of(answer: Answer) -> set[tuple[str, str]]:
    """Return log dir and name of each replica in an answer."""
    rows = answer.result.get("strays", answer.result.get("items", ()))
    return {(row["log_dir"], row.get("path") or row["name"]) for row in rows}


def require_others(answer: Answer, broker: Broker, words: Sequence[str], request: pytest.FixtureRequest) -> None:
    """Assert that a command answered for the two disks that do, and called the third suspect."""
    request.node.user_properties.append(("seconds", round(answer.seconds, 1)))
    print(" ".join(words), "took", round(answer.seconds, 1), "s")
    assert answer.suspects == [str(broker.sick)], answer
    assert answer.status == 1, answer
    assert {str(broker.disks[0]), str(broker.disks[2])} <= {log_dir for log_dir, _ in rows_of(answer)}, answer


@pytest.mark.parametrize("hung", ["LOOKUP GETATTR", "OPENDIR", "READDIR", "READ"])
@pytest.mark.parametrize("command", READING)
def test_a_command_that_reads_answers_for_the_others(
    command: str, hung: str, images: Images, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with on_fuse(tmp_path) as sick:
        broker = sick.broker
        words = asked(broker, READING[command])
        before = broker.sees(*words)
        assert (before.status, before.suspects) == (0, []), before
        sick.hang(*hung.split())
        answer = broker.sees(*words)
        require_others(answer, broker, words, request)
        assert processes_of(answer.session), "no worker hangs: the test shows nothing"
        sick.go_on()
        assert all_ended(answer.session)
        after = broker.sees(*words)
        assert (after.status, after.suspects, rows_of(after)) == (0, [], rows_of(before))
