"""Images for the sick disks, where nobody else sees what is mounted; nothing is left."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.hung.rig import lacking
from tests.kernel.images import Images, leave_mounts, leftovers

_PATIENCE_S = 10


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """Images of ext4; fails the run if a mount or a loop device is left at its end."""
    if reason := lacking():
        pytest.skip(reason)
    leave_mounts()
    folder = tmp_path_factory.mktemp("hung")
    made = Images(folder / "images")
    yield made
    made.close()
    end = time.monotonic() + _PATIENCE_S
    top = tmp_path_factory.getbasetemp()

    def left() -> list[str]:
        # The images of tests/kernel are its own to take away, maybe later.
        return [one for one in leftovers(top) if f"{top}/kernel" not in one]

    while left() and time.monotonic() < end:
        time.sleep(0.1)  # a loop device frees itself in its own time
    assert left() == []
