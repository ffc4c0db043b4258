"""File systems to measure on: of the directories that are named, or made in image files for one measurement.

An image is mounted in a mount namespace of this process, through a loop device that frees itself: however the run ends,
neither is left behind.

Spec: design §10 ("on ext4 and XFS"); baselines, head and §8.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from benchmarks.measure import Row
from logdir.disk.kernel.file_system import fs_type_at
from tests.kernel.images import leave_mounts, missing

KINDS = ("ext4", "xfs")
_BYTES = 16 << 30
"""Of an image; only what is written to it takes room."""
_LAZY_EXT4 = ("-E", "lazy_itable_init=0,lazy_journal_init=0")
"""Else a thread of the kernel makes them while we measure."""

Measure = Callable[[str], Sequence[Row]]
"""Measures on the file system of a directory."""


def measured(dirs: Sequence[str], home: str, measure: Measure, *options: str) -> list[Row]:
    """Measure on each file system; the rows name it.

    Args:
        dirs: One directory of each; none: an ext4 and an XFS are made, where this user may.
        home: Where image files are made.
        measure: What is done on each.
        options: More to mount an image with.
    """
    if dirs:
        return [row for path in dirs for row in _named(measure(path), fs_type_at(path) or "unknown")]
    rows: list[Row] = []
    for kind in KINDS:
        with _mounted(kind, home, ("noatime", *options)) as path:
            rows += _named(measure(path), " ".join((kind, *options)))
    return rows


def dirs_or_images(dirs: Sequence[str], home: str) -> list[str]:
    """Return the directories named, none if images can be made; else where temporary files lie."""
    if dirs:
        return list(dirs)
    lack = missing(*KINDS)
    if lack:
        print(f"no ext4 and XFS of our own: {lack}")
        return [home]
    leave_mounts()
    return []


def _named(rows: Sequence[Row], kind: str) -> list[Row]:
    return [row._replace(what=f"{kind}: {row.what}") for row in rows]


@contextmanager
def _mounted(kind: str, home: str, options: Sequence[str]) -> Iterator[str]:
    """Make a file system in an image below ``home``, mount it, and yield where."""
    with tempfile.TemporaryDirectory(prefix="logdird-bench-", dir=home) as work:
        image, path = os.path.join(work, "image"), os.path.join(work, "mounted")
        os.mkdir(path)
        with open(image, "xb") as file:
            file.truncate(_BYTES)
        lazy = _LAZY_EXT4 if kind == "ext4" else ()
        subprocess.run([f"mkfs.{kind}", "-q", *lazy, image], check=True)
        subprocess.run(["mount", "-t", kind, "-o", ",".join(("loop", *options)), image, path], check=True)
        try:
            yield path
        finally:
            subprocess.run(["umount", path], check=True)
