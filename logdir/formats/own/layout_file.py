"""``layout.json`` at the top of a log dir: the plan of an unfinished layout change, and its state.

The file only causes refusals: directory names decide where a replica is. If the file is lost, commands refuse until an
operator confirms.

Not here: the order of states (``decide.layout.transitions``).

Spec: design §2 law 2, §3.1; attacks A21.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from logdir.formats.own import own_json
from logdir.paths import LAYOUT

FILE_NAME = LAYOUT
VERSION = 1
MAX_BROKER_CHARACTERS = 200
"""Limit of ``for_broker``, so that the file fits in one block."""


class LayoutState(Enum):
    """The state of the log dir in a layout change."""

    APPLYING = "applying"
    APPLIED = "applied"
    """Every step was done or refused."""
    VERIFIED = "verified"
    FINALIZING = "finalizing"
    """The start block is being lifted for the broker in ``for_broker``."""
    FINAL = "final"
    """The start block is lifted for the broker in ``for_broker``. A rollback is possible as from any other state."""
    ROLLING_BACK = "rolling-back"

    @property
    def words(self) -> str:
        """The state in a message."""
        return _WORDS[self]


_WORDS = {
    LayoutState.APPLYING: "an apply under way",
    LayoutState.APPLIED: "an apply that is finished",
    LayoutState.VERIFIED: "an apply that is verified",
    LayoutState.FINALIZING: "a finalize under way",
    LayoutState.FINAL: "a finalize that is finished",
    LayoutState.ROLLING_BACK: "a rollback under way",
}


class LayoutFile(NamedTuple):
    """The content of ``layout.json`` in a work root: how far a change to topic-id directories is, and by which plan."""

    state: LayoutState
    plan_sha256: str
    """SHA-256 in the footer of the plan document."""
    cluster_id: str | None
    node_id: int | None
    """The original node id, also while ``meta.properties`` has that of the start block."""
    for_broker: str | None = None
    """The broker that reads topic-id directories, as the operator named it; only from ``finalizing`` on."""


def render(value: LayoutFile) -> bytes:
    """Return the bytes of ``layout.json``."""
    return own_json.render(
        "layout",
        VERSION,
        {
            "state": value.state.value,
            "plan_sha256": value.plan_sha256,
            "cluster_id": value.cluster_id,
            "node_id": value.node_id,
            "for_broker": value.for_broker,
        },
    )


def parse(data: bytes, path: str = "") -> LayoutFile:
    """Parse the bytes of ``layout.json``.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        MalformedFileError: cut off, altered, or a key is missing or has a wrong value.
        UnsupportedVersionError: the file has another version.
    """
    values = own_json.parse(data, path, "layout", VERSION)
    return LayoutFile(
        values.one_of("state", LayoutState),
        values.text("plan_sha256"),
        values.text_or_none("cluster_id"),
        values.number_or_none("node_id"),
        values.text_or_none("for_broker") if values.has("for_broker") else None,
    )
