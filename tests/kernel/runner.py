"""A process whose children run one operation each on a real directory, while somebody looks on or interferes.

It has everything imported that they need, so that a child makes the calls of its operation and no others. A child says
that it is ready, waits for a byte, runs, and says what was acknowledged and how it ended. It can wait again before a
call, or have its files limited in size from a call on: then a write is short, and the next one fails.

What a child says goes out by ``writev``, which no operation uses and so nobody makes fail.

Not here: tracing and failing calls (``tracing``), power cuts (``cuts``).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.crash.recording import Acks
from tests.kernel.host import KernelHost
from tests.kernel.operations import kernel_operation, names

ROOT = Path(__file__).parents[2]
_SET_PTRACER, _ANY = 0x59616D61, ctypes.c_ulong(-1)
_PATIENCE_S = 30


class Ended(NamedTuple):
    """How a child ended."""

    said: tuple[str, ...]
    """What it acknowledged."""
    error: str
    """With what the operation ended, ``killed`` if the process was."""


class _ToldAcks(Acks):
    """Acknowledgements that are heard outside, so that they outlive the process."""

    def __init__(self, out: int) -> None:
        super().__init__()
        self._out = out

    def ack(self, what: str) -> None:
        super().ack(what)
        _say(self._out, {"said": what})


def _say(out: int, what: Mapping[str, object]) -> None:
    os.writev(out, [json.dumps(what).encode() + b"\n"])


def _child(request: Mapping[str, object], go: int, out: int) -> None:
    """Run one operation."""
    # Where only a parent may trace its children.
    ctypes.CDLL(None).prctl(_SET_PTRACER, _ANY, 0, 0, 0)
    one = kernel_operation(str(request["operation"]))
    roots = request["roots"]
    assert isinstance(roots, dict)
    host = KernelHost(roots)
    acks = _ToldAcks(out)
    pause, limit, for_ever = request.get("pause"), request.get("limit"), request.get("for_ever")

    def before(number: int) -> None:
        if number == pause:
            _say(out, {"paused": number})
            os.read(go, 1)
        if limit is not None:
            is_limited = number == limit or (number > limit and bool(for_ever))  # type: ignore[operator]
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 if is_limited else -1, -1))

    host.before = before
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _say(out, {"ready": os.getpid()})
    os.read(go, 1)
    error = ""
    try:
        one.run(host.as_model(), acks)
    except Exception as raised:  # noqa: BLE001 - whatever it is, it is a way for the run to end
        error = f"{type(raised).__name__}: {raised}"
    resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
    _say(out, {"ended": error})


def main(go: int, out: int) -> None:
    """Fork a child for each line of standard input."""
    for line in sys.stdin:
        request = json.loads(line)
        # All that is made once is made before, and what is imported late is imported.
        one = kernel_operation(request["operation"])
        if one.name in names():
            one.calls  # noqa: B018 - it runs once on the model
        child = os.fork()
        if child == 0:
            try:
                _child(request, go, out)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        _say(out, {"gone": child})


class Runner:
    """The side of the tests."""

    def __init__(self) -> None:
        """Start the process."""
        go, self._go = os.pipe()
        self._heard, out = os.pipe()
        self._rest = b""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.kernel.runner", str(go), str(out)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            pass_fds=(go, out),
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"},
        )
        os.close(go)
        os.close(out)
        self.pid = 0
        """Of the child."""
        self._said: list[str] = []
        self._error = "killed"

    def start(self, operation: str, roots: Mapping[str, str], **request: object) -> None:
        """Fork a child for an operation; it waits for ``go``."""
        if self.pid:  # of a test that failed amid it: what it says must not be taken for what the next one says
            self.kill()
            self.ended()
        self._said, self._error = [], "killed"
        assert self._process.stdin is not None
        said = {"operation": operation, "roots": roots, **request}
        self._process.stdin.write(json.dumps(said).encode() + b"\n")
        self._process.stdin.flush()
        self.pid = int(str(self._next("ready")))

    def go(self) -> None:
        """Let it run on."""
        os.write(self._go, b"g")

    def wait_paused(self) -> None:
        """Wait until it is before the call where it is to pause."""
        self._next("paused")

    def kill(self) -> None:
        """Kill the child, if it has not ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def ended(self) -> Ended:
        """Wait for its end."""
        self._next("gone")
        self.pid = 0
        return Ended(tuple(self._said), self._error)

    def _next(self, wanted: str) -> object:
        """Return what is said next of this; keep what is said meanwhile."""
        while True:
            line = self._line()
            said: dict[str, object] = json.loads(line)
            if "said" in said:
                self._said.append(str(said["said"]))
            if "ended" in said:
                self._error = str(said["ended"])
            if wanted in said:
                return said[wanted]

    def _line(self) -> bytes:
        while b"\n" not in self._rest:
            if not select.select([self._heard], [], [], _PATIENCE_S)[0]:
                raise TimeoutError(f"nothing was heard for {_PATIENCE_S} s; {_told_of(self.pid)}")
            part = os.read(self._heard, 1 << 16)
            if not part:
                raise EOFError("the process that runs operations has ended")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def close(self) -> None:
        """End it, and its child."""
        if self.pid:
            self.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_PATIENCE_S)
        os.close(self._go)
        os.close(self._heard)


def _told_of(pid: int) -> str:
    """Say what a process is at."""
    said = []
    for name in ("stat", "wchan", "syscall"):
        with suppress(OSError):
            said.append(Path(f"/proc/{pid}/{name}").read_text("utf-8"))
    return " ".join(said)


def _arguments(given: Sequence[str]) -> tuple[int, int]:
    go, out = map(int, given)
    return go, out


if __name__ == "__main__":
    main(*_arguments(sys.argv[1:]))
