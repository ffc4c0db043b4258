"""No bad document locks out every later one for ever: an operator confirms a FULL request of lower epochs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from logdir.decide.image.admission import Code
from logdir.formats.own.controller_file import ControllerFile, MetadataMark, RequestMark
from logdir.reasons import Reason
from tests.reconcile.disk import live
from tests.reconcile.scene import EVERY, FULL, INCREMENTAL, A, B, Z, item, pair
from tests.reconcile.stories import FRESH, Broker, staged
from tests.reconcile.universe import document, listed, stopped

HIGH = {"epoch": 2**31 - 1, "broker_epoch": 2**63 - 1}
METADATA = MetadataMark(epoch=7, offset=9000)


def full(sequence: int = 1, **more: Any) -> dict[str, Any]:
    return document(listed(a=(A, (0,)), z=(Z, EVERY)), type=FULL, sequence=sequence, **more)


def locked_out(**more: Any) -> Broker:
    """A broker that followed a FULL request of epochs which no later one exceeds."""
    broker = Broker(*pair(live("a", A), live("b", B)), last_applied=replace(FRESH, metadata=METADATA))
    states = listed(a=(A, (0,)), b=(B, (0,)), z=(Z, EVERY))
    broker.receives(document(states, type=FULL, sequence=1, **more))
    return broker


def record_of(broker: Broker) -> ControllerFile:
    assert broker.last_applied is not None
    return broker.last_applied


@pytest.mark.parametrize("more", [{}, {"broker_epoch": -1}], ids=["with a broker epoch", "without"])
@pytest.mark.parametrize("high", [{"epoch": HIGH["epoch"]}, {"broker_epoch": HIGH["broker_epoch"]}, HIGH], ids=str)
def test_a_full_request_of_lower_epochs_counts_once_an_operator_confirms_it(
    high: dict[str, int], more: dict[str, int]
) -> None:
    broker = locked_out(**high)
    before = record_of(broker)
    is_refused = "epoch" in high or not more
    if is_refused:
        refused = broker.receives(full(7, **more))
        assert refused.plan is None
        assert refused.problem is not None
        assert "reconcile --from request:FILE --even-if-older-metadata --apply" in refused.problem.fix
        assert record_of(broker) == before
    broker.is_position_confirmed = True
    decided = broker.receives(full(7, **more))
    assert (decided.code, staged(decided.plan)) == (Code.NONE, [("b-0", "absent", True)])
    assert record_of(broker) == replace(
        before,
        requests=RequestMark(controller_epoch=5, sequence=7),
        broker_epoch=before.broker_epoch if more else 40,
        is_full_wanted=is_refused,  # it may have been an old one: purges of what it left out wait for the next
        metadata=METADATA,
    )
    # The next one is an ordinary one.
    broker.is_position_confirmed = False
    broker.receives(full(8, **more))
    assert (record_of(broker).requests, record_of(broker).is_full_wanted) == (
        RequestMark(controller_epoch=5, sequence=8),
        False,
    )


@pytest.mark.parametrize(
    "value",
    [
        document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=7),
        document(listed(a=(A, (0,))), sequence=7),
        document(stopped(delete=True, a=(None, (0,))), api="StopReplica", sequence=7),
    ],
    ids=["incremental", "type 0", "stop"],
)
def test_no_other_request_of_lower_epochs_counts_whatever_an_operator_confirms(value: dict[str, Any]) -> None:
    for high, code in (
        ({"epoch": HIGH["epoch"]}, Code.STALE_CONTROLLER_EPOCH),
        ({"broker_epoch": HIGH["broker_epoch"]}, Code.STALE_BROKER_EPOCH),
    ):
        broker = locked_out(**high)
        broker.is_position_confirmed = True
        before = record_of(broker)
        refused = broker.receives(value)
        assert (refused.code, refused.plan, record_of(broker)) == (code, None, before)
        assert refused.problem is not None
        assert "reconcile --from request:FILE --even-if-older-metadata --apply" in refused.problem.fix


def test_a_confirmed_full_request_does_nothing_twice_and_nothing_for_an_id_that_is_gone() -> None:
    broker = locked_out(epoch=HIGH["epoch"])
    broker.is_position_confirmed = True
    assert broker.receives(full(7)).plan is not None
    assert broker.receives(full(7)).plan is None  # the last one again
    # The same epoch and sequence for a lower broker epoch is another one.
    broker = locked_out(broker_epoch=HIGH["broker_epoch"])
    broker.is_position_confirmed = True
    assert staged(broker.receives(full(1)).plan) == [("b-0", "absent", True)]
    assert record_of(broker).broker_epoch == 40
    broker = locked_out(epoch=HIGH["epoch"])
    broker.is_position_confirmed = True
    broker.facts = pair(live("b", B), aside=(item(A, reason=Reason.TOPIC_REMOVED),))
    decided = broker.receives(full(7))
    assert (decided.code, decided.plan) == (Code.STALE_CONTROLLER_EPOCH, None)


def test_beside_a_lost_record_a_lower_full_request_is_confirmed_by_the_same_option() -> None:
    left = record_of(locked_out(**HIGH))
    broker = Broker(*pair(live("a", A), live("b", B)), last_applied=None, readable=left)
    assert broker.receives(full(7)).plan is None
    broker.is_position_confirmed = True
    assert staged(broker.receives(full(7)).plan) == [("b-0", "absent", True)]
    assert record_of(broker) == replace(
        left, requests=RequestMark(controller_epoch=5, sequence=7), broker_epoch=40, is_full_wanted=True
    )
