"""Fixtures of the tests on real kernels: images in memory, mounted where nobody else sees them; nothing is left.

What a machine lacks is said as the reason of a skip: root, loop devices, the makers of the three file systems, strace.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernel.cuts import Machine
from tests.kernel.errnos import Bench
from tests.kernel.images import FILE_SYSTEMS, Images, images_below, leftovers, missing
from tests.kernel.runner import Runner
from tests.kernel.tracing import Tracer, missing_strace

_DISKS = 2
"""As many as the operation with the most has."""


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """Images on three file systems; fails the run if a mount or a loop device is left at its end."""
    if reason := missing(*FILE_SYSTEMS):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("kernel") / "images"
    with images_below(folder, lambda: leftovers(folder)) as made:
        yield made


@pytest.fixture(scope="session")
def machine(images: Images) -> Machine:
    """What cuts the power."""
    return Machine(images)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    """What runs operations in processes of their own."""
    made = Runner()
    yield made
    made.close()


@pytest.fixture(scope="module")
def bench(images: Images, runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Real directories on ext4, and strace beside them."""
    if reason := missing_strace():
        pytest.skip(reason)
    mounts = [images.mount(images.make("ext4", 256, ("-N", "65536")), "ext4") for _ in range(_DISKS)]
    yield Bench(Tracer(runner, tmp_path_factory.mktemp("trace")), [mounted.path for mounted in mounts])
    images.forget(*mounts)
