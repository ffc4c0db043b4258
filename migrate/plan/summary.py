"""The figures of a plan, as in ``summary.json`` and in the result of ``fleet plan --json``.

Not here: counting them (``build``).

Spec: design §7.7; docs/json.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

PLAN = 1
"""Version of the plan's documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MintedId:
    """The topic id that was minted for one topic of a cluster."""

    cluster: str
    topic: str
    topic_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The content of ``summary.json``: one key per field."""

    plan: int = PLAN
    clusters: int
    brokers: Mapping[str, int]
    """Number of brokers by readiness."""
    log_dirs: int
    replicas: int
    bytes: int
    conflicts: Mapping[str, int]
    minted: tuple[MintedId, ...]
    offline_during: int
    waves: int
    lower_bound: int
    inventory_sha256: str
    plan_sha256: str

    def as_json(self) -> dict[str, object]:
        """Return the keys and values of ``summary.json``."""
        return asdict(self)
