"""``logdirctl`` of root, in a process of its own, becomes the owner of the log dirs before it changes anything.

Spec: attacks A9.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import log_dir, partition
from tests.tools.ctl import CODE, HOME, Said
from tools.cli.arguments import Exit

pytestmark = pytest.mark.root
OWNER, GROUP = 4242, 4343


@pytest.fixture
def disks() -> Iterator[tuple[Path, Path]]:
    """Two log dirs of a user without a name, where that user can reach them; what root alone may write lies beside."""
    with tempfile.TemporaryDirectory(prefix="as-owner-") as folder:
        os.chown(folder, OWNER, GROUP)
        one = log_dir(Path(folder) / "d1")
        two = log_dir(Path(folder) / "d2", directory="AAAAAAAAAAAAAAAAAAAABA")
        partition(one / "pay-0", segments={0: 100})
        for base, _, files in os.walk(folder):
            for path in (base, *(f"{base}/{name}" for name in files)):
                os.chown(path, OWNER, GROUP)
        yield one, two


def is_readable(path: str) -> bool:
    """Whether every user can read a file."""
    at = Path(path).resolve()
    return bool(at.stat().st_mode & 0o004) and all(above.stat().st_mode & 0o001 for above in at.parents)


def python() -> str:
    """Return an interpreter whose modules every user can read."""
    if is_readable(os.__file__):
        return sys.executable
    system = "/usr/bin/python3"
    test = [system, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    if not Path(system).exists() or subprocess.run(test, check=False).returncode:
        pytest.skip("needs a Python >= 3.11 that every user can read")
    return system


def typed(*words: object, interpreter: str = "") -> Said:
    """Type a command as root, in a process of its own."""
    if not is_readable(__file__):
        pytest.skip("needs a tree that every user can read")
    command = [interpreter or python(), "-c", CODE, *map(str, words)]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, timeout=60, check=False)
    return Said(done.returncode, done.stdout, done.stderr)


def owners(*tops: Path) -> set[tuple[int, int]]:
    found = {path.lstat() for top in tops for path in (top, *top.rglob("*"))}
    return {(one.st_uid, one.st_gid) for one in found}


def roots(*log_dirs: Path) -> list[Path]:
    return [Path(f"{path}.logdird") for path in log_dirs]


def test_a09_what_root_makes_belongs_to_the_owner(disks: tuple[Path, Path]) -> None:
    named = ("--log-dirs", ",".join(map(str, disks)))
    made = typed("init", *named, "--apply")
    assert made.status == Exit.DONE, made
    staged = typed("stage", "pay", *named, "--even-if-unknown", "--even-over-limit", "--apply")
    assert staged.status == Exit.DONE, staged
    assert len(list(roots(*disks)[0].glob("deleting/*"))) == 1
    assert owners(*disks, *roots(*disks)) == {(OWNER, GROUP)}


def test_a09_root_can_do_no_more_than_the_owner_may(disks: tuple[Path, Path]) -> None:
    """A file of root's in a log dir is a fault that root does not hide."""
    os.chown(disks[0] / "meta.properties", 0, 0)
    (disks[0] / "meta.properties").chmod(0o600)
    said = typed("init", "--log-dirs", disks[0], "--apply")
    assert (said.status, "no-permission" in said.err) == (Exit.REFUSED, True), said
    assert not roots(disks[0])[0].exists()


def test_a09_log_dirs_of_different_owners_are_refused_before_anything_is_made(disks: tuple[Path, Path]) -> None:
    os.chown(disks[1], 0, 0)
    named = ("--log-dirs", ",".join(map(str, disks)))
    for words in (("--apply",), ()):
        said = typed("init", *named, *words)
        assert (said.status, said.err.startswith(f"logdirctl init: owners-differ: {disks[1]}: ")) == (4, True), said
    assert not any(root.exists() for root in roots(*disks))
    skipped = typed("init", *named, "--skip-log-dir", disks[1])
    assert "owners-differ" not in skipped.err


def test_a_command_that_only_reads_stays_root(disks: tuple[Path, Path]) -> None:
    os.chown(disks[1], 0, 0)
    said = typed("inventory", "--log-dirs", ",".join(map(str, disks)))
    assert said.status == Exit.DONE, said


def test_a09_a_copy_is_written_as_the_owner(disks: tuple[Path, Path]) -> None:
    named = ("--log-dirs", ",".join(map(str, disks)))
    assert typed("init", *named, "--apply").status == Exit.DONE
    assert typed("stage", "pay", *named, "--even-if-unknown", "--even-over-limit", "--apply").status == Exit.DONE
    for place in ("out", "root-only"):
        (disks[0].parent / place).mkdir(mode=0o755)
    os.chown(disks[0].parent / "out", OWNER, GROUP)
    said = typed("staged", "export", "pay", *named, "-o", disks[0].parent / "out", "--apply")
    assert said.status == Exit.DONE, said
    assert owners(disks[0].parent / "out") == {(OWNER, GROUP)}
    said = typed("staged", "export", "pay", *named, "-o", disks[0].parent / "root-only", "--apply")
    assert said.status != Exit.DONE, said
    assert list((disks[0].parent / "root-only").iterdir()) == []


def test_an_installation_that_the_owner_cannot_read_is_refused_before_anything_is_made(
    disks: tuple[Path, Path],
) -> None:
    if is_readable(os.__file__):
        pytest.skip("needs a Python that only root can read")
    said = typed("init", "--log-dirs", disks[0], "--apply", interpreter=sys.executable)
    assert (said.status, said.err.startswith(f"logdirctl init: no-permission: {os.__file__}: ")) == (4, True), said
    assert not roots(disks[0])[0].exists()
