"""One log dir opened: only to be looked at, or for work, with ``deleting/`` and ``incoming/`` of its work root.

Not here: where a work root is and whether it is ours (``work_root``), locks (``locks``).

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
    """What a look at one log dir needs: a ``OpenLogDir`` has it, and so has a log dir without a work root."""

    @property
    def log_dir(self) -> str:
        """Its path as configured."""

    @property
    def top(self) -> Directory:
        """Its own directory."""


class OpenTop(NamedTuple):
    """A log dir opened only to be looked at; whoever opened it closes it."""

    log_dir: str
    top: Directory


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLogDir:
    """Open directories of one log dir; whoever opened them closes them."""

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
    """Of the log dir: everything made in it is given to the same."""

    def path_of(self, path: str) -> str:
        """Return an absolute path, for messages.

        Args:
            path: As in an outcome: relative to the log dir, or to its work root from ``deleting/`` or ``incoming/`` on.
        """
        is_below_root = path.startswith((f"{DELETING}/", f"{INCOMING}/"))
        return f"{self.work.path if is_below_root else self.log_dir}/{path}"

    @contextmanager
    def parent_of(self, path: str) -> Iterator[tuple[Directory, str]]:
        """Open the directory a partition directory lies in.

        Args:
            path: Relative to the log dir: one component, or ``{prefix}/{name}``.

        Yields:
            The directory, and the name in it.

        Raises:
            OSError: there is no such prefix directory.
        """
        prefix, slash, name = path.rpartition("/")
        if not slash:
            yield self.top, name
            return
        with self.top.open(prefix) as opened:
            yield opened, name
