"""Progress of helper threads and processes that this thread waits for, from the kernel.

A worker that only waits for a hung helper must not count as working (``worker.child``).

Spec: design §2 law 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_AWAITED: dict[str, str] = {}
"""Files in ``/proc`` that change when their thread or process runs, and their last content."""


@contextmanager
def awaiting(*files: str) -> Iterator[None]:
    """Let signs of life depend on helpers while the block waits for them: none is sent while all stand still.

    Args:
        files: The ``schedstat`` file of each helper in ``/proc``.
    """
    _AWAITED.update(dict.fromkeys(files, ""))
    try:
        yield
    finally:
        for file in files:
            _AWAITED.pop(file, None)


def is_getting_on() -> bool:
    """Whether this thread works, or a helper that it waits for has run since the last call."""
    is_any = False
    for file, before in tuple(_AWAITED.items()):
        try:
            with open(file, encoding="ascii") as opened:
                found = opened.read()
        except OSError:
            return True  # The helper has ended, and this thread continues.
        _AWAITED[file] = found
        is_any = is_any or found != before
    return is_any or not _AWAITED
