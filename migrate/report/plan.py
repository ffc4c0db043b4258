"""The JSON documents of a plan directory, as types for the report.

Only the report reads ``disks.json``; the other documents are exactly those of design §7.7.

Not here: ``conflicts/`` (``report.conflicts``), and sums over the documents (``report.model``).

Spec: design §7.7.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict, cast

from migrate.errors import PlanFormatError


class Minted(TypedDict):
    """One item of ``minted`` in ``summary.json``: the topic id minted for a topic."""

    cluster: str
    topic: str
    topic_id: str


class Summary(TypedDict):
    """The document ``summary.json``."""

    plan: int
    clusters: int
    brokers: dict[str, int]
    log_dirs: int
    replicas: int
    bytes: int
    conflicts: dict[str, int]
    minted: list[Minted]
    offline_during: int
    waves: int
    lower_bound: int
    inventory_sha256: str
    plan_sha256: str


class Broker(TypedDict):
    """A broker entry of ``waves.json``."""

    node_id: int
    rack: str | None
    readiness: str
    reasons: list[str]
    steps: int
    log_bytes: int
    forecast_ms: int


class WaveCluster(TypedDict):
    """A cluster of ``waves.json``; its key ``from`` is a keyword of Python and not listed here."""

    name: str
    cluster_id: str | None
    lower_bound: int
    waves: list[list[int]]
    brokers: list[Broker]


class Waves(TypedDict):
    """The document ``waves.json``."""

    clusters: list[WaveCluster]


class Entry(TypedDict):
    """A broker entry of ``disks.json``, in the order of ``waves.json``."""

    broker: int
    """The broker's rank, by which its disks name it."""
    lists: str | None
    """What the broker's entry lists, if another entry has the same node id; else ``None``."""


class Disk(TypedDict):
    """A disk of ``disks.json``."""

    cluster: str
    broker: int
    node_id: int
    rack: str | None
    log_dir: str | None
    device: str | None
    fs_type: str | None
    total_bytes: int | None
    free_bytes: int | None
    layout: str | None
    status: str
    replicas: int
    replicas_with_id: int
    kinds: dict[str, dict[str, int]]


DISK_COLUMNS = tuple(Disk.__annotations__)
"""The columns of the disks in the page's embedded JSON."""


def read_document(path: Path, keys: tuple[str, ...]) -> dict[str, object]:
    """Return a JSON document of a plan.

    Args:
        path: The file.
        keys: Keys it must have.

    Raises:
        PlanFormatError: the file is missing, no JSON, or lacks a key.
    """
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise PlanFormatError(
            str(path),
            expected="a file of a plan",
            found=error.strerror or error,
            fix="name the directory of a plan that `logdirctl fleet plan` wrote",
        ) from error
    except ValueError as error:
        raise PlanFormatError(
            str(path), expected="JSON", found=str(error), fix="run `logdirctl fleet plan` again"
        ) from error
    missing = [key for key in keys if not isinstance(value, dict) or key not in value]
    if missing:
        raise PlanFormatError(
            str(path),
            expected=f"the keys {', '.join(missing)}",
            found="a document without them",
            fix="run `logdirctl fleet plan` again",
        )
    return cast("dict[str, object]", value)
