"""A broker whose topic was deleted, captured and created again: what its disks and its metadata log hold then."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from logdir.disk.kernel.host import Call, HostDisk
from logdir.wire.batch_writer import metadata_batch
from logdir.worker import state
from logdir.worker.start import placed
from tests.builders import CLUSTER, log_dir, partition
from tests.logdir.cluster.log_dir import LogDir, noop, register, remove, topic
from tests.logdir.cluster.log_dir import partition as claimed
from tests.tools.assignment_rig import ALONE
from tests.tools.ctl import Said, ctl, ctl_json, tree
from tests.tools.reconcile_rig import raw
from tools.cli.arguments import Exit

OLD = "eXOy6xj-Q8ivrWAlsZGnkw"
NEW = "Sx1N2n2bQ6mQ1b8R3gXv7A"
UNIQUE = "0123456789abcdef0123456789abcdef"
RECORDS, WRITTEN = 100, 3
SEGMENT = f"{0:020}.log"
TWO_VOTERS = ALONE.replace('{"voterId":1}', '{"voterId":8},{"voterId":9}')
_DIRECTORIES = {
    1: ("JEXY6aqzQY-32P5TStzaFg", "AAAAAAAAAAAAAAAAAAAABA"),
    2: ("AAAAAAAAAAAAAAAAAAAACA", "AAAAAAAAAAAAAAAAAAAADA"),
}


def filled(path: Path, topic_id: str, records: int) -> Path:
    """Make a partition directory whose one segment ends at an offset, with indexes of zeros."""
    partition(path, topic_id=topic_id, segments={0: 0})
    if records:
        values = [b"%d" % number for number in range(records)]
        (path / f"{0:020}.log").write_bytes(metadata_batch(values, base_offset=0, epoch=0, timestamp_ms=1))
    (path / f"{0:020}.index").write_bytes(bytes(4096))
    return path


class AdoptRig:
    """A stopped broker with two log dirs: ``pay`` was deleted, captured on ``d1``, and created again on ``d2``."""

    def __init__(
        self,
        folder: Path,
        *,
        node: int = 1,
        replicas: tuple[int, ...] = (1,),
        partitions: int = 1,
        records: int = RECORDS,
        new_topic: str = "pay",
        new_partitions: int | None = None,
        quorum: str | None = None,
        cluster: str = CLUSTER,
        log_start: int | None = None,
    ) -> None:
        self.folder, self.node, self.replicas = folder, node, replicas
        self.new_topic = new_topic
        self.partitions = partitions
        self.new_partitions = partitions if new_partitions is None else new_partitions
        first, second = _DIRECTORIES[node]
        self.disks = (
            log_dir(folder / "d1", node=node, directory=first, cluster=cluster),
            log_dir(folder / "d2", node=node, directory=second, cluster=cluster),
        )
        is_voter = node == 1 and quorum is None
        properties = folder / "server.properties"
        roles = "broker,controller" if is_voter else "broker"
        properties.write_text(f"process.roles={roles}\nnode.id={node}\nlog.dirs={','.join(map(str, self.disks))}\n")
        self.named: tuple[str, ...] = ("--server-properties", str(properties))
        for number in range(partitions):
            filled(self.disks[0] / f"pay-{number}.{UNIQUE}-delete", OLD, records)
        if log_start is not None:
            (self.disks[0] / "log-start-offset-checkpoint").write_text(f"0\n1\npay 0 {log_start}\n")
        assert ctl("init", *self.named, "--apply").status == Exit.DONE
        with placed(is_here=True):  # A worker process sees how full the disk is.
            assert ctl("capture", "pay", *self.named, "--apply").status == Exit.DONE
        for number in range(partitions):
            shutil.rmtree(self.disks[0] / f"pay-{number}.{UNIQUE}-delete")
        for number in range(self.new_partitions):
            filled(self.live(number), NEW, WRITTEN)
        self.log = LogDir(self.disks[0] / "__cluster_metadata-0")
        (self.log.directory / "quorum-state").write_text(ALONE if is_voter else quorum or TWO_VOTERS)
        self.write(self.log)

    def write(self, log: LogDir, *, is_fenced: bool = False) -> None:
        """Let a metadata log hold the topic, its removal, and the topic of the same name that came after."""
        log.lead(1)
        log.append(*(register(node, fenced=is_fenced and node == self.node) for node in (1, 2)))
        log.append(topic("pay", raw(OLD)), *(claimed(raw(OLD), n, self.replicas) for n in range(self.partitions)))
        log.append(remove(raw(OLD)))
        log.append(topic(self.new_topic, raw(NEW)))
        log.append(*(claimed(raw(NEW), n, self.replicas) for n in range(self.new_partitions)))

    def controller(self) -> tuple[str, ...]:
        """Make a log as a controller has it after this broker stopped; return the words that name it."""
        top = log_dir(self.folder / "controller", node=9, directory="AAAAAAAAAAAAAAAAAAAAEA", cluster=CLUSTER)
        log = LogDir(top / "__cluster_metadata-0")
        self.write(log, is_fenced=True)
        log.append(noop())
        return (
            *("--from", f"metadata:{log.directory}"),
            *("--high-watermark", str(log.offset), "--leader-epoch", "1"),
        )

    def live(self, number: int = 0) -> Path:
        """Return the directory of the topic as it was created again."""
        return self.disks[1] / f"{self.new_topic}-{number}"

    def adopted(self, number: int = 0) -> Path:
        """Return where the files are live once they are adopted."""
        return self.disks[0] / f"{self.new_topic}-{number}"

    def deleting(self) -> list[str]:
        """Return what is staged, on both disks."""
        return sorted(path.name for disk in self.disks for path in Path(f"{disk}.logdird/deleting").iterdir())

    def staged(self, name: str = f"{OLD}_0") -> Path:
        """Return where something is staged."""
        (found,) = (Path(f"{disk}.logdird/deleting/{name}") for disk in self.disks if self._has(disk, name))
        return found

    @staticmethod
    def _has(disk: Path, name: str) -> bool:
        return Path(f"{disk}.logdird/deleting/{name}").is_dir()

    def adopt(self, *more: object, selector: str = OLD) -> Said:
        """Type the command."""
        return ctl("staged", "adopt", selector, "--as", self.new_topic, *self.named, *more)

    def adopt_json(self, *more: object, selector: str = OLD) -> tuple[int, dict[str, Any]]:
        """Type it with ``--json``."""
        return ctl_json("staged", "adopt", selector, "--as", self.new_topic, *self.named, *more)

    def listing(self, path: Path) -> Path:
        """Write what ``staged ls --json`` prints of this broker into a file; return it."""
        said = ctl("staged", "ls", OLD, *self.named, "--json")
        assert said.status == Exit.DONE, said
        path.write_text(said.out)
        return path


@contextmanager
def failing(name: str, within: str) -> Iterator[list[str]]:
    """Let one call fail as on a dead disk, the first of its name below a path; yield the paths of all of its name."""
    calls: list[str] = []

    def tell(call: Call) -> None:
        if call.name == name and within in f"{call.path} {call.to}":
            calls.append(call.path)
            if len(calls) == 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    with mock.patch.object(state, "HostDisk", return_value=HostDisk(tell)):
        yield calls


def edited(path: Path, **changed: object) -> Path:
    """Change keys of the result, or of its only item, of a listing."""
    value = json.loads(path.read_text())
    result = value["result"]
    for key, one in changed.items():
        holder = next(where for where in (value, result, *result["items"]) if key in where)
        holder[key] = one
    path.write_text(json.dumps(value))
    return path


def assert_refused(rig: AdoptRig, *more: object, selector: str = OLD, status: Exit = Exit.REFUSED) -> str:
    """Check that planned and applied it is refused and nothing changes; return what is said."""
    before = tree(*rig.disks, *(Path(f"{disk}.logdird") for disk in rig.disks))
    plan = rig.adopt(*more, selector=selector)
    said = rig.adopt(*more, "--apply", selector=selector)
    assert (plan.status, said.status) == (status, status), (plan, said)
    after = tree(*rig.disks, *(Path(f"{disk}.logdird") for disk in rig.disks))
    assert {path: kept for path, kept in after.items() if "heartbeat" not in path} == {
        path: kept for path, kept in before.items() if "heartbeat" not in path
    }
    return said.err


def make(path: Path) -> Path:
    """Make a directory; return it."""
    path.mkdir()
    return path
