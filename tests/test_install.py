"""``make install`` and ``make uninstall``: exactly the files that docs/install.md lists, and nothing left afterwards.

Spec: issue "The daemon at home on a host", systemd.
"""

from __future__ import annotations

import os
import re
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "install.md").read_text("utf-8")
HOME = "/usr/local/lib/logdird/"


def rows() -> list[str]:
    """Return the files that the page lists."""
    return re.findall(r"^\| `(/usr/local/\S+)` \|", PAGE, re.MULTILINE)


def listed(prefix: str = "/usr/local") -> list[str]:
    done = subprocess.run(
        [ROOT / ".ci" / "install", "list"],
        env={"PATH": os.environ["PATH"], "PREFIX": prefix},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def require_as_on_the_page(files: list[str]) -> None:
    """Check that each file is in one row of the page, and each row has one."""
    assert {name: [row for row in rows() if fnmatchcase(name, row)] for name in files} == {
        name: [row] for name in files for row in rows() if fnmatchcase(name, row)
    }
    assert [row for row in rows() if not any(fnmatchcase(name, row) for name in files)] == []


def test_what_is_installed_is_what_the_page_lists() -> None:
    require_as_on_the_page(listed())


@pytest.mark.parametrize(
    ("prefix", "units"),
    [
        ("/usr", "/usr/lib/systemd/system"),
        ("/usr/local", "/usr/local/lib/systemd/system"),
        ("/opt/logdird", "/etc/systemd/system"),
    ],
)
def test_units_go_where_systemd_looks(prefix: str, units: str) -> None:
    found = [Path(name) for name in listed(prefix)]
    assert {str(path.parent) for path in found if path.suffix in (".service", ".socket")} == {units}
    assert Path(f"{prefix}/bin/logdirctl") in found


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"PREFIX": "usr"}, ["install"]),
        ({"PREFIX": "/usr local"}, ["install"]),
        ({"DESTDIR": "/a;b"}, ["uninstall"]),
        ({}, ["remove"]),
        ({}, []),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_done(
    tmp_path: Path, variables: dict[str, str], words: list[str]
) -> None:
    done = subprocess.run(
        [ROOT / ".ci" / "install", *words],
        env={"PATH": os.environ["PATH"], "DESTDIR": str(tmp_path), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.startswith("install: "), done.stderr.count("\n")) == (2, True, 1)
    assert os.listdir(tmp_path) == []


def make(*words: str) -> None:
    done = subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def files_below(top: Path) -> list[str]:
    """Return every file and link, as the page names them: the environment is one entry."""
    found = {f"/{path.relative_to(top)}" for path in top.rglob("*") if path.is_symlink() or path.is_file()}
    inside = {name for name in found if name.startswith(HOME)}
    return sorted((found - inside) | ({HOME} if inside else set()))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_install_leaves_exactly_these_files_which_work_and_uninstall_takes_all_away(tmp_path: Path) -> None:
    words = (f"DESTDIR={tmp_path}/root", "PREFIX=/usr/local")
    top = tmp_path / "root"
    make("install", *words)
    require_as_on_the_page(files_below(top))
    assert files_below(top) == sorted(listed())
    # Nothing there names the place in which it was put together, and it runs where it is put: by a link, if need be.
    place = str(top).encode()
    texts = [path for path in (top / HOME.strip("/") / "bin").iterdir() if path.is_file() and not path.is_symlink()]
    assert [path.name for path in texts if place in path.read_bytes()] == []
    home = top / HOME.strip("/")
    done = subprocess.run(
        [home / "bin" / "python", home / "bin" / "logdirctl", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.startswith("logdirctl ")) == (0, True), done.stderr
    assert list((home / "lib").rglob("logdir/__pycache__/*.pyc")) != []
    unit = (top / "usr/local/lib/systemd/system/logdird@.service").read_text("utf-8")
    assert "ExecStart=/usr/local/bin/logdird --config" in unit
    assert "/opt/logdird" not in unit
    # A second time, as an upgrade does: the same files.
    make("install", *words)
    assert files_below(top) == sorted(listed())
    make("uninstall", *words)
    assert files_below(top) == []
