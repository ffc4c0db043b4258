"""What goes on beside the driver: in order, waited for, and never lost when it fails."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark", reason="needs pyspark: pip install 'logdird[fleet]'")
from migrate.background_jobs import BackgroundJobs  # noqa: E402 - after the skip


def test_what_was_begun_is_done_in_order_when_the_body_is_left(spark: SparkSession) -> None:
    done: list[int] = []
    with BackgroundJobs(spark) as beside:
        beside.begin(lambda: done.append(spark.range(3).count()))
        beside.begin(lambda: done.append(spark.range(5).count()))
    assert done == [3, 5]


def test_settings_of_a_job_are_those_of_the_driver(spark: SparkSession) -> None:
    found: list[str | None] = []
    spark.sparkContext.setLocalProperty("logdird.test", "here")
    try:
        with BackgroundJobs(spark) as beside:
            beside.begin(lambda: found.append(spark.sparkContext.getLocalProperty("logdird.test")))
    finally:
        spark.sparkContext.setLocalProperty("logdird.test", None)  # type: ignore[arg-type]  # how it is unset
    assert found == ["here"]


def test_a_failure_beside_is_raised_when_the_body_is_left(spark: SparkSession) -> None:
    def fail() -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"), BackgroundJobs(spark) as beside:
        beside.begin(fail)


def test_a_failure_of_the_body_waits_for_what_runs_and_drops_the_rest(spark: SparkSession) -> None:
    done: list[str] = []
    runs, leave = threading.Event(), threading.Event()

    def slow() -> None:
        runs.set()
        leave.wait(1)  # for longer than the body lives
        done.append("slow")

    def stopped() -> None:
        with BackgroundJobs(spark) as beside:
            beside.begin(slow)
            beside.begin(lambda: done.append("never"))
            assert runs.wait(30)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert done == ["slow"]
