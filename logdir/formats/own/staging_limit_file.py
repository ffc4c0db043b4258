"""``staging-limit.json``: how many partitions and topics were staged in the last 24 hours.

The file is synced in every work root before the staging that it counts, so that after a crash it counts too much
rather than too little. If it is missing or unreadable in any work root, nothing is staged until an operator confirms.

Not here: the limit (``decide.staging_limit``), writing it (``disk.record.staging_limit``).

Spec: design §2 laws 1, 2, §3.3; attacks A38.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from logdir.formats.own import own_json
from logdir.paths import STAGING_LIMIT

FILE_NAME = STAGING_LIMIT
VERSION = 1
MAX_COUNTS = 1000
"""Limit of counts in the file; a writer with more merges the oldest (``decide.staging_limit``)."""
MAX_BYTES = 64 << 10
"""Room for ``MAX_COUNTS`` counts; a larger file is refused."""
_KIND = "staging_limit"
_KEY = "staged"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Count:
    """How many partitions and topics one staging took, or several stagings that were merged into one count."""

    instant_ms: int
    """Wall clock of the staging, in epoch milliseconds; 0: the clock was not synchronised then."""
    partitions: int
    topics: int


def render(counts: tuple[Count, ...]) -> bytes:
    """Return the bytes of ``staging-limit.json``.

    Raises:
        ValueError: the file would exceed a limit (``MAX_COUNTS``, ``MAX_BYTES``).
    """
    listed = [[count.instant_ms, count.partitions, count.topics] for count in counts]
    data = own_json.render(_KIND, VERSION, {_KEY: listed})
    if len(counts) > MAX_COUNTS or len(data) > MAX_BYTES:
        raise ValueError(f"at most {MAX_COUNTS} counts and {MAX_BYTES} bytes, not {len(counts)} and {len(data)}")
    return data


def parse(data: bytes, path: str = "") -> tuple[Count, ...]:
    """Parse the bytes of ``staging-limit.json``.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Returns:
        The counts in the order of the file; empty if nothing was staged.

    Raises:
        MalformedFileError: cut off, altered, too large, or a key is missing or has a wrong value.
        UnsupportedVersionError: the file has another version.
    """
    values = own_json.parse(data, path, _KIND, VERSION, most_bytes=MAX_BYTES)
    # The digest was checked above, so these bytes are parsed again safely.
    listed = json.loads(data).get(_KEY)
    if not isinstance(listed, list) or len(listed) > MAX_COUNTS:
        raise values.refused(_KEY, f"a list of at most {MAX_COUNTS} counts")
    counts = []
    for number, item in enumerate(listed):
        if not isinstance(item, list) or len(item) != 3:
            raise values.refused(_KEY, f"[instant_ms, partitions, topics] at index {number}")
        named = own_json.Values(
            dict(zip(("instant_ms", "partitions", "topics"), item, strict=True)), path, f"{_KEY}[{number}]."
        )
        counts.append(
            Count(
                instant_ms=named.number("instant_ms"),
                partitions=named.number("partitions"),
                topics=named.number("topics"),
            )
        )
    return tuple(counts)
