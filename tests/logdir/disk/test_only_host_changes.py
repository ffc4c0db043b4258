"""Nothing changes a disk but ``logdir.disk.kernel.host``: read off the source, and heard at run time.

The interpreter tells an audit hook of opening for writing, renaming, removing and so on, but not of ``write``, of
``fsync`` and of what goes through ``ctypes``; so the source is read as well.

Spec: Build 1 of the storage layer; reliability §4.4 ("bypasses").
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.source import edges, read

ROOT = Path(__file__).parents[3]
HOST = "logdir/disk/kernel/host.py"
LIBC = "logdir/disk/kernel/libc.py"
"""System calls for ``HOST``, which alone may import it."""
CHANGING = frozenset(
    {
        *(
            "chmod",
            "chown",
            "copy_file_range",
            "fchmod",
            "fchown",
            "fdatasync",
            "fsync",
            "ftruncate",
            "lchmod",
            "lchown",
        ),
        *(
            "link",
            "makedirs",
            "mkdir",
            "mkfifo",
            "mknod",
            "posix_fallocate",
            "pwrite",
            "pwritev",
            "remove",
            "removedirs",
        ),
        *("removexattr", "rename", "renames", "replace", "rmdir", "sendfile", "setxattr", "splice", "symlink", "sync"),
        *("truncate", "unlink", "utime", "write", "writev", "O_WRONLY", "O_RDWR", "O_CREAT"),
    }
)
MODULES = frozenset({"shutil", "tempfile", "ctypes", "mmap", "fileinput", "sqlite3", "dbm", "shelve"})
OF_PATHS = frozenset({"write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "rmdir"})
WRITERS = {
    "logdir/disk/kernel/atomic_directory.py": "exports, outside all log dirs: it refuses to write into one",
    "logdir/daemon/report/history.py": "history.jsonl in the state directory, for people: nothing is decided by it",
    "logdir/daemon/metrics/textfile.py": "the metrics, where the operator wants them, on no disk of the broker",
    "logdir/daemon/looks.py": "moves a count that cannot be read aside, in the state directory",
    "logdir/daemon/inbox/folder.py": "request documents in the state directory, on no disk of the broker",
    "logdir/daemon/inbox/handled.py": "removes the oldest of the documents that were handled, in the state directory",
    "logdir/daemon/socket/socket_group.py": "gives the control socket to its group, on no disk of the broker",
    "logdir/daemon/socket/socket_lock.py": "the lock file beside the control socket, on no disk of the broker",
    "logdir/daemon/process.py": "makes the state directory and the folder of the socket, on no disk of the broker",
    "logdir/service/systemd/drop_in_files.py": "drop-ins of units below /etc: it refuses to write into a log dir",
    "logdir/service/bug_report/archive.py": "the file of a bug report, wherever the operator wants it outside log dirs",
    "logdir/service/inventory_files.py": "the inventory file, wherever the operator wants it",
    "migrate/plan/publish.py": "plans and reports, wherever the operator wants them",
    "migrate/source/snapshot.py": "hands inventories to the writer of inventories",
}
"""The writers of files that lie elsewhere: a temporary name, a sync, a rename."""
ELSEWHERE = {
    ("logdir/disk/kernel/kernel_process.py", "import ctypes"): "prctl(2): ends this process with its starter",
    (
        "logdir/disk/kernel/kernel_clock.py",
        "import ctypes",
    ): "adjtimex(2) with modes 0: asks the kernel, changes nothing",
    ("tools/cli/render.py", "import shutil"): "get_terminal_size: asks how wide the terminal is, changes nothing",
    ("tools/cli/streams.py", "os.O_RDWR"): "the null device, in place of a standard stream that is closed",
    ("tools/cli/streams.py", "os.O_WRONLY"): "the null device, when the reader of the output is gone",
    ("logdir/wire/client/tls.py", "open wb"): "memfd_create(2): a private key in memory, which OpenSSL reads as a file",
    ("logdir/observe/share.py", "os.write"): "a pipe to another process of this program, or a file that it opened",
}
"""What looks like a change and is none of a disk."""


def sources() -> list[str]:
    return sorted(
        str(path.relative_to(ROOT)) for top in ("logdir", "scheduler", "tools") for path in (ROOT / top).rglob("*.py")
    )


def _mode(call: ast.Call, position: int) -> str:
    """Return with which mode something is opened; ``?`` if that is not written there."""
    given = [word.value for word in call.keywords if word.arg == "mode"] + call.args[position : position + 1]
    if not given:
        return "r"
    return str(given[0].value) if isinstance(given[0], ast.Constant) else "?"


def changes(text: str) -> Iterator[str]:
    """Yield what in a source can change a file: an import, a call of ``os``, of a path, or an opening for writing."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [one.name.partition(".")[0] for one in node.names]
            yield from (f"import {name}" for name in names if name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").partition(".")[0]
            if module in MODULES:
                yield f"import {module}"
            if module == "os":
                yield from (f"os.{one.name}" for one in node.names if one.name in CHANGING | {"open"})
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            if node.attr in CHANGING:
                yield f"os.{node.attr}"
        elif isinstance(node, ast.Attribute) and node.attr in OF_PATHS:
            yield f".{node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            mode = _mode(node, 1)
            if set(mode) & set("wax+?"):
                yield f"open {mode}"


@pytest.mark.parametrize("path", [path for path in sources() if path not in (HOST, LIBC) and path not in WRITERS])
def test_no_other_source_can_change_a_file(path: str) -> None:
    found = set(changes((ROOT / path).read_text("utf-8")))
    # A ``Directory`` has methods of the names of ``os``: only what is called on ``os`` itself is seen here.
    assert found - {what for known, what in ELSEWHERE if known == path} == set()


def test_what_is_listed_is_still_there() -> None:
    for path in WRITERS:
        assert (ROOT / path).exists(), path
    for path, what in ELSEWHERE:
        assert what in set(changes((ROOT / path).read_text("utf-8"))), (path, what)
    assert set(changes((ROOT / HOST).read_text("utf-8"))) >= {"os.rename", "os.unlink", "os.mkdir", "os.fsync"}
    assert set(changes((ROOT / LIBC).read_text("utf-8"))) == {"import ctypes"}


def test_only_the_host_imports_the_system_calls() -> None:
    found = edges(read(ROOT))
    assert [name for name in sorted(found) if "logdir.disk.kernel.libc" in found[name]] == ["logdir.disk.kernel.host"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import os\nos.rename(a, b)", ["os.rename"]),
        ("import os\nf = os.unlink", ["os.unlink"]),
        ("from os import mkdir as m", ["os.mkdir"]),
        ("import ctypes.util", ["import ctypes"]),
        ("from shutil import move", ["import shutil"]),
        ("open(p, 'wb')", ["open wb"]),
        ("open(p, mode=m)", ["open ?"]),
        ("import os\nos.open(p, os.O_RDWR)", ["os.O_RDWR"]),
        ("p.write_text('x')", [".write_text"]),
        ("open(p)\nopen(p, 'rb')\nd.rename(a, d, b)", []),
    ],
)
def test_the_reading_of_sources_sees_what_it_is_to_see(text: str, found: list[str]) -> None:
    assert list(changes(text)) == found


