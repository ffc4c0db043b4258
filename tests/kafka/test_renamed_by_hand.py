"""A replica whose topic was deleted meanwhile, renamed back by hand: what a stock broker makes of it at its start.

It is what ``staged restore`` says before: up to 3.6 the broker erases it, by its default configuration a minute after
the start (``log.segment.delete.delay.ms``, and never before 30 s), from 3.7 on it keeps it as ``-stray``.

Spec: kafka-behaviour §10.4; design §3.3.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import pytest

from tests.kafka.rig import Rig, await_true
from tests.kafka.rotation import releases_of
from tests.kafka.undo_rig import QUICK, filled, knows_strays, live, stop

pytestmark = pytest.mark.kafka

DEFAULT_DELAY: Final = {"log.segment.delete.delay.ms": "60000"}
ERASED_WITHIN_S: Final = 75


@pytest.mark.parametrize("version", releases_of("renamed by hand"))
def test_a47_what_is_renamed_back_by_hand_is_erased_up_to_3_6_and_then_a_stray(
    version: str, make_rig: Callable[[str], Rig]
) -> None:
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=3, properties=QUICK)
        broker.start()
        filled(rig, {"gone": [1]})
        stop(broker)
        (place,) = live(broker, "gone")
        outside = rig.root / "outside"
        place.rename(outside)
        segments = {path.name: path.read_bytes() for path in outside.glob("*.log")}
        broker.start()
        assert rig.client.digest("gone").records == 0  # assigned here, so it is served empty
        rig.client.delete("gone")
        await_true("the broker removed its empty one", lambda: live(broker, "gone") == [], timeout_seconds=90)
        stop(broker)
        outside.rename(place)
        broker.properties |= DEFAULT_DELAY
        broker.start()
        began = time.monotonic()
        if knows_strays(version):
            (stray,) = live(broker, "gone")
            assert stray.name.endswith("-stray")
            assert {path.name: path.read_bytes() for path in stray.glob("*.log")} == segments
        else:
            (deleted,) = live(broker, "gone")
            assert deleted.name.endswith("-delete")
            await_true("nothing is left of it", lambda: live(broker, "gone") == [], timeout_seconds=ERASED_WITHIN_S)
            assert time.monotonic() - began <= ERASED_WITHIN_S
        assert "gone" not in rig.client.topics()
        stop(broker)
