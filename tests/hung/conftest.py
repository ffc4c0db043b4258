"""Images for the sick disks, where nobody else sees what is mounted; nothing is left."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hung.rig import LateError, lacking
from tests.kernel.images import Images, images_below, leftovers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run a test again, at most twice, if an answer came late: one that waits for the disk is late every time."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.flaky(reruns=2, only_rerun=[rf"^{LateError.__name__}\b"]))


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


@pytest.fixture(scope="session")
def memory(images: Images) -> Path:
    """A file system in memory: what the disks that answer take for a sync is then not a matter of this machine's."""
    return images.mount(images.make("ext4", 2048, ("-N", "65536")), "ext4").path


@pytest.fixture
def tmp_path(memory: Path) -> Iterator[Path]:
    """A directory in memory for all but the sick disk; gone after the test."""
    path = Path(tempfile.mkdtemp(dir=memory))
    yield path
    shutil.rmtree(path, ignore_errors=True)
