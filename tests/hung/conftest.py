"""Images for the sick disks, where nobody else sees what is mounted; nothing is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hung.rig import lacking
from tests.kernel.images import Images, images_below, leftovers


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """Images of ext4; fails the run if a mount or a loop device is left at its end."""
    if reason := lacking():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("hung")
    top = tmp_path_factory.getbasetemp()

    def left() -> list[str]:
        # The images of tests/kernel are its own to take away, maybe later.
        return [one for one in leftovers(top) if f"{top}/kernel" not in one]

    with images_below(folder / "images", left) as made:
        yield made
