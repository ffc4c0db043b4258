"""An open log dir: read-only, or for work, with ``deleting/`` and ``incoming/`` of its work root.

Not here: the place and owner of a work root (``work_root``), locks (``locks``).

Spec: design §3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from logdir.disk.kernel.calls import Directory, Owner
from logdir.paths import DELETING, INCOMING


class LogDirTop(Protocol):
    """A log dir that can be read: an ``OpenLogDir``, or a log dir without a work root."""

    @property
    def log_dir(self) -> str:
        """Its path as configured."""

    @property
    def top(self) -> Directory:
        """Its own directory."""


class OpenTop(NamedTuple):
    """A log dir opened read-only; the caller that opened it closes it."""

    log_dir: str
    top: Directory


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLogDir:
    """Open directories of one log dir; the caller that opened them closes them."""

    log_dir: str
    """Its path as configured: for messages and markers."""
    top: Directory
    work: Directory
    deleting: Directory
    incoming: Directory
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    owner: Owner
    """Owner of the log dir: every entry created in it gets the same owner."""

    def path_of(self, path: str) -> str:
        """Return an absolute path, for messages.

        Args:
            path: As in an outcome: relative to the log dir; a path that begins with ``deleting/`` or ``incoming/``, to
                its work root.
        """
        is_below_root = path.startswith((f"{DELETING}/", f"{INCOMING}/"))
        return f"{self.work.path if is_below_root else self.log_dir}/{path}"

    @contextmanager
    def parent_of(self, path: str) -> Iterator[tuple[Directory, str]]:
        """Open the parent directory of a partition directory.

        Args:
            path: Relative to the log dir: one component, or ``{prefix}/{name}``.

        Yields:
            The directory, and the name in it.

        Raises:
            OSError: the prefix directory does not exist.
        """
        prefix, slash, name = path.rpartition("/")
        if not slash:
            yield self.top, name
            return
        with self.top.open(prefix) as opened:
            yield opened, name
