"""Spark jobs in the background, while the driver computes or waits for other jobs.

Two independent writes leave a processor idle at both their ends, because planning, starting and committing a job each
use one thread.

Not here: the jobs themselves (``plan.build``).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession


class BackgroundJobs:
    """One thread that runs Spark jobs in the order given, while the body of a ``with`` runs; its end waits for all.

    An error of a job is raised at the end of the body. If the body itself fails, jobs that have not begun are dropped.
    """

    def __init__(self, spark: SparkSession) -> None:
        # Spark keeps a job's settings per thread: give this thread those of the driver.
        self._inherit: Any = inheritable_thread_target(spark)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="logdird-beside")
        self._begun: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        self._pool.shutdown(cancel_futures=kind is not None)
        if kind is None:
            for work in self._begun:
                work.result()

    def begin(self, work: Callable[[], None]) -> None:
        """Run ``work`` in the background, after all that was begun before."""
        self._begun.append(self._pool.submit(self._inherit(work)))
