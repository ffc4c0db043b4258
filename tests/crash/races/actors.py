"""Restore, purge and capture of the same files: every order of their steps, each cut off everywhere.

A broker has renamed a replica on its way to its removal, and it was captured: the same files lie at the top of the log
dir and, as links, under ``deleting/``. Three processes each look, and act later on what they saw: one restores what was
captured, one purges it, one captures once more. Whoever claims or renames first has it; the other is refused, in words.

The owner lock keeps the three apart in life; what each saw may be old all the same.

Spec: design §3.3; attacks A17, A18; reliability §7 row 8.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress

from logdir.disk.replica.capture import capture
from logdir.disk.replica.capture_item import CaptureItem
from logdir.disk.replica.outcome import Result
from logdir.disk.replica.purge import claim, remove
from logdir.disk.replica.replica_dir import read_marker
from logdir.disk.replica.staging import RestoreItem, restore
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, ReadOnlyDiskError, RefusedError
from logdir.formats.own.replica_marker import ReplicaMarker
from tests.crash.enumerate import State
from tests.crash.model import ModelHost
from tests.crash.races.turns import Actor, interleave
from tests.crash.recording import Acks
from tests.crash.steps import nobody
from tests.crash.tree import World
from tests.logdir.disk import rescue_crash as rescue
from tests.logdir.disk.rescue import DELETED, OLD, instant
from tests.operations.case import Case, settled

NAME = f"{OLD}_0"
LIVE = "/d0/kafka/t-0"
SOURCE = f"/d0/kafka/{DELETED}"
DELETING = "/d0/kafka.logdird/deleting"
ACTORS = (("R sees", "restore"), ("P sees", "claim", "remove"), ("C sees", "capture"))
FILES = {name: data for name, data in rescue.SMALL.items() if name.endswith((".log", ".metadata"))}


def orders(actors: tuple[tuple[str, ...], ...] = ACTORS) -> Iterator[tuple[str, ...]]:
    """Yield every order of all steps in which each actor's own stay in order."""
    if not any(actors):
        yield ()
    for number, steps in enumerate(actors):
        if steps:
            rest = tuple(other if at != number else other[1:] for at, other in enumerate(actors))
            yield from ((steps[0], *order) for order in orders(rest))


@functools.cache
def start() -> ModelHost:
    """Return a log dir with a replica its broker removes, and its capture, due at once."""
    host = rescue._host()
    rescue._plant(host, SOURCE, FILES)
    with ExitStack() as stack:
        (outcome,) = capture(rescue._sites(host, stack)[0], [CaptureItem(name=DELETED, delay_ms=0)], instant)
    assert outcome.result is Result.DONE, outcome
    return settled(host)


class _Race:
    """The three, on one host."""

    def __init__(self, host: ModelHost, acks: Acks, open_dir: OpenLogDir, *, is_strict: bool = True) -> None:
        """Begin.

        Args:
            host: Where.
            acks: Told what was done or refused.
            open_dir: The log dir, open.
            is_strict: Whether who comes second must be refused before it tries; by turns it may find out by trying.
        """
        self._host, self._acks, self._site, self._is_strict = host, acks, open_dir, is_strict
        self._seen: dict[str, ReplicaMarker] = {}
        self._claimed = ""

    def step(self, step: str) -> None:
        """Do one."""
        match step:
            case "R sees" | "P sees":
                with suppress(FileNotFoundError), self._site.deleting.open(NAME) as directory:
                    marker = read_marker(directory)
                    assert marker is not None
                    self._seen[step[0]] = marker
            case "C sees":
                pass
            case "restore" if "R" in self._seen:
                self._restore()
            case "claim" if "P" in self._seen:
                self._claim()
            case "remove" if self._claimed:
                with suppress(OSError):
                    remove(self._site, self._claimed, in_use=nobody)
                    self._acks.ack("removed")
            case "capture":
                self._capture()

    def _inode(self, name: str = NAME) -> int:
        """Return which directory has a name under ``deleting/`` just now; 0 for none."""
        try:
            return self._site.deleting.stat(name).inode
        except FileNotFoundError:
            return 0

    def _restore(self) -> None:
        inode = self._inode()
        item = RestoreItem(name=NAME, marker=self._seen["R"], path="t-0", drop_last_indexes=False)
        outcome = restore(self._site, item)
        if outcome.result is Result.DONE:
            self._acks.ack(f"restored {inode}")
        else:
            # In words, and of ours: what it was decided on is no longer so.
            assert isinstance(outcome.error, RefusedError if self._is_strict else LogDirError), outcome
            self._acks.ack("restore refused")

    def _claim(self) -> None:
        inode = self._inode()
        try:
            self._claimed = claim(self._site, NAME, self._seen["P"])
        except ReadOnlyDiskError:
            raise
        except (RefusedError, FileNotFoundError):
            self._acks.ack("claim refused")
        else:
            self._acks.ack(f"claimed {inode}")

    def _capture(self) -> None:
        (outcome,) = capture(self._site, [CaptureItem(name=DELETED, delay_ms=0)], instant)
        if outcome.result is Result.DONE:
            assert outcome.place is not None
            self._acks.ack(f"captured {self._inode(outcome.place.removeprefix('deleting/'))}")
        else:
            assert isinstance(outcome.error, RefusedError), outcome
            self._acks.ack("capture refused")


