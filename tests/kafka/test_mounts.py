"""A broker and its daemon on real file systems of their own: log dirs that are mount roots, a disk that fills up.

Spec: design §3.1, §3.3; attacks A5, A14, A50.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.kafka.rotation import releases_of
from tests.kernel.images import Images, images_below, leftovers, missing

pytestmark = [pytest.mark.kafka, pytest.mark.root, pytest.mark.timeout(900)]

HOME: Final = Path(__file__).parents[2]
_LONGEST_S: Final = 800


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """Images of ext4; fails the run if a mount or a loop device is left at its end."""
    if reason := missing("ext4") or no_user_namespaces():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("kafka-mounts")
    with images_below(folder / "images", lambda: leftovers(folder)) as made:
        yield made


def no_user_namespaces() -> str:
    """Say what is missing for a user without capabilities; empty if nothing."""
    command = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "true"]
    is_made = subprocess.run(command, capture_output=True, check=False).returncode == 0
    return "" if is_made else "needs user namespaces: sysctl user.max_user_namespaces"


def run(scenario: str, version: str, folder: Path, *mounted: Path) -> None:
    """Run a scenario as a user without capabilities, and show what it printed. Nothing of it goes on afterwards."""
    words = (scenario, version, str(folder), *map(str, mounted))
    command = [".ci/as-user", sys.executable, "-m", "tests.kafka.on_mounts", *words]
    told = folder / "told"
    with told.open("w") as out:
        process = subprocess.Popen(command, cwd=HOME, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(_LONGEST_S)
        finally:
            # Its daemon is of the same group; a broker ends with the program that started it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            print(told.read_text())
    assert status == 0


@pytest.mark.parametrize("version", releases_of("daemon undo"))
def test_a05_a16_a_deleted_topic_comes_back_on_log_dirs_that_are_mount_roots(
    version: str, jars: Callable[[str], Path], images: Images, tmp_path: Path
) -> None:
    jars(version)
    mounts = [images.mount(images.make("ext4", 192), "ext4") for _ in range(2)]
    for one in mounts:
        (one.path / "lost+found").rmdir()
    run("in-place", version, tmp_path, *(one.path for one in mounts))
    images.forget(*mounts)


@pytest.mark.parametrize("version", releases_of("daemon undo"))
def test_a14_a50_a_disk_that_captured_replicas_would_fill_never_fails_a_write_of_its_broker(
    version: str, jars: Callable[[str], Path], images: Images, tmp_path: Path
) -> None:
    jars(version)
    # Without the reserve of root: for the kernel the user of the broker is root, who may write where free is 0.
    one = images.mount(images.make("ext4", 384, ("-N", "65536", "-m", "0")), "ext4")
    run("filling", version, tmp_path, one.path)
    images.forget(one)
