"""What the driver knows, as a frame: few rows, handed to the engine in one Arrow batch.

A list of tuples would be pickled, made an RDD, and cost each broadcast of it a job; an Arrow table is a local relation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


def small_frame(spark: SparkSession, rows: Iterable[tuple[object, ...]], schema: pa.Schema) -> DataFrame:
    """Return a frame of rows that the driver holds.

    Args:
        spark: The session.
        rows: One tuple a row, values in the order of the schema.
        schema: Arrow's, which Spark converts.
    """
    held = list(rows)
    columns: Any = zip(*held, strict=True) if held else [()] * len(schema)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema))
