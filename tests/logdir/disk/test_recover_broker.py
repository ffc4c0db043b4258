"""The one way in to recovery: adoptions first, over all log dirs, and none of them where a log dir is left out."""

from __future__ import annotations

import ast
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from logdir.disk.kernel.host import HostDisk
from logdir.disk.recover_broker import recover_broker
from logdir.errors import LogDirOfflineError
from logdir.formats.own.replica_marker import FILE_NAME
from logdir.service.log_dirs.os_errors import map_os_errors
from tests.logdir.disk.rescue import NEW, open_site, put, stopped
from tests.logdir.disk.test_adopt import Host

ROOT = Path(__file__).parents[3]
READY = f"{NEW}_0.ready"


def cut(path: Path) -> Host:
    """Return log dirs in which an adoption was cut off when it was ready, beside an interrupted staging."""
    host = Host(path)

    with stopped(host, lambda _, call: call.name == "fsync-dir" and READY in os.listdir(host.work(0) / "incoming")):
        host.adopt()
    assert os.listdir(host.work(0) / "incoming") == [READY]
    put(host.tops[1] / "other-3", {FILE_NAME: b"half a mar", "00000000000000000000.log": b"x"})
    host.calls = []
    return host


def test_a16_adoptions_are_looked_at_before_anything_else_of_any_log_dir(tmp_path: Path) -> None:
    host = cut(tmp_path)
    with ExitStack() as stack:
        open_dirs = host.open_dirs(stack)
        found = recover_broker(open_dirs, is_whole=True)
        assert found.adoptions.withdrawn == (f"{host.work(0)}/incoming/{READY}",)
        assert [(log_dir, one.unmarked) for log_dir, one in found.open_dirs] == [
            (str(host.tops[0]), ()),
            (str(host.tops[1]), ("other-3",)),
        ]
        changes = [call for call in host.calls if not call.name.startswith(("fsync", "syncfs"))]
        assert changes[0].path.endswith(READY)
        assert changes[-1].path == f"{host.tops[1]}/other-3/{FILE_NAME}"
    assert host.state() == "not adopted"


def test_a16_no_adoption_is_touched_while_a_log_dir_is_left_out(tmp_path: Path) -> None:
    """That one may hold the replica that lives."""
    host = cut(tmp_path)
    with ExitStack() as stack:
        one, two = host.open_dirs(stack)
        for open_dirs in ([one], [two], [one, two]):
            found = recover_broker(open_dirs, is_whole=False)
            assert (found.adoptions.finished, found.adoptions.withdrawn) == ((), ())
    assert os.listdir(host.work(0) / "incoming") == [READY]
    assert not (host.tops[1] / "other-3" / FILE_NAME).exists()


def test_what_is_in_trouble_is_named_whole_and_errors_of_the_kernel_told(tmp_path: Path) -> None:
    host = cut(tmp_path)
    (host.tops[1] / "strange-0" / FILE_NAME).mkdir(parents=True)
    with ExitStack() as stack:
        open_dirs = host.open_dirs(stack)
        (problem,) = recover_broker(open_dirs, is_whole=True).troubled
        assert (problem.path, "directory" in problem.found.lower()) == (f"{host.tops[1]}/strange-0", True)
        (host.work(0) / "incoming").rmdir()
        open_dirs[0].incoming.close()
        with pytest.raises(LogDirOfflineError, match=str(host.tops[0])):
            recover_broker(open_dirs, is_whole=True, map_os_errors=map_os_errors)


def test_nobody_else_calls_the_parts_of_a_recovery() -> None:
    parts = ("recover_log_dir", "replica.adopt_recovery")
    users = set()
    for top in ("logdir", "tools", "scheduler", "migrate"):
        for path in (ROOT / top).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                named: list[str] = []
                if isinstance(node, ast.ImportFrom):
                    named = [f"{node.module}", *(f"{node.module}.{one.name}" for one in node.names)]
                elif isinstance(node, ast.Import):
                    named = [one.name for one in node.names]
                if {f"logdir.disk.{part}" for part in parts} & set(named):
                    users.add(str(path.relative_to(ROOT)))
    assert users == {"logdir/disk/recover_broker.py"}


def test_an_open_disk_is_all_it_needs(tmp_path: Path) -> None:
    host = Host(tmp_path)
    with open_site(HostDisk(), str(host.tops[0])) as root:
        assert recover_broker([root.open_dir], is_whole=False).troubled == ()
    assert recover_broker([], is_whole=True).open_dirs == ()
