"""0.2.0 itself, built from its commit and installed apart: what it leaves half done this release upgrades, and it then
refuses by name, and touches nothing of it.

Spec: issue "The daemon at home on a host", For users; design §3.2; attacks A24.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.releases.make import HELD, IDS, KILLED, STATES, Release
from tests.releases.older import VERSION_0_2_0, is_read_by_0_2_0
from tests.tools import adopt_rig
from tests.tools.ctl import HOME, Said, ctl, tree
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMMIT = "10fa3c2"
"""*Version 0.2.0*"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Build the wheel of 0.2.0 from its commit, and install it into an environment of its own."""
    folder = tmp_path_factory.mktemp("0.2.0")
    archive = subprocess.run(["git", "archive", COMMIT], cwd=HOME, capture_output=True, check=False)
    if archive.returncode != 0:
        pytest.skip(f"needs the commit {COMMIT}: git fetch --unshallow")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as packed:
        packed.extractall(folder / "source", filter="tar")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--retries", "3")
    # In an environment of its own, too: it needs a newer setuptools than Python brings.
    building = (*pip, "wheel", "--no-deps", "-w", str(folder / "dist"), str(folder / "source"))
    built = subprocess.run(building, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-2000:]
    (wheel,) = (folder / "dist").glob("*.whl")
    made = Release(wheel, folder / "venv")
    assert made("--version") == Said(Exit.DONE, "logdirctl 0.2.0\n", "")
    return made


class Left(NamedTuple):
    """What 0.2.0 left: the log dirs of a broker, and the words that name them."""

    log_dirs: tuple[Path, ...]
    words: tuple[object, ...]

    @property
    def work_roots(self) -> list[Path]:
        """Where 0.2.0 kept what it keeps."""
        return [Path(f"{path}.logdird") for path in self.log_dirs]

    def kept(self) -> dict[str, tuple[object, ...]]:
        """Return what is staged, incoming, claimed or half done."""
        return {
            path: what for root in self.work_roots for path, what in tree(root / "deleting", root / "incoming").items()
        }


@pytest.fixture
def left_by(release: Release, tmp_path: Path) -> Callable[[str], Left]:
    """Let 0.2.0 leave its log dirs in a state."""

    def left(state: str) -> Left:
        STATES[state](release, tmp_path)
        if state == "start-block":  # Moved since it was planned.
            log_dirs = tuple(sorted((tmp_path / "broker").glob("d[0-9]")))
            return Left(log_dirs, ("--log-dirs", ",".join(map(str, log_dirs))))
        return Left(tuple(sorted(tmp_path.glob("d[0-9]"))), ("--server-properties", tmp_path / "server.properties"))

    return left


@contextmanager
def unchanged(left: Left) -> Iterator[None]:
    """Assert that nothing of the log dirs and work roots is changed meanwhile."""
    before = tree(*left.log_dirs, *left.work_roots)
    yield
    assert tree(*left.log_dirs, *left.work_roots) == before


def require_refused(release: Release, left: Left, commands: tuple[str, ...]) -> None:
    """Assert that 0.2.0 refuses commands by the name of a file that this release has upgraded, and changes nothing."""
    assert not any(map(is_read_by_0_2_0, left.work_roots))
    files = [root / "work-root.json" for root in left.work_roots]
    for command in commands:
        with unchanged(left):
            said = release(*command.split(), *left.words)
        assert said.status not in (Exit.DONE, Exit.INTERNAL), (command, said)
        found = (
            f"expected work_root version {VERSION_0_2_0}, found 2; use the release that wrote it; nothing was touched"
        )
        assert any(f"unsupported-version: {file}: {found}" in said.err for file in files), (command, said)


UNBLOCKED: Final = ("staged ls", "init --apply", "uninstall --apply", "layout rollback --apply")
"""What a start block alone does not keep from its work."""
COMMANDS: Final = (*UNBLOCKED, "staged hold pay --apply", "staged purge --apply", "capture --apply")


def test_what_is_staged_incoming_and_half_purged_is_refused_by_the_older_release_and_finished_by_the_newer(
    release: Release, left_by: Callable[[str], Left]
) -> None:
    left = left_by("staged")
    assert release("staged", "ls", *left.words).status == Exit.DONE
    before = left.kept()
    assert {path.rpartition("/")[2] for path in before} >= {f"{IDS['going']}_0.purging", f"{IDS['held']}_0"}
    assert ctl("staged", "hold", HELD, *left.words, "--apply").status == Exit.DONE
    assert left.kept() == before
    require_refused(release, left, (*COMMANDS, f"staged hold {HELD} --apply"))
    assert ctl("staged", "purge", *left.words, "--apply").status == Exit.DONE
    assert ctl("capture", *left.words, "--apply").status == Exit.DONE
    (deleting,) = (root / "deleting" for root in left.work_roots)
    assert sorted(path.name for path in deleting.iterdir()) == sorted(
        f"{IDS[one]}_0" for one in ("later", "held", "cut")
    )


def test_a_half_done_adoption_is_refused_by_the_older_release_and_finished_by_the_newer(
    release: Release, left_by: Callable[[str], Left]
) -> None:
    left = left_by("adopting")
    before = left.kept()
    assert [path for path in before if path.endswith(".ready")] != []
    # The gate is killed once it has upgraded the work roots, where 0.2.0 was killed.
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, "rename", ".ready ", "1", "handover", *map(str, left.words)],
        cwd=HOME,
        start_new_session=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed
    assert left.kept() == before
    require_refused(release, left, (*COMMANDS, f"staged adopt {adopt_rig.OLD} --as pay --apply"))
    assert ctl("handover", *left.words).status == Exit.DONE
    assert f"topic_id: {adopt_rig.NEW}" in (left.log_dirs[0] / "pay-0" / "partition.metadata").read_text()


def test_a_start_block_is_refused_by_the_older_release_rolled_back_by_the_newer_and_the_way_back_is_open(
    release: Release, left_by: Callable[[str], Left]
) -> None:
    left = left_by("start-block")
    blocked = [path / "start-block.json" for path in left.log_dirs]
    assert all(path.exists() for path in blocked)
    # A recovery alone changes nothing of the layout.
    assert ctl("handover", *left.words, "--recover-only").status == Exit.DONE
    assert all(path.exists() for path in blocked)
    require_refused(release, left, UNBLOCKED)
    assert ctl("layout", "rollback", *left.words, "--apply").status == Exit.DONE
    assert not any(path.exists() for path in blocked)
    # As docs/operations.md says: the newer takes its work roots away, the older makes its own.
    assert ctl("uninstall", *left.words, "--apply").status == Exit.DONE
    assert not any(root.exists() for root in left.work_roots)
    for command in ("init --apply", "staged ls", "layout rollback --apply"):
        said = release(*command.split(), *left.words)
        assert said.status == Exit.DONE, (command, said)
    assert all(map(is_read_by_0_2_0, left.work_roots))
