"""The small files of ours of one log dir, as values: for a bug report.

Nothing is copied byte for byte. Each file is parsed and only what its format knows is returned, so that nothing that
somebody else wrote into it, by mistake or on purpose, gets into a report. Of a file that is malformed only its size and
the problem are returned. No file of a partition but our own marker is opened.

Not here: what else lies there (``scan``), the report (``service.bug_report``).

Spec: design §3.2, §3.3, §6 ``bug-report``; law 10.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from logdir.errors import LogDirError
from logdir.formats.kafka import meta_properties, offset_checkpoint
from logdir.formats.own import (
    controller_file,
    handover_file,
    heartbeat_file,
    layout_file,
    quarantine_file,
    replica_marker,
    staging_limit_file,
    start_block_file,
    work_root_file,
)
from logdir.observe.replica import open_directory
from logdir.observe.walk import opened
from logdir.paths import (
    BESIDE,
    CONTROLLER,
    DELETING,
    HANDOVER,
    HEARTBEAT,
    HIDDEN_WORK_ROOT,
    INCOMING,
    LAYOUT,
    MARKER_FILE,
    META_PROPERTIES,
    QUARANTINE,
    STAGING_LIMIT,
    START_BLOCK,
    WORK_ROOT_FILE,
)
from logdir.worker_call import worker_call

_TOP: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_BYTES: Final = 16 << 20
MOST_MARKERS: Final = 10_000
"""Markers of one log dir that are returned; more would tell nothing more."""


class OwnFile(NamedTuple):
    """One small file."""

    path: str
    """Its absolute path."""
    size_bytes: int
    content: str
    """What it holds, as a JSON object; ``null`` if it is malformed."""
    problem: str
    """Slug of the problem of a malformed one; empty: there is none."""


@worker_call
def own_files(log_dir: str) -> tuple[OwnFile, ...]:
    """Return the small files of ours of a log dir and its work roots, ``meta.properties`` included, sorted by path.

    Only reads. What cannot be read is left out.
    """
    found: list[OwnFile] = []
    for place in (log_dir, f"{log_dir.rstrip('/')}{BESIDE}", f"{log_dir.rstrip('/')}/{HIDDEN_WORK_ROOT}"):
        try:
            with opened(os.open(place, _TOP)) as top:
                found += (one for name in _CONTENTS if (one := _file(top, place, name)) is not None)
                for below in (DELETING, INCOMING):
                    found += _markers(top, place, below, MOST_MARKERS - len(found))
        except OSError:
            continue
    return tuple(sorted(found))


def _markers(top: int, place: str, below: str, most: int) -> Iterator[OwnFile]:
    try:
        with opened(open_directory(below, top)) as directory:
            for name in sorted(os.listdir(directory))[: max(0, most)]:
                try:
                    with opened(open_directory(name, directory)) as replica:
                        one = _file(replica, f"{place}/{below}/{name}", MARKER_FILE)
                except OSError:
                    continue
                if one is not None:
                    yield one
    except OSError:
        return


def _file(directory: int, place: str, name: str) -> OwnFile | None:
    try:
        with (
            opened(os.open(name, _FILE, dir_fd=directory)) as descriptor,
            open(descriptor, "rb", closefd=False) as file,
        ):
            data = file.read(_MAX_BYTES)
    except OSError:
        return None
    path = f"{place}/{name}"
    try:
        content: object = _CONTENTS[name](data, path)
        problem = ""
    except LogDirError as error:
        content, problem = None, error.slug
    except ValueError:  # What parses and cannot be rendered again: it is malformed, too.
        content, problem = None, LogDirError.code
    return OwnFile(path, len(data), json.dumps(content, sort_keys=True), problem)


def _handover(data: bytes, path: str) -> object:
    file = handover_file.parse(data, path)
    copies = [
        {"wall_ms": copy.wall_ms, "entries": {name: _entries(kept) for name, kept in copy.checkpoints.items()}}
        for copy in file.copies
    ]
    return {"boot_id": file.boot_id, "boottime_ms": file.boottime_ms, "wall_ms": file.wall_ms, "copies": copies}


def _entries(data: bytes | None) -> int | None:
    """Return how many entries a checkpoint file has; ``None``: it is missing or malformed."""
    try:
        return None if data is None else len(offset_checkpoint.parse(data))
    except LogDirError:
        return None


def _start_block(data: bytes, path: str) -> object:
    file = start_block_file.parse(data, path)
    return {"node_id": file.node_id, "mtime_ns": file.mtime_ns, "original_bytes": len(file.original)}


def _meta_properties(data: bytes, path: str) -> object:
    value = meta_properties.parse(data, path)
    directory_id = None if value.directory_id is None else str(value.directory_id)
    return {
        "version": value.version.value,
        "cluster_id": value.cluster_id,
        "node_id": value.node_id,
        "directory_id": directory_id,
        "unknown_keys": len(value.unknown),
    }


def _work_root(data: bytes, path: str) -> object:
    file = work_root_file.parse(data, path)
    return {**json.loads(work_root_file.render(file)), "version": file.version}


_CONTENTS: Final[Mapping[str, Callable[[bytes, str], object]]] = {
    META_PROPERTIES: _meta_properties,
    WORK_ROOT_FILE: _work_root,
    HANDOVER: _handover,
    START_BLOCK: _start_block,
    HEARTBEAT: lambda data, path: json.loads(heartbeat_file.render(heartbeat_file.parse(data, path))),
    STAGING_LIMIT: lambda data, path: json.loads(staging_limit_file.render(staging_limit_file.parse(data, path))),
    CONTROLLER: lambda data, path: json.loads(controller_file.render(controller_file.parse(data, path))),
    QUARANTINE: lambda data, path: json.loads(quarantine_file.render(quarantine_file.parse(data, path))),
    LAYOUT: lambda data, path: json.loads(layout_file.render(layout_file.parse(data, path))),
    MARKER_FILE: lambda data, path: json.loads(replica_marker.render(replica_marker.parse(data, path))),
}
"""What each file holds that its format knows, by its name."""
