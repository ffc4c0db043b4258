"""The demonstration of the undo window: a topic is deleted, seen by the daemon, and brought back.

``logdird`` runs as a process of its own, on the directories of a broker that does not run (``TreeBroker``) or beside a
real one (``kafka_broker``).
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

from examples.broker import Member, settle
from logdir.daemon.report.status import StatusResult
from logdir.daemon.socket import client
from logdir.errors import LogDirError
from logdir.ids import TopicId
from logdir.text import utc
from logdir.wire.batch_writer import metadata_batch
from logdir.wire.batches import read_batches, read_values
from logdir.wire.metadata_records import MetadataRecord, decode, encode
from tools.logdirctl.main import main as logdirctl

TOPIC: Final = "orders"
_MEMBER: Final = Member("orders", 1, None, "4.1.2-kraft", "undo")
_NEW_ID: Final = TopicId.parse("bG9nZGlyZFVuZG9EZW1vMQ")
_REMOVE_TOPIC: Final = 9
_PATIENCE_S: Final = 60
_CODE: Final = "import sys; from tools.entry import logdird; sys.exit(logdird())"


class Broker(Protocol):
    """The broker of the story; its topic has records when the story begins."""

    configuration: Path
    """Its ``server.properties``."""

    def delete(self) -> int:
        """Delete the topic; return the number of directories that are renamed for it."""

    def remove(self) -> None:
        """Return once nothing of the topic is left in the log dirs."""

    def create(self) -> None:
        """Create the topic again, and stop."""

    def records_back(self) -> int:
        """Return the number of records of the topic; all of those that were deleted are there again.

        Raises:
            SystemExit: they are not.
        """


def run(broker: Broker, folder: Path, out: TextIO) -> None:
    """Tell the story in ten lines, each after it has happened.

    Args:
        broker: The broker.
        folder: Where the daemon has its configuration and its socket.
        out: Where the lines go.

    Raises:
        SystemExit: something did not happen.
    """
    number = 0

    def say(line: str) -> None:
        nonlocal number
        number += 1
        out.write(f"{number:3}. {line}\n")
        out.flush()

    _type(["init", "--server-properties", str(broker.configuration), "--apply"])
    config = folder / "b1.yaml"
    lines = [f"server.properties: {broker.configuration}", "state.dir: state", "socket: s.sock"]
    # What is captured here is small and soon gone: a nearly full disk will do.
    config.write_text("\n".join([*lines, "auto.while.stopped: true", "staged.min.free: 1", ""]))
    with _daemon(config) as socket:
        status = _until("logdird runs", lambda: client.status(socket), lambda one: one.state == "RUNNING")
        say(f"logdird runs on the {len(status.log_dirs)} log dirs of node {status.node_id}")
        began = time.monotonic()
        count = broker.delete()
        say(f"topic {TOPIC} is deleted: its broker renames {count} directories to -delete")
        _until("all are captured", lambda: client.status(socket), lambda one: one.captured == count)
        say(f"logdird has captured all of them after {time.monotonic() - began:.1f} s")
        broker.remove()
        say("its broker has removed them: the log dirs hold no file of the topic")
        items = _type(["staged", "ls", TOPIC, "--config", str(config)])["items"]
        until = utc(min(item["undo_until_ms"] for item in items))
        say(f"logdirctl staged ls: {len(items)} replicas, undo until {until}")
        broker.create()
        say("the topic is created again: empty, with another topic id; the broker stops")
        done = _type(["staged", "adopt", items[0]["topic_id"], "--as", TOPIC, "--config", str(config), "--apply"])
        say(f"logdirctl staged adopt gives {len(done['items'])} replicas their files back")
        say(f"its {broker.records_back()} records are there again")
        events = [event.event for event in client.status(socket).events]
        say(f"the history of logdird: {', '.join(dict.fromkeys(events))}")
    say("logdird has stopped, and leaves no process and no lock")


class TreeBroker:
    """The directories of a broker that does not run: what it does to them, and to its metadata log, is done here."""

    def __init__(self, top: Path) -> None:
        """Unpack them into a folder ``undo`` of the demonstration."""
        folder = top / _MEMBER.folder
        settle(_MEMBER, folder, [_MEMBER])
        self.configuration = folder / "server.properties"
        self._log_dirs = sorted(path for path in folder.iterdir() if path.is_dir())
        self._log = self._log_dirs[0] / "__cluster_metadata-0" / f"{0:020}.log"
        self._partitions: list[MetadataRecord] = []
        """Of the topic when it was deleted."""
        for path in self._deleted():
            shutil.rmtree(path)  # As the broker has done by now.
        self._before = self._logs()

    def delete(self) -> int:
        """Implement ``Broker.delete``."""
        topic_id = self._topic().fields["topicId"]
        self._partitions = [one for one in self._told("PARTITION_RECORD") if one.fields["topicId"] == topic_id]
        self._write([MetadataRecord(type=_REMOVE_TOPIC, version=0, fields={"topicId": topic_id})])
        paths = self._live()
        for path in paths:
            path.rename(path.with_name(f"{path.name}.{os.urandom(16).hex()}-delete"))
        return len(paths)

    def remove(self) -> None:
        """Implement ``Broker.remove``."""
        for path in self._deleted():
            shutil.rmtree(path)

    def create(self) -> None:
        """Implement ``Broker.create``."""
        topic = self._topic()
        new = {"topicId": bytes(_NEW_ID)}
        partitions = [replace(one, fields=one.fields | new) for one in self._partitions]
        self._write([replace(topic, fields=topic.fields | new), *partitions])
        for one in partitions:
            path = self._log_dirs[0] / f"{TOPIC}-{one.fields['partitionId']}"
            path.mkdir()
            (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {_NEW_ID}")
            (path / f"{0:020}.log").touch()
            (path / "leader-epoch-checkpoint").write_text("0\n0\n")

    def records_back(self) -> int:
        """Implement ``Broker.records_back``."""
        after = self._logs()
        if after != self._before:
            raise SystemExit(f"demo: {TOPIC}: expected the segments that were deleted, found others")
        return sum(batch.count for data in after.values() for batch in read_batches(data))

    def _live(self) -> list[Path]:
        found = [path for log_dir in self._log_dirs for path in log_dir.glob(f"{TOPIC}-[0-9]")]
        return sorted(found, key=lambda path: path.name)

    def _deleted(self) -> list[Path]:
        return [path for log_dir in self._log_dirs for path in log_dir.glob("*-delete")]

    def _logs(self) -> dict[str, bytes]:
        """Return the bytes of the segments of every live replica of the topic, by its directory name."""
        return {path.name: b"".join(map(Path.read_bytes, sorted(path.glob("*.log")))) for path in self._live()}

    def _topic(self) -> MetadataRecord:
        return next(one for one in self._told("TOPIC_RECORD") if one.fields["name"] == TOPIC)

    def _told(self, name: str) -> Iterator[MetadataRecord]:
        """Yield the records of a kind in the metadata log."""
        data = self._log.read_bytes()
        for batch in read_batches(data, str(self._log)):
            if not batch.is_control:
                for _, value in read_values(batch):
                    record = decode(value, str(self._log))
                    if record.name == name:
                        yield record

    def _write(self, records: Sequence[MetadataRecord]) -> None:
        """Append a batch to the metadata log, as the controller does."""
        *_, last = read_batches(self._log.read_bytes(), str(self._log))
        batch = metadata_batch(
            [encode(record) for record in records],
            base_offset=last.base_offset + last.count,
            epoch=last.leader_epoch,
            timestamp_ms=time.time_ns() // 1_000_000,
        )
        with self._log.open("ab") as log:
            log.write(batch)


@contextmanager
def _daemon(config: Path) -> Iterator[str]:
    """Run a daemon; yield its socket. It stops in order at the end."""
    with (config.parent / "logdird.log").open("w") as log:
        process = subprocess.Popen([sys.executable, "-c", _CODE, "--config", str(config)], stderr=log)
    try:
        yield str(config.parent / "s.sock")
        process.send_signal(signal.SIGTERM)
        if (status := process.wait(_PATIENCE_S)) != 0:
            raise SystemExit(f"demo: logdird ended with {status}: see {config.parent / 'logdird.log'}")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _until(what: str, look: Callable[[], StatusResult], is_so: Callable[[StatusResult], bool]) -> StatusResult:
    """Look until something is so; return the status that shows it."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            if is_so(found := look()):
                return found
        except LogDirError:
            pass  # It does not answer yet.
        if time.monotonic() > deadline:
            raise SystemExit(f"demo: not within {_PATIENCE_S} s: {what}")
        time.sleep(0.02)


def _type(arguments: Sequence[str]) -> dict[str, Any]:
    """Run a command as an operator would; return its result.

    Raises:
        SystemExit: it failed.
    """
    printed, warned = io.StringIO(), io.StringIO()
    status = logdirctl([*arguments, "--json"], printed, warned)
    answer: dict[str, Any] = json.loads(printed.getvalue())
    if status != 0:
        raise SystemExit(
            f"demo: logdirctl {' '.join(arguments)} ended with {status}: {answer['problems']}, {warned.getvalue()}"
        )
    result: dict[str, Any] = answer["result"]
    return result
