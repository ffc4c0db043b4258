"""0.2.0 itself, built from its commit, refuses by name what this release has upgraded, and touches nothing of it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pytest

from tests.releases.older import VERSION_0_2_0
from tests.releases.rig import unpack
from tests.tools.ctl import HOME, Said, ctl, tree
from tools.cli.arguments import Exit

pytestmark = pytest.mark.slow
COMMIT = "10fa3c2"
"""*Version 0.2.0*"""
_CODE = "import sys; sys.path.insert(0, sys.argv.pop(1)); from tools.entry import logdirctl; sys.exit(logdirctl())"
_HELD = "AAAAAAAAAAAAAAAAAAABCA"


class Release:
    """0.2.0, installed into a directory of its own."""

    def __init__(self, site: Path) -> None:
        self._site = site

    def __call__(self, *words: object) -> Said:
        """Type a command."""
        done = subprocess.run(
            [sys.executable, "-c", _CODE, str(self._site), *map(str, words)],
            cwd="/",
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            capture_output=True,
            text=True,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Build the wheel of 0.2.0 from its commit, and install it."""
    folder = tmp_path_factory.mktemp("0.2.0")
    archive = subprocess.run(["git", "archive", COMMIT], cwd=HOME, capture_output=True, check=False)
    if archive.returncode != 0:
        pytest.skip(f"needs the commit {COMMIT}: git fetch --unshallow")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as packed:
        packed.extractall(folder / "source", filter="tar")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    building = (*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder / "dist"), str(folder / "source"))
    built = subprocess.run(building, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        pytest.skip(f"needs pip and setuptools to build a wheel: {built.stderr.strip()[-200:]}")
    (wheel,) = (folder / "dist").glob("*.whl")
    installing = (*pip, "install", "--no-deps", "--no-index", "--target", str(folder / "site"), str(wheel))
    subprocess.run(installing, capture_output=True, check=True)
    made = Release(folder / "site")
    assert made("--version") == Said(Exit.DONE, "logdirctl 0.2.0\n", "")
    return made


@contextmanager
def unchanged(top: Path) -> Iterator[None]:
    """Assert that nothing below a directory is changed meanwhile."""
    before = tree(top)
    yield
    assert tree(top) == before


COMMANDS = (
    "staged ls", f"staged hold {_HELD} --apply", "staged purge --apply", "capture --apply", "init --apply",
    "uninstall --apply", "layout rollback --apply",
)  # fmt: skip


def test_a_downgrade_is_refused_by_name_and_the_newer_release_goes_on(release: Release, tmp_path: Path) -> None:
    top = unpack("0.2.0", "staged", tmp_path)
    words = ("--server-properties", top / "server.properties")
    assert release("staged", "ls", *words).status == Exit.DONE, "its own tree it reads"
    assert ctl("staged", "hold", _HELD, *words, "--apply").status == Exit.DONE
    file = top / "d1.logdird" / "work-root.json"
    for command in COMMANDS:
        with unchanged(top):
            said = release(*command.split(), *words)
        assert said.status not in (Exit.DONE, Exit.INTERNAL), (command, said)
        line = f"unsupported-version: {file}: expected work_root version {VERSION_0_2_0}, found 2; "
        assert line in said.err, (command, said)
        assert "use the release that wrote it; nothing was touched" in said.err
    assert ctl("staged", "ls", *words).status == Exit.DONE
    assert ctl("staged", "purge", *words, "--apply").status == Exit.DONE


@pytest.mark.parametrize("state", ["adopting", "start-block"])
def test_what_is_half_done_is_not_gone_on_with_by_the_older_release(
    release: Release, state: str, tmp_path: Path
) -> None:
    top = unpack("0.2.0", state, tmp_path)
    top = top / "broker" if state == "start-block" else top
    words = ("--log-dirs", ",".join(str(path) for path in sorted(top.glob("d[0-9]"))))
    # A recovery alone finishes the adoption, and of the layout it changes nothing.
    assert ctl("handover", *words, "--recover-only").status == Exit.DONE
    with unchanged(top):
        said = release("layout", "rollback", *words, "--apply")
        assert (said.status not in (Exit.DONE, Exit.INTERNAL), "unsupported-version: " in said.err) == (True, True), (
            said
        )
