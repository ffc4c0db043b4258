"""System calls of a real process made to fail, or to be its last: every one of its own that changes something.

Once, or for ever: from there on that call and every other that changes something. An operation then ends done, undone,
or with a disk that is written no more; a recovery follows in the same boot, and the oracle judges.

Not here: disks that are full, frozen or gone for real (``test_full_disk``, ``test_sick_disk``).

Spec: reliability §4.3, §4.4 ("errors, SQLite-style"); strace(1).
"""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.crash.enumerate import ERRNOS
from tests.crash.recording import Acks
from tests.kernel.cuts import opens, recovered
from tests.kernel.host import plant, world_of
from tests.kernel.operations import REAL_ONLY, KernelOperation, kernel_operation, names
from tests.kernel.runner import Ended
from tests.kernel.tracing import RAW, Event, Tracer, events

KILL = "KILL"
SEED = 516
_OTHERS = (
    *("mkdirat", "renameat2", "renameat", "linkat", "unlinkat", "ftruncate", "write", "fchmod", "fchown"),
    *("utimensat", "fsync", "syncfs"),
)
"""What fails too, from then on, where something fails for ever; not what only opens."""
_AGAIN = 3
"""How often a case is run again that missed its mark."""


class Case(NamedTuple):
    """One failure."""

    operation: str
    at: int
    """The number of the system call among those that change something."""
    how: str
    """Name of the errno, or ``KILL``."""
    for_ever: bool

    def __str__(self) -> str:
        return f"{self.operation}: {self.how} at system call {self.at}{', for ever' if self.for_ever else ''}"


class Finding(NamedTuple):
    """What came of a case."""

    case: Case
    event: Event
    messages: tuple[str, ...]
    outcome: str
    """``done``, ``undone``, ``read-only`` or ``killed``."""
    heard: tuple[Event, ...]
    """What it asked of the kernel."""
    missed: tuple[str, ...] = ()
    """Of the messages: that another call was hit than was aimed at."""

    def __str__(self) -> str:
        return "\n    ".join([f"{self.case}: {self.event.name} {self.event.path}", *self.messages])


def injections(heard: Sequence[Event], case: Case) -> list[str]:
    """Return what strace is to be told."""
    event = heard[case.at]
    raw = RAW.get(event.name, event.name)
    if case.how == KILL:
        return [kill_at(event)]
    if not case.for_ever:
        return [f"{raw}:error={case.how}:when={event.number + 1}"]
    told = [f"{raw}:error={case.how}:when={event.number + 1}+"]
    for other in _OTHERS:
        if other != raw:
            before = sum(RAW.get(one.name, one.name) == other for one in heard[: case.at])
            told.append(f"{other}:error={case.how}:when={before + 1}+")
    return told


def kill_at(event: Event) -> str:
    """Return what strace is to be told for a system call to be the last."""
    return f"{RAW.get(event.name, event.name)}:signal=KILL:when={event.number + 1}"


class Bench:
    """Real directories on which operations are traced, each on fresh ones."""

    def __init__(self, tracer: Tracer, roots: Sequence[Path]) -> None:
        """Make one.

        Args:
            tracer: What runs them.
            roots: A directory on each disk there is.
        """
        self.tracer = tracer
        self._roots = roots
        self._serial = 0
        self._plain: dict[str, list[Event]] = {}

    @contextmanager
    def planted(self, one: KernelOperation) -> Iterator[dict[str, str]]:
        """Plant what an operation starts on; yield where."""
        self._serial += 1
        roots = {}
        for mount, root in zip(one.mounts, self._roots, strict=False):
            roots[mount] = str(root / str(self._serial))
            (root / str(self._serial)).mkdir()
        plant(one.world(), roots)
        yield roots

    def heard(self, name: str) -> list[Event]:
        """Return the changes an operation makes when nothing fails."""
        if name not in self._plain:
            with self.planted(kernel_operation(name)) as roots:
                heard = self.tracer.run(name, roots)
                assert not heard.ended.error, f"{name}: {heard.ended.error}"
                self._plain[name] = events(heard.text, roots)
        return self._plain[name]

    def fail(self, case: Case) -> Finding:
        """Run an operation with a failure, recover, judge; again where another call was hit than the one aimed at.

        A purge truncates in steps of a few bytes, and a marker holds an inode's number: of two runs one may make a call
        more. Then the calls are heard anew.
        """
        found = self._fail(case)
        for _ in range(_AGAIN):
            if not found.missed or found.messages != found.missed:
                break
            del self._plain[case.operation]
            found = self._fail(case)
        return found

    def _fail(self, case: Case) -> Finding:
        one = kernel_operation(case.operation)
        plain = self.heard(case.operation)
        case = case._replace(at=min(case.at, len(plain) - 1))
        with self.planted(one) as roots:
            start = world_of(roots)
            heard = self.tracer.run(case.operation, roots, *injections(plain, case))
            event = plain[case.at]
            asked = events(heard.text, roots)
            missed = _off_the_mark(heard.ended, asked, case, event)
            ended = heard.ended
            error = ended.error if ended.error != "killed" and opens(one, ended.error) else ""
            messages = [*missed, *recovered(one, start, roots, Acks(ended.said), error=error)]
            return Finding(case, event, tuple(messages), _outcome(ended), tuple(asked), tuple(missed))


def _off_the_mark(ended: Ended, asked: Sequence[Event], case: Case, event: Event) -> list[str]:
    """Return the complaint that something else was hit than was aimed at."""
    if case.how == KILL:
        return [] if ended.error == "killed" else ["it was not killed"]
    hit = next((found for found in asked if found.is_injected), None)
    if hit is None:
        return ["nothing was made to fail"]
    is_it = (hit.name, hit.number, hit.errno) == (event.name, event.number, getattr(errno, case.how))
    return [] if is_it else [f"another call was made to fail: {hit}"]


def _outcome(ended: Ended) -> str:
    if ended.error == "killed":
        return "killed"
    if "ReadOnlyDiskError" in ended.error or "READ_ONLY" in ended.error:
        return "read-only"
    words = " ".join(ended.said)
    is_undone = ended.error or "refused" in words or "undone" in words or not ended.said
    return "undone" if is_undone else "done"


def cases(count: int, bench: Bench, *, kills: bool = False, seed: int = SEED) -> Iterator[Case]:
    """Yield so many cases, none twice: operations take turns, and so do the ways to fail.

    Args:
        count: How many at most.
        bench: What knows the calls of each operation.
        kills: Whether the process is killed, instead of made to fail.
        seed: Of the choice.
    """
    rng = random.Random(f"{seed} {kills}")
    left: dict[str, list[Case]] = {}
    for name in (*names(), *REAL_ONLY):
        found = []
        for at in range(len(bench.heard(name))):
            if kills:
                found.append(Case(name, at, KILL, for_ever=False))
                continue
            for number in sorted(set(ERRNOS) - kernel_operation(name).leads_elsewhere):
                found.append(Case(name, at, errno.errorcode[number], for_ever=False))
                # The interpreter would repeat some of its calls for ever.
                if number != errno.EINTR:
                    found.append(Case(name, at, errno.errorcode[number], for_ever=True))
        rng.shuffle(found)
        if found:
            left[name] = found
    while left and count > 0:
        turn = sorted(left)
        rng.shuffle(turn)
        for name in turn:
            if count <= 0:
                return
            yield left[name].pop()
            count -= 1
            if not left[name]:
                del left[name]
