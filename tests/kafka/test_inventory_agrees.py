"""Our inventory and stock ``kafka-log-dirs --describe`` agree entry for entry: a broker running and stopped.

The workload has what makes sizes differ when they are counted wrongly: several segments, compaction,
transactions, a moved log start, empty partitions, names full of dots and dashes, a deleted topic whose
directories still lie there, and moves under a throttle, so that a partition has a current and a future
replica of unlike sizes.

Spec: design §7.1 (``log_bytes``, ``partition``, ``kind``); kafka-behaviour §6 (DescribeLogDirs).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest

from logdir.formats.own import inventory
from logdir.formats.own.inventory import Entry, Inventory, Kind
from logdir.observe.inventory_row import row_of
from logdir.observe.scan import scan_log_dir
from tests.kafka.client import ReplicaKey
from tests.kafka.rig import CLEAN_EXIT, MOVE_THROTTLE, Broker, Rig, await_true
from tests.kafka.rotation import releases_of
from tests.proof.claims import KAFKA_LOG_DIRS
from tests.proof.plugin import Recorder

pytestmark = pytest.mark.kafka

Sizes = dict[ReplicaKey, int]
ODD_NAMES = ("a.b.c", "x-y-3", "under_score-and.dots-1")
MOVED = ("big", "x-y-3")
SEGMENT_BYTES = 1 << 20


@pytest.fixture(scope="module", params=releases_of("inventory"))
def rig(request: pytest.FixtureRequest, make_rig: Callable[[str], Rig]) -> Iterator[Rig]:
    """A broker with three filled log dirs; each test leaves it running or stopped."""
    with make_rig(request.param) as rig:
        rig.add_broker(log_dirs=3).start()
        fill(rig)
        yield rig


def fill(rig: Rig) -> None:
    """Make the workload the module describes."""
    client = rig.client
    client.create("big", 2, configs={"segment.bytes": str(SEGMENT_BYTES)})
    client.produce("big", 0, records=3000, value_bytes=1000)
    client.produce("big", 1, records=1500, value_bytes=1000)
    client.trim("big", 1, 700)
    for number, name in enumerate(ODD_NAMES):
        client.create(name, 3)
        client.produce(name, 0, records=400 + number, value_bytes=1000)
        client.produce(name, 1, records=1 + number)
    client.create("compacted", configs={"cleanup.policy": "compact"})
    client.produce("compacted", records=200, keys=7)
    client.create("in-transactions")
    client.produce("in-transactions", records=30, transactional_id="t")
    client.create("deleted", 3)
    client.produce("deleted", 2, records=10)
    client.delete("deleted")
    await_true("the deleted topic left the broker", lambda: "deleted" not in names(rig))


def names(rig: Rig) -> set[str]:
    return {key.topic for key in rig.client.log_dirs(1)}


def scan(broker: Broker) -> list[Inventory]:
    """Our inventories of all its log dirs, each by way of the inventory file it makes."""
    found = []
    for log_dir in broker.log_dirs:
        seen = scan_log_dir(str(log_dir))
        rows = tuple(map(row_of, seen.entries))
        file = io.BytesIO(b"".join(inventory.render(seen.disk, rows)))
        read = inventory.parse(file, str(log_dir))
        assert read.entries == rows
        found.append(read)
    return found


def current_and_future(scans: list[Inventory]) -> Sizes:
    """Put our inventories in the words of the stock tool, which tells of current and future replicas only."""
    sizes: Sizes = {}
    for seen in scans:
        assert seen.disk.status == "ok"
        for entry in seen.entries:
            if entry.kind not in (Kind.LIVE.value, Kind.FUTURE.value):
                continue
            assert entry.problems == ()
            assert entry.topic is not None
            assert entry.partition is not None
            assert entry.log_bytes is not None
            is_future = entry.kind == Kind.FUTURE.value
            key = ReplicaKey(seen.disk.log_dir, entry.topic, entry.partition, is_future)
            assert key not in sizes
            sizes[key] = entry.log_bytes
    return sizes


def described(broker: Broker) -> Sizes:
    return {key: reported.size_bytes for key, reported in broker.describe_log_dirs().items()}


def agreed(broker: Broker) -> Sizes:
    """Return what the stock tool and our scan both say of a running broker.

    Something of the broker's own (an internal topic, a cleaner) may write between the two. So our scan is
    taken before and after the tool ran, and only where these two are equal is the tool's answer compared.
    """
    for _ in range(5):
        before = current_and_future(scan(broker))
        told = described(broker)
        if before == current_and_future(scan(broker)):
            assert before == told
            return told
    raise AssertionError("the broker never came to rest")


def entries(broker: Broker, kind: Kind) -> list[Entry]:
    return [entry for seen in scan(broker) for entry in seen.entries if entry.kind == kind.value]


def start_throttled_moves(rig: Rig) -> None:
    """Start moving partition 0 of two topics; return when a chunk of each has arrived and no more will."""
    broker = rig.brokers[0]
    rig.client.configure_broker(1, MOVE_THROTTLE, "1")
    replicas = rig.client.log_dirs(1)
    for topic in MOVED:
        source = next(k.log_dir for k in replicas if (k.topic, k.partition, k.is_future) == (topic, 0, False))
        target = next(log_dir for log_dir in broker.log_dirs if str(log_dir) != source)
        rig.client.move(topic, 0, 1, target)

    def have_arrived() -> bool:
        futures = [r.size_bytes for k, r in rig.client.log_dirs(1).items() if k.is_future]
        return len(futures) == len(MOVED) and any(futures)

    def say_their_ids() -> bool:
        return not any(entry.problems for entry in entries(broker, Kind.FUTURE))

    await_true("the moves have begun", have_arrived)
    await_true("what is moved has its id, which is written a moment later", say_their_ids)


def check_futures(sizes: Sizes) -> None:
    """Both moves are under way, and at least one future replica is partly there."""
    futures = {key: size for key, size in sizes.items() if key.is_future}
    assert {(key.topic, key.partition) for key in futures} == {(topic, 0) for topic in MOVED}
    currents = {(key.topic, key.partition): size for key, size in sizes.items() if not key.is_future}
    assert all(size < currents[key.topic, key.partition] for key, size in futures.items())
    assert any(futures.values())


def test_inventory_agrees_with_kafka_log_dirs(rig: Rig, record_proof: Recorder) -> None:
    broker = rig.brokers[0]
    compared = []

    # Running, at rest.
    told = agreed(broker)
    partitions = {(key.topic, key.partition) for key in told}
    assert partitions >= {("big", 0), ("big", 1), ("compacted", 0), ("__transaction_state", 0)}
    assert partitions >= {(name, p) for name in ODD_NAMES for p in range(3)}
    assert not any(key.is_future for key in told)
    assert 0 in told.values()
    assert max(told.values()) > 2 * SEGMENT_BYTES
    assert {key.log_dir for key in told} == {str(log_dir) for log_dir in broker.log_dirs}
    check_what_the_tool_leaves_out(rig, told)
    compared.append(len(told))

    # Running, with moves under way.
    start_throttled_moves(rig)
    told = agreed(broker)
    check_futures(told)
    compared.append(len(told))

    # Stopped in order in the middle of them: the tool's answer is that from just before.
    assert broker.stop() == CLEAN_EXIT
    assert current_and_future(scan(broker)) == told
    compared.append(len(told))

    # Started again (the moves go on as far as the throttle lets them), and then killed.
    broker.start()
    rig.client.produce("x-y-3", 2, records=100)
    told = agreed(broker)
    compared.append(len(told))
    broker.kill()
    assert current_and_future(scan(broker)) == told
    compared.append(len(told))
    assert all(compared)
    record_proof(KAFKA_LOG_DIRS, {"releases": 1, "comparisons": len(compared), "entries compared": sum(compared)})


def check_what_the_tool_leaves_out(rig: Rig, told: Sizes) -> None:
    """The deleted topic and the metadata log are in our inventory as what they are; nothing is unknown."""
    broker = rig.brokers[0]
    deleted = entries(broker, Kind.DELETE)
    assert sorted((e.topic, e.partition) for e in deleted) == [("deleted", p) for p in range(3)]
    assert [e.name for e in entries(broker, Kind.METADATA)] == ["__cluster_metadata-0"]
    assert not {key.topic for key in told} & {"deleted", "__cluster_metadata"}
    assert entries(broker, Kind.UNKNOWN) == []
    for seen, log_dir in zip(scan(broker), broker.log_dirs, strict=True):
        assert (seen.disk.cluster_id, seen.disk.node_id) == (rig.cluster_id, 1)
        assert seen.disk.log_dir == str(log_dir)
        assert seen.disk.layout == "topic-name"
