"""The process that is killed: it recovers by scanning, says so, and then goes on with random operations until it ends.

``python -m tests.crash.soak.worker REQUEST`` is such a process. ``python -m tests.crash.soak.worker --serve`` is one
that has imported everything and forks a worker for each line it is given: the product never does that (it would hand
locks on); here it saves the start of Python, which is nine tenths of a round. Every so many rounds one is started cold.

Each line of output is one JSON object: ``recovered``, ``begin`` and ``end`` of an operation, ``failed``.

Not here: which operations (``tasks``), when it is killed (``rounds``), what must hold (``oracle``).

Spec: reliability §4.4 (L4), §7 row 4; design §2 law 2 ("a restart is a scan"), §3.2.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import signal
import sys
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from logdir.clock import Instant
from logdir.disk.kernel.host import HostDirectory, HostDisk
from logdir.disk.locks import OwnerLock
from logdir.disk.replica import purge
from logdir.disk.root.work_root import WorkRoot, open_root
from tests.builders import CLUSTER
from tests.crash.soak.hands import Hands
from tests.crash.soak.progress import IDLE, Page, Progress
from tests.crash.soak.recovery import recover
from tests.crash.soak.tasks import go_home, one

STEP_BYTES = 64
"""So that small files, too, are truncated in steps."""
_PR_SET_PDEATHSIG = 1


class Request(NamedTuple):
    """What a worker is told at its start."""

    log_dirs: tuple[str, ...]
    aside: str
    """A directory beside them: the page of progress, the plan of a change of layout."""
    seed: str
    boottime_ms: int
    prefer: tuple[str, ...] = ()
    """Kinds of operations to do wherever one can be done."""
    die_at: float | None = None
    """As ``Progress.arm``."""
    is_early: bool = False
    """Whether that is before it has recovered."""
    goes_home: bool = False
    """Whether to take back all that can be taken back, and end."""

    def render(self) -> str:
        """Return it as a line."""
        return json.dumps(self._asdict())

    @classmethod
    def parse(cls, line: str) -> Request:
        """Read what ``render`` wrote."""
        values = json.loads(line)
        return cls(**{**values, "log_dirs": tuple(values["log_dirs"]), "prefer": tuple(values["prefer"])})


def instant(boottime_ms: int) -> Instant:
    """Return the clocks at a moment of the one boot of a soak."""
    return Instant(
        boot_id="11111111-2222-4333-8444-555555555555",
        boottime_ms=boottime_ms,
        wall_ms=1_800_000_000_000 + boottime_ms,
        is_synchronised=True,
    )


def say(what: dict[str, Any]) -> None:
    """Write one line, whole: it is shorter than what a pipe takes at once."""
    os.write(1, json.dumps(what).encode() + b"\n")


def _hear() -> str:
    return os.read(0, 1 << 16).decode()


def work(request: Request) -> None:
    """Be a worker."""
    page = Page.open(Path(request.aside) / "page")
    progress = Progress(page)
    disk = HostDisk(progress.tell)
    purge.STEP_BYTES = STEP_BYTES
    with ExitStack() as stack:
        progress.begin("start")
        if request.is_early:
            progress.arm(request.die_at)
        roots = [stack.enter_context(_owned(disk, path, stack)) for path in request.log_dirs]
        hands = Hands(
            disk=disk,
            roots=roots,
            draw=random.Random(request.seed),
            now=instant(request.boottime_ms),
            aside=Path(request.aside),
            say=say,
            progress=progress,
        )
        progress.begin("recover")
        found = recover(hands)
        progress.begin(IDLE)
        say({"recovered": found})
        if "go" not in _hear():
            return
        progress.arm(request.die_at)
        while not request.goes_home:
            one(hands, request.prefer)
        go_home(hands)


def _owned(disk: HostDisk, path: str, stack: ExitStack) -> WorkRoot:
    root = open_root(disk, path, cluster_id=CLUSTER, node_id=1)
    assert isinstance(root.open_dir.work, HostDirectory)
    # A predecessor that was killed holds nothing: the kernel gave its lock back.
    stack.enter_context(OwnerLock.take(root.open_dir.work))
    root.prove()
    return root


def _run(line: str) -> int:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        work(Request.parse(line))
    except BaseException:  # noqa: BLE001 - whatever it is, the judge shall hear of it
        say({"failed": traceback.format_exc()})
        return 1
    return 0


def serve() -> None:
    """Fork a worker for every request, until there are no more."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    gc.collect()
    gc.freeze()
    while heard := _hear():
        # What a worker was told and did not come to read is not for us.
        line = heard.splitlines()[-1]
        if not line.startswith("{"):
            continue
        pid = os.fork()
        if pid == 0:
            say({"pid": os.getpid()})
            os._exit(_run(line))
        _, status = os.waitpid(pid, 0)
        say({"ended": os.waitstatus_to_exitcode(status)})


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve()
    else:
        sys.exit(_run(sys.argv[1]))
