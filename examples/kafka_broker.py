"""The broker of the undo story as a real one: a stock Kafka on loopback, with the rig of the tests.

Java and the jars are looked for, and fetched, as the tests do; what is missing is said in one line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from examples.undo import TOPIC
from tests.kafka.client import Digest
from tests.kafka.fetch import FetchError, cache_dir, fetch
from tests.kafka.jvm import missing_java
from tests.kafka.rig import Broker, Rig, await_true

RELEASE: Final = "4.3.1"
_PARTITIONS: Final = 3
_RECORDS: Final = 100
_PROPERTIES: Final = {
    # Kafka's default is a minute; the story shall be short.
    "log.segment.delete.delay.ms": "20000",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
}


class KafkaBroker:
    """A broker that runs, with a topic that has records."""

    def __init__(self, rig: Rig) -> None:
        """Start it, and write the records."""
        self._rig = rig
        self._broker: Broker = rig.add_broker(log_dirs=2, properties=_PROPERTIES)
        self._broker.start()
        self.configuration = self._broker.write_configuration()
        self._create()
        rig.client.produce_rich(TOPIC, records=_RECORDS)
        self._before: Digest = rig.client.digest(TOPIC)

    def delete(self) -> int:
        """Implement ``Broker.delete``."""
        self._rig.client.delete(TOPIC)
        await_true("the broker renames them", lambda: len(self._deleted()) == _PARTITIONS)
        return _PARTITIONS

    def remove(self) -> None:
        """Implement ``Broker.remove``."""
        await_true("the broker removes them", lambda: not self._deleted(), timeout_seconds=120)

    def create(self) -> None:
        """Implement ``Broker.create``."""
        self._create()
        self._broker.stop()

    def records_back(self) -> int:
        """Implement ``Broker.records_back``."""
        self._broker.start()
        self._await_leader()
        after = self._rig.client.digest(TOPIC)
        if after != self._before:
            raise SystemExit(f"demo: {TOPIC}: expected {self._before}, found {after}")
        return after.records

    def _create(self) -> None:
        self._rig.client.create_on(TOPIC, [[1]] * _PARTITIONS)
        self._await_leader()

    def _await_leader(self) -> None:
        await_true(f"{TOPIC} has a leader", lambda: self._rig.client.in_sync(TOPIC, 0) == [1])

    def _deleted(self) -> list[Path]:
        return [path for top in self._broker.log_dirs for path in top.glob("*-delete")]


def missing() -> str:
    """Return one line that says what a real broker needs here; empty if nothing. Fetches the jars."""
    if found := missing_java():
        return found
    try:
        fetch(RELEASE, cache_dir(os.environ))
    except FetchError as error:
        return str(error)
    return ""


@contextmanager
def started(folder: Path) -> Iterator[KafkaBroker]:
    """Start a broker below a folder that is made; it ends with the context, and its directories are removed."""
    cache = cache_dir(os.environ)
    libs = fetch(RELEASE, cache)
    with Rig(version=RELEASE, libs=libs, client_libs=libs, cache=cache, root=folder) as rig:
        yield KafkaBroker(rig)
