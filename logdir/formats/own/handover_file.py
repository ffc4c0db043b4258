"""``handover.json``: when the log dirs were last handed over to a broker, and Kafka's checkpoint files as they were.

A broker rewrites its checkpoint files while it runs, and a start that fails can leave two of them empty. The copies
show what they held before.

Not here: writing the file (``disk.record.handover``), how long a daemon keeps away after it (``daemon.start_awaited``).

Spec: design §6 ``handover``; kafka-behaviour §2.9; attacks A22, A30.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final, NamedTuple

from logdir.formats.kafka.offset_checkpoint import NAMES
from logdir.formats.own import own_json
from logdir.formats.own.relayout_file import unpacked
from logdir.paths import HANDOVER

FILE_NAME: Final = HANDOVER
VERSION: Final = 1
MAX_BYTES: Final = 16 << 20
"""Room for checkpoint files of 12 MiB together: some 50,000 replicas in one log dir."""
_MAX_BOOT_ID: Final = 64
_KIND: Final = "handover"


class HandoverFile(NamedTuple):
    """The content of ``handover.json``."""

    boot_id: str
    boottime_ms: int
    """``CLOCK_BOOTTIME`` at the handover."""
    wall_ms: int
    """Wall clock at the handover, for people."""
    checkpoints: Mapping[str, bytes | None]
    """The bytes of each of Kafka's four checkpoint files, by name; ``None``: there was no such file."""


def render(value: HandoverFile) -> bytes:
    """Return the bytes of ``handover.json``.

    Raises:
        ValueError: the file would be larger than ``MAX_BYTES``, or not all four checkpoint files are named.
    """
    if value.checkpoints.keys() != set(NAMES):
        raise ValueError(f"{FILE_NAME}: the files {', '.join(NAMES)}, not {', '.join(value.checkpoints)}")
    data = own_json.render(
        _KIND,
        VERSION,
        {
            "boot_id": value.boot_id,
            "boottime_ms": value.boottime_ms,
            "wall_ms": value.wall_ms,
            "checkpoints": {
                name: None if kept is None else base64.b64encode(kept).decode("ascii")
                for name, kept in value.checkpoints.items()
            },
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
    values = own_json.parse(data, path, _KIND, VERSION, most_bytes=MAX_BYTES)
    boot_id = values.text("boot_id")
    if not 0 < len(boot_id) <= _MAX_BOOT_ID:
        raise values.refused("boot_id", f"1 to {_MAX_BOOT_ID} characters")
    kept = values.inner("checkpoints")
    packed = {name: kept.text_or_none(name) for name in NAMES}
    return HandoverFile(
        boot_id=boot_id,
        boottime_ms=values.number("boottime_ms"),
        wall_ms=values.number("wall_ms"),
        checkpoints={
            name: None if text is None else unpacked(text, path, f"checkpoints.{name}") for name, text in packed.items()
        },
    )
