"""One run, recorded, and every state in which a crash may leave the host: all crash points, disks and models.

A crash point is a number of calls made: 0 before the first. All disks crash at the same instant, each with its own
pending edits; if the combinations are too many, the extremes and a seeded sample are taken.

D is any state of J with one disk absent, read-only or replaced by an empty one.

Not here: what one disk keeps (``persistence``), recovering and judging (``enumerate``).

Spec: reliability §4.4.
"""

from __future__ import annotations

import errno
import functools
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Self

from logdir.disk.kernel.host import Call
from logdir.observe.classify import Type
from tests.crash.model import SYNCS, Failure, Killed, ModelHost, Record
from tests.crash.persistence import LIMIT, DiskLog, Loss
from tests.crash.tree import Log, Node, Volume, World, bits

_SEED = 516
_SERIAL = itertools.count()
MODELS = ("K", "J", "B", "P", "F", "D")
STATUSES = ("absent", "read-only", "empty")


class Acks:
    """What an operation said was done, and after which call."""

    def __init__(self, said: Iterable[str] = ()) -> None:
        self.said: tuple[str, ...] = tuple(said)
        self.after = [-1] * len(self.said)
        self.count: Callable[[], int] = lambda: 0

    def ack(self, what: str) -> None:
        """Say that something is done, and from now on survives everything."""
        self.said += (what,)
        self.after.append(self.count())

    def __contains__(self, what: object) -> bool:
        return what in self.said


class Crash(NamedTuple):
    """One way in which a run may end, and what survives."""

    model: str
    after: int
    """How many calls were made."""
    losses: tuple[Loss, ...]
    """Of each disk."""
    statuses: tuple[str, ...]
    """Of each disk, at recovery."""
    said: int
    """How many acknowledgements had been given."""
    failure: Failure | None = None
    """What failed before."""

    @property
    def rebooted(self) -> bool:
        """Whether it is another boot."""
        return self.model[-1] != "K"

    def render(self) -> str:
        """Return it as text, for ``parse``."""
        disks = ";".join(loss.render() + "+" + status for loss, status in zip(self.losses, self.statuses, strict=True))
        return f"{self.model}@{self.after},{self.said},{_failure_text(self.failure)}:{disks}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``render`` wrote."""
        model, rest = text.split("@")
        numbers, disks = rest.split(":")
        after, said, failed = numbers.split(",")
        pairs = [disk.split("+") for disk in disks.split(";")]
        losses = tuple(Loss.parse(loss) for loss, _ in pairs)
        statuses = tuple(status for _, status in pairs)
        return cls(model, int(after), losses, statuses, int(said), _failure(failed))


