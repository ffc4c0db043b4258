"""What only reads, asked of a daemon beside a disk that hangs: the others are answered for, and little is left.

Spec: design §2 law 6; attacks A40, A49.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from logdir.daemon.socket.routes import path_of
from tests.hung.rig import forget, on_loop
from tests.hung.test_daemon import daemon_of, others
from tests.kernel.images import Images
from tests.logdir.daemon.rig import Process, ask, until

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]


def read(daemon: Process, name: str) -> dict[str, Any]:
    body = b'{"apply": false, "request": {}}'
    head = f"POST {path_of(name)} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    found: dict[str, Any] = json.loads(ask(daemon.socket, head + body, 60).partition(b"\r\n\r\n")[2])
    return found


def asleep() -> set[int]:
    """Return the processes of ours that hang in the kernel, or wait there for a moment."""
    found = set()
    here = Path("/proc/self/ns/mnt").readlink()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "D" or (path / "ns" / "mnt").readlink() != here:
                continue  # Others of this machine do not see what is mounted here.
            if b"logdir.worker.child" in (path / "cmdline").read_bytes():
                found.add(int(path.name))
    return found


def test_a40_what_only_reads_is_answered_for_the_others_and_leaves_few_processes_however_often(
    images: Images, tmp_path: Path
) -> None:
    with on_loop(images, tmp_path, count=4) as sick:
        two = str(sick.broker.disks[1])
        daemon = daemon_of(sick.broker)
        with daemon.running():
            assert read(daemon, "layout status")["problems"] == []
            sick.hang("READ")
            forget(sick.broker)  # Else what the daemon has looked at is answered from memory.
            for _ in range(4):
                for name in ("staged ls", "layout status", "inventory", "describe"):
                    found = read(daemon, name)
                    assert (name, found["exit"]) == (name, 1)
                    assert two in {problem["path"] for problem in found["problems"]}, found["problems"]
                    named = {item["log_dir"] for item in found["result"]["items"] if name == "layout status"}
                    assert named in (set(), {two, *map(str, others(sick.broker))})
                    # The worker of the daemon, and one of the first read at most.
                    until("no more than these hang", lambda: len(asleep()) <= 2)
            assert asleep()
            sick.go_on()
            until("what hung has ended", lambda: not asleep())
            until("the disk is read again", lambda: read(daemon, "layout status")["problems"] == [], 90)
            assert daemon.stop() == 0
