"""The real log dirs kept as test data: where they are, how they are unpacked, what their manifests say."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

TREES = Path(__file__).parent.parent / "examples" / "trees"
NAMES = tuple(sorted(path.stem for path in TREES.glob("*.json")))


def manifest(name: str) -> dict[str, Any]:
    """Return what a client and the file system said of the tree when it was taken."""
    value: dict[str, Any] = json.loads((TREES / f"{name}.json").read_text())
    return value


@functools.cache
def _unpacked(name: str) -> Path:
    target = Path(tempfile.mkdtemp(prefix=f"logdird-tree-{name}-"))
    atexit.register(shutil.rmtree, target, ignore_errors=True)
    with tarfile.open(TREES / f"{name}.tar.xz") as archive:
        archive.extractall(target, filter="data")
    return target


def unpack(name: str) -> Path:
    """Return a folder with the tree's log dirs ``d1``, ``d2``; unpacked once a run, for reading only."""
    return _unpacked(name)
