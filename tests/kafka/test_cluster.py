"""More than one broker, and one that refuses to start: apart, because three are the most at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kafka.jvm import RigError
from tests.kafka.rig import Rig, await_true
from tests.kafka.rotation import releases_of

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("version", releases_of("cluster"))
def test_a_broker_that_refuses_to_start_says_why(version: str, make_rig: Callable[[str], Rig]) -> None:
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=2)
        (broker.log_dirs[1] / "not-a-partition-directory").mkdir()
        assert broker.try_start() not in (None, 0)
        assert "not-a-partition-directory" in broker.trouble()
        assert broker.pid is None
        with pytest.raises(RigError, match="does not run"):
            broker.stop()
        with pytest.raises(RigError, match=r"(?s)broker 1 exited 1: .*not-a-partition-directory"):
            broker.start()
    assert not rig.root.exists()


@pytest.mark.parametrize("version", releases_of("cluster"))
def test_three_brokers_replicate_and_one_may_be_lost(version: str, make_rig: Callable[[str], Rig]) -> None:
    with make_rig(version) as rig:
        for _ in range(3):
            rig.add_broker(log_dirs=2).start()
        rig.client.create_on("everywhere", [[1, 2, 3], [3, 2, 1]], {"min.insync.replicas": "2"})
        rig.client.produce("everywhere", records=20)
        rig.client.create_on("one", [[2]])
        await_true("the replicas are there", lambda: held(rig, 3) == [("everywhere", 0), ("everywhere", 1)])
        await_true("the replica is there", lambda: ("one", 0) in held(rig, 2))
        assert ("one", 0) not in held(rig, 1)
        rig.brokers[2].kill()
        await_true("the lost broker left", lambda: sorted(rig.client.in_sync("everywhere", 0)) == [1, 2])
        rig.client.produce("everywhere", records=20)
        assert rig.client.consume("everywhere").records == 40


def held(rig: Rig, node_id: int) -> list[tuple[str, int]]:
    """What a broker says it holds, sorted."""
    return sorted((key.topic, key.partition) for key in rig.client.log_dirs(node_id))