class Recording:
    """A run that was made, and all that may be left of it."""

    def __init__(self, host: ModelHost, acks: Acks, failure: Failure | None = None, error: str = "") -> None:
        self.records: list[Record] = host.records
        self._serial = next(_SERIAL)
        self.acks = acks
        self.failure = failure
        self.error = error
        """With what the run ended, if not well."""
        self._world = host.world()
        self._marks = [host.first_marks, *(record.marks for record in host.records)]

    @functools.cached_property
    def _logs(self) -> tuple[DiskLog, ...]:
        return tuple(DiskLog(volume) for volume in self._world.volumes)

    def world_now(self) -> World:
        """Return the host as the run left it, with what is pending."""
        return self._world

    @property
    def is_sampled(self) -> bool:
        """Whether not all sets were taken."""
        return any(log.is_sampled for log in self._logs)

    def call(self, after: int) -> str:
        """Return what the last call before a crash point was."""
        return shown(self.records[after - 1].call) if after else "(start)"

    def syncs(self) -> Iterator[int]:
        """Yield the numbers of the calls that make something durable."""
        return (number for number, record in enumerate(self.records) if record.call.name in SYNCS)

    # Which states there are.

    def _said(self, after: int) -> tuple[int, ...]:
        """Return how much may have been acknowledged at a crash point: before what was said at it, or after."""
        early = sum(count < after for count in self.acks.after)
        late = sum(count <= after for count in self.acks.after)
        return (late, early) if early != late else (late,)

    def _combined(self, choices: list[tuple[Loss, ...]], seed: str) -> Iterator[tuple[Loss, ...]]:
        """Yield one of each disk's."""
        if math.prod(map(len, choices)) <= 4 * LIMIT:
            yield from itertools.product(*choices)
            return
        rng = random.Random(f"{_SEED} {seed}")
        self._logs[0].is_sampled = True
        for index in (0, -1):
            for disk, losses in enumerate(choices):
                for loss in losses:
                    yield tuple(loss if at == disk else other[index] for at, other in enumerate(choices))
        for _ in range(LIMIT):
            yield tuple(map(rng.choice, choices))

    def _torn(self, after: int) -> Iterator[tuple[Loss, ...]]:
        """Yield what is there when the process is killed within the next call."""
        if after == len(self.records):
            return
        now, then = self._marks[after], self._marks[after + 1]
        for disk, log in enumerate(self._logs):
            whole = [Loss((1 << edits) - 1) for edits, _ in now]
            for number in range(now[disk][0], then[disk][0]):
                done = (1 << number + 1) - 1
                if log.edits[number].data is not None:
                    whole[disk] = Loss(done, 1 << number)
                    yield tuple(whole)
                if number + 1 < then[disk][0]:
                    whole[disk] = Loss(done)
                    yield tuple(whole)

    def crashes(self, model: str, after: int) -> Iterator[Crash]:
        """Yield every state after this many calls, under one model, without repetition.

        Args:
            model: One of ``MODELS``; ``FK`` for a kill after a failed sync; D with another's letter behind it.
            after: How many calls were made.
        """
        fine = ("ok",) * len(self._logs)
        seen = set()
        if model[0] == "D":
            under = model[1:] or "J"
            for crash, number, status in itertools.product(
                self.crashes(under, after), range(len(self._logs)), STATUSES
            ):
                statuses = tuple(status if at == number else "ok" for at in range(len(self._logs)))
                yield crash._replace(model="D" + under, statuses=statuses)
            return
        now = self._marks[after]
        letter = model[-1]
        choices = [log.survivors(letter, *mark) for log, mark in zip(self._logs, now, strict=True)]
        for losses in self._combined(choices, f"{model} {after}"):
            digest = self._digests(losses) if letter != "K" else losses
            if digest not in seen:
                seen.add(digest)
                for said in self._said(after):
                    yield Crash(model, after, losses, fine, said, self.failure)
        if letter == "K":
            # The next call has begun, so whatever was said before it was said.
            for losses in self._torn(after):
                yield Crash(model, after, losses, fine, self._said(after)[0], self.failure)

    # What they are.

    def _digests(self, losses: tuple[Loss, ...]) -> tuple[object, ...]:
        return tuple(log.digest(loss) for log, loss in zip(self._logs, losses, strict=True))

    def key(self, crash: Crash) -> tuple[object, ...]:
        """Return what two crashes have in common that leave the same to recover from, and the same acknowledged."""
        pending = () if crash.rebooted else (self._serial, crash.losses, self._marks[crash.after])
        digests = zip(self._digests(crash.losses), crash.statuses, strict=True)
        kept = tuple((0 if status == "empty" else digest, status) for digest, status in digests)
        return (crash.rebooted, frozenset(self.acks.said[: crash.said]), kept, pending)

    def is_changed(self, crash: Crash) -> bool:
        """Tell whether a crash leaves something else than the start; a disk that is missing then counts as it was."""
        return any(log.digest(loss) != log.digest(Loss(0)) for log, loss in zip(self._logs, crash.losses, strict=True))

    def world(self, crash: Crash) -> World:
        """Return the host as a recovery finds it."""
        volumes = []
        for disk, (log, loss, status) in enumerate(zip(self._logs, crash.losses, crash.statuses, strict=True)):
            volume = log.durable(loss) if crash.rebooted else log.running(loss, self._marks[crash.after][disk][1])
            is_new = status == "empty" and volume.status != status
            volumes.append(_emptied(volume) if is_new else volume._replace(status=status))
        world = self._world
        return world._replace(
            volumes=tuple(volumes),
            boot=world.boot + crash.rebooted,
            booted=world.generation + 1 if crash.rebooted else world.booted,
            generation=world.generation + 1,
            rebooted=crash.rebooted,
        )

    def said(self, crash: Crash) -> Acks:
        """Return what had been acknowledged."""
        return Acks(self.acks.said[: crash.said])

    def explain(self, crash: Crash) -> list[str]:
        """Return the calls until the crash, one line each, and what became of each."""
        lines = []
        for number in range(crash.after + 1):
            if number == len(self.records):
                break
            record, before, then = self.records[number], self._marks[number], self._marks[number + 1]
            fates = set()
            for (first, _), (last, _), loss in zip(before, then, crash.losses, strict=True):
                own = (1 << last) - (1 << first)
                for edit in bits(own):
                    kept = "half" if loss.halves >> edit & 1 else "kept"
                    fates.add(kept if loss.mask >> edit & 1 else "lost")
            if number == crash.after and fates <= {"lost"}:
                break
            failed = f" fails with {errno.errorcode[record.errno]}" if record.errno else ""
            lines.append(f"{number:3} {shown(record.call)}{failed} {'/'.join(sorted(fates))}".rstrip())
        gone = [
            f"{log.volume.mount} {status}"
            for log, status in zip(self._logs, crash.statuses, strict=True)
            if status != "ok"
        ]
        return [*lines, f"    crash, {crash.model}" + "".join(f", {what}" for what in gone)]


def shown(call: Call) -> str:
    """Return a call as a line."""
    return f"{call.name} {call.path}" + (f" -> {call.to}" if call.to else "")


def _failure_text(failure: Failure | None) -> str:
    if failure is None:
        return "-"
    return f"{failure.at}.{errno.errorcode[failure.errno]}.{failure.for_ever:d}.{failure.is_short:d}"


def _failure(text: str) -> Failure | None:
    if text == "-":
        return None
    at, name, for_ever, is_short = text.split(".")
    return Failure(int(at), getattr(errno, name), for_ever == "1", is_short=is_short == "1")


def _emptied(volume: Volume) -> Volume:
    """Return an empty file system in the place of one."""
    old = volume.nodes[volume.root]
    top = Node(Type.DIRECTORY, 2, old.owner, old.mtime_ns, old.ctime_ns)
    new = volume._replace(device=volume.device + 0x100, root=2, nodes={2: top}, log=Log({2: top}, {}))
    return new._replace(status="empty")


def record(
    world: World, run: Callable[[ModelHost, Acks], None], *, failure: Failure | None = None, acks: Acks | None = None
) -> Recording:
    """Run something to its end and record it.

    Args:
        world: Where.
        run: What; whatever it raises is recorded.
        failure: What fails.
        acks: What had been acknowledged before.
    """
    host = ModelHost(world)
    if failure:
        host.fail(failure)
    acks = acks or Acks()
    acks.count = lambda: len(host.records)
    error = ""
    try:
        run(host, acks)
    except Killed:
        error = "stopped"
    except Exception as raised:  # noqa: BLE001 - whatever it is, it is a way for the run to end
        error = f"{type(raised).__name__}: {raised}"
    return Recording(host, acks, failure, error)
