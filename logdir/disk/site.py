"""One log dir opened for work: its own directory, and ``deleting/`` and ``incoming/`` of its work root.

Not here: where a work root is and whether it is ours (``work_root``), locks (``locks``).

Spec: design §3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from logdir.disk.calls import Directory, Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
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

    @classmethod
    def bare(cls, log_dir: str, top: Directory) -> Self:
        """Return a log dir that is only looked at, with or without a work root. Reads its owner.

        Args:
            log_dir: Its path as configured.
            top: Open; the caller closes it.

        Raises:
            OSError: it cannot be looked at.
        """
        return cls(
            log_dir=log_dir,
            top=top,
            work=top,
            deleting=top,
            incoming=top,
            cluster_id=None,
            node_id=None,
            directory_id=None,
            owner=top.own_stat().owner,
        )

    def path_of(self, path: str) -> str:
        """Return an absolute path, for messages.

        Args:
            path: As in an outcome: relative to the log dir, or to its work root from ``deleting/`` or ``incoming/`` on.
        """
        is_below_root = path.startswith(("deleting/", "incoming/"))
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
