"""One path above a log dir and its work root: the mount point, so that systemd makes no mount of its own.

Spec: attacks A6; systemd.exec(5), ``ReadWritePaths=``.
"""

from __future__ import annotations

import pytest

from logdir.errors import ConfigError
from logdir.observe.log_dir_place import LogDirPlace
from logdir.observe.mounts import Mount
from logdir.service.systemd.writable import check_paths, is_below, mount_point_of, writable_path, writable_paths


def mounts(*points: str) -> tuple[Mount, ...]:
    return tuple(Mount(point.encode(), "ext4", str(number), f"8:{number}") for number, point in enumerate(points))


def place(real: str, *, holds_work_root: bool = False) -> LogDirPlace:
    return LogDirPlace(real, 1000, 1000, holds_work_root)


HOST = mounts("/", "/var", "/data/d1", "/data/d2", "/data/d2/inner", "/data/d")


@pytest.mark.parametrize(
    ("real", "point"),
    [
        ("/data/d1", "/data/d1"),
        ("/data/d1/kafka", "/data/d1"),
        ("/data/d10/kafka", "/"),
        ("/data/d2/inner/kafka", "/data/d2/inner"),
        ("/var/lib/kafka", "/var"),
        ("/kafka", "/"),
    ],
)
def test_the_mount_point_is_the_longest_that_holds_it(real: str, point: str) -> None:
    assert mount_point_of(real, HOST) == point


def test_of_no_mounts_the_root_is_the_mount_point() -> None:
    assert mount_point_of("/data/d1", ()) == "/"


@pytest.mark.parametrize(
    ("real", "holds", "path"),
    [
        # A disk of its own: its mount point, wherever on it log dir and work root lie.
        ("/data/d1/kafka", False, "/data/d1"),
        ("/data/d1/a/b/kafka", False, "/data/d1"),
        ("/data/d1", True, "/data/d1"),
        ("/data/d1", False, "/data/d1"),
        # A file system of the system: the directory that holds both.
        ("/var/lib/kafka/data", False, "/var/lib/kafka"),
        ("/srv/kafka", False, "/srv"),
        ("/srv/kafka", True, "/srv/kafka"),
        ("/kafka", True, "/kafka"),
    ],
)
def test_a06_one_path_lies_above_log_dir_and_work_root(real: str, holds: bool, path: str) -> None:
    found = writable_path("d1", place(real, holds_work_root=holds), HOST)
    assert found == path
    assert is_below(real, (found,))
    assert holds or real == found or is_below(f"{real}.logdird", (found,))


def test_a_log_dir_beside_which_nothing_can_be_opened_is_refused_by_its_name() -> None:
    with pytest.raises(ConfigError) as refused:
        writable_paths({"/link": place("/kafka"), "/d2": place("/other")}, HOST)
    assert [problem.path for problem in refused.value.problems] == ["/link", "/d2"]
    assert "--work-root in-place" in refused.value.problems[0].fix


def test_two_log_dirs_of_one_disk_are_one_path() -> None:
    places = {f"/data/d1/{name}": place(f"/data/d1/{name}") for name in ("a", "b")}
    assert writable_paths({**places, "/data/d2/a": place("/data/d2/a")}, HOST) == ("/data/d1", "/data/d2")


def test_what_the_units_hide_is_named() -> None:
    found = check_paths({"socket": "/tmp/s.sock", "log.dirs": "/var/tmp", "state.dir": "/tmpfs/state"})
    assert [(problem.path, problem.found) for problem in found] == [("socket", "/tmp/s.sock"), ("log.dirs", "/var/tmp")]
