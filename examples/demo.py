"""The demonstration: a small fleet of log dirs that real brokers wrote, conflicts sown on top, scanned and planned.

``python -m examples.demo DIR`` unpacks the fleet into DIR, runs the commands an operator would type, prints one line
per sown conflict as the plan found it, and says where the report is. Then it tells how a topic that was deleted comes
back (``undo``); with ``--kafka`` beside a real broker. Exit 0 if every conflict was found, and every record is back.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from examples import undo
from examples.broker import CLUSTER_IDS, Member, set_property, settle
from tools.logdirctl.main import main as logdirctl

_LONG_AGO_S = 1_760_000_000
KAFKA = "--kafka"
"""The option that tells the last part beside a real broker."""
MARK = ".logdird-demo"
"""In a directory the demonstration made, and may therefore make anew."""


class Seed(NamedTuple):
    """One sown conflict: where it shows, and how it is made there."""

    slug: str
    folder: str
    """The broker's."""
    log_dir: str
    """Empty for a conflict of the broker itself."""
    entry: str
    """Empty for a conflict of the log dir itself."""
    sow: Callable[[Path], None]
    """Given the broker's folder. Does nothing where the tree or the fleet file brings the conflict along."""


FLEET = (
    # Three replicas on three racks, nothing wrong: three waves.
    Member("orders", 1, "a", "4.1.2-kraft", "orders/broker-1", by_inventory=True),
    Member("orders", 2, "b", "4.1.2-kraft", "orders/broker-2", by_inventory=True),
    Member("orders", 3, "c", "4.1.2-kraft", "orders/broker-3", by_inventory=True),
    # A 2.8 cluster: its replicas have no topic id yet, so ids are minted.
    Member("billing", 1, None, "2.8.2-zk", "billing/broker-1", by_inventory=True),
    Member("billing", 2, None, "2.8.2-zk", "billing/broker-2", by_inventory=True),
    # The one where people worked by hand.
    Member("events", 1, None, "4.3.1-kraft", "events/broker-1"),
    Member("events", 2, None, "4.3.1-kraft", "events/broker-2"),
    Member("events", 3, None, "4.3.1-kraft", "events/broker-3"),
    Member("events", 4, None, "4.3.1-kraft", "events/broker-4"),
    # Killed while partitions moved between its disks; a disk that is gone; two entries for one node id.
    Member("lab", 1, None, "4.3.1-kill9", "lab/broker-1"),
    Member("lab", 2, None, "4.3.1-kill9", "lab/broker-2", extra=("d3",)),
    Member("lab", 3, None, "4.3.1-kill9", "lab/broker-3"),
    Member("lab", 3, None, "4.3.1-kill9", "lab/broker-3-again"),
)
OTHER_ID = "bG9nZGlyZEReZW1vLWlkMQ"


def _metadata(path: str, text: str) -> Callable[[Path], None]:
    def sow(broker: Path) -> None:
        (broker / path / "partition.metadata").write_text(text)

    return sow


def _copy(source: str, target: str) -> Callable[[Path], None]:
    def sow(broker: Path) -> None:
        shutil.copytree(broker / source, broker / target)

    return sow


def _property(log_dir: str, key: str, value: str) -> Callable[[Path], None]:
    return lambda broker: set_property(broker / log_dir, key, value)


def _nothing(broker: Path) -> None:
    """Sow nothing: the tree or the fleet file brings it along."""


_TWO = "events/broker-2"
SEEDS = (
    Seed("one-name-two-ids", _TWO, "d1", "plain-1", _metadata("d1/plain-1", f"version: 0\ntopic_id: {OTHER_ID}")),
    Seed("replicas-differ-in-id", _TWO, "d1", "plain-1", _nothing),
    Seed("one-id-two-names", _TWO, "d1", "renamed-0", _copy("d1/a.b.c-0", "d1/renamed-0")),
    Seed("partition-twice-on-broker", _TWO, "d1", "x-y-3-1", _copy("d2/x-y-3-1", "d1/x-y-3-1")),
    Seed("metadata-file-broken", _TWO, "d2", "compacted-0", _metadata("d2/compacted-0", "version: 0")),
    Seed("unknown-entry", _TWO, "d1", "lost+found", lambda broker: (broker / "d1" / "lost+found").mkdir()),
    Seed("foreign-node-disk", "events/broker-3", "d1", "", _property("d1", "node.id", "77")),
    Seed("foreign-cluster-disk", "events/broker-3", "d2", "", _property("d2", "cluster.id", OTHER_ID)),
    Seed("identity-broken", "events/broker-4", "d2", "", lambda broker: (broker / "d2/meta.properties").unlink()),
    Seed(
        "id-in-two-clusters", "lab/broker-1", "d1", "restored-0",
        _copy("../../events/broker-1/d1/rolled-0", "d1/restored-0"),
    ),
    Seed("leftover", "lab/broker-1", "d2", "big-0.f2442d5242b9407397e753fffe7a8c97-future", _nothing),
    Seed("disk-unread", "lab/broker-2", "", "", _nothing),
    Seed("node-id-twice", "lab/broker-3", "", "", _nothing),
    Seed("missing-id", "billing/broker-1", "d2", "plain-0", _nothing),
)  # fmt: skip


def _member(seed: Seed) -> Member:
    return next(member for member in FLEET if member.folder == seed.folder)


