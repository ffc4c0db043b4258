"""Trees of real brokers, named as a command is told them."""

from __future__ import annotations

from pathlib import Path

from tests import trees

Named = tuple[str, str]


def tree_of(name: str) -> tuple[Named, Path]:
    """Unpack a tree; return its log dirs in the words of a command, and where it lies."""
    top = trees.unpack(name)
    disks = [str(path) for path in sorted(top.iterdir()) if path.is_dir()]
    return ("--log-dirs", ",".join(disks)), top
