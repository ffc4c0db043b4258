"""Small data frames from rows of the driver, passed to Spark as one Arrow table.

Spark would pickle a list of tuples, turn it into an RDD, and run a job for each broadcast of it; an Arrow table becomes
a local relation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


def small_frame(spark: SparkSession, rows: Iterable[tuple[object, ...]], schema: pa.Schema) -> DataFrame:
    """Return a data frame of the given rows.

    Args:
        spark: The Spark session.
        rows: One tuple per row, values in the order of the schema.
        schema: Arrow schema, from which the schema of the frame follows.
    """
    held = list(rows)
    columns: Any = zip(*held, strict=True) if held else [()] * len(schema)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema))
