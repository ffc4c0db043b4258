"""Somebody else on the same file system: appends 4 KiB and syncs, again and again, and says how long each sync took.

``python -m benchmarks.neighbour FILE``; ends with its standard input, and then prints a line for each sync.

Spec: reliability §2.3, §7 row 15.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from benchmarks.measure import HOME

_BETWEEN_S = 0.002
_DATA = os.urandom(4096)


class Sync(NamedTuple):
    """One ``fsync``; seconds of the monotonic clock."""

    began: float
    ended: float


class Neighbour:
    """A process that is at work; what it did is known when it has ended."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.syncs: list[Sync] = []

    def took_ms(self, spans: Sequence[tuple[float, float]]) -> list[float]:
        """Return what the syncs took that were under way at some time of these spans, in ms, sorted."""
        return sorted(
            1000 * (one.ended - one.began)
            for one in self.syncs
            if any(one.began < ended and began < one.ended for began, ended in spans)
        )


@contextmanager
def neighbour(home: str) -> Iterator[Neighbour]:
    """Let one work in a directory."""
    found = Neighbour()
    path = os.path.join(home, "neighbour")
    command = [sys.executable, "-m", "benchmarks.neighbour", path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HOME) as process:
        try:
            yield found
        finally:
            said, _ = process.communicate()
            os.unlink(path)
    found.syncs += [Sync(*map(float, line.split())) for line in said.splitlines()]


def main() -> int:
    """Work until told to end."""
    syncs = []
    descriptor = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    while not select.select([sys.stdin], [], [], _BETWEEN_S)[0]:
        os.write(descriptor, _DATA)
        began = time.monotonic()
        os.fsync(descriptor)
        syncs.append((began, time.monotonic()))
    print("\n".join(f"{began} {ended}" for began, ended in syncs))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
