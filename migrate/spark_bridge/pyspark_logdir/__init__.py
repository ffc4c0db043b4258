"""Bridge module by which Spark finds the data source ``logdir``.

Spark lists the top-level modules whose names start with ``pyspark_`` and takes their ``DefaultSource``.
Nothing else is here; the data source is ``migrate.source.data_source``.

Spec: design §1; libraries §1.4.
"""

from migrate.source.data_source import LogDirSource as DefaultSource

__all__ = ["DefaultSource"]
