"""``heartbeat.json``: the boots of the host since a work root exists, and how long each was seen.

Every work root has one. It lets a deadline that was set in one boot continue in the next. A missing or unreadable file
holds all staged data; a recreated one counts less time than has passed, never more.

Not here: which time counts (``decide.staged.deadline``), the clocks (``clock``), writing the file
(``disk.record.heartbeat``).

Spec: design §2 law 2, §3.3; attacks A24, A25.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from logdir.errors import MalformedFileError
from logdir.formats.own import own_json
from logdir.paths import HEARTBEAT

FILE_NAME = HEARTBEAT
VERSION = 1
MAX_BOOTS = 2000
"""Limit of recorded boots: replicas staged in an older boot count from the current boot only."""
MAX_BYTES = 512 << 10
"""Size for that many boots; a larger file is not read."""
_MAX_BOOT_ID = 64
_KIND = "heartbeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One boot of the host."""

    boot_id: str
    seen_ms: int
    """Boot time of the last heartbeat."""
    credited_ms: int
    """Credited time of the gap between the previous boot and this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """Since when the wall clock has been synchronised and in step with boot time."""

    boottime_ms: int
    wall_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The content of the file."""

    boots: tuple[Boot, ...]
    """In their order; not empty, the last one is the current boot."""
    wall_ms: int
    """Wall clock when it was last written."""
    steady: Steady | None
    """``None``: the wall clock was not synchronised."""
    gap_from_ms: int | None
    """Wall clock at the end of the previous boot, until the gap is credited; ``None``: nothing left to credit."""


def render(value: Heartbeat) -> bytes:
    """Return the file.

    Raises:
        ValueError: it exceeds a limit (``MAX_BOOTS``, ``MAX_BYTES``), or has no boot.
    """
    data = own_json.render(
        _KIND,
        VERSION,
        {
            "boots": [
                {"boot_id": boot.boot_id, "seen_ms": boot.seen_ms, "credited_ms": boot.credited_ms}
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
        raise ValueError(f"1 to {MAX_BOOTS} boots and {MAX_BYTES} bytes, not {len(value.boots)} and {len(data)}")
    return data


def parse(data: bytes, path: str = "") -> Heartbeat:
    """Read the file.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        MalformedFileError: torn, altered, too large, or not what a heartbeat holds.
        UnsupportedVersionError: of another version.
    """
    if len(data) > MAX_BYTES:
        raise MalformedFileError(path, expected=f"at most {MAX_BYTES} bytes", found=len(data))
    values = own_json.parse(data, path, _KIND, VERSION)
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
            Boot(boot_id=boot.text("boot_id"), seen_ms=boot.number("seen_ms"), credited_ms=boot.number("credited_ms"))
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
