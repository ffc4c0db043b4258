"""Search for an earlier capture of the same directory: whole under ``deleting/``, or unfinished under ``incoming/``.

The same directory is known by its files: a capture holds links, so their inodes are the same. The work root is listed
once for all directories that are captured together; what another process captures meanwhile cannot be of one of them,
as the owner lock is held.

Not here: continuing it (``capture``).

Spec: design §3.3; attacks A17, A23.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import NamedTuple, Self

from logdir.disk.kernel.calls import Directory
from logdir.disk.replica.captured_files import Files, look
from logdir.disk.replica.replica_dir import readable_marker
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.formats.own.replica_marker import Intent
from logdir.names import WorkDir, parse_work_dir
from logdir.observe.classify import Type
from logdir.paths import DELETING


class EarlierCaptures(NamedTuple):
    """Names in a work root, sorted, from before the first capture of a list."""

    staged: Sequence[str]
    """Under ``deleting/``."""
    incoming: Sequence[str]

    @classmethod
    def of(cls, open_dir: OpenLogDir) -> Self:
        """Return what is in a work root now. Raises ``OSError``: it cannot be listed."""
        return cls(open_dir.deleting.names(), open_dir.incoming.names())

    def find(self, open_dir: OpenLogDir, path: str, place: WorkDir, seen: Files) -> str | None:
        """Return the place of an earlier capture of a directory; ``None`` if there is none.

        Args:
            open_dir: Its log dir.
            path: Name of the directory at the top of the log dir.
            place: Parts of the name under ``deleting/`` that its capture would get.
            seen: The files of the directory.

        Returns:
            Its path in the work root if it is whole, its name under ``incoming/`` if it is unfinished.

        Raises:
            RefusedError: an entry in a directory that may be one is no regular file.
            OSError: a directory that may be one cannot be read.
        """
        places = (open_dir.deleting, self.staged, f"{DELETING}/"), (open_dir.incoming, self.incoming, "")
        for parent, names, prefix in places:
            for name in _beginning_with(names, str(place.topic_id or "")):
                parts = parse_work_dir(name)
                # A name with a suffix is being purged, or belongs to an adoption: it will not stay.
                if parts is None or parts.mark or not _may_be(parts, place):
                    continue
                with suppress(FileNotFoundError):  # Claimed or restored since it was listed.
                    if parent.stat(name).type is not Type.DIRECTORY:
                        continue
                    with parent.open(name) as directory:
                        held = look(directory)
                        if prefix:
                            if seen and all(held.get(file, (0, 0))[0] == inode for file, (inode, _) in seen.items()):
                                return f"{prefix}{name}"
                        elif _is_begun(open_dir, directory, path) and (not held or _shares(held, seen)):
                            return name
        return None


def _beginning_with(names: Sequence[str], prefix: str) -> Iterator[str]:
    """Yield those of sorted names that begin with a prefix: few of thousands."""
    return takewhile(lambda name: name.startswith(prefix), names[bisect_left(names, prefix) :])


def _may_be(parts: WorkDir, place: WorkDir) -> bool:
    """Whether an earlier capture may have this name: with an id, even after ``partition.metadata`` was removed."""
    if place.topic_id is None and parts.topic_id is not None:
        return parts.partition == place.partition
    return parts._replace(counter=1, mark="") == place


def _shares(held: Files, seen: Files) -> bool:
    inodes = {inode for inode, _ in held.values()}
    return any(inode in inodes for inode, _ in seen.values())


def _is_begun(open_dir: OpenLogDir, directory: Directory, path: str) -> bool:
    marker = readable_marker(directory)
    return (
        marker is not None
        and marker.intent is Intent.CAPTURED
        and marker.path == path
        and marker.birth_inode == directory.own_stat().inode
        and marker.directory_id == open_dir.directory_id
    )
