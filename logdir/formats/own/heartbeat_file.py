"""``heartbeat.json``: the boots of the host since its work root exists, and how long each lasted as far as is known.

Every work root has one. It lets a deadline that was set in one boot continue in the next. While the file is missing or
unreadable, all staged data of its work root is held; a recreated file counts less time than has passed, never more.

Not here: which time counts (``decide.staged.deadline``), the clocks (``clock``), writing the file
(``disk.record.heartbeat``).

Spec: design §2 law 2, §3.3; attacks A24, A25.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from logdir.formats.own import own_json
from logdir.paths import HEARTBEAT

FILE_NAME = HEARTBEAT
VERSION = 1
MAX_BOOTS = 2000
"""Limit of recorded boots; for a replica staged in an older boot only the time of the current boot counts."""
MAX_BYTES = 768 << 10
"""Room for ``MAX_BOOTS`` boots; a larger file is refused."""
_MAX_BOOT_ID = 64
_KIND = "heartbeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One boot of the host."""

    boot_id: str
    seen_ms: int
    """``CLOCK_BOOTTIME`` at the last heartbeat of this boot."""
    credited_ms: int
    """How much of the time between the previous boot and this one counts towards deadlines."""
    from_ms: int = 0
    """``CLOCK_BOOTTIME`` at the first heartbeat of this boot: before it the disk may have been in another host. 0 in a
    file of 0.2.0, which counts all of a boot.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """The instant, on both clocks, since when the wall clock is synchronised and in step with ``CLOCK_BOOTTIME``."""

    boottime_ms: int
    wall_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The content of ``heartbeat.json``."""

    boots: tuple[Boot, ...]
    """Oldest first, at least one; the last is the boot of the last heartbeat."""
    wall_ms: int
    """Wall clock when the file was last written."""
    steady: Steady | None
    """``None``: the wall clock was not synchronised."""
    gap_from_ms: int | None
    """Wall clock at the end of the previous boot, until the gap since then is credited; ``None``: no gap to credit."""


def render(value: Heartbeat) -> bytes:
    """Return the bytes of ``heartbeat.json``.

    Raises:
        ValueError: the file would exceed a limit (``MAX_BOOTS``, ``MAX_BYTES``), or has no boot.
    """
    data = own_json.render(
        _KIND,
        VERSION,
        {
            "boots": [
                {
                    "boot_id": boot.boot_id,
                    "seen_ms": boot.seen_ms,
                    "credited_ms": boot.credited_ms,
                    **({"from_ms": boot.from_ms} if boot.from_ms else {}),
                }
                for boot in value.boots
            ],
            "wall_ms": value.wall_ms,
            "steady": None
            if value.steady is None
            else {"boottime_ms": value.steady.boottime_ms, "wall_ms": value.steady.wall_ms},
            "gap_from_ms": value.gap_from_ms,
        },
    )
    if not 0 < len(value.boots) <= MAX_BOOTS or len(data) > MAX_BYTES:
        raise ValueError(f"{FILE_NAME}: 1 to {MAX_BOOTS} boots, {MAX_BYTES} bytes, not {len(value.boots)}, {len(data)}")
    return data


def parse(data: bytes, path: str = "") -> Heartbeat:
    """Parse the bytes of ``heartbeat.json``.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        MalformedFileError: cut off, altered, too large, or a key is missing or has a wrong value.
        UnsupportedVersionError: the file has another version.
    """
    values = own_json.parse(data, path, _KIND, VERSION, most_bytes=MAX_BYTES)
    # The digest was checked above, so these bytes are parsed again safely.
    raw = json.loads(data)
    listed = raw.get("boots")
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_BOOTS:
        raise values.refused("boots", f"a list of 1 to {MAX_BOOTS} boots")
    boots = []
    for number, item in enumerate(listed):
        boot = own_json.Values(item, path, f"boots[{number}].")
        if not 0 < len(boot.text("boot_id")) <= _MAX_BOOT_ID:
            raise boot.refused("boot_id", f"1 to {_MAX_BOOT_ID} characters")
        boots.append(
            Boot(
                boot_id=boot.text("boot_id"),
                seen_ms=boot.number("seen_ms"),
                credited_ms=boot.number("credited_ms"),
                from_ms=boot.number("from_ms") if boot.has("from_ms") else 0,
            )
        )
    steady = None
    if raw.get("steady", "") is not None:
        inner = values.inner("steady")
        steady = Steady(boottime_ms=inner.number("boottime_ms"), wall_ms=inner.number("wall_ms"))
    return Heartbeat(
        boots=tuple(boots),
        wall_ms=values.number("wall_ms"),
        steady=steady,
        gap_from_ms=values.number_or_none("gap_from_ms"),
    )
