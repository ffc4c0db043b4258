"""A failed fsync is final: no sync is repeated, and nothing more is written to that disk.

After a failed fsync the kernel marks the pages clean; a second one would report success although the data is lost. The
log dir is READ_ONLY from there on, and later processes find it quarantined; work on the other disks continues.

Not here: other errors of the kernel (``failure``), the record for later processes (``disk.record.quarantine``).

Spec: design §3.4, law 6; reliability §4.3; attacks A10.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import read_only


@contextmanager
def syncing(directory: Directory) -> Iterator[None]:
    """Turn any error of a sync in the body into ``ReadOnlyDiskError``: writing to the disk ends.

    Raises:
        ReadOnlyDiskError: a sync in the body failed.
    """
    try:
        yield
    except OSError as error:
        raise read_only(directory, error, "a sync that succeeds") from error
