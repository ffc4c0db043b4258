"""A stopped broker with a metadata log of its own, and a log as a controller has it: what the cluster still assigns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.builders import CLUSTER, log_dir
from tests.logdir.cluster.log_dir import LogDir, noop, register, topic
from tests.logdir.cluster.log_dir import partition as claimed
from tests.tools.cluster_log import topics_on
from tests.tools.ctl import Said, ctl, ctl_json
from tests.tools.reconcile_rig import PAY, Rig

ALONE = '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}'
THREE = ALONE.replace('{"voterId":1}', '{"voterId":1},{"voterId":2},{"voterId":3}')
STAGED = f"{PAY}_0"


class Cluster:
    """A stopped broker with a metadata log of its own that has no snapshot yet; by default the only voter."""

    def __init__(self, folder: Path, *, isr: tuple[int, ...] = (1, 2), quorum: str = ALONE) -> None:
        self.rig = Rig(folder)
        properties = folder / "server.properties"
        properties.write_text(
            f"process.roles=broker,controller\nnode.id=1\nlog.dirs={','.join(map(str, self.rig.disks))}\n"
        )
        self.named: tuple[str, ...] = ("--server-properties", str(properties))
        self.isr = isr
        self.found = topics_on(self.rig.disks)
        self.log = LogDir(self.rig.disks[0] / "__cluster_metadata-0")
        self.write(self.log)
        (self.log.directory / "quorum-state").write_text(quorum)

    def write(self, log: LogDir, *, is_fenced: bool = False) -> None:
        log.lead(1)
        log.append(register(1, fenced=is_fenced), register(2), register(3))
        replicas = tuple(sorted({1, *self.isr}))
        for (name, topic_id), numbers in self.found.items():
            log.append(topic(name, topic_id))
            log.append(*(claimed(topic_id, number, replicas, isr=self.isr) for number in sorted(numbers)))

    def stage(self, *more: object) -> Said:
        return ctl("stage", "pay-0", *self.named, *more, "--apply")

    def restore(self, *more: object) -> Said:
        return ctl("staged", "restore", "pay-0", *self.named, *more, "--apply")

    def item(self) -> dict[str, Any]:
        _, result = ctl_json("staged", "ls", "pay-0", *self.named)
        (found,) = result["items"]
        return dict(found)

    def is_live(self) -> bool:
        return (self.rig.disks[0] / "pay-0").is_dir()

    def copy_of_a_controller(self) -> LogDir:
        """Make a log as a controller has it: the same records, node 1 stopped by now."""
        top = log_dir(self.rig.folder / "controller", node=9, directory="AAAAAAAAAAAAAAAAAAAACA", cluster=CLUSTER)
        log = LogDir(top / "__cluster_metadata-0")
        self.write(log, is_fenced=True)
        log.append(noop())
        return log


def slugs(said: Said) -> list[str]:
    return [line.split(": ")[1] for line in said.err.splitlines() if ": expected " in line]
