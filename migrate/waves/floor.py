"""The floor of a partition: how many of its live replicas stay up in every wave.

Without ``min.insync.replicas`` one replica at a time may be down. With it, as many stay up as it asks for, but never
all of them: else their brokers could never stop.

Not here: ``min.insync.replicas`` of a topic (``groups``), turning the floor into a cap on waves (``schedule``),
refusing a broker that would break that cap (``search``).

Spec: design §7.5, ``floor``.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows


def floor_of(brokers: Column, min_insync: Column) -> Column:
    """Return the floor of a partition.

    Args:
        brokers: Number of distinct brokers with a live replica of it, from 1.
        min_insync: ``min.insync.replicas`` of its topic, int; null if the fleet file gives none.

    Returns:
        Replicas, int, from 0 and below ``brokers``.
    """
    most = brokers - 1
    return F.when(min_insync.isNull(), most).otherwise(F.greatest(F.lit(0), F.least(min_insync, most)))
