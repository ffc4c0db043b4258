"""The rig itself, on every release: what the other tests of this folder rely on is shown to hold."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kafka.client import ClientError, ReplicaKey
from tests.kafka.jvm import RigError, leftovers
from tests.kafka.rig import (
    CLEAN_EXIT,
    MOVE_THROTTLE,
    Rig,
    await_true,
    free_ports,
    new_id,
    parse_log_dirs_tool,
)
from tests.kafka.rotation import releases_of

pytestmark = pytest.mark.kafka

RECORDS = 1500
VALUE_BYTES = 1000


@pytest.fixture(scope="module", params=releases_of("rig"))
def rig(request: pytest.FixtureRequest, make_rig: Callable[[str], Rig]) -> Iterator[Rig]:
    """A started broker with three log dirs and one filled partition."""
    rig = make_rig(request.param)
    rig.add_broker(log_dirs=3).start()
    rig.client.create("filled", configs={"segment.bytes": str(1 << 20)})
    assert rig.client.produce("filled", records=RECORDS, value_bytes=VALUE_BYTES) == RECORDS - 1
    yield rig
    rig.close()


def where(rig: Rig, topic: str, *, is_future: bool = False) -> Path | None:
    """The log dir of a topic's partition 0, as the broker says."""
    found = [key for key in rig.client.log_dirs(1) if (key.topic, key.is_future) == (topic, is_future)]
    return Path(found[0].log_dir) if found else None


def test_records_survive_a_throttled_move_a_kill_and_clean_stops(rig: Rig) -> None:
    broker = rig.brokers[0]
    before = rig.client.consume("filled")
    assert (before.begin, before.end, before.records) == (0, RECORDS, RECORDS)

    # A move that is throttled stands still, with a future directory to look at.
    source = where(rig, "filled")
    target = next(d for d in broker.log_dirs if d != source)
    rig.client.configure_broker(1, MOVE_THROTTLE, "1")
    rig.client.move("filled", 0, 1, target)
    await_true("a chunk of the move arrived", lambda: any(f.stat().st_size for f in future_segments(target)))
    size = rig.client.log_dirs(1)[ReplicaKey(str(target), "filled", 0, True)].size_bytes
    assert 0 < size < rig.client.log_dirs(1)[ReplicaKey(str(source), "filled", 0, False)].size_bytes
    assert where(rig, "filled") == source

    # A crash leaves the future directory and no clean marker.
    assert broker.kill() == -9
    assert not broker.is_running
    assert future_segments(target)
    assert not any((d / ".kafka_cleanshutdown").exists() for d in broker.log_dirs)

    # Once restarted and unthrottled the move ends.
    broker.start()
    rig.client.configure_broker(1, MOVE_THROTTLE, str(1 << 40))
    await_true("the move ended", lambda: where(rig, "filled") == target)
    assert where(rig, "filled", is_future=True) is None
    assert rig.client.consume("filled") == before

    # A clean stop says so on every log dir, and the records are there after it.
    assert broker.stop() == CLEAN_EXIT
    assert all((d / ".kafka_cleanshutdown").exists() for d in broker.log_dirs)
    broker.start()
    assert rig.client.consume("filled") == before


def future_segments(log_dir: Path) -> list[Path]:
    return list(log_dir.glob("filled-0.*-future/*.log"))


def test_brokers_on_loopback_answer_the_stock_tool_as_the_client(rig: Rig) -> None:
    broker = rig.brokers[0]
    if not broker.is_running:
        broker.start()
    topic_id = rig.client.create("keyed", 2, configs={"cleanup.policy": "compact"})
    rig.client.produce("keyed", 1, records=50, keys=5)
    assert broker.describe_log_dirs() == rig.client.log_dirs(1)
    assert broker.address.startswith("127.0.0.1:")
    assert {"filled", "keyed"} <= set(rig.client.topics())
    log_dir = next(key.log_dir for key in rig.client.log_dirs(1) if key[1:] == ("keyed", 1, False))
    assert f"topic_id: {topic_id}" in (Path(log_dir) / "keyed-1" / "partition.metadata").read_text()


def test_a_command_a_broker_refuses_is_an_error_with_kafkas_name_for_it(rig: Rig) -> None:
    if not rig.brokers[0].is_running:
        rig.brokers[0].start()
    with pytest.raises(ClientError, match="UnknownTopicOrPartition"):
        rig.client.delete("never-made")
    with pytest.raises(ClientError, match="InvalidReplicationFactor"):
        rig.client.create("too-many", 1, replication=2)


def test_a_left_process_and_a_left_file_are_both_seen(tmp_path: Path) -> None:
    assert leftovers(tmp_path) == []
    (tmp_path / "left.txt").touch()
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()", str(tmp_path)], stdin=subprocess.PIPE
    ) as process:
        await_true("the process has its command line", lambda: len(leftovers(tmp_path)) == 2)
        seen = leftovers(tmp_path)
    assert seen[0].startswith(f"process {process.pid}: ")
    assert seen[1:] == [f"path {tmp_path / 'left.txt'}"]
    assert leftovers(tmp_path) == seen[1:]


def test_waiting_for_what_never_comes_ends() -> None:
    started = time.monotonic()
    with pytest.raises(RigError, match="still not: pigs fly"):
        await_true("pigs fly", lambda: False, timeout_seconds=0.3)
    assert 0.3 <= time.monotonic() - started < 10


def test_ports_are_distinct_and_ids_never_look_like_options() -> None:
    ports = free_ports(8)
    assert len(set(ports)) == 8
    assert all(1024 < port < 32768 for port in ports)
    ids = [new_id() for _ in range(300)]
    assert len(set(ids)) == 300
    assert not any(len(text) != 22 or text.startswith("-") for text in ids)


def test_a_log_dir_with_an_error_is_not_taken_for_an_empty_one() -> None:
    log_dir = '{"logDir":"/d","error":"KafkaStorageException","partitions":[]}'
    broken = f'{{"brokers":[{{"broker":1,"logDirs":[{log_dir}]}}]}}'
    with pytest.raises(RigError, match="log dir /d: KafkaStorageException"):
        parse_log_dirs_tool(broken)
    with pytest.raises(RigError, match="no JSON"):
        parse_log_dirs_tool("Querying brokers for log directories information\n")
