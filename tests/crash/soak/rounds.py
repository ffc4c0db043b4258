"""Start a worker, let it go on for a moment that is drawn, end it with ``kill -9``, judge; again and again.

A round: a worker recovers and says so; the oracle judges; the broker makes, deletes and makes anew; the worker goes on
with operations; SIGKILL; the oracle judges what is left. Some are killed before they have recovered. What was drawn
comes from the seed, when a kill came does not: a failure therefore prints at which call each was, to be replayed
(``python -m tests.crash.soak --replay FILE``), where the worker ends itself there.

Not here: the worker (``worker``), what must hold (``oracle``).

Spec: reliability §4.4 (L4), §7 row 4.
"""

from __future__ import annotations

import json
import os
import random
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.crash.soak.broker import Broker, make_log_dirs
from tests.crash.soak.hands import ROUND_MS
from tests.crash.soak.looks import Look, look
from tests.crash.soak.model import Model
from tests.crash.soak.oracle import judge
from tests.crash.soak.progress import IDLE, At, Page
from tests.crash.soak.worker import Request
from tests.operations.registry import kinds

__all__ = ("Kill", "Report", "Soak", "SoakError", "Workers", "judge")
ROOT = Path(__file__).parents[3]
COLD_EVERY = 16
"""One worker in so many is started as the product is: by ``python -m``, from nothing."""
_EARLY = 0.1
"""How many are killed before they have recovered."""
_LONGEST_S = 0.04
_PATIENCE_S = 5.0
_POLL_S = 0.0003
_HANGS_S = 60.0


class Kill(NamedTuple):
    """One line of a schedule."""

    calls: int
    """Which the worker had told of."""
    is_made: bool
    """Whether the last of them was made, as far as the disk tells."""
    at: str

    @property
    def die_at(self) -> float:
        """As ``Progress`` takes it."""
        return self.calls + 0.5 if self.is_made else self.calls


class SoakError(AssertionError):
    """Something does not hold."""


@dataclass(slots=True)
class Report:
    """What a soak came to."""

    seed: int
    schedule: list[Kill] = field(default_factory=list)
    steps: Counter[str] = field(default_factory=Counter)
    """How many kills came at each step: operation and call."""
    amid: Counter[str] = field(default_factory=Counter)
    """How many came amid an operation, by its kind."""
    done: dict[str, int] = field(default_factory=dict)
    """Operations that came to their end, by kind."""
    judged: int = 0
    cold: int = 0
    seconds: float = 0.0

    @property
    def kills(self) -> int:
        """Return how many there were."""
        return len(self.schedule)

    @property
    def share_amid(self) -> float:
        """Return how many of them came amid an operation; a recovery is none."""
        return sum(self.amid[kind] for kind in kinds()) / max(1, self.kills)

    def table(self) -> str:
        """Return the histogram."""
        lines = [f"{count:6} {step}" for step, count in sorted(self.steps.items(), key=lambda item: item[0])]
        return "\n".join([*lines, self.totals()])

    def totals(self) -> str:
        """Return one line."""
        return (
            f"{self.kills:,} kills, {self.share_amid:.0%} amid an operation, {self.amid['recover']} amid a recovery, "
            f"{self.cold} of processes started cold, {sum(self.done.values()):,} operations done, "
            f"{self.judged:,} judgements, {self.seconds:.0f} s, seed {self.seed}"
        )


