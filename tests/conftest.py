"""What all tests share: a scrubbed environment and one Spark session."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KEPT = ("LOGDIRD_PROOF", "LOGDIRD_CI", "LOGDIRD_KAFKA_CACHE")  # what the person who starts the tests says

for _name in [name for name in os.environ if name.startswith(("LOGDIRD_", "SPARK_", "PYSPARK_")) and name not in _KEPT]:
    del os.environ[_name]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local Spark session for the whole run: two cores, no UI, UTC, two shuffle partitions."""
    for package in ("pyspark", "pyarrow", "pandas"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}: pip install 'logdird[fleet]'")
    from migrate import jvm
    from migrate.errors import SessionError
    from migrate.session import spark_session

    try:
        jvm.find(os.environ)
    except SessionError as error:
        pytest.skip(str(error))
    with spark_session("local[2]", memory="1g", shuffle_partitions=2) as session:
        yield session