def build(top: Path) -> None:
    """Unpack the fleet below ``top``, an empty directory, and sow every conflict and one stray."""
    for member in FLEET:
        settle(member, top / member.folder, FLEET)
    # A topic that the cluster removed, copied back by hand: a stray that its metadata log proves.
    (stray,) = (top / "orders/broker-1").glob("d?/returns-0.*-delete")
    for file in stray.iterdir():
        os.utime(file, (_LONG_AGO_S, _LONG_AGO_S))
    stray.rename(stray.with_name("returns-0"))
    for seed in SEEDS:
        seed.sow(top / seed.folder)


def fleet_file() -> str:
    """Return the fleet file's text; its paths start at its own folder."""
    lines = ["clusters:"]
    for cluster, cluster_id in CLUSTER_IDS.items():
        lines += [f"  - name: {cluster}", f"    cluster_id: {cluster_id}", "    brokers:"]
        for member in FLEET:
            if member.cluster != cluster:
                continue
            lines.append(f"      - node_id: {member.node_id}")
            if member.rack is not None:
                lines.append(f"        rack: {member.rack}")
            if member.by_inventory:
                lines.append(f"        inventories: [inventories/{cluster}/{member.node_id}-*.jsonl]")
            else:
                dirs = [f"{member.folder}/{name}" for name in ("d1", "d2", *member.extra)]
                lines.append(f"        log_dirs: [{', '.join(dirs)}]")
    return "\n".join([*lines, ""])


def found_in(plan: Path, top: Path) -> list[str]:
    """Look for every sown conflict among those of a plan.

    Args:
        plan: The plan directory.
        top: Where the fleet lies.

    Returns:
        One line per sown conflict that the plan names: slug, broker, path; in the order of ``SEEDS``.
    """
    import pyarrow.dataset

    rows: list[dict[str, Any]] = pyarrow.dataset.dataset(plan / "conflicts", format="parquet").to_table().to_pylist()
    lines = []
    for seed in SEEDS:
        member = _member(seed)
        broker = top / seed.folder
        log_dir = str(broker / seed.log_dir) if seed.log_dir else None
        for row in rows:
            if (row["slug"], row["cluster"], row["node_id"]) != (seed.slug, member.cluster, member.node_id):
                continue
            if row["log_dir"] == log_dir and (not seed.entry or row["name"] == seed.entry):
                lines.append(line_of(seed, top))
                break
    return lines


def line_of(seed: Seed, top: Path) -> str:
    """Return what is printed of a sown conflict."""
    member = _member(seed)
    path = top / seed.folder / seed.log_dir / seed.entry
    return f"{seed.slug:26} {member.cluster}/{member.node_id}  {path}"


def _fresh(top: Path) -> None:
    """Make ``top`` anew if a former demonstration made it.

    Raises:
        SystemExit: somebody else's directory.
    """
    if top.exists():
        if not (top / MARK).is_file():
            raise SystemExit(f"demo: {top}: expected a directory of the demonstration, or none; say make demo DEMO=…")
        shutil.rmtree(top)
    top.mkdir(parents=True)
    (top / MARK).touch()


def _type(arguments: Sequence[str], out: TextIO) -> None:
    """Run one command as an operator would type it.

    Raises:
        SystemExit: it failed.
    """
    out.write(f"\n$ logdirctl {' '.join(arguments)}\n")
    out.flush()
    status = logdirctl(arguments, out, sys.stderr)
    if status != 0:
        raise SystemExit(f"demo: logdirctl {arguments[0]} ended with {status}")


def _undo(top: Path, out: TextIO, *, is_kafka_wanted: bool) -> None:
    """Tell the story of a topic that comes back; beside a real broker if that is wanted and can be had."""
    if is_kafka_wanted:
        from examples import kafka_broker

        if not (lacking := kafka_broker.missing()):
            (top / "beside-kafka").mkdir()
            with kafka_broker.started(top / "kafka") as broker:
                undo.run(broker, top / "beside-kafka", out)
            return
        out.write(f"no real broker can be started here: {lacking}\n")
    undo.run(undo.TreeBroker(top), top / "undo", out)


def main(argv: Sequence[str], out: TextIO) -> int:
    """Run the demonstration in the directory ``argv`` names; return the exit status."""
    named = [one for one in argv if one != KAFKA]
    top = Path(named[0] if named else "demo").absolute()
    _fresh(top)
    out.write(f"unpacking {len(FLEET)} brokers that stock releases wrote, sowing {len(SEEDS)} conflicts\n")
    build(top)
    for member in FLEET:
        if member.by_inventory:
            dirs = ",".join(str(path) for path in sorted((top / member.folder).glob("d?")))
            _type(["inventory", "--log-dirs", dirs, "-o", str(top / "inventories" / member.cluster)], out)
    (top / "fleet.yaml").write_text(fleet_file())
    plan = top / "plan"
    _type(["fleet", "plan", str(top / "fleet.yaml"), "-o", str(plan)], out)
    lines = found_in(plan, top)
    out.write("\nsown conflicts, as the plan found them:\n")
    for line in lines:
        out.write(f"  {line}\n")
    missed = [line_of(seed, top) for seed in SEEDS if line_of(seed, top) not in lines]
    for line in missed:
        sys.stderr.write(f"demo: not found: {line}\n")
    out.write(f"\nreport: {plan / 'report.html'}\n\na topic is deleted, and comes back:\n")
    _undo(top, out, is_kafka_wanted=KAFKA in argv)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], sys.stdout))