def _kept(world: World, inode: int) -> str:
    """Return where a directory lies, by its inode; nothing if it is nowhere."""
    return next((path for path, node in world.tree().items() if node.inode == inode), "")


def _whole(files: Mapping[str, bytes], path: str) -> bool:
    found = {at.rpartition("/")[2]: data for at, data in files.items() if at.rpartition("/")[0] == path}
    return {name: data for name, data in found.items() if not name.startswith("replica.")} == FILES


def _said(acks: Acks, word: str) -> set[int]:
    """Return of which directories something was said."""
    return {int(said.removeprefix(f"{word} ")) for said in acks.said if re.fullmatch(rf"{word} \d+", said)}


def judge(before: World, state: State, acks: Acks) -> list[str]:
    """Return what is wrong: worked out by inode, name and content."""
    first = before.tree()[f"{DELETING}/{NAME}"].inode
    restored, claimed, captured = (_said(acks, word) for word in ("restored", "claimed", "captured"))
    wrong = [f"doubled: {both} was restored and claimed" for both in restored & claimed]
    for inode in claimed & captured:
        if acks.said.index(f"claimed {inode}") < acks.said.index(f"captured {inode}"):
            wrong.append(f"lost: {inode} was said to be captured after it was claimed: it will not stay")
    for word, world in (("at the crash", state.crashed), ("recovered", state.recovered)):
        files = world.files()
        if not _whole(files, SOURCE):
            wrong.append(f"lost: {word}, the broker's own is not as it was")
        for inode in {first, *captured}:
            where = _kept(world, inode)
            place = {LIVE: "live", "": "gone"}.get(where, "claimed" if where.endswith(".purging") else "aside")
            if place != "claimed" and where and not _whole(files, where):
                wrong.append(f"half: {word}, {where}")
            # What was said may be followed by the next step, of which nothing is said yet.
            allowed = {"live"} if inode in restored else {"claimed", "gone"} if inode in claimed else set()
            if allowed and place not in allowed:
                wrong.append(f"lost: {word}, {inode} is {where or 'gone'}, not {' or '.join(sorted(allowed))}")
            if not allowed and place == "gone":
                wrong.append(f"lost: {word}, {inode} is gone, and nobody said it was claimed")
            if "removed" in acks and inode in claimed and place == "claimed":
                wrong.append(f"stuck: {word}, {inode} was removed, and is there")
    if any(path.startswith(f"{LIVE}/replica.") for path in state.recovered.files()):
        wrong.append("stuck: live with a marker")
    if any("/incoming/" in path for path in state.recovered.files()) and captured - {first}:
        wrong.append("stuck: captured, and something of it is still on its way")
    return wrong


def race(order: tuple[str, ...]) -> Case:
    """Return the race in which the steps come in this order."""

    def run(host: ModelHost, acks: Acks) -> None:
        with ExitStack() as stack:
            racing = _Race(host, acks, rescue._sites(host, stack)[0])
            for step in order:
                racing.step(step)

    return Case(f"race: {', '.join(order)}", start(), run, recover, judge)


def by_turns(pair: tuple[tuple[str, ...], ...], choices: Sequence[int]) -> Case:
    """Return the race of two processes that take turns at every call.

    Args:
        pair: The steps of each.
        choices: As ``turns.interleave``.
    """

    def run(host: ModelHost, acks: Acks) -> None:
        turned(host, acks, pair, choices)

    return Case(f"turns of {pair}: {choices}", start(), run, recover, judge)


def turned(host: ModelHost, acks: Acks, pair: tuple[tuple[str, ...], ...], choices: Sequence[int]) -> tuple[int, ...]:
    """Run two processes by turns; return the choices made."""
    with ExitStack() as stack:
        # Each has opened the log dir for itself, as another process would.
        racing = [_Race(host, acks, rescue._sites(host, stack)[0], is_strict=False) for _ in pair]

        def acting(number: int) -> Actor:
            def act() -> None:
                for step in pair[number]:
                    racing[number].step(step)

            return act

        return interleave(host, [acting(number) for number in range(len(pair))], choices)


def recover(host: ModelHost) -> None:
    """Do what every start does."""
    rescue._recover_adopt(host)
