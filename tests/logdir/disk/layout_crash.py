"""On what start block and change of layout are cut off, what is done there, and who judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from logdir.decide.layout.action import ToIds
from logdir.disk.kernel.calls import Owner
from logdir.disk.record.start_block import StartBlockState, lift_block, set_block, state
from logdir.formats.own.plan_document import IdFrom, PlanDocument
from logdir.ids import TopicId
from logdir.observe.classify import Type
from logdir.replica_ref import TopicIdPartition
from logdir.service.batch.layout_phases import LayoutReport
from tests.builders import CLUSTER, DIRECTORY, META, TOPIC_ID
from tests.crash.enumerate import Judge, State
from tests.crash.model import ModelHost
from tests.crash.recording import Acks
from tests.crash.tree import World
from tests.logdir.disk import layout_rig as layout
from tests.logdir.disk.layout_rig import WORK, opened, plan_of, unlocked

META_TEXT = META.format(node=1, directory=DIRECTORY, cluster=CLUSTER).encode()
OLD = 1_600_000_000_000_000_000
PLAIN = f"version: 0\ntopic_id: {TOPIC_ID}".encode()
C_ID = TopicId.parse("bXOy6xj-Q8ivrWAlsZGnkw")
HEX = f"version: 0\ntopic_id: {C_ID.hex()}\n".encode()


def start(*partitions: str, disks: int = 1) -> ModelHost:
    host = ModelHost.with_disks(*(f"/d{number}" for number in range(1, disks + 1)), uid=7, gid=8)
    for number in range(1, disks + 1):
        log_dir = f"/d{number}/k"
        host.plant(f"{log_dir}/meta.properties", META_TEXT, mtime_ns=OLD)
        for name in ("deleting", "incoming"):
            host.plant(f"{log_dir}{WORK}/{name}", kind=Type.DIRECTORY, owner=Owner(7, 8, 0o755))
    for partition in partitions:
        disk, name = partition.split(":")
        path = f"/d{disk}/k/{name}"
        host.plant(f"{path}/00000000000000000000.log", name.encode(), mtime_ns=OLD + 1)
        data = {"a": PLAIN, "c": HEX}.get(name[0])
        if data is not None:
            host.plant(f"{path}/partition.metadata", data, mtime_ns=OLD + 2)
    return host


def log_dirs(host: ModelHost) -> list[str]:
    """Return those that answer and take changes."""
    return [f"{system.mount}/k" for system in host.systems if system.status == "ok"]


def seen(world: World) -> dict[str, tuple[object, ...]]:
    """Return what must be the same: of files also the time of change, but where we rewrite it."""
    return {
        path: (node.type, node.owner, node.data, node.mtime_ns if node.type is Type.FILE else 0)
        for path, node in world.tree().items()
    }


def untimed(world: World) -> dict[str, tuple[object, ...]]:
    return {path: said[:3] for path, said in seen(world).items()}


def planned(host: ModelHost) -> PlanDocument:
    with opened(host, log_dirs(host)) as open_dirs:
        return plan_of(open_dirs)


def _finished(report: LayoutReport) -> None:
    for error in report.failed.values():
        raise error
    assert report.is_finished, report.refused


def apply(host: ModelHost, plan: PlanDocument) -> None:
    with opened(host, log_dirs(host)) as open_dirs:
        report = layout.apply(open_dirs, plan, unlocked)
        assert report.failed or not report.refused, report.refused
        _finished(report)


def rollback(host: ModelHost) -> None:
    with opened(host, log_dirs(host)) as open_dirs:
        _finished(layout.rollback(open_dirs, unlocked))


def finalized(host: ModelHost) -> None:
    with opened(host, log_dirs(host)) as open_dirs:
        _finished(layout.finalize(open_dirs, "kafka 9", unlocked))


def differences(expected: Mapping[str, object], found: Mapping[str, object]) -> list[str]:
    return [
        f"{path}: {expected.get(path)} is now {found.get(path)}"
        for path in sorted(expected.keys() | found.keys())
        if expected.get(path) != found.get(path)
    ]


def judge_back(before: World, state: State, acks: Acks) -> list[str]:
    return differences(seen(before), seen(state.recovered))


def judge_end(end: World) -> Judge:
    """What is recovered is the end; what was acknowledged was it before."""

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = differences(untimed(end), untimed(state.recovered))
        if "done" in acks:
            wrong += [f"lost: {what}" for what in differences(untimed(end), untimed(state.crashed))]
        return wrong

    return judge


def ended(host: ModelHost, run: Callable[[ModelHost], None]) -> ModelHost:
    """Return a host on which something was done and is durable."""
    other = ModelHost(host.world())
    run(other)
    world = other.world()
    return ModelHost(
        world._replace(volumes=tuple(volume.durable() for volume in world.volumes), generation=world.generation + 1)
    )


BROKERS = {
    "plain": ("1:a-0",),
    "missing": ("1:b-0",),
    "hex": ("1:c-0",),
    "three": ("1:a-0", "1:b-0", "1:c-0"),
    "two-disks": ("1:a-0", "2:b-0"),
}


def broker(name: str) -> ModelHost:
    return start(*BROKERS[name], disks=2 if name == "two-disks" else 1)


def items_of(host: ModelHost) -> tuple[ToIds, ...]:
    return tuple(
        ToIds(
            ref=TopicIdPartition(topic=step.topic, topic_id=step.topic_id, partition=step.partition),
            has_own_id=step.id_from is IdFrom.OWN,
        )
        for step in planned(host).steps
    )


def blocked(host: ModelHost) -> None:
    with opened(host, log_dirs(host)) as open_dirs:
        set_block(open_dirs)
        assert state(open_dirs) is StartBlockState.SET


def unbarred(host: ModelHost) -> None:
    with opened(host, log_dirs(host)) as open_dirs:
        lift_block(open_dirs)
        assert state(open_dirs) is StartBlockState.NONE
