"""Work of the engine that goes on while the driver thinks, or waits for other work of the engine.

Two writes that know nothing of each other leave a processor idle at both their ends: planning, starting and committing
are each the business of one thread.

Not here: what is written (``plan``).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession


class BackgroundJobs:
    """One thread for such work, done in the order given; leaving the body waits for all of it.

    What fails there is raised when the body is left. If the body itself fails, what has not begun never does.
    """

    def __init__(self, spark: SparkSession) -> None:
        # The engine keeps a job's settings by thread: this one is to have those of the driver's.
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
        """Do this beside what comes next."""
        self._begun.append(self._pool.submit(self._inherit(work)))
