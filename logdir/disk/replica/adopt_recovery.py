"""Recovery of interrupted adoptions, over all log dirs of a broker at once; it runs before ``recover_log_dir``.

``.ready`` and no live replica: the re-created replica was staged for the adoption, so the rest is done. ``.ready``
beside a live replica: that replica was not yet staged, or a broker has created another one; the links are removed, the
state is as before, and the operator may adopt again. No ``.ready``: ``recover_log_dir`` removes the unfinished
directory.

Repeatable; a second run changes nothing. Not here: the entry point, which keeps that order (``recover_broker``).

Spec: design §2 laws 2, 3, 5, §3.3; attacks A16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logdir.disk.kernel.failure import calling, trouble
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.unique_name import is_there
from logdir.disk.replica.adopt import publish, ready_names, withdraw
from logdir.disk.replica.replica_dir import require_marker
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, Problem, RefusedError
from logdir.formats.kafka.offset_checkpoint import TopicPartition
from logdir.names import DirForm, WorkDir, name_for, parse_work_dir
from logdir.observe.classify import Type
from logdir.paths import INCOMING
from logdir.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredAdoptions:
    """The result of recovering interrupted adoptions over all log dirs of a broker; paths are absolute."""

    finished: tuple[str, ...]
    """Live paths of the replicas whose adoption was finished."""
    withdrawn: tuple[str, ...]
    """Paths under ``incoming/`` of the adoptions that were undone."""
    troubled: tuple[Problem, ...]
    """Interrupted adoptions that were left unchanged, and why."""


def recover_adoptions(open_dirs: Sequence[OpenLogDir]) -> RecoveredAdoptions:
    """Finish or withdraw interrupted adoptions; every owner lock and every lock of the broker is held.

    Args:
        open_dirs: Every log dir of the broker: any of them may hold the replica that forbids finishing.

    Raises:
        ReadOnlyDiskError: a sync failed, or a disk is sick.
        OSError: ``incoming/`` cannot be listed.
    """
    finished: list[str] = []
    withdrawn: list[str] = []
    troubled: list[Problem] = []
    for open_dir in open_dirs:
        with calling(open_dir.top):
            for name in ready_names(open_dir):
                path = open_dir.path_of(f"{INCOMING}/{name}")
                try:
                    live = _finish(open_dir, name, open_dirs)
                    if live is None:
                        withdraw(open_dir, name)
                        withdrawn.append(path)
                    else:
                        finished.append(f"{open_dir.log_dir}/{live}")
                except (LogDirError, OSError) as error:
                    troubled.append(trouble(path, error))
    return RecoveredAdoptions(finished=tuple(finished), withdrawn=tuple(withdrawn), troubled=tuple(troubled))


def _finish(open_dir: OpenLogDir, name: str, open_dirs: Sequence[OpenLogDir]) -> str | None:
    """Publish a ready directory if its live name is free; return the live name, or ``None`` if the adoption must be
    withdrawn.
    """
    parts = parse_work_dir(name)
    if parts is None:
        raise ValueError(f"not a name under incoming/: {name!r}")
    found = _staged_of(parts, open_dirs)
    if found is None:
        return None
    present, topic = found
    live = name_for(topic, parts.partition, DirForm.CURRENT)
    if any(is_there(other.top, live) for other in open_dirs):
        return None
    with open_dir.incoming.open(name) as directory:
        checkpoints = require_marker(open_dir, directory).checkpoints
    # The process may have ended between that rename and its sync: a power cut could still undo the rename, while the
    # checkpoint entries already belong to the adopted log.
    for directory in (present.deleting, present.top):
        with syncing(directory):
            directory.sync()
    publish(open_dir, name, TopicPartition(topic, parts.partition), checkpoints, present)
    return live


def _staged_of(parts: WorkDir, open_dirs: Sequence[OpenLogDir]) -> tuple[OpenLogDir, str] | None:
    """Return log dir and topic of the re-created replica that was staged as *duplicate*; ``None`` if there is none."""
    for present in open_dirs:
        for name in present.deleting.names():
            staged = parse_work_dir(name)
            if staged is None or staged._replace(counter=1) != parts._replace(counter=1, mark=""):
                continue
            if present.deleting.stat(name).type is not Type.DIRECTORY:
                continue
            with present.deleting.open(name) as directory:
                try:
                    marker = require_marker(present, directory)
                except RefusedError:
                    continue
            if marker.reason is Reason.DUPLICATE and marker.topic_id == parts.topic_id:
                return present, marker.topic
    return None
