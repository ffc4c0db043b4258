r"""``start-block.json`` at the top of a log dir: the true ``meta.properties`` while a false one keeps brokers out.

A blocked ``meta.properties`` differs from the true one in the node id alone: comments, unknown keys and the order of
lines stay.

Not here: setting and lifting the start block (``disk.record.start_block``).

Spec: design §8; attacks A37; law 9.

>>> blocked(b"#\nversion=1\nnode.id=3\ncluster.id=x\n")
b'#\nversion=1\nnode.id=2147483647\ncluster.id=x\n'
"""

from __future__ import annotations

import base64
import re
from typing import NamedTuple

from logdir.errors import MalformedFileError
from logdir.formats.kafka import meta_properties
from logdir.formats.own import own_json
from logdir.formats.own.relayout_file import unpacked
from logdir.paths import START_BLOCK

FILE_NAME = START_BLOCK
VERSION = 1
FALSE_NODE_ID = meta_properties.START_BLOCK_NODE_ID
"""No broker has it: one that reads it stops at its first step, without side effects."""


class StartBlockFile(NamedTuple):
    """What the file says."""

    original: bytes
    """The true ``meta.properties``."""
    mtime_ns: int
    """When it was last changed."""
    node_id: int | None
    """The true one: for people."""


def render(value: StartBlockFile) -> bytes:
    """Return the file.

    Raises:
        ValueError: a time before 1970.
    """
    if value.mtime_ns < 0:
        raise ValueError("a time before 1970")
    return own_json.render(
        "start_block",
        VERSION,
        {
            "meta_properties": base64.b64encode(value.original).decode("ascii"),
            "mtime_ns": value.mtime_ns,
            "node_id": value.node_id,
        },
    )


def parse(data: bytes, path: str = "") -> StartBlockFile:
    """Read the file.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        MalformedFileError: torn, altered, or not what it holds.
        UnsupportedVersionError: of another version.
    """
    values = own_json.parse(data, path, "start_block", VERSION)
    original = unpacked(values.text("meta_properties"), path, "meta_properties")
    return StartBlockFile(original, values.number("mtime_ns"), values.number_or_none("node_id"))


def is_blocked(data: bytes, path: str = "") -> bool:
    """Whether a ``meta.properties`` carries the false node id.

    Raises:
        FormatError: it is malformed.
    """
    return meta_properties.parse(data, path).node_id == FALSE_NODE_ID


def blocked(data: bytes, path: str = "") -> bytes:
    """Return a ``meta.properties`` with the false node id; all else is as it was.

    Args:
        data: The true one.
        path: Where it lies, for the error.

    Raises:
        FormatError: it is malformed, or cannot be changed without changing more.
    """
    before = meta_properties.parse(data, path)
    key = before.version.node_key
    wanted = before._replace(node_id=FALSE_NODE_ID)
    line = f"{key}={FALSE_NODE_ID}\n".encode("ascii")
    # The line as every tool writes it; else one more at the end, for the last of a repeated key counts in Java.
    simple = re.compile(rb"(?m)^([ \t]*" + re.escape(key.encode("ascii")) + rb"[ \t]*[=:][ \t]*)[+-]?[0-9]+(?=\r?$)")
    candidates = [simple.sub(rb"\g<1>%d" % FALSE_NODE_ID, data), data + b"\n" + line, data + b"\n\n" + line]
    if not data or data.endswith(b"\n"):
        candidates.insert(1, data + line)
    for changed in candidates:
        if meta_properties.parse(changed, path) == wanted:
            return changed
    raise MalformedFileError(path, expected=f"a {key} that can be changed by itself", found=data.decode("latin-1"))
