"""``quarantine.json``: disks on which a sync failed in this boot, recorded in the work roots of the other disks.

After a failed sync the kernel marks the pages clean: until the next boot, a process may read data that is not on the
disk. So nothing is decided or written on such a disk until then. The failed disk cannot be trusted to keep this record,
so every other work root of the broker has it. The file only ever causes refusals.

Not here: writing it, and finding its disks (``disk.record.quarantine``).

Spec: design §2 law 2, §3.4; reliability §4.3.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from logdir.formats.own import own_json
from logdir.paths import QUARANTINE

FILE_NAME = QUARANTINE
VERSION = 1
MAX_BYTES = 64 << 10
_KIND = "quarantine"
_MAX_DISKS = 100
_MAX_FOUND = 200


class QuarantinedDisk(NamedTuple):
    """One log dir whose disk failed a sync."""

    log_dir: str
    """Its path, as configured when the sync failed."""
    directory_id: str | None
    found: str
    """The kernel's error message of the failed sync."""
    at_ms: int
    """Wall clock when the sync failed, in epoch milliseconds; for people only."""


class QuarantineFile(NamedTuple):
    """The content of ``quarantine.json``."""

    boot_id: str
    """The boot of the failure; in another boot the record does not count."""
    disks: tuple[QuarantinedDisk, ...]


def render(value: QuarantineFile) -> bytes:
    """Return the bytes of ``quarantine.json``.

    Raises:
        ValueError: a path is not UTF-8, or there are too many disks.
    """
    if not 0 < len(value.disks) <= _MAX_DISKS:
        raise ValueError(f"{FILE_NAME} has 1 to {_MAX_DISKS} disks, not {len(value.disks)}")
    disks = [one._replace(found=one.found[:_MAX_FOUND])._asdict() for one in value.disks]
    return own_json.render(_KIND, VERSION, {"boot_id": value.boot_id, "disks": disks})


def parse(data: bytes, path: str = "") -> QuarantineFile:
    """Parse the bytes of ``quarantine.json``.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        MalformedFileError: cut off, altered, too large, or a key is missing or has a wrong value.
        UnsupportedVersionError: the file has another version.
    """
    values = own_json.parse(data, path, _KIND, VERSION, most_bytes=MAX_BYTES)
    # The digest was checked above, so these bytes are parsed again safely.
    listed = json.loads(data).get("disks")
    if not isinstance(listed, list) or not 0 < len(listed) <= _MAX_DISKS:
        raise values.refused("disks", f"a list of 1 to {_MAX_DISKS} disks")
    disks = []
    for number, item in enumerate(listed):
        one = own_json.Values(item, path, f"disks[{number}].")
        disks.append(
            QuarantinedDisk(
                log_dir=one.text("log_dir"),
                directory_id=one.text_or_none("directory_id"),
                found=one.text("found"),
                at_ms=one.number("at_ms"),
            )
        )
    return QuarantineFile(values.text("boot_id"), tuple(disks))
