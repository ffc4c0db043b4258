"""A stopped broker with two log dirs and a metadata log, for ``logdirctl reconcile``; and one that dies at a call."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from logdir.disk.kernel.host import Call, HostDisk
from logdir.formats.own import controller_file
from logdir.formats.own.controller_file import ControllerFile
from logdir.ids import TopicId
from logdir.wire.metadata_records import MetadataRecord
from logdir.worker import state
from tests.builders import log_dir, partition
from tests.logdir.cluster.log_dir import LogDir, noop, register, remove, topic
from tests.logdir.cluster.log_dir import partition as claimed
from tests.tools.ctl import Said, ctl
from tools.cli.arguments import Exit

PAY = "eXOy6xj-Q8ivrWAlsZGnkw"
OTHER = "b8tRS7h4TJ2Vt43Dp85v2A"
GONE = "MkU3OEVBNTcwNTJENDM2Qg"
LONG_AGO_S = 1_600_000_000
PARTITIONS = 12


def raw(text: str) -> bytes:
    return bytes(TopicId.parse(text))


def age(*tops: Path, at_s: int = LONG_AGO_S) -> None:
    """Let everything have been there for years."""
    for top in tops:
        for base, _, files in os.walk(top):
            for name in files:
                os.utime(Path(base, name), (at_s, at_s))


def gone_records() -> tuple[MetadataRecord, ...]:
    """Say that there is topic ``gone``."""
    return topic("gone", raw(GONE)), claimed(raw(GONE), 0, (1, 2)), claimed(raw(GONE), 1, (1, 2))


class Rig:
    """Two log dirs: ``pay`` with 12 partitions and ``gone`` with two, which its cluster removes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disks = log_dir(folder / "d1"), log_dir(folder / "d2", directory="AAAAAAAAAAAAAAAAAAAABA")
        for number in range(PARTITIONS):
            partition(self.disks[number % 2] / f"pay-{number}", topic_id=PAY)
        for number in range(2):
            partition(self.disks[number] / f"gone-{number}", topic_id=GONE)
        age(*self.disks)
        self.named = ("--log-dirs", f"{self.disks[0]},{self.disks[1]}")
        assert ctl("init", *self.named, "--apply").status == Exit.DONE

    def log(self, folder: Path | None = None) -> LogDir:
        """Write a metadata log that names both topics up to a snapshot; the broker's own, if nothing else is said."""
        log = LogDir((folder or self.disks[0]) / "__cluster_metadata-0")
        log.lead(1)
        log.append(register(1), register(2))
        log.append(topic("pay", raw(PAY)), *(claimed(raw(PAY), number, (1, 2)) for number in range(PARTITIONS)))
        log.append(topic("gone", raw(GONE)), *(claimed(raw(GONE), number, (1, 2)) for number in range(2)))
        return log

    def with_removal(self) -> Rig:
        """Let its own log hold the removal of ``gone`` before its newest snapshot."""
        log = self.log()
        log.append(remove(raw(GONE)))
        self.snapshot(log)
        return self

    def snapshot(self, log: LogDir, *more: Any) -> None:
        """End the log with a snapshot that has ``pay``, and nothing else that is not said."""
        log.append(noop())
        log.snapshot(
            register(1),
            register(2),
            topic("pay", raw(PAY)),
            *(claimed(raw(PAY), number, (1, 2)) for number in range(PARTITIONS)),
            *more,
        )

    def document(self, document: dict[str, Any], name: str = "request.json") -> str:
        path = self.folder / name
        path.write_text(json.dumps(document))
        return f"request:{path}"

    def reconcile(self, source: str, *more: object) -> Said:
        return ctl("reconcile", "--from", source, *self.named, *more)

    def live(self) -> list[str]:
        return sorted(
            path.name for disk in self.disks for path in disk.iterdir() if path.name[:2] in ("pa", "go", "ne")
        )

    def deleting(self) -> list[str]:
        return sorted(path.name for disk in self.disks for path in Path(f"{disk}.logdird/deleting").iterdir())

    def controller(self) -> list[ControllerFile]:
        roots = (Path(f"{disk}.logdird") for disk in self.disks)
        return [controller_file.parse((root / "controller.json").read_bytes()) for root in roots]

    def marker(self, name: str) -> dict[str, Any]:
        (path,) = (Path(f"{disk}.logdird/deleting/{name}/replica.json") for disk in self.disks if is_in(disk, name))
        value: dict[str, Any] = json.loads(path.read_text())
        return value


def is_in(disk: Path, name: str) -> bool:
    """Whether something of that name is staged on a disk."""
    return Path(f"{disk}.logdird/deleting/{name}").is_dir()


class DiedError(BaseException):
    """The process is gone; nothing of ours may catch it."""


@contextmanager
def dying(at: int) -> Iterator[list[str]]:
    """Let a command die before a call that changes a disk; yield the calls made by then."""
    calls: list[str] = []

    def tell(call: Call) -> None:
        if len(calls) >= at:
            raise DiedError
        calls.append(call.name)

    with mock.patch.object(state, "HostDisk", return_value=HostDisk(tell)):
        yield calls
