"""What this thread waits for: threads and processes of ours, of which only the kernel tells whether they get on.

A worker that only waits for a helper must not pass for one that is at work (``worker.child``).

Spec: design §2 law 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_AWAITED: dict[str, str] = {}
"""Files in ``/proc`` that change as soon as what they are about runs, and what they held when last asked."""


@contextmanager
def awaiting(*files: str) -> Iterator[None]:
    """Wait for helpers meanwhile.

    Args:
        files: The ``schedstat`` of each in ``/proc``.
    """
    _AWAITED.update(dict.fromkeys(files, ""))
    try:
        yield
    finally:
        for file in files:
            _AWAITED.pop(file, None)


def is_getting_on() -> bool:
    """Whether this thread is at work, or a helper it waits for has run since this was asked last."""
    is_any = False
    for file, before in tuple(_AWAITED.items()):
        try:
            with open(file, encoding="ascii") as opened:
                found = opened.read()
        except OSError:
            return True  # it has ended, and this thread goes on
        _AWAITED[file] = found
        is_any = is_any or found != before
    return is_any or not _AWAITED
