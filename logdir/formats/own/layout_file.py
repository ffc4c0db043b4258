"""``layout.json`` at the top of a log dir: to which plan an unfinished change of layout belongs, and how far it is.

It decides nothing but refusals: where a replica lies is said by its name. Losing it makes us hold and ask.

Not here: what may follow what (``decide.layout.relayout``).

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
"""Of ``for_broker``: the file fits in one block."""


class LayoutState(Enum):
    """How far the log dir is."""

    APPLYING = "applying"
    APPLIED = "applied"
    """Every step was done or refused by name."""
    VERIFIED = "verified"
    FINALIZING = "finalizing"
    """The start block is being lifted, for the broker that is named."""
    FINAL = "final"
    """The start block is lifted, for the broker that is named. The way back is open as from any other state."""
    ROLLING_BACK = "rolling-back"


class LayoutFile(NamedTuple):
    """What the file says."""

    state: LayoutState
    plan_sha256: str
    """Of the plan document's footer."""
    cluster_id: str | None
    node_id: int | None
    """The true one, also while the broker is blocked."""
    for_broker: str | None = None
    """The broker that reads topic-id directories, in the operator's words; only from ``finalizing`` on."""


def render(value: LayoutFile) -> bytes:
    """Return the file."""
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
    """Read the file.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        MalformedFileError: torn, altered, or not what it holds.
        UnsupportedVersionError: of another version.
    """
    values = own_json.parse(data, path, "layout", VERSION)
    return LayoutFile(
        values.one_of("state", LayoutState),
        values.text("plan_sha256"),
        values.text_or_none("cluster_id"),
        values.number_or_none("node_id"),
        values.text_or_none("for_broker") if values.has("for_broker") else None,
    )
