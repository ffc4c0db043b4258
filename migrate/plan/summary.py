"""The figures of a plan: ``summary.json``, and what ``fleet plan --json`` prints of it.

Not here: how they are counted (``build``).

Spec: design §7.7; docs/json.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

PLAN = 1
"""Version of the plan's documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """``summary.json``: one key per field."""

    plan: int = PLAN
    clusters: int
    brokers: Mapping[str, int]
    """By readiness."""
    log_dirs: int
    replicas: int
    bytes: int
    conflicts: Mapping[str, int]
    minted: tuple[Mapping[str, str], ...]
    offline_during: int
    waves: int
    lower_bound: int
    inventory_sha256: str
    plan_sha256: str

    def as_json(self) -> dict[str, object]:
        """Return the document's keys and values."""
        return {one.name: getattr(self, one.name) for one in fields(self)}
