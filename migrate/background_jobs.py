"""Background jobs of Spark that run while the driver computes or waits for other jobs.

Two independent writes leave a processor idle at both their ends, because planning, starting and committing a job each
use one thread.

Not here: what is written (``plan``).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession


class BackgroundJobs:
    """One thread for such jobs, run in the order given; leaving the body waits for all of them.

    An error of a job is raised when the body is left. If the body itself fails, jobs that have not begun are dropped.
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
        """Start a job in the background."""
        self._begun.append(self._pool.submit(self._inherit(work)))
