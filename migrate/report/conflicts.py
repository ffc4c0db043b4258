"""The conflicts of a plan as the report shows them: a bounded, ordered sample of each kind, and true totals.
``conflicts/`` may hold tens of millions of rows, so it is read batch by batch and at no time is more of it
in memory than the rows that will be shown and one batch. Which rows these are depends on their values alone, never
on how the writer split them into files.

Not here: finding conflicts (``plan.conflicts``), drawing them (``report.sections``).

Spec: design §7.4, §7.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from migrate.errors import PlanFormatError

ROWS_PER_SLUG = 100
"""Limit of shown holders per kind of conflict; the others are counted, and are in ``conflicts/``."""
CHARS_PER_SLUG = 32 * 1024
"""Limit of shown characters per kind: names may have 249 characters and occur in several columns."""
_BATCH_ROWS = 64 * 1024
_NUMBER_KEYS = ("node_id", "partition")
_ORDER = ("cluster", "unit", "node_id", "log_dir", "name", "topic", "topic_id", "partition", "detail")

SCHEMA = pa.schema(
    [("slug", pa.string())] + [(key, pa.int64() if key in _NUMBER_KEYS else pa.string()) for key in _ORDER]
)
"""The columns that are read; others are ignored."""


class ConflictRow(TypedDict):
    """One row of ``conflicts/``: one holder (a log dir, entry or broker) of one unit of a conflict."""

    cluster: str | None
    unit: str | None
    node_id: int | None
    log_dir: str | None
    name: str | None
    topic: str | None
    topic_id: str | None
    partition: int | None
    detail: str | None


class Conflict(TypedDict):
    """One kind of conflict: its totals, and the log dirs or replicas with it that the report shows."""

    slug: str
    units: int
    """Number of units, from the summary."""
    holders: int
    """Number of rows in ``conflicts/``."""
    shown: list[ConflictRow]
    """The first holders by (cluster, unit, node id, log dir, name …)."""


def read_conflicts(directory: Path, units: dict[str, int]) -> list[Conflict]:
    """Read the shown part of ``conflicts/``.

    Args:
        directory: The Parquet directory; one without files is a plan without conflicts.
        units: Units by slug, as in the summary.

    Returns:
        One value per slug of the summary, in the summary's order of slugs; memory stays bounded.

    Raises:
        PlanFormatError: a file is not Parquet, lacks a column, or names a slug that the summary lacks.
    """
    held: dict[str, pa.Table] = {}
    holders = dict.fromkeys(units, 0)
    for batch in _batches(directory):
        counted = pc.value_counts(batch["slug"])
        for entry in counted.to_pylist():
            slug = entry["values"]
            if slug not in holders:
                raise PlanFormatError(
                    str(directory),
                    expected="a slug of conflicts in summary.json",
                    found=slug,
                    fix="run `logdirctl fleet plan` again",
                )
            holders[slug] += entry["counts"]
            rows = batch.filter(pc.equal(batch["slug"], slug)).drop_columns(["slug"])
            held[slug] = _first(rows if slug not in held else pa.concat_tables([held[slug], rows]))
    return [
        Conflict(slug=slug, units=count, holders=holders[slug], shown=_shown(held.get(slug)))
        for slug, count in units.items()
    ]


def _batches(directory: Path) -> Iterator[pa.Table]:
    files = sorted(directory.glob("*.parquet"))
    try:
        for file in files:
            parquet = pq.ParquetFile(file)
            present = [name for name in SCHEMA.names if name in parquet.schema_arrow.names]
            if present != SCHEMA.names:
                missing = ", ".join(sorted(set(SCHEMA.names) - set(present)))
                raise PlanFormatError(
                    str(file),
                    expected=f"the column {missing}",
                    found="none of that name",
                    fix="run `logdirctl fleet plan` again",
                )
            # Not a dataset: that reads ahead by many batches.
            for batch in parquet.iter_batches(_BATCH_ROWS, columns=SCHEMA.names):
                if batch.num_rows:
                    yield pa.Table.from_batches([batch]).select(SCHEMA.names).cast(SCHEMA)
    except (pa.ArrowException, OSError) as error:
        raise PlanFormatError(
            str(directory), expected="Parquet files", found=str(error), fix="run `logdirctl fleet plan` again"
        ) from error


def _first(rows: pa.Table) -> pa.Table:
    if rows.num_rows <= ROWS_PER_SLUG:
        return rows
    return rows.take(pc.select_k_unstable(rows, ROWS_PER_SLUG, [(key, "ascending") for key in _ORDER]))


def _shown(rows: pa.Table | None) -> list[ConflictRow]:
    if rows is None:
        return []
    # Ties of the sort are equal rows, so the order is the same however the rows came.
    ordered: list[ConflictRow] = rows.sort_by([(key, "ascending") for key in _ORDER]).to_pylist()
    shown: list[ConflictRow] = []
    room = CHARS_PER_SLUG
    for row in ordered:
        room -= sum(len(value) for value in row.values() if isinstance(value, str))
        if room < 0 and shown:
            break
        shown.append(row)
    return shown
