"""Restore, purge and capture in every interleaving, and a crash anywhere in each: restore wins before the claim.

Row 8 of the reliability targets; Build 6 (f).
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.crash.enumerate import explore
from tests.crash.model import ModelHost
from tests.crash.races.actors import ACTORS, by_turns, orders, race, start, turned
from tests.crash.races.turns import every
from tests.crash.recording import Acks, record
from tests.operations.case import Case
from tests.proof.claims import INTERLEAVINGS, TURNS
from tests.proof.plugin import Recorder

ORDERS = tuple(orders())
_RESTORES, _PURGES, _CAPTURES = ACTORS
PAIRS = {
    "restore and purge": (_RESTORES, _PURGES),
    "two purges": (_PURGES, _PURGES),
    "two restores": (_RESTORES, _RESTORES),
}


def _words(acks: Acks) -> list[str]:
    """Return what was said, without of which directory."""
    return [said.rstrip("0123456789").rstrip() for said in acks.said]


def _explored(one: Case, models: str = "KJBPF") -> int:
    result = explore(one.start, one.do, one.recovery, one.holds, models, operation=one.name)
    assert not result.violating, str(result)
    return result.states


def test_every_order_of_restore_purge_and_capture_survives_a_crash_anywhere(record_proof: Recorder) -> None:
    assert len(ORDERS) == 210
    wanted = INTERLEAVINGS.count("orders")
    taken = ORDERS[:: len(ORDERS) // wanted][:wanted]
    states = sum(_explored(race(order)) for order in taken)
    record_proof(INTERLEAVINGS, {"orders": len(taken), "states": states})


@pytest.mark.parametrize("order", ORDERS, ids=", ".join)
def test_restore_wins_before_the_claim_and_is_refused_in_words_after_it(order: tuple[str, ...]) -> None:
    one = race(order)
    recording = record(one.start.world(), one.do)
    assert not recording.error, recording.error
    words = _words(recording.acks)
    at = {step: number for number, step in enumerate(order)}
    if at["restore"] < at["claim"]:
        assert words.index("restored") >= 0
        # What is captured anew is another directory, and the purge was not decided on that.
        seen_after = at["P sees"] > at["capture"] > at["restore"]
        assert ("claimed" if seen_after else "claim refused") in words or at["P sees"] > at["restore"]
    else:
        assert "claimed" in words
        assert ("restored" in words) == (at["R sees"] > at["capture"] > at["remove"])
        if at["R sees"] < at["claim"]:
            assert "restore refused" in words
    assert "capture refused" not in words


@pytest.mark.parametrize("pair", PAIRS)
def test_two_that_take_turns_at_every_call_never_both_have_it(pair: str, record_proof: Recorder) -> None:
    states = 0
    seen: set[tuple[str, ...]] = set()

    def run(choices: Sequence[int]) -> tuple[int, ...]:
        acks = Acks()
        made = turned(ModelHost(start().world()), acks, PAIRS[pair], choices)
        seen.add(tuple(sorted(_words(acks))))
        return made

    taken = list(every(run))
    assert len(set(taken)) == len(taken) >= 10
    for choices in taken:
        states += _explored(by_turns(PAIRS[pair], choices))
    wins = {("claim refused", "restored"), ("claimed", "removed", "restore refused")}
    alike = {"two purges": {("claim refused", "claimed", "removed")}, "two restores": {("restore refused", "restored")}}
    assert seen == alike.get(pair, wins)
    record_proof(TURNS, {"interleavings": len(taken), "states": states})


@pytest.mark.parametrize("order", [("P sees", "claim", "C sees", "capture"), ("P sees", "C sees", "claim", "capture")])
def test_what_is_being_purged_is_captured_anew(order: tuple[str, ...]) -> None:
    """What was claimed will not stay, however whole it is: who is told where a capture lies must find it there."""
    one = race((*order, "remove"))
    recording = record(one.start.world(), one.do)
    assert not recording.error, recording.error
    assert _words(recording.acks) == ["claimed", "captured", "removed"]
    assert len({said.rpartition(" ")[2] for said in recording.acks.said[:2]}) == 2, recording.acks.said
    assert _explored(one) > 0


def test_the_judge_of_races_sees_what_goes_wrong() -> None:
    """A purge that forgets its claim, and a restore after the claim, said as if they were done."""
    one = race(("P sees", "claim", "R sees", "restore", "remove"))

    def lying(host: ModelHost, acks: Acks) -> None:
        one.do(host, acks)
        claimed = next(said for said in acks.said if said.startswith("claimed"))
        acks.ack(claimed.replace("claimed", "restored"))

    result = explore(one.start, lying, one.recovery, one.holds, "K")
    assert {violation.message.partition(":")[0] for violation in result.violations} >= {"doubled", "lost"}
