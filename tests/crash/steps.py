"""The steps of operations, said as they are done; recovery; and the way back.

Not here: on what they start (``starts``), which are crashed (``tests.operations``), what must hold (``oracle``).

Spec: design §3.3; reliability §4.4 (oracle: rollback).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple
from unittest import mock

from logdir.disk.kernel.calls import Directory
from logdir.disk.recover_log_dir import recover
from logdir.disk.replica import purge
from logdir.disk.replica.outcome import Outcome, Result
from logdir.disk.replica.purge import Listing, claim, claim_all, remove, remove_all
from logdir.disk.replica.replica_dir import read_marker
from logdir.disk.replica.staging import RestoreItem, StageItem, hold, restore, stage
from logdir.disk.root.work_root import open_root
from logdir.errors import LogDirOfflineError, NotFormattedError, ReadOnlyDiskError, RefusedError
from logdir.formats.own.replica_marker import ReplicaMarker
from tests.crash import oracle
from tests.crash.enumerate import Judge, State
from tests.crash.model import ModelHost
from tests.crash.oracle import Expected, Replica
from tests.crash.recording import Acks
from tests.crash.starts import OWNER, Part, Sites, marker_for
from tests.crash.tree import World
from tests.operations.case import Case


def recover_all(host: ModelHost) -> None:
    """Recover every disk that answers."""
    for system in host.systems:
        try:
            with open_root(host, f"{system.mount}/kafka") as root:
                assert not recover(root.open_dir).troubled
        except (LogDirOfflineError, NotFormattedError):
            if system.status not in ("absent", "empty"):
                raise
        except ReadOnlyDiskError:
            if system.status != "read-only":
                raise


def rollback(expected: Expected, start: World, world: World) -> list[str]:
    """Purge what is claimed, restore what is staged; return what is then not as it was at the start."""
    host = ModelHost(world._replace(generation=world.generation + 1, rebooted=False))
    wrong = []
    with Sites(host) as open_dirs:
        for system in host.systems:
            open_dir = open_dirs.at(f"{system.mount}/kafka")
            for name in open_dir.deleting.names():
                if name.endswith(".purging"):
                    remove(open_dir, name, in_use=nobody)
                    continue
                with open_dir.deleting.open(name) as directory:
                    marker = read_marker(directory)
                assert marker is not None
                item = RestoreItem(name=name, marker=marker, path=marker.path, drop_last_indexes=not marker.clean)
                outcome = restore(open_dir, item)
                if outcome.error:
                    wrong.append(f"stuck: {outcome.error}")
    if wrong:
        return wrong
    after = host.world()
    paths = after.tree()
    back = []
    for one in expected.replicas:
        is_gone = one.live not in paths and {"claimed", "gone"} & set(one.course)
        # Twice live: it may have been on its way back before, without its last indexes.
        back.append(replace(one, course=("gone",) if is_gone else ("live", "live")))
    state = State(world, after, ("ok",) * len(after.volumes))
    return [
        f"after the way back, {line}"
        for line in oracle.judge(replace(expected, replicas=tuple(back)), start, state, Acks())
    ]


def nobody(directory: Directory, name: str) -> bool:
    """Nobody has the file open."""
    return False


class Steps:
    """One process's steps; they say what they did."""

    def __init__(self, host: ModelHost, acks: Acks, open_dirs: Sites) -> None:
        self.host = host
        self.acks = acks
        self.open_dirs = open_dirs
        self.reached: dict[str, int] = {}
        self.places: dict[str, str] = {}

    def place(self, part: Part) -> str:
        """Return the name it has under ``deleting/``."""
        return self.places.get(part.key, part.place)

    def say(self, part: Part, is_done: bool) -> None:
        """Acknowledge a step."""
        number = self.reached.get(part.key, 0) + 1
        if is_done:
            self.reached[part.key] = number
        self.acks.ack(f"{part.key} {'reached' if is_done else 'refused'} {number}")

    def _outcome(self, part: Part, outcome: Outcome) -> None:
        self.say(part, outcome.result is Result.DONE)
        if outcome.place and outcome.place.startswith("deleting/"):
            self.places[part.key] = outcome.place.removeprefix("deleting/")

    def stage(self, *parts: Part) -> None:
        """Stage, one batch a disk; a disk that fails leaves the others alone."""
        failed = None
        for _, batch in itertools.groupby(parts, key=lambda part: part.disk):
            batched = list(batch)
            open_dir = self.open_dirs.of(batched[0])
            items = [StageItem(path=part.path, marker=marker_for(open_dir, part)) for part in batched]
            try:
                for part, outcome in zip(batched, stage(open_dir, items), strict=True):
                    self._outcome(part, outcome)
            except ReadOnlyDiskError as error:
                failed = error
        if failed:
            raise failed

    def restore(self, part: Part, *, drop: bool = False) -> None:
        """Restore."""
        marker = self.open_dirs.marker(part, self.place(part))
        item = RestoreItem(name=self.place(part), marker=marker, path=part.path, drop_last_indexes=drop)
        self._outcome(part, restore(self.open_dirs.of(part), item))

    def hold(self, part: Part) -> None:
        """Hold."""
        self._outcome(part, hold(self.open_dirs.of(part), self.place(part)))

    def purge(self, part: Part) -> None:
        """Claim, and remove."""
        name = self.claim(part, self.open_dirs.marker(part, self.place(part)))
        if name:
            self.remove(part, name)

    def purge_judged(self, judged: Mapping[Part, ReplicaMarker]) -> None:
        """Claim and remove several of one disk, on markers that were read before; as ``logdirctl`` does."""
        parts = tuple(judged)
        open_dir = self.open_dirs.of(parts[0])
        while parts:
            seen: dict[str, Listing] = {}
            claims = claim_all(open_dir, {self.place(part): judged[part] for part in parts}, seen=seen)
            some, parts = parts[: len(claims)], parts[len(claims) :]  # where the disk is full, a few at a time
            for part, outcome in zip(some, claims, strict=True):
                self.say(part, outcome.result is Result.DONE)
            places = {part: one.place for part, one in zip(some, claims, strict=True) if one.place is not None}
            names = [place.removeprefix("deleting/") for place in places.values()]
            for part, outcome in zip(places, remove_all(open_dir, names, in_use=nobody, seen=seen), strict=True):
                self.say(part, outcome.result is Result.DONE)

    def claim(self, part: Part, marker: ReplicaMarker) -> str | None:
        """Claim."""
        try:
            name = claim(self.open_dirs.of(part), self.place(part), marker)
        except ReadOnlyDiskError:
            raise
        except (RefusedError, OSError):
            self.say(part, False)
            return None
        self.say(part, True)
        return name

    def remove(self, part: Part, name: str) -> None:
        """Remove what is claimed."""
        try:
            remove(self.open_dirs.of(part), name, in_use=nobody)
        except ReadOnlyDiskError:
            raise
        except OSError:
            return
        self.say(part, True)


