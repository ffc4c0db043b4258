"""What a worker sees of the log dirs before it decides: by names alone, and what stands in a file or two.

Not here: what it does then (``tasks``), what the judge sees (``looks``).

Spec: design §2 law 2 ("state is a name"), §3.1.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from logdir.disk.kernel.calls import Directory
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.formats.kafka import partition_metadata
from logdir.formats.kafka.partition_metadata import PartitionMetadata
from logdir.names import DirForm, PartitionDir, WorkDir, parse_partition_dir, parse_work_dir, render_id_dir
from logdir.paths import METADATA_FILE
from tests.logdir.disk.layout_rig import document

FIRST_LOG = "00000000000000000000.log"
_SMALL = 1 << 12

_parse_live = functools.cache(parse_partition_dir)
_parse_aside = functools.cache(parse_work_dir)


class Live(NamedTuple):
    """A live replica, by its name."""

    open_dir: OpenLogDir
    name: str
    parts: PartitionDir


class Aside(NamedTuple):
    """One under ``deleting/``."""

    open_dir: OpenLogDir
    name: str
    parts: WorkDir


@dataclass(slots=True, kw_only=True)
class Seen:
    """What lies there, by names alone."""

    live: list[Live] = field(default_factory=list)
    deleted: list[Live] = field(default_factory=list)
    staged: list[Aside] = field(default_factory=list)
    claimed: list[Aside] = field(default_factory=list)


def token_of(directory: Directory) -> str:
    """Return what the first log of a replica says it is."""
    return directory.read(FIRST_LOG, _SMALL).split(b" ", 1)[0].decode()


def said_of(live: Live) -> PartitionMetadata:
    """Return what the ``partition.metadata`` of a directory says."""
    with live.open_dir.top.open(live.name) as directory:
        return partition_metadata.parse(directory.read(METADATA_FILE, _SMALL))


def look(open_dirs: Sequence[OpenLogDir]) -> Seen:
    """List everything."""
    seen = Seen()
    for open_dir in open_dirs:
        for name in open_dir.top.names():
            # Most of what lies at the top is a file.
            parts = _parse_live(name) if "-" in name else None
            if parts is not None and parts.form in (DirForm.CURRENT, DirForm.DELETE, DirForm.STRAY):
                (seen.live if parts.form is DirForm.CURRENT else seen.deleted).append(Live(open_dir, name, parts))
        for name in open_dir.deleting.names():
            aside = _parse_aside(name)
            if aside is not None and aside.mark in ("", "purging"):
                (seen.claimed if aside.mark else seen.staged).append(Aside(open_dir, name, aside))
    return seen


def plan_of(open_dirs: Sequence[OpenLogDir], seen: Seen) -> bytes:
    """Return the plan that takes everything to ids, as a planner writes it."""
    header = {
        "plan": 1,
        "verb": "layout",
        "cluster": "c",
        "cluster_id": open_dirs[0].cluster_id,
        "node_id": open_dirs[0].node_id,
        "inventory_sha256": "0" * 64,
        "log_dirs": sorted(open_dir.log_dir for open_dir in open_dirs),
    }
    return document(
        header, [_step(live) for live in sorted(seen.live, key=lambda one: (one.open_dir.log_dir, one.name))]
    )


def _step(live: Live) -> dict[str, object]:
    topic_id = said_of(live).topic_id
    return {
        "op": "relayout",
        "log_dir": live.open_dir.log_dir,
        "from": live.name,
        "to": render_id_dir(topic_id, live.parts.partition),
        "topic": live.parts.topic,
        "topic_id": str(topic_id),
        "partition": live.parts.partition,
        "id_from": "own",
        "log_bytes": 1,
    }
