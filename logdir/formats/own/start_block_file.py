r"""``start-block.json`` at the top of a log dir: the original ``meta.properties`` while an invalid one keeps brokers
out.

A blocked ``meta.properties`` differs from the original only in the node id: comments, unknown keys and the order of
lines are unchanged.

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
"""A node id that no broker has: a broker that reads it stops at its first step, without side effects."""


class StartBlockFile(NamedTuple):
    """The content of ``start-block.json``."""

    original: bytes
    """The original ``meta.properties``."""
    mtime_ns: int
    """Modification time of the original ``meta.properties``."""
    node_id: int | None
    """The original node id, for people."""


def render(value: StartBlockFile) -> bytes:
    """Return the bytes of ``start-block.json``.

    Raises:
        ValueError: the modification time is before 1970.
    """
    if value.mtime_ns < 0:
        raise ValueError("the modification time of meta.properties is before 1970")
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
    """Parse the bytes of ``start-block.json``.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        MalformedFileError: cut off, altered, or a key is missing or has a wrong value.
        UnsupportedVersionError: the file has another version.
    """
    values = own_json.parse(data, path, "start_block", VERSION)
    original = unpacked(values.text("meta_properties"), path, "meta_properties")
    return StartBlockFile(original, values.number("mtime_ns"), values.number_or_none("node_id"))


def is_blocked(data: bytes, path: str = "") -> bool:
    """Whether a ``meta.properties`` contains the node id of the start block.

    Raises:
        FormatError: ``data`` is malformed.
    """
    return meta_properties.parse(data, path).node_id == FALSE_NODE_ID


def blocked(data: bytes, path: str = "") -> bytes:
    """Return a ``meta.properties`` with the node id of the start block and no other change.

    Args:
        data: The original ``meta.properties``.
        path: Where it lies, for the error.

    Raises:
        FormatError: ``data`` is malformed, or the node id cannot be changed alone.
    """
    before = meta_properties.parse(data, path)
    key = before.version.node_key
    wanted = before._replace(node_id=FALSE_NODE_ID)
    line = f"{key}={FALSE_NODE_ID}\n".encode("ascii")
    # Replace the line as every tool writes it; otherwise append one, because Java uses the last of a repeated key.
    simple = re.compile(rb"(?m)^([ \t]*" + re.escape(key.encode("ascii")) + rb"[ \t]*[=:][ \t]*)[+-]?[0-9]+(?=\r?$)")
    candidates = [simple.sub(rb"\g<1>%d" % FALSE_NODE_ID, data), data + b"\n" + line, data + b"\n\n" + line]
    if not data or data.endswith(b"\n"):
        candidates.insert(1, data + line)
    for changed in candidates:
        if meta_properties.parse(changed, path) == wanted:
            return changed
    raise MalformedFileError(path, expected=f"a {key} that can be changed by itself", found=data.decode("latin-1"))
