"""A plan applied to a broker of two disks on one file system, against the same code without any sync.

``python -m benchmarks.relayout [--dir DIR] [--partitions N] [--rounds N] [--profile]``

Spec: design §10, row "layout apply".
"""

from __future__ import annotations

import argparse
import cProfile
import hashlib
import json
import pstats
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from benchmarks.measure import ROUNDS, Row, show
from benchmarks.unsynced import PARTITIONS, broker, compared, default_dir, opened, ports_of, timed
from logdir import clock
from logdir.decide.layout import transitions
from logdir.disk.kernel.host import HostDisk
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.formats.own import plan_document
from logdir.formats.own.plan_document import PlanDocument
from logdir.service.batch.layout_phases import LayoutReport, carry_out, look_all
from logdir.service.log_dirs.kafka_locks import HeldLocks, hold_all

_SHARE = 0.5


class Step(NamedTuple):
    """One replica that gets the name of its topic id."""

    log_dir: str
    path: str
    topic: str
    topic_id: str
    partition: int


def plan_of(open_dirs: Sequence[OpenLogDir]) -> PlanDocument:
    """Return the plan of what lies there."""
    seen = look_all(open_dirs)
    steps = [
        Step(one.log_dir, replica.path, replica.ref.topic or "", str(replica.ref.topic_id), replica.ref.partition)
        for one in seen
        for replica in one.replicas
    ]
    return plan_document.parse(plan_bytes(seen[0].cluster_id, seen[0].node_id, steps), "plan")


def plan_bytes(cluster_id: str | None, node_id: int | None, steps: Sequence[Step]) -> bytes:
    """Return the document of a plan."""
    lines: list[dict[str, object]] = [{
        "plan": 1, "verb": "layout", "cluster": "c", "cluster_id": cluster_id, "node_id": node_id,
        "inventory_sha256": "0" * 64, "log_dirs": sorted({step.log_dir for step in steps}),
    }]  # fmt: skip
    for number, step in enumerate(steps, start=1):
        lines.append({
            "step": number, "op": "relayout", "log_dir": step.log_dir, "from": step.path,
            "to": f"{step.topic_id[:2]}/{step.topic_id}_{step.partition}", "topic": step.topic,
            "topic_id": step.topic_id, "partition": step.partition, "id_from": "own", "log_bytes": 100,
        })  # fmt: skip
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    footer = {"steps": len(steps), "sha256": hashlib.sha256(data).hexdigest()}
    return data + json.dumps(footer).encode() + b"\n"


def measure(home: str, partitions: int = PARTITIONS, rounds: int = ROUNDS, *, profile: bool = False) -> list[Row]:
    """Apply and roll back in turn, durable and unsynced; only applying is timed."""
    with broker(home, partitions) as log_dirs:
        with opened(HostDisk(), log_dirs) as open_dirs:
            plan = plan_of(open_dirs)

        ports = ports_of(log_dirs)

        def locked() -> AbstractContextManager[HeldLocks]:
            return hold_all(ports, without=(), now_boottime_ms=clock.boottime_ms())

        def once(disk: HostDisk) -> float:
            with opened(disk, log_dirs) as open_dirs:
                took = timed(
                    lambda: _require(carry_out(open_dirs, transitions.apply(plan, look_all(open_dirs)), locked))
                )
                _require(carry_out(open_dirs, transitions.rollback(look_all(open_dirs)), locked))
            return took

        if profile:
            with cProfile.Profile() as found:
                once(HostDisk())
            pstats.Stats(found).sort_stats("tottime").print_stats(25)
        return compared("layout apply", partitions, _SHARE, once, rounds)


def _require(report: LayoutReport) -> None:
    if not report.is_finished or report.refused:
        raise SystemExit(f"not finished: {report.failed} {report.refused[:3]}")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", default=default_dir(), help="on which file system")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--profile", action="store_true", help="where the time goes, first")
    arguments = parser.parse_args()
    print(show(measure(arguments.dir, arguments.partitions, arguments.rounds, profile=arguments.profile)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
