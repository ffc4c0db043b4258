"""The daemon beside a stock broker, with kills of daemon, workers and broker at random instants of a random workload.

Spec: design §3.3, §5; attacks A16, A17, A22, A41.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.kafka.rig import Rig
from tests.kafka.rotation import releases_of, seed_of
from tests.kafka.soak.rounds import Soak
from tests.proof.kafka_claims import DAEMON_SOAK
from tests.proof.plugin import Recorder
from tests.proof.sizes import SIZE, Size

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(3 * 60 * 60)]

SEED_VARIABLE = "LOGDIRD_SOAK_SEED"


@pytest.mark.parametrize("version", releases_of("daemon soak"))
def test_nothing_is_lost_or_early_and_nothing_is_left_whatever_is_killed(
    version: str, make_rig: Callable[[str], Rig], record_proof: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    kills = DAEMON_SOAK.count("kills") // len(releases_of("daemon soak"))
    seed = int(os.environ.get(SEED_VARIABLE, seed_of(os.environ)))
    print(f"{SEED_VARIABLE}={seed}: {kills} kills beside Kafka {version}")
    with make_rig(version) as rig:
        soak = Soak(rig, seed)
        soak.run(kills)
    report, done = soak.report, soak.done()
    with capsys.disabled():  # It shows in every run, passed or failed.
        print(f"\n{report.histogram()}")
        print(f"{done}, {report.broker_starts} starts of the broker, 0 violations")
    # Only what a broker removed in such a time may be missed, and the daemon has named each of it: else it is a
    # violation. That there are few such times says that the machine lets the daemon start in time.
    assert report.too_long <= max(1, kills // 100)
    assert report.amid >= 0.6 * report.kills
    # On each release as much as is asked of all. Fifteen kills are three in a hundred of the whole, and so is what they
    # must have done.
    least = 100 if SIZE is Size.FULL else 3
    assert {name: done[name] for name in ("captures", "restores", "purges") if done[name] < least} == {}
    if SIZE is Size.FULL:
        assert [what for what in ("capture", "claim-remove", "adopt") if not report.inside(what)] == []
        assert [victim for victim in ("daemon", "worker", "broker") if report.of(victim) < 10] == []
    record_proof(DAEMON_SOAK, {**report.counts(), **done}, seeds=seed)