class Course(NamedTuple):
    """What is done on one start, and through which places each replica goes: the oracle judges that."""

    name: str
    start: ModelHost
    run: Callable[[ModelHost, Acks], None]
    expected: Expected
    has_way_back: bool = True
    """Whether what is staged can be restored: not where its name is taken, or it is foreign."""

    @property
    def reaches(self) -> frozenset[str]:
        """Return what it acknowledges when nothing is cut off: the end of every course, and every file replaced."""
        ends = {f"{one.key} reached {len(one.course) - 1}" for one in self.expected.replicas if len(one.course) > 1}
        return frozenset(ends | {said for _, _, said in self.expected.files.values()})

    @property
    def judge(self) -> Judge:
        """Return the oracle for it, and then the way back."""
        known: dict[tuple[object, ...], list[str]] = {}

        def judged(start: World, state: State, acks: Acks) -> list[str]:
            found = oracle.judge(self.expected, start, state, acks)
            if not found and self.has_way_back and set(state.statuses) == {"ok"}:
                key = state.recovered.digest()
                if key not in known:
                    known[key] = rollback(self.expected, start, state.recovered)
                found = known[key]
            return found

        return judged

    @property
    def case(self) -> Case:
        """Return it as a case."""
        return Case(self.name, self.start, self.run, recover_all, self.judge, reaches=self.reaches)


MakeCourse = Callable[[str], Course]
NAMED_AT_ONCE = ", named at once"
"""Of the same where a file has its name first: killed in the making, it is there, in part, and root's (A9)."""


def cases(courses: Mapping[str, MakeCourse]) -> dict[str, Callable[[str], Case]]:
    """Return what makes the case of each course, by its name."""

    def making(make: MakeCourse) -> Callable[[str], Case]:
        return lambda name: make(name).case

    return {name: making(make) for name, make in courses.items()}


def named_at_once(courses: Mapping[str, MakeCourse], *names: str) -> dict[str, MakeCourse]:
    """Return some courses once more, on disks that make no file without a name."""

    def making(make: MakeCourse) -> MakeCourse:
        def made(name: str) -> Course:
            one = make(name.removesuffix(NAMED_AT_ONCE))
            world = one.start.world()
            volumes = tuple(volume._replace(makes_unnamed=False) for volume in world.volumes)
            expected = replace(one.expected, is_named_at_once=True)
            return one._replace(name=name, start=ModelHost(world._replace(volumes=volumes)), expected=expected)

        return made

    return {f"{name}{NAMED_AT_ONCE}": making(courses[name]) for name in names}


def _running(do: Callable[[Steps], None], step_bytes: int) -> Callable[[ModelHost, Acks], None]:
    def run(host: ModelHost, acks: Acks) -> None:
        with Sites(host) as open_dirs, mock.patch.object(purge, "STEP_BYTES", step_bytes):
            do(Steps(host, acks, open_dirs))

    return run


def replica_of(part: Part, *course: str, drops: tuple[str, ...] = (), is_staged: bool = False) -> Replica:
    """Return what the oracle is to know of a partition."""
    live = f"{part.log_dir}/{part.path}"
    work = "/kafka" if part.is_by_id else "/kafka.logdird"
    return Replica(
        key=part.key,
        mount=part.mount,
        start=f"{part.mount}{work}/deleting/{part.place}" if is_staged else live,
        live=live,
        id=part.topic_id or f"no-id.{part.topic}",
        partition=part.partition,
        course=course,
        drops=frozenset(drops),
    )


def course_of(
    name: str,
    host: ModelHost,
    do: Callable[[Steps], None],
    *replicas: Replica,
    files: dict[str, tuple[bytes | None, bytes | None, str]] | None = None,
    directories: frozenset[str] = frozenset(),
    step_bytes: int = purge.STEP_BYTES,
) -> Course:
    """Return what does this and may change that."""
    expected = Expected(replicas=replicas, files=files or {}, directories=directories, owner=OWNER)
    return Course(name, host, _running(do, step_bytes), expected)
