"""Work roots as 0.2.0 left them, and its rule of which it reads.

The rule is that of the commit *Version 0.2.0* (``logdir/formats/own/own_json.py`` there), in the words of a test; the
release itself is asked in ``test_downgrade``.
"""

from __future__ import annotations

import json
from pathlib import Path

from logdir.formats.own import own_json

VERSION_0_2_0 = 1


def as_0_2_0(*work_roots: Path) -> None:
    """Leave ``work-root.json`` of these work roots in the version of 0.2.0."""
    for path in work_roots:
        file = path / "work-root.json"
        values = json.loads(file.read_bytes())
        del values["sha256"], values["work_root"]
        file.write_bytes(own_json.render("work_root", VERSION_0_2_0, values))


def version_of(work_root: Path) -> int:
    """Return the version of a work root."""
    return int(json.loads((work_root / "work-root.json").read_bytes())["work_root"])


def is_read_by_0_2_0(work_root: Path) -> bool:
    """Whether 0.2.0 opens a work root: it compares the number with its own, and refuses any other by name."""
    return version_of(work_root) == VERSION_0_2_0
