"""``relayout.json`` in a partition directory: the original ``partition.metadata`` before the move to the topic-id
layout.

It exists only if the original was missing, or differs from the file we would write without a topic name. With it, a
rollback restores the same bytes and modification time. If the file is lost, only these are lost.

Not here: when it is written and removed (``disk.replica.relayout``).

Spec: design §3.1 (third line); attacks A8 (names that end in ``.json``).
"""

from __future__ import annotations

import base64
from typing import NamedTuple

from logdir.errors import MalformedFileError
from logdir.formats.own import own_json

FILE_NAME = "relayout.json"
VERSION = 1


class Original(NamedTuple):
    """The original ``partition.metadata``: its bytes and modification time."""

    data: bytes
    mtime_ns: int


class RelayoutFile(NamedTuple):
    """The content of ``relayout.json``."""

    original: Original | None
    """``None``: there was no ``partition.metadata``."""


def render(value: RelayoutFile) -> bytes:
    """Return the bytes of ``relayout.json``.

    Raises:
        ValueError: the modification time is before 1970.
    """
    original = value.original
    if original is not None and original.mtime_ns < 0:
        raise ValueError("the modification time of partition.metadata is before 1970")
    return own_json.render(
        "relayout",
        VERSION,
        {
            "partition_metadata": None if original is None else base64.b64encode(original.data).decode("ascii"),
            "mtime_ns": None if original is None else original.mtime_ns,
        },
    )


def parse(data: bytes, path: str = "") -> RelayoutFile:
    """Parse the bytes of ``relayout.json``.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        MalformedFileError: cut off, altered, or a key is missing or has a wrong value.
        UnsupportedVersionError: the file has another version.
    """
    values = own_json.parse(data, path, "relayout", VERSION)
    text = values.text_or_none("partition_metadata")
    if text is None:
        return RelayoutFile(None)
    return RelayoutFile(Original(unpacked(text, path, "partition_metadata"), values.number("mtime_ns")))


def unpacked(text: str, path: str, key: str) -> bytes:
    """Return the bytes of a base64 text; ``path`` and ``key`` are its file and key, for the error.

    Raises:
        MalformedFileError: the text is no base64.
    """
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise MalformedFileError(path, expected=f"base64 in {key}", found=text) from None
