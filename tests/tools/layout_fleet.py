"""Brokers of the demonstration with work roots, and the plan documents the text asks for (the oracle's)."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from examples import demo
from examples.broker import CLUSTER_IDS, settle
from tests.builders import log_dir, partition
from tests.oracle.oracle import answer
from tests.tools.ctl import ctl, ctl_json
from tools.cli.arguments import Exit

CLEAN = ("orders", "billing")
"""Clusters of the demonstration that are wholly clean; in the second no replica has an id yet."""
OTHER = "bXOy6xj-Q8ivrWAlsZGnkw"
"""A topic id nobody has."""


class Planned(NamedTuple):
    """One broker and its document."""

    log_dirs: tuple[Path, ...]
    plan: Path

    @property
    def words(self) -> tuple[str, str]:
        """How it is named on the command line."""
        return "--log-dirs", ",".join(map(str, self.log_dirs))

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps of its document."""
        return [json.loads(line) for line in self.plan.read_text().splitlines()[1:-1]]


def fleet_of(folder: Path) -> Path:
    """Unpack the clean clusters below ``folder``, take their inventories; return the fleet file."""
    lines = ["clusters:"]
    for cluster in CLEAN:
        lines += [f"  - name: {cluster}", f"    cluster_id: {CLUSTER_IDS[cluster]}", "    brokers:"]
        for member in demo.FLEET:
            if member.cluster == cluster:
                settle(member, folder / member.folder, demo.FLEET)
                dirs = ",".join(str(folder / member.folder / name) for name in ("d1", "d2"))
                into = folder / "inventories" / member.folder
                assert ctl("inventory", "--log-dirs", dirs, "-o", into).status == Exit.DONE
                lines += [f"      - node_id: {member.node_id}", f"        inventories: [{into}/*.jsonl]"]
    path = folder / "fleet.yaml"
    path.write_text("\n".join([*lines, ""]))
    return path


def brokers_of(folder: Path) -> dict[str, Planned]:
    """Return every broker of the clean clusters, with its document written and its work roots made."""
    found = {}
    for name, data in answer(fleet_of(folder)).documents.items():
        plan = folder / "plan" / name
        plan.parent.mkdir(parents=True, exist_ok=True)
        plan.write_bytes(data)
        header = json.loads(data.splitlines()[0])
        made = Planned(tuple(map(Path, header["log_dirs"])), plan)
        assert ctl("init", *made.words, "--apply").status == Exit.DONE
        found[f"{header['cluster']}/{header['node_id']}"] = made
    return found


def apply(broker: Planned, *more: object) -> tuple[int, dict[str, Any]]:
    """Apply a broker's document; return status and result."""
    return ctl_json("layout", "apply", broker.plan, *broker.words, "--apply", *more)


def rollback(broker: Planned, *more: object) -> tuple[int, dict[str, Any]]:
    """Roll a broker back; return status and result."""
    return ctl_json("layout", "rollback", *broker.words, "--apply", *more)


def at(result: dict[str, Any], state: str) -> set[str]:
    """Return the paths of the items in a state."""
    return {f"{item['log_dir']}/{item['path']}" for item in result["items"] if item["state"] == state}


Change = Callable[[Path, Path, random.Random], None]
"""Given the replica's directory and the other log dir."""


def _remove(path: Path, other: Path, draw: random.Random) -> None:
    shutil.rmtree(path)


def _rename(path: Path, other: Path, draw: random.Random) -> None:
    path.rename(path.with_name(f"renamed.{path.name}"))


def _other_id(path: Path, other: Path, draw: random.Random) -> None:
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER}")


def _no_id(path: Path, other: Path, draw: random.Random) -> None:
    (path / "partition.metadata").unlink()


def _malformed(path: Path, other: Path, draw: random.Random) -> None:
    (path / "partition.metadata").write_bytes(draw.randbytes(draw.randrange(60)))


def _folder_within(path: Path, other: Path, draw: random.Random) -> None:
    (path / "copy").mkdir()


