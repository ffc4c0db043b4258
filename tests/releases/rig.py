"""A tree that a release left, unpacked where a test may change it."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "releases"
RELEASES = tuple(sorted(path.name for path in GOLDEN.iterdir()))


def unpack(release: str, state: str, folder: Path) -> Path:
    """Unpack a tree below ``folder``; return it.

    A marker belongs to the inode of its directory, and an archive keeps no inodes: the number is set to the new one,
    and nothing else. The path of ``log.dirs`` in ``server.properties`` is the new one, too.
    """
    with tarfile.open(GOLDEN / release / f"{state}.tar.xz") as archive:
        archive.extractall(folder, filter="tar")
    for marker in folder.rglob("replica.json"):
        _bind(marker)
    for properties in folder.glob("server.properties"):
        log_dirs = ",".join(str(path) for path in sorted(folder.glob("d?")))
        lines = properties.read_text().splitlines()
        kept = [line for line in lines if not line.startswith("log.dirs=")]
        properties.write_text("\n".join([*kept, f"log.dirs={log_dirs}", ""]))
    return folder


def _bind(marker: Path) -> None:
    said = json.loads(marker.read_text())
    del said["sha256"]
    said["birth_inode"] = marker.parent.stat().st_ino
    said["sha256"] = hashlib.sha256(_line(said).encode()).hexdigest()
    marker.write_text(_line(said) + "\n")


def _line(said: object) -> str:
    return json.dumps(said, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
