"""The versions of a host and the mounts of its log dirs, without touching a disk of the broker: for a bug report.

Not here: what lies on the disks (``report``).

Spec: design §6 ``bug-report``; proc(5), mountinfo.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from logdir.observe.mounts import MOUNTINFO

_DISTRIBUTIONS: Final = ("apscheduler", "cramjam", "google-crc32c", "pyspark", "pyyaml", "rich", "watchdog")
_SHOWN: Final = frozenset(
    ("allocsize", "attr2", "commit", "compress", "data", "discard", "errors", "inode64", "logbsize", "logbufs", "mode",
     "nr_inodes", "prjquota", "size", "space_cache", "stripe", "subvol", "subvolid", "sunit", "swidth", "usrquota")
)  # fmt: skip
"""Mount options whose values are shown; of others the name is: a value may be a password."""
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


def versions(version: str) -> Mapping[str, object]:
    """Return the versions of this release, of Python, of the kernel, and of what is installed beside them.

    Args:
        version: That of this release.
    """
    kernel = os.uname()
    installed = {}
    for name in _DISTRIBUTIONS:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "logdird": version,
        "python": sys.version,
        "kernel": f"{kernel.sysname} {kernel.release} {kernel.machine}",
        "libc": " ".join(platform.libc_ver()),
        "processors": os.cpu_count(),
        "user": os.geteuid(),
        "installed": installed,
    }


def mounts(log_dirs: Sequence[str], table: str | None = None) -> Mapping[str, object]:
    """Return the mount that each log dir lies on, by the text of its path: no disk is asked.

    Args:
        log_dirs: Absolute paths.
        table: The text of ``/proc/self/mountinfo``; ``None``: it is read.

    Returns:
        By log dir: mount point, file system, its options and those of the mount; ``None`` if no mount contains it.

    >>> mounts(("/d1/kafka",), "29 1 8:1 / /d1 rw,noatime - ext4 /dev/sda1 rw,password=x")["/d1/kafka"]["options"]
    ['rw', 'noatime', 'rw', 'password=…']
    """
    text = _read() if table is None else table
    found = sorted(
        (one for line in text.splitlines() if (one := _parsed(line)) is not None), key=lambda one: len(one[0])
    )
    by_log_dir: dict[str, object] = {}
    for log_dir in log_dirs:
        on = [one for point, one in found if f"{log_dir}/".startswith(f"{point.rstrip('/')}/")]
        by_log_dir[log_dir] = on[-1] if on else None
    return by_log_dir


def _read() -> str:
    try:
        return Path(MOUNTINFO).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _parsed(line: str) -> tuple[str, dict[str, object]] | None:
    left, separator, right = line.partition(" - ")
    fields, kind = left.split(), right.split()
    if not separator or len(fields) < 6 or len(kind) < 3:
        return None
    point = _ESCAPED.sub(lambda one: chr(int(one[1], 8)), fields[4])
    options = [_without_value(option) for text in (fields[5], kind[2]) for option in text.split(",")]
    return point, {"point": point, "fs_type": kind[0], "device": fields[2], "options": options}


def _without_value(option: str) -> str:
    name, separator, _ = option.partition("=")
    return option if not separator or name in _SHOWN else f"{name}=…"