def _link_within(path: Path, other: Path, draw: random.Random) -> None:
    (path / "00000000000000009999.log").symlink_to("/dev/null")


def _future(path: Path, other: Path, draw: random.Random) -> None:
    future = other / f"{path.name}.{draw.randbytes(16).hex()}-future"
    shutil.copytree(path, future)


def _twin(path: Path, other: Path, draw: random.Random) -> None:
    shutil.copytree(path, other / path.name)


def _moved(path: Path, other: Path, draw: random.Random) -> None:
    path.rename(other / path.name)


def _linked(path: Path, other: Path, draw: random.Random) -> None:
    away = path.parent.parent / f"away-{path.parent.name}-{path.name}"
    shutil.move(path, away)
    path.symlink_to(away)


def _file(path: Path, other: Path, draw: random.Random) -> None:
    shutil.rmtree(path)
    path.write_bytes(b"")


def _grown(path: Path, other: Path, draw: random.Random) -> None:
    with sorted(path.glob("*.log"))[-1].open("ab") as file:
        file.write(draw.randbytes(100))


def _rolled(path: Path, other: Path, draw: random.Random) -> None:
    (path / "00000000000000099999.log").write_bytes(draw.randbytes(10))


def _touched(path: Path, other: Path, draw: random.Random) -> None:
    (path / "partition.metadata").touch()


def _newcomer(path: Path, other: Path, draw: random.Random) -> None:
    new = path.with_name(f"new{draw.randrange(10**9)}-0")
    new.mkdir()
    (new / "00000000000000000000.log").write_bytes(b"x")


STALE: tuple[Change, ...] = (
    _remove, _rename, _other_id, _no_id, _malformed, _folder_within, _link_within, _future, _twin, _moved, _linked,
    _file,
)  # fmt: skip
HARMLESS: tuple[Change, ...] = (_grown, _rolled, _touched, _newcomer)


def change(broker: Planned, number: int, draw: random.Random) -> tuple[set[str], Iterable[str]]:
    """Change so many replicas of a broker; return the paths of the steps that are stale, and what was done."""
    stale: set[str] = set()
    words = []
    for step in draw.sample(broker.steps, number):
        path = Path(step["log_dir"], step["from"])
        other = next(one for one in broker.log_dirs if one != path.parent)
        one = draw.choice((*STALE, *HARMLESS))
        one(path, other, draw)
        words.append(f"{one.__name__} {path}")
        if one in STALE:
            stale.add(str(path))
    return stale, words


def big(folder: Path, partitions: int = 400) -> Planned:
    """Make a broker of two disks large enough to be killed on its way, without ids on one of them."""
    tops = (log_dir(folder / "d1"), log_dir(folder / "d2", directory="AAAAAAAAAAAAAAAAAAAABA"))
    for number in range(partitions):
        top = tops[number % 2]
        draw = random.Random(number % 40).randbytes(8).hex()
        topic_id = None if number % 40 == 7 else f"AA{draw}AAAQ"[:21] + "A"
        partition(top / f"t{number % 40}-{number // 40}", topic_id=topic_id)
    made = Planned(tops, folder / "brokers" / "plan.jsonl")
    assert ctl("inventory", *made.words, "-o", folder / "inv").status == Exit.DONE
    text = f"clusters:\n  - name: c\n    brokers:\n      - node_id: 1\n        inventories: [{folder}/inv/*.jsonl]\n"
    (folder / "fleet.yaml").write_text(text)
    (data,) = answer(folder / "fleet.yaml").documents.values()
    made.plan.parent.mkdir()
    made.plan.write_bytes(data)
    assert len(made.steps) == partitions
    assert ctl("init", *made.words, "--apply").status == Exit.DONE
    return made


@contextmanager
def as_it_was(broker: Planned) -> Iterator[Path]:
    """Yield a copy of a broker's disks; what is done to them meanwhile is undone."""
    home = broker.log_dirs[0].parent
    kept = home.with_name(f"{home.name}.kept")
    shutil.copytree(home, kept, symlinks=True)
    try:
        yield kept
    finally:
        shutil.rmtree(home)
        kept.rename(home)
