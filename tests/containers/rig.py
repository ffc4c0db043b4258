"""Containers: processes with mounts, process numbers and users of their own, on directories that they share.

The user of each is 1000 in its container, and the owner of the files outside; so it is with the containers of one pod,
which have one user. Nothing is left of a container when it is ended.

Not here: what must hold (``test_containers``).

Spec: design §5; attacks A32; namespaces(7), user_namespaces(7).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.tools.ctl import CODE, HOME

_SPACES: Final = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--ipc", "--uts")
_USER: Final = ("--user", "--map-user=1000", "--map-group=1000")
_SCRIPT: Final = """\
set -eu
root=$1 count=$2
shift 2
while [ "$count" -gt 0 ]; do
    mount --bind "$1" "$1"
    shift
    count=$((count - 1))
done
if [ "$root" = read-only ]; then
    for place in / /tmp; do
        ! mountpoint -q "$place" || mount -o remount,bind,ro "$place"
    done
fi
exec unshare {user} "$@"
"""
_LONGEST_S: Final = 120


def lacking() -> str:
    """Say what this host lacks; empty if nothing."""
    if os.geteuid() != 0:
        return "needs root: makes namespaces of mounts and processes"
    done = subprocess.run(["unshare", *_SPACES, "unshare", *_USER, "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"needs namespaces, of users too: unshare: {done.stderr.strip()}"


def command(*argv: object, volumes: Sequence[Path] = (), is_read_only: bool = False) -> list[str]:
    """Return what runs a program in a container of its own.

    Args:
        argv: The program and its arguments.
        volumes: Directories that are mounts of their own there, each at its place.
        is_read_only: Whether only volumes can be written.
    """
    script = _SCRIPT.format(user=" ".join(_USER))
    words = ("read-only" if is_read_only else "writable", str(len(volumes)), *map(str, volumes), *map(str, argv))
    return ["unshare", *_SPACES, "/bin/sh", "-c", script, "container", *words]


def run(*argv: object, volumes: Sequence[Path] = ()) -> subprocess.CompletedProcess[str]:
    """Run a program in a container of its own, to its end."""
    return subprocess.run(
        command(*argv, volumes=volumes),
        cwd=HOME,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_LONGEST_S,
    )


def ctl(*words: object, volumes: Sequence[Path] = ()) -> subprocess.CompletedProcess[str]:
    """Type a command of ``logdirctl`` in a container of its own."""
    return run(sys.executable, "-c", CODE, *words, volumes=volumes)


def module(name: str, *words: object) -> tuple[object, ...]:
    """Return the command of a module of these tests."""
    return (sys.executable, "-m", name, *words)


@contextmanager
def running(
    *argv: object, log: Path, volumes: Sequence[Path] = (), is_read_only: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """Run a program in a container, which is killed at the end; its output goes to a pipe, its errors to ``log``."""
    words = command(*argv, volumes=volumes, is_read_only=is_read_only)
    with log.open("a") as errors:
        process = subprocess.Popen(
            words, cwd=HOME, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
