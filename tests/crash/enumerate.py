"""Crash an operation at every call, under every model, recover, judge; and crash the recovery too.

``explore`` runs an operation once on the model disk, makes every state a crash may leave (``recording``), recovers each
with the real recovery code and asks a judge. A second recovery must change nothing. At depth 2 the recovery is itself
cut at every call. States that are alike, with the same acknowledged, are recovered once.

A violation carries the schedule that leads to it: lines to read, and a text for ``replay``.

``explore_failures`` does not crash calls but fails them, each with every errno, once and for ever.

Not here: what must hold (the judges, beside the operations), what survives (``persistence``).

Spec: reliability §4.4 (oracle, depth 2, keeping it small, errors); design §2 law 3.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from logdir.disk.kernel.host import Call
from tests.crash.model import Failure, ModelHost
from tests.crash.recording import Acks, Crash, Recording, record, shown
from tests.crash.result import Cell, Result, Violation
from tests.crash.tree import World

Run = Callable[[ModelHost, Acks], None]
Recover = Callable[[ModelHost], None]
ERRNOS = (
    errno.EIO,
    errno.ENOSPC,
    errno.EROFS,
    errno.EDQUOT,
    errno.EACCES,
    errno.EMFILE,
    errno.ENOENT,
    errno.EEXIST,
    errno.EXDEV,
    errno.EINTR,
    errno.ENODEV,
    errno.ESTALE,
)
"""With what a call may fail."""


class State(NamedTuple):
    """What a judge sees."""

    crashed: World
    """As the recovery found it."""
    recovered: World
    """As the recovery left it; its ``rebooted`` says what kind of crash it was."""
    statuses: tuple[str, ...]
    """Of each disk, during the recovery: ``ok``, ``absent``, ``read-only`` or ``empty``."""
    returned: bool = False
    """Whether disks that were absent or read-only at a first recovery are back, and this is after a second."""
    error: str = ""
    """With what the operation ended before the crash, after a failed call."""


Judge = Callable[[World, State, Acks], list[str]]


class _Found(NamedTuple):
    """A violation on its way up: a message, and the crashes that lead to it."""

    message: str
    crashes: tuple[tuple[Recording, Crash], ...]


class _Explorer:
    def __init__(self, start: World, recover: Recover, judge: Judge, quiet: Callable[[Call], bool]) -> None:
        self._start = start
        self._recover = recover
        self._judge = judge
        self._quiet = quiet
        self._outcomes: dict[tuple[object, ...], tuple[str, ...]] = {}
        self._inner: dict[tuple[object, ...], tuple[_Found, ...]] = {}
        self.inner = 0
        self.is_sampled = False

    @property
    def distinct(self) -> int:
        return len(self._outcomes)

    def recovered(self, recording: Recording, crash: Crash) -> tuple[str, ...]:
        """Recover from a crash and return what is wrong."""
        key = (*recording.key(crash), recording.error)
        found = self._outcomes.get(key)
        if found is None:
            found = self._outcomes[key] = self.recovery(recording, crash)[0]
        return found

    def recovery(self, recording: Recording, crash: Crash) -> tuple[tuple[str, ...], Recording]:
        """Recover from a crash, and return what is wrong and how the recovery went."""
        acks = recording.said(crash)
        crashed = recording.world(crash)
        # Whatever had been acknowledged stays so while the recovery runs.
        recovery = record(crashed, lambda host, _: self._recover(host), acks=recording.said(crash))
        messages = list(self._twice(recovery, "recovery"))
        state = State(crashed, recovery.world_now(), crash.statuses, error=recording.error)
        messages += self._judge(self._start, state, acks)
        if {"absent", "read-only"} & set(crash.statuses):
            back = state.recovered._replace(
                generation=state.recovered.generation + 2,
                rebooted=False,
                volumes=tuple(
                    volume if volume.status == "empty" else volume._replace(status="ok")
                    for volume in state.recovered.volumes
                ),
            )
            again = record(back, lambda host, _: self._recover(host))
            messages += [f"with the disk back: {message}" for message in self._twice(again, "recovery")]
            fine = tuple("empty" if status == "empty" else "ok" for status in crash.statuses)
            state = State(back, again.world_now(), fine, returned=True, error=recording.error)
            messages += [f"with the disk back: {message}" for message in self._judge(self._start, state, acks)]
        return tuple(dict.fromkeys(messages)), recovery

    def _twice(self, first: Recording, what: str) -> Iterator[str]:
        """Yield what is wrong with a recovery, as such: it raises, or changes something when run again."""
        if first.error:
            yield f"{what} raises {first.error}"
            return
        world = first.world_now()
        world = world._replace(generation=world.generation + 1, rebooted=False)
        second = record(world, lambda host, _: self._recover(host))
        if second.error:
            yield f"second {what} raises {second.error}"
        for made in second.records:
            # What a read-only disk refuses is no writing.
            if made.is_change and made.errno != errno.EROFS and not self._quiet(made.call):
                yield f"second {what} writes: {shown(made.call)}"
                return

    def within(self, recording: Recording, crash: Crash, models: Sequence[str]) -> tuple[_Found, ...]:
        """Crash within the recovery of a crash, recover again and judge."""
        key = (*recording.key(crash), recording.error, tuple(models))
        found = self._inner.get(key)
        if found is None:
            recovery = self.recovery(recording, crash)[1]
            shortest: dict[str, _Found] = {}
            for again in crashes(recovery, models):
                again = again._replace(
                    # What was away at the first recovery still is.
                    statuses=crash.statuses
                )
                self.inner += 1
                for message in self.recovered(recovery, again):
                    shortest.setdefault(message, _Found(message, ((recovery, again),)))
            self.is_sampled |= recovery.is_sampled
            found = self._inner[key] = tuple(shortest.values())
        return found


def crashes(recording: Recording, models: Sequence[str], first: int = 0) -> Iterator[Crash]:
    """Yield every state of a run from a crash point on, under every model."""
    for after in range(first, len(recording.records) + 1):
        for model in models:
            yield from recording.crashes(model, after)


class _Plan(NamedTuple):
    """One run to crash."""

    recording: Recording
    models: Sequence[str]
    first: int
    """The first crash point."""
    column: str = ""
    """Of the matrix, instead of the model; its row is then the call that failed."""


def _plain(start: World, run: Run) -> Recording:
    plain = record(start, run)
    if plain.error:
        raise AssertionError(f"the operation fails without any crash: {plain.error}")
    return plain


def _crashing(start: World, run: Run, models: Sequence[str]) -> Iterator[_Plan]:
    """Yield the run as it is and, for F, with each sync failed."""
    plain = _plain(start, run)
    yield _Plan(plain, [model for model in models if model[0] != "F"], 0)
    if "F" in models:
        for number in plain.syncs():
            yield _Plan(record(start, run, failure=Failure(number)), ["F", "FK"], number + 1)


def _failing(start: World, run: Run, errnos: Sequence[int]) -> Iterator[_Plan]:
    """Yield the run with each call failed, once, for ever, and half done."""
    for at, made in enumerate(_plain(start, run).records):
        for number in errnos:
            failures = [Failure(at, number), Failure(at, number, for_ever=True)]
            if made.call.name in ("write", "mkdir"):
                failures.append(Failure(at, number, is_short=True))
            for failure in failures:
                recording = record(start, run, failure=failure)
                yield _Plan(recording, ["FK", "F"], len(recording.records), errno.errorcode[number])


def _inner_models(model: str, models: Sequence[str]) -> list[str]:
    """Return under which models a recovery is cut: the same file system; after a kill, any."""
    if model[-1] == "K":
        return ["K", *(other for other in models if other in ("J", "B", "P"))]
    return [{"D": model[-1], "F": "J"}.get(model[0], model)]


def _violation(found: _Found) -> Violation:
    lines: list[str] = []
    for recording, crash in found.crashes:
        lines += recording.explain(crash)
        lines.append("    recovery")
    return Violation(found.message, " > ".join(crash.render() for _, crash in found.crashes), tuple(lines))


def _length(found: _Found) -> tuple[int, int, int]:
    lost = sum(loss.halves.bit_count() - loss.mask.bit_count() for _, crash in found.crashes for loss in crash.losses)
    return (len(found.crashes), sum(crash.after for _, crash in found.crashes), lost)


def explore(
    start: ModelHost,
    run: Run,
    recover: Recover,
    judge: Judge,
    models: Sequence[str] = ("K", "J", "B", "P"),
    depth: int = 1,
    *,
    operation: str = "operation",
    quiet: Callable[[Call], bool] = lambda call: False,
) -> Result:
    """Crash an operation everywhere and return what came of it.

    Args:
        start: The host before; it is not changed, and all of it counts as durable.
        run: The operation. Says with ``acks.ack`` what from then on must survive.
        recover: The recovery; given a host of another process, and of another boot if ``host.rebooted``.
        judge: Given start, state after recovery and what was acknowledged, returns what is wrong, one line each.
        models: Of ``recording.MODELS``; ``D`` with a letter behind it is D over that model.
        depth: 1, or 2 to cut the recovery as well.
        operation: Its name, for the matrix.
        quiet: Which changing calls of a second recovery are none.

    Returns:
        The matrix, and one violation for each message and model.

    Raises:
        AssertionError: The operation does not even run without a crash.
    """
    world = _settled(start)
    explorer = _Explorer(world, recover, judge, quiet)
    return _explored(explorer, _crashing(world, run, models), operation, models if depth > 1 else None)


def explore_failures(
    start: ModelHost,
    run: Run,
    recover: Recover,
    judge: Judge,
    errnos: Sequence[int] = ERRNOS,
    *,
    operation: str = "operation",
    quiet: Callable[[Call], bool] = lambda call: False,
) -> Result:
    """Fail an operation at every call, with every errno, once and for ever; then kill it or cut the power, and recover.

    Args:
        start: As for ``explore``, and so all others.
        run: The operation; it may raise, and what it says is acknowledged must still survive.
        recover: The recovery, on disks that work again.
        judge: As for ``explore``; ``State.error`` says what the operation raised.
        errnos: Which.
        operation: Its name, for the matrix.
        quiet: Which changing calls of a second recovery are none.

    Returns:
        The matrix by failing call and errno.
    """
    world = _settled(start)
    return _explored(_Explorer(world, recover, judge, quiet), _failing(world, run, errnos), operation, None)


def _settled(start: ModelHost) -> World:
    world = start.world()
    return world._replace(volumes=tuple(volume.durable() for volume in world.volumes))


def _explored(explorer: _Explorer, plans: Iterator[_Plan], operation: str, inner: Sequence[str] | None) -> Result:
    """Recover from every crash of every run; with ``inner``, crash the recoveries too."""
    counts: dict[tuple[int, str, str], Cell] = {}
    shortest: dict[tuple[str, str], _Found] = {}
    changed = 0
    said: tuple[str, ...] = ()
    for recording, models, first, column in plans:
        said = said if recording.failure else recording.acks.said
        for crash in crashes(recording, models, first):
            changed += recording.is_changed(crash)
            messages = [_Found(m, ((recording, crash),)) for m in explorer.recovered(recording, crash)]
            if inner is not None:
                for found in explorer.within(recording, crash, _inner_models(crash.model, inner)):
                    messages.append(found._replace(crashes=((recording, crash), *found.crashes)))
            for found in messages:
                best = shortest.setdefault((found.message, crash.model), found)
                shortest[found.message, crash.model] = min(best, found, key=_length)
            row = recording.failure.at + 1 if column and recording.failure else crash.after
            place = (row, recording.call(row), column or crash.model)
            cell = counts.get(place, Cell(0, 0))
            counts[place] = Cell(cell.states + 1, cell.violations + bool(messages))
        explorer.is_sampled |= recording.is_sampled
    violations = tuple(map(_violation, sorted(shortest.values(), key=_length)))
    ordered = dict(sorted(counts.items(), key=lambda item: item[0][0]))
    inners, is_sampled = explorer.inner, explorer.is_sampled
    return Result(operation, ordered, violations, explorer.distinct, inners, is_sampled, changed, said)


def replay(start: ModelHost, run: Run, recover: Recover, judge: Judge, schedule: str) -> list[str]:
    """Return what is wrong after one schedule, as a violation printed it."""
    world = _settled(start)
    explorer = _Explorer(world, recover, judge, lambda call: False)
    chain = [Crash.parse(text) for text in schedule.split(" > ")]
    recording = record(world, run, failure=chain[0].failure)
    for crash in chain[:-1]:
        recording = explorer.recovery(recording, crash)[1]
    return list(explorer.recovered(recording, chain[-1]))
