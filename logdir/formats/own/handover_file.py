"""``handover.json``: when the log dirs were last handed over to a broker, and copies of Kafka's checkpoint files.

A broker rewrites its checkpoint files while it runs, and a start that fails can leave two of them empty. The copies
show what the files held before. There are several: the copy that is made after a failed start must not replace the one
that was made before it.

Version 1 has one copy, without inodes; it is read as well.

Not here: writing the file (``disk.record.handover``), which copies are kept and what a start lost
(``decide.checkpoint_copies``), how long a daemon keeps away after a handover (``daemon.start_awaited``).

Spec: design §6 ``handover``, §8; kafka-behaviour §2.9; attacks A22, A30.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from logdir.formats.kafka.offset_checkpoint import NAMES
from logdir.formats.own import own_json
from logdir.formats.own.relayout_file import unpacked
from logdir.paths import HANDOVER

FILE_NAME: Final = HANDOVER
VERSION: Final = 2
READ: Final = (1, VERSION)
"""The versions that this release reads; it writes ``VERSION`` alone."""
MAX_BYTES: Final = 16 << 20
"""Room for checkpoint files of 12 MiB together: some 50,000 replicas in one log dir, in one copy."""
MOST_COPIES: Final = 4
_MAX_BOOT_ID: Final = 64
_MAX_INODE: Final = 2**64 - 1
_KIND: Final = "handover"


class CheckpointCopy(NamedTuple):
    """The checkpoint files of a log dir at one instant, while its broker was stopped."""

    wall_ms: int
    """Wall clock when they were copied, for people."""
    checkpoints: Mapping[str, bytes | None]
    """The bytes of each of Kafka's four checkpoint files, by name; ``None``: there was no such file."""
    inodes: Mapping[str, int]
    """The inode of each live partition directory that has an entry in one of them, by name: a directory with another
    inode is another log, and what is copied says nothing of it.
    """
    topic_ids: Mapping[str, str] = {}
    """The topic id of each of these directories whose log start is copied, by name; one that has none is left out. The
    inode of a directory that was removed may be that of the next one.
    """


class HandoverFile(NamedTuple):
    """The content of ``handover.json``."""

    boot_id: str
    boottime_ms: int
    """``CLOCK_BOOTTIME`` at the last handover."""
    wall_ms: int
    """Wall clock at the last handover, for people."""
    copies: tuple[CheckpointCopy, ...]
    """Newest first, 1 to ``MOST_COPIES``."""

    @property
    def checkpoints(self) -> Mapping[str, bytes | None]:
        """The checkpoint files at the last handover."""
        return self.copies[0].checkpoints


def render(value: HandoverFile) -> bytes:
    """Return the bytes of ``handover.json``, always in the newest version.

    Raises:
        ValueError: the file would be larger than ``MAX_BYTES``, there is no copy or there are too many, or a copy does
            not name all four checkpoint files.
    """
    if not 0 < len(value.copies) <= MOST_COPIES:
        raise ValueError(f"{FILE_NAME}: 1 to {MOST_COPIES} copies, not {len(value.copies)}")
    for copy in value.copies:
        if copy.checkpoints.keys() != set(NAMES):
            raise ValueError(f"{FILE_NAME}: the files {', '.join(NAMES)}, not {', '.join(copy.checkpoints)}")
    data = own_json.render(
        _KIND,
        VERSION,
        {
            "boot_id": value.boot_id,
            "boottime_ms": value.boottime_ms,
            "wall_ms": value.wall_ms,
            "copies": [
                {
                    "wall_ms": copy.wall_ms,
                    "checkpoints": {
                        name: None if kept is None else base64.b64encode(kept).decode("ascii")
                        for name, kept in copy.checkpoints.items()
                    },
                    "inodes": dict(copy.inodes),
                    "topic_ids": dict(copy.topic_ids),
                }
                for copy in value.copies
            ],
        },
    )
    if len(data) > MAX_BYTES:
        raise ValueError(f"{FILE_NAME}: at most {MAX_BYTES} bytes, not {len(data)}")
    return data


def parse(data: bytes, path: str = "") -> HandoverFile:
    """Parse the bytes of ``handover.json``.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        MalformedFileError: cut off, altered, too large, or a key is missing or has a wrong value.
        UnsupportedVersionError: the file has another version.
    """
    version, values = own_json.parse_versions(data, path, _KIND, READ, most_bytes=MAX_BYTES)
    boot_id, wall_ms = values.text("boot_id"), values.number("wall_ms")
    if not 0 < len(boot_id) <= _MAX_BOOT_ID:
        raise values.refused("boot_id", f"1 to {_MAX_BOOT_ID} characters")
    if version == 1:
        copies = [CheckpointCopy(wall_ms, _checkpoints(values, path), {})]
    else:
        # The digest was checked above, so these bytes are parsed again safely.
        listed = json.loads(data).get("copies")
        if not isinstance(listed, list) or not 0 < len(listed) <= MOST_COPIES:
            raise values.refused("copies", f"a list of 1 to {MOST_COPIES} copies")
        copies = [_copy(one, path, f"copies[{number}].") for number, one in enumerate(listed)]
    return HandoverFile(boot_id, values.number("boottime_ms"), wall_ms, tuple(copies))


def _copy(value: object, path: str, within: str) -> CheckpointCopy:
    values = own_json.Values(value, path, within)
    with_inode, with_id = (_names(value, key, values) for key in ("inodes", "topic_ids"))
    inodes, ids = values.inner("inodes"), values.inner("topic_ids")
    return CheckpointCopy(
        values.number("wall_ms"),
        _checkpoints(values, path),
        {name: inodes.number(name, _MAX_INODE) for name in with_inode},
        {name: ids.text(name) for name in with_id},
    )


def _names(value: object, key: str, values: own_json.Values) -> tuple[str, ...]:
    """Return the keys of an object in a copy."""
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, dict):
        raise values.refused(key, "an object")
    return tuple(found)


def _checkpoints(values: own_json.Values, path: str) -> Mapping[str, bytes | None]:
    kept = values.inner("checkpoints")
    packed = {name: kept.text_or_none(name) for name in NAMES}
    return {
        name: None if text is None else unpacked(text, path, f"checkpoints.{name}") for name, text in packed.items()
    }
