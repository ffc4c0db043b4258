"""docs/compatibility.md says of a release, a kernel, a file system and a Python what the tests and the source say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from logdir.decide.layout.precondition import RELEASES as REFUSED
from logdir.disk.kernel.file_system import SUPPORTED
from tests.generated.compatibility import INTERNAL, PAGE, ROWS, columns, render, rows
from tests.kafka.rotation import SCENARIOS
from tests.kernel.images import FILE_SYSTEMS

HOME = Path(__file__).parents[2]
TEXT = PAGE.read_text("utf-8")


def table(heading: str) -> list[list[str]]:
    """Return the cells of the rows below a heading of the page."""
    part = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.split(" | ")] for line in (one.strip("|").strip() for one in lines)]


def test_the_page_is_as_it_is_generated() -> None:
    assert render() == TEXT, "python -m tests.generated writes it again"


def test_every_scenario_belongs_to_a_row() -> None:
    named = [one for row in ROWS for one in row.scenarios]
    assert len(named) == len(set(named))
    assert set(named) | INTERNAL == set(SCENARIOS)


def test_a_cell_says_tested_only_where_a_broker_of_the_release_runs() -> None:
    releases = columns()
    for row, line in zip(ROWS, list(rows())[2:], strict=True):
        cells = line.strip("| ").split(" | ")[1:]
        assert len(cells) == len(releases)
        for release, cell in zip(releases, cells, strict=True):
            is_run = any(release in SCENARIOS[one] for one in row.scenarios) or release in row.started
            assert (cell == "tested") is is_run, (row.feature, release)
            assert cell in ("tested", "files", "-")


def test_the_releases_that_matter_most_are_tested_with_every_feature_of_a_running_broker() -> None:
    for row in ROWS:
        if row.scenarios:
            assert {row.cell(release) for release in ("3.9.2", "4.3.1")} == {"tested"}, row.feature
    assert columns()[0] == "2.8.2"
    assert columns()[-1] == "4.3.1"


def test_what_no_released_kafka_reads_is_said_as_everywhere() -> None:
    assert f"No released Kafka ({REFUSED}) reads directories named by topic id" in TEXT


def test_the_file_systems_are_those_that_are_allowed_and_tested() -> None:
    names = {"xfs": "XFS"}
    part = TEXT.partition("## File systems")[2].partition("\n## ")[0]
    tested, memory = re.findall(r"^\| ([\w, ]+) \| tested", part, re.MULTILINE)
    assert tested.split(", ") == [names.get(one, one) for one in FILE_SYSTEMS]
    assert memory == "tmpfs"
    assert {*FILE_SYSTEMS, memory} == set(SUPPORTED)


@pytest.mark.parametrize(
    ("call", "path", "text"),
    [
        ("O_TMPFILE", "logdir/disk/kernel/host.py", "os.O_TMPFILE"),
        ("renameat2", "logdir/disk/kernel/libc.py", "_LIBC.renameat2"),
        ("F_OFD_SETLK", "logdir/disk/locks.py", "fcntl.F_OFD_SETLK"),
        ("F_SETLEASE", "logdir/disk/kernel/in_use.py", "fcntl.F_SETLEASE"),
        ("syncfs", "logdir/disk/kernel/libc.py", "_LIBC.syncfs"),
        ("sync_file_range", "logdir/disk/kernel/libc.py", "_LIBC.sync_file_range"),
        ("statx", "logdir/disk/kernel/libc.py", "_LIBC.statx"),
        ("STATX_MNT_ID", "logdir/disk/kernel/libc.py", "_STATX_MNT_ID"),
        ("pidfd_open", "logdir/worker/reaping.py", "os.pidfd_open"),
        ("inotify", "logdir/worker/watch.py", "InotifyObserver"),
    ],
)
def test_every_call_of_the_kernel_that_the_page_names_is_used(call: str, path: str, text: str) -> None:
    assert text in (HOME / path).read_text("utf-8")
    assert any(call in row[0] for row in table("Kernel")), call


def test_every_call_by_ctypes_is_named() -> None:
    source = (HOME / "logdir/disk/kernel/libc.py").read_text("utf-8")
    ancient = {"linkat"}
    assert set(re.findall(r"_LIBC\.(\w+)\(", source)) - ancient <= set(re.findall(r"`(\w+)`", TEXT))


def test_the_oldest_kernel_is_that_of_the_newest_call_without_which_it_is_refused() -> None:
    needed = [tuple(map(int, row[1].split("."))) for row in table("Kernel") if row[-1] == "refused"]
    (oldest,) = re.findall(r"Kernel \*\*([\d.]+)\*\* has every call that is needed", TEXT)
    assert max(needed) == tuple(map(int, oldest.split(".")))


def test_the_oldest_python_is_that_of_the_project() -> None:
    project = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["requires-python"] == ">=3.11"
    assert "| Python 3.11 | tested" in TEXT
    assert "| Python 3.10 and older | refused" in TEXT