class Workers:
    """Starts workers, one at a time, and tells them apart from their server."""

    def __init__(self, environment: dict[str, str] | None = None, cwd: Path = ROOT) -> None:
        """Start the server.

        Args:
            environment: Of all workers; this process's by default.
            cwd: Where Python looks for modules first.
        """
        self._environment, self._cwd = environment, cwd
        self._server = self._started("--serve")
        self._process = self._server
        self._rest = b""
        self.pid = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in {self._server, self._process}:
            with suppress(ProcessLookupError):
                process.kill()
            _closed(process)

    def _started(self, argument: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.crash.soak.worker", argument],
            cwd=self._cwd,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    def start(self, request: Request, *, is_cold: bool) -> None:
        """Start one."""
        self._rest = b""
        if is_cold:
            self._process = self._started(request.render())
            self.pid = self._process.pid
            return
        self._process = self._server
        self.tell(request.render())
        self.pid = next(self.said())["pid"]

    def tell(self, line: str) -> None:
        """Write to the one that runs."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")

    def said(self) -> Iterator[dict[str, Any]]:
        """Yield what it says, until its output ends."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while True:
                line, found, rest = self._rest.partition(b"\n")
                if found:
                    self._rest = rest
                    yield json.loads(line)
                    continue
                if not selector.select(_HANGS_S):
                    raise SoakError("stuck: a worker says nothing for a minute")
                data = os.read(descriptor, 1 << 16)
                if not data:
                    return
                self._rest += data

    def kill(self) -> None:
        """End it."""
        # One that ended by itself has said why, and is heard next.
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def ended(self) -> Iterator[dict[str, Any]]:
        """Yield what it said to its end, and last ``{"ended": status}``; then it is gone."""
        for line in self.said():
            yield line
            if "ended" in line:
                return
        yield {"ended": _closed(self._process)}


def _closed(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process that ends, and close its pipes; return its status."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    return process.wait()


class Soak:
    """Log dirs, a broker, a model, and one worker after the other."""

    def __init__(self, base: Path, seed: int, replay: Sequence[Kill] = (), workers: Workers | None = None) -> None:
        """Make the log dirs.

        Args:
            base: In memory if there is such a directory: nothing here is about what a disk does.
            seed: Of everything that is drawn.
            replay: The schedule to be gone through again; none for kills at any moment.
            workers: Made here by default.
        """
        self._aside = base / "aside"
        self._aside.mkdir(parents=True)
        self._page = Page.make(self._aside / "page")
        self.log_dirs = make_log_dirs(base / "disks")
        self.model = Model(len(self.log_dirs))
        self._broker = Broker(self.log_dirs, random.Random(f"{seed} broker"))
        self._replay = replay
        self._workers = workers or Workers()
        self.report = Report(seed)
        for _ in range(8):
            disk = self._broker.draw.randrange(len(self.log_dirs))
            self.model.born(self._broker.make(disk, f"t{self._broker.count}", self._broker.draw.randrange(4)))

    def run(self, kills: int) -> Report:
        """Kill so many, and then let one take everything back.

        Raises:
            SoakError: something does not hold; the message says what, and how to see it again.
        """
        began = time.monotonic()
        with self._workers, closing(self._page):
            try:
                for number in range(kills):
                    self._round(number)
                self._home()
            except SoakError as fault:
                raise SoakError(f"{fault}\n{self._to_replay()}") from fault
            finally:
                self.report.seconds = time.monotonic() - began
                self.report.done = dict(self.model.done)
        return self.report

    def close(self) -> None:
        """End all workers; needed only where ``run`` was never called."""
        with self._workers:
            self._page.close()

    def _to_replay(self) -> str:
        path = self._aside.parent / "schedule.json"
        path.write_text(json.dumps({"seed": self.report.seed, "kills": self.report.schedule}))
        last = "\n".join(f"    {number}: {kill.at}" for number, kill in enumerate(self.report.schedule))[-2000:]
        return (
            f"seed {self.report.seed}, {self.report.kills} kills, the last of them:\n{last}\n"
            f"replay: python -m tests.crash.soak --replay {path}, a copy of which is:\n{path.read_text()}"
        )

    def _round(self, number: int) -> None:
        draw = random.Random(f"{self.report.seed} round {number}")
        self.model.now_ms = (number + 2) * ROUND_MS
        again = self._replay[number] if number < len(self._replay) else None
        is_early, wait_s = draw.random() < _EARLY, draw.uniform(0, _LONGEST_S)
        is_aimed = number % 2 == 0
        is_cold = number % COLD_EVERY == COLD_EVERY - 1
        self.report.cold += is_cold
        request = Request(
            log_dirs=self.log_dirs,
            aside=str(self._aside),
            seed=f"{self.report.seed} worker {number}",
            boottime_ms=self.model.now_ms,
            prefer=tuple(draw.sample(kinds(), 3)),
            die_at=None if again is None else again.die_at,
            is_early=is_early,
        )
        self._workers.start(request, is_cold=is_cold)
        if is_early:
            if again is None:
                # A cold one takes most of its time to import itself.
                self._sleep_until(lambda at: at.operation != IDLE)
                time.sleep(wait_s / 2)
        else:
            self._recovered(number)
            self._workers.tell("go")
            if again is None:
                # From when it is at work: on a busy machine it may be long before it is let.
                self._sleep_until(lambda at: at.operation in kinds())
                time.sleep(wait_s)
                if is_aimed:
                    # On some machines, or some days, half of all moments lie between two operations.
                    self._sleep_until(lambda at: at.is_amid and at.operation in kinds())
        self._end(again)

    def _sleep_until(self, is_there: Callable[[At], bool]) -> None:
        """Wait until the worker is somewhere, or has had all the time for it."""
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until and not is_there(self._page.at()):
            time.sleep(_POLL_S)

    def _recovered(self, number: int | None) -> None:
        """Wait until it has recovered, judge that, and let the broker take its turn of that number."""
        for line in self._workers.said():
            self._hear(line)
            if "recovered" in line:
                break
            if "ended" in line:
                raise SoakError(f"stuck: a worker ended by itself in its recovery: {line}")
        found = self._judged("after a recovery", is_recovered=True)
        if number is None or (self.model.layout, self.model.start_block) != ("names", "open"):
            return
        self._broker.draw = random.Random(f"{self.report.seed} broker {number}")
        by_path = {one.path: one for one in found.dirs}
        made, changed = self._broker.turn(found)
        for path, what in changed.items():
            self.model.changed(by_path[path], what)
        for one in made:
            self.model.born(one)

    def _hear(self, line: dict[str, Any]) -> None:
        if "failed" in line:
            raise SoakError(f"stuck: a worker fails\n{line['failed']}")
        if "begin" in line:
            self._hold(self.model.begin(line["begin"], line), "at the begin of an operation")
        elif "end" in line:
            self._hold(self.model.end(line["end"], line["wrong"]), "at the end of an operation")

    def _judged(self, when: str, *, is_recovered: bool) -> Look:
        found = look(self.log_dirs)
        self._hold(judge(self.model, found, is_recovered=is_recovered), when)
        self.report.judged += 1
        return found

    def _hold(self, wrong: list[str], when: str) -> None:
        if wrong:
            raise SoakError("\n".join([f"{when}:", *wrong]))

    def _end(self, again: Kill | None) -> None:
        if again is None:
            self._workers.kill()
        status = 0
        for line in self._workers.ended():
            self._hear(line)
            status = line.get("ended", 0)
        if status != -signal.SIGKILL:
            raise SoakError(f"stuck: a worker ended by itself, with status {status}")
        at = self._page.at()
        self._page.put("")
        self.report.schedule.append(Kill(at.calls, _is_made(at), at.step))
        self.report.steps[at.step] += 1
        if at.is_amid:
            self.report.amid[at.operation] += 1
        self._judged(f"after a kill amid {at.step}", is_recovered=False)

    def _home(self) -> None:
        """Let a last one take everything back, and judge."""
        self.model.now_ms += ROUND_MS
        seed = f"{self.report.seed} home"
        home = Request(self.log_dirs, str(self._aside), seed, self.model.now_ms, goes_home=True)
        self._workers.start(home, is_cold=True)
        self._recovered(None)
        self._workers.tell("go")
        for line in self._workers.ended():
            self._hear(line)
            if line.get("ended", 0) != 0:
                raise SoakError(f"stuck: the last worker ends with {line['ended']}")
        found = self._judged("at the end", is_recovered=True)
        left = [
            one.path
            for one in found.dirs
            if one.place in ("claimed", "ready") or (one.is_by_id and one.place == "live")
        ]
        self._hold([f"stuck: {path}" for path in left], "at the end")


def _is_made(at: At) -> bool:
    """Whether the call before which a worker said something last was made, as far as the disk tells."""
    if at.call is None:
        return True
    match at.call.name:
        case "rename" | "link" | "replace":
            return os.path.lexists(at.call.to) and not (at.call.name != "link" and os.path.lexists(at.call.path))
        case "mkdir" | "write" | "create":
            return os.path.lexists(at.call.path)
        case "unlink" | "rmdir":
            return not os.path.lexists(at.call.path)
        case _:
            return True