HEARD = """
import os, sys
from pathlib import Path
sys.path[:0] = [{root!r}]
from tests.logdir.disk import staged_rig as rig
from logdir.disk.kernel.host import HostDisk
from logdir.disk.locks import OwnerLock
from logdir.disk.replica.purge import claim, remove
from logdir.disk.recover_log_dir import recover
from logdir.disk.replica.staging import hold
from logdir.disk.root.removal import remove_root
from logdir.formats.own.replica_marker import Checkpoints
made = rig.make_log_dir(Path({path!r}) / "d1", "a-0", "b-0")
NAMES = {{"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod",
    "os.chown", "os.utime", "os.setxattr", "os.removexattr", "shutil.move",
    "shutil.rmtree", "ctypes.dlopen"}}
heard, strangers = [], []
def hook(event, arguments):
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if event in NAMES or writes:
        frame = sys._getframe(1)
        heard.append(event)
        if not frame.f_code.co_filename.endswith("logdir/disk/kernel/host.py"):
            strangers.append((event, frame.f_code.co_filename, frame.f_lineno))
sys.addaudithook(hook)
with rig.opened(made) as open_dir:
    rig.make_staged(open_dir, "a-0", checkpoints=Checkpoints(log_start=3))
    name = os.listdir(open_dir.deleting.path)[0]
    rig.take_back(open_dir, name, "a-0", drop=True)
    rig.make_staged(open_dir, "a-0")
    hold(open_dir, name)
    marker = rig.staged_marker(Path(open_dir.deleting.path) / name)
    remove(open_dir, claim(open_dir, name, marker), in_use=lambda *_: False)
    recover(open_dir)
remove_root(HostDisk(), str(made))
print(sorted(set(heard)))
print(strangers)
"""


def test_at_run_time_nobody_else_is_heard(tmp_path: Path) -> None:
    text = HEARD.format(root=str(ROOT), path=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    heard, unexpected_entries = map(ast.literal_eval, done.stdout.splitlines())
    assert {"open", "os.rename", "os.remove", "os.rmdir", "os.chmod"} <= set(heard)
    assert unexpected_entries == []
    assert os.listdir(tmp_path) == ["d1"]
