"""``logdirctl`` as tests type it, and what a folder holds before and after."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.builders import log_dir, partition
from tests.tools.command_lines import require_parsable
from tests.tools.free_text import codes_in
from tools.logdirctl.main import main

HOME = Path(__file__).parents[2]
KEYS = ["command", "exit", "format", "problems", "result"]
_HOLDER = HOME / "tests" / "logdir" / "disk" / "lock_holder.py"
CODE = "import sys; from tools.entry import logdirctl; sys.exit(logdirctl())"


class Said(NamedTuple):
    status: int
    out: str
    err: str


def ctl(*argv: object) -> Said:
    out, err = io.StringIO(), io.StringIO()
    status = main([str(one) for one in argv], out, err)
    # Whatever a test types: what is answered proposes only what can be typed.
    for text in (out.getvalue(), err.getvalue()):
        require_parsable(text)
    return Said(status, out.getvalue(), err.getvalue())


def ctl_json(*argv: object) -> tuple[int, dict[str, Any]]:
    """Type a command with ``--json``; return its status and result, the envelope being checked.

    No text for people carries a code, but for the slugs that ``explain`` explains.
    """
    status, out, _ = ctl(*argv, "--json")
    assert out.count("\n") == 1, out
    value: dict[str, Any] = json.loads(out)
    assert sorted(value) == KEYS
    assert (value["exit"], value["format"]) == (status, 1)
    assert " ".join(map(str, argv)).startswith(value["command"])
    for problem in value["problems"]:
        assert sorted(problem) == ["expected", "fix", "found", "path", "slug"]
    if value["command"] != "explain":
        codes = list(codes_in(value))
        assert not codes, codes
    return status, value["result"]


def launch(*argv: object) -> subprocess.Popen[bytes]:
    """Start the command as a process of its own, by the way a console script takes."""
    return subprocess.Popen(
        [sys.executable, "-c", CODE, *map(str, argv)], cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def ctl_without_rights(*argv: object) -> Said:
    """Type a command in a process without capabilities: of what others own it has the rights of others alone."""
    command = [sys.executable, "-c", CODE, *map(str, argv)]
    if os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    for text in (done.stdout, done.stderr):
        require_parsable(text)
    return Said(done.returncode, done.stdout, done.stderr)


def is_locked(path: Path) -> bool:
    """Whether a JVM could not lock a file."""
    command = [sys.executable, str(_HOLDER), "posix", str(path)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode != 0


@contextmanager
def held(path: Path) -> Iterator[int]:
    """Let another process hold a lock as a JVM does; yield its pid."""
    child = subprocess.Popen(
        [sys.executable, str(_HOLDER), "posix", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == b"held\n"
        yield child.pid
        child.stdin.close()
        child.wait()
        child.stdout.close()
    finally:
        child.kill()
        child.wait()


def tree(*tops: Path) -> dict[str, tuple[object, ...]]:
    """Return everything under some directories: type, mode, owner, mtime and bytes of files.

    Not Kafka's ``.lock``, and of ``owner.lock`` not whose pid stands in it.
    """
    found: dict[str, tuple[object, ...]] = {}
    for top in tops:
        for base, names, files in os.walk(top):
            for name in [*names, *files]:
                path = Path(base, name)
                if name == ".lock":
                    continue
                stat = path.lstat()
                is_read = name in files and not path.is_symlink() and name != "owner.lock"
                data = path.read_bytes() if is_read else None
                mtime = None if data is None else stat.st_mtime_ns
                found[str(path)] = (stat.st_mode, stat.st_uid, stat.st_gid, mtime, data)
    return found


def two_disks(folder: Path, replicas: int = 3) -> tuple[Path, Path]:
    """Make two log dirs of one broker: topic ``pay`` on both, ``other-0`` on the first."""
    one = log_dir(folder / "d1")
    two = log_dir(folder / "d2", directory="AAAAAAAAAAAAAAAAAAAABA")
    for number in range(replicas):
        partition((one, two)[number % 2] / f"pay-{number}", segments={0: 100 + number, 7: 20})
    partition(one / "other-0", topic_id="MkU3OEVBNTcwNTJENDM2Qg")
    checkpoint = f"0\n{replicas}\n" + "".join(f"pay {n} {n + 1}\n" for n in range(replicas))
    for top in (one, two):
        (top / "recovery-point-offset-checkpoint").write_text(checkpoint)
    return one, two
