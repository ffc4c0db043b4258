r"""``gaps.json``: how often a daemon looked too late for deletions, since when that is counted, and the last such time.

It lies in the state directory of a daemon, and is for people: nothing is decided by it.

Not here: when a look comes too late (``daemon.looks``), writing the file (``daemon.report.history``).

Spec: design §2 law 2; style §5.5; issue "The daemon", undo for stock Kafka.

>>> render(GapsFile(total=0, since_ms=1, last=None))[-26:]
b'","since_ms":1,"total":0}\n'
"""

from __future__ import annotations

from typing import NamedTuple

from logdir.formats.own import own_json
from logdir.paths import GAPS

FILE_NAME = GAPS
VERSION = 1
MAX_BYTES = own_json.MAX_BYTES
_KIND = "gaps"


class Gap(NamedTuple):
    """A time without a look for deletions that was too long."""

    boot_id: str
    """The boot in which it began."""
    boottime_ms: int
    """``CLOCK_BOOTTIME`` when it began: the same beginning is the same gap."""
    from_ms: int
    """Wall clock when it began."""
    to_ms: int
    """Wall clock when it ended."""


class GapsFile(NamedTuple):
    """The content of ``gaps.json``."""

    total: int
    """How many gaps there were since then."""
    since_ms: int
    """Wall clock since when they are counted."""
    last: Gap | None
    """The newest; ``None``: there was none."""


def render(value: GapsFile) -> bytes:
    """Return the bytes of ``gaps.json``."""
    last = None if value.last is None else value.last._asdict()
    return own_json.render(_KIND, VERSION, {"total": value.total, "since_ms": value.since_ms, "last": last})


def parse(data: bytes, path: str = "") -> GapsFile:
    """Parse the bytes of ``gaps.json``.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        MalformedFileError: cut off, altered, too large, or a key is missing or has a wrong value.
        UnsupportedVersionError: the file has another version.
    """
    values = own_json.parse(data, path, _KIND, VERSION, most_bytes=MAX_BYTES)
    total, since_ms = values.number("total"), values.number("since_ms")
    if not total:
        return GapsFile(0, since_ms, None)
    one = values.inner("last")
    last = Gap(one.text("boot_id"), one.number("boottime_ms"), one.number("from_ms"), one.number("to_ms"))
    return GapsFile(total, since_ms, last)
