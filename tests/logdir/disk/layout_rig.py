"""Brokers to change the layout of: on real directories or the model disk, with a plan of what lies there.

The verbs over all their log dirs are those of the use case, on log dirs that the caller opened.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

from logdir.decide.layout import transitions as decide
from logdir.disk.batch_loop import Held
from logdir.disk.kernel.calls import Disk
from logdir.disk.record import start_block
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.formats.kafka import meta_properties
from logdir.formats.own import plan_document
from logdir.formats.own.plan_document import PlanDocument
from logdir.ids import TopicId
from logdir.service.batch.layout_moves import Hold
from logdir.service.batch.layout_phases import BATCH, LayoutReport, carry_out, look_all

WORK = ".work"
"""What is added to a log dir's path for its work root."""


class _NoLock:
    def require_held(self) -> None:
        """Return: no other process is there."""

    def expired(self, now_boottime_ms: int, /) -> bool:
        return False


def unlocked() -> AbstractContextManager[Held]:
    return nullcontext(_NoLock())


def apply(
    open_dirs: Sequence[OpenLogDir],
    plan: PlanDocument,
    hold: Hold = unlocked,
    *,
    confirmed: bool = False,
    batch: int = BATCH,
) -> LayoutReport:
    decision = decide.apply(plan, look_all(open_dirs), confirmed=confirmed)
    return carry_out(open_dirs, decision, hold, batch=batch)


def verify(open_dirs: Sequence[OpenLogDir], plan: PlanDocument, hold: Hold = unlocked) -> LayoutReport:
    return carry_out(open_dirs, decide.verify(plan, look_all(open_dirs)), hold)


def finalize(open_dirs: Sequence[OpenLogDir], for_broker: str, hold: Hold = unlocked) -> LayoutReport:
    return carry_out(open_dirs, decide.finalize(look_all(open_dirs), for_broker), hold)


def rollback(
    open_dirs: Sequence[OpenLogDir], hold: Hold = unlocked, *, confirmed: bool = False, batch: int = BATCH
) -> LayoutReport:
    return carry_out(open_dirs, decide.rollback(look_all(open_dirs), confirmed=confirmed), hold, batch=batch)


@contextmanager
def opened(disk: Disk, log_dirs: Sequence[str]) -> Iterator[tuple[OpenLogDir, ...]]:
    with ExitStack() as stack:
        open_dirs = []
        for log_dir in log_dirs:
            top = stack.enter_context(disk.open_top(log_dir))
            work = stack.enter_context(disk.open_top(log_dir + WORK))
            said = meta_properties.parse(start_block.true_properties(top) or b"", log_dir)
            open_dirs.append(
                OpenLogDir(
                    log_dir=log_dir,
                    top=top,
                    work=work,
                    deleting=stack.enter_context(work.open("deleting")),
                    incoming=stack.enter_context(work.open("incoming")),
                    cluster_id=said.cluster_id,
                    node_id=said.node_id,
                    directory_id=None,
                    owner=top.own_stat().owner,
                )
            )
        yield tuple(open_dirs)


def add_work(log_dir: Path, reserve_bytes: int = 4096) -> None:
    work = log_dir.with_name(log_dir.name + WORK)
    for name in ("deleting", "incoming"):
        (work / name).mkdir(parents=True)
    (work / "reserve").write_bytes(bytes(reserve_bytes))


def minted(topic: str) -> TopicId:
    draws = (hashlib.sha256(f"{topic} {counter}".encode()).digest()[:16] for counter in itertools.count())
    return next(made for draw in draws if (made := TopicId.from_random(draw)) is not None)


def steps_of(open_dirs: Sequence[OpenLogDir]) -> list[dict[str, object]]:
    """Return the steps that a planner would make of what lies there."""
    seen = look_all(open_dirs)
    ids = {
        r.ref.topic: r.ref.topic_id for of in seen for r in of.replicas if r.ref.topic_id is not None and r.ref.topic
    }
    steps: list[dict[str, object]] = []
    for of in seen:
        for replica in sorted(of.replicas):
            if replica.trouble or replica.is_under_id:
                continue
            topic = replica.ref.topic or ""
            topic_id = replica.ref.topic_id or ids.get(topic) or minted(topic)
            steps.append(
                {
                    "op": "relayout",
                    "log_dir": of.log_dir,
                    "from": replica.path,
                    "to": f"{str(topic_id)[:2]}/{topic_id}_{replica.ref.partition}",
                    "topic": topic,
                    "topic_id": str(topic_id),
                    "partition": replica.ref.partition,
                    "id_from": "own" if replica.ref.topic_id else "siblings" if ids.get(topic) else "minted",
                    "log_bytes": 1,
                }
            )
    return steps


def document(header: Mapping[str, object], steps: Sequence[Mapping[str, object]]) -> bytes:
    """Return a plan document as the planner writes it."""
    lines = [dict(header), *({"step": number, **step} for number, step in enumerate(steps, 1))]
    data = b"".join(json.dumps(line, sort_keys=True, separators=(",", ":")).encode() + b"\n" for line in lines)
    footer = {"sha256": hashlib.sha256(data).hexdigest(), "steps": len(steps)}
    return data + json.dumps(footer, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def header_of(open_dirs: Sequence[OpenLogDir]) -> dict[str, object]:
    seen = look_all(open_dirs)[0]
    return {
        "plan": 1,
        "verb": "layout",
        "cluster": "c",
        "cluster_id": seen.cluster_id,
        "node_id": seen.node_id,
        "inventory_sha256": "0" * 64,
        "log_dirs": sorted(open_dir.log_dir for open_dir in open_dirs),
    }


def plan_of(open_dirs: Sequence[OpenLogDir]) -> PlanDocument:
    return plan_document.parse(document(header_of(open_dirs), steps_of(open_dirs)), "/plan")


def snapshot(*log_dirs: Path) -> dict[str, tuple[object, ...]]:
    """Return everything in log dirs: content, owner and mode, and the time of change of files."""
    found: dict[str, tuple[object, ...]] = {}
    for log_dir in log_dirs:
        for folder, folders, files in os.walk(log_dir):
            for name in folders + files:
                path = Path(folder) / name
                said = path.lstat()
                key = str(path.relative_to(log_dir.parent))
                owner = (said.st_mode, said.st_uid, said.st_gid)
                if path.is_symlink():
                    found[key] = (*owner, str(path.readlink()))
                elif path.is_dir():
                    found[key] = owner
                else:
                    found[key] = (*owner, said.st_mtime_ns, path.read_bytes())
    return found
