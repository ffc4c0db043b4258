"""A log dir looked at again: as if all of it had been looked into, by opening only what is new or asked for."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from logdir import clock
from logdir.formats.own.inventory import Kind
from logdir.observe.entry import ScannedEntry
from logdir.observe.facts import LogDirFacts
from logdir.observe.relook import LookedAgain, Memory, list_names, look_again, merged
from logdir.observe.replicas import look
from tests.builders import TOPIC_ID, log_dir, partition
from tests.logdir.observe.test_replicas import HIDDEN, marker

OTHER = "b8tRS7h4TJ2Vt43Dp85v2A"
DELETE = "0123456789abcdef0123456789abcdef-delete"
FUTURE = "0123456789abcdef0123456789abcdef-future"
CHECKPOINT = "recovery-point-offset-checkpoint"


class Looks:
    """What a batch knows of one log dir, look after look, each so many milliseconds after the last change."""

    def __init__(self, top: Path, later_ms: int = 0) -> None:
        self.top = str(top)
        self.memory = Memory(now_ms=lambda: clock.now_ms() + later_ms)
        self.number, _, self.facts = look_again(self.memory, self.top, -1, (), _live)

    def again(self, *paths: str) -> LookedAgain:
        found = look_again(self.memory, self.top, self.number, paths, _live)
        self.number, self.facts = found.number, merged(self.facts, found)
        return found


ASKED = (*(f"pay-{number}" for number in range(4)), *(f"deleting/{TOPIC_ID}_{number}" for number in range(8)))


def _live(entry: ScannedEntry) -> bool:
    return entry.kind is Kind.LIVE


@pytest.fixture
def d1(tmp_path: Path) -> Path:
    top = log_dir(tmp_path / "d1")
    for number in range(6):
        partition(top / f"pay-{number}")
    for place in (top / HIDDEN / "deleting", Path(f"{top}.logdird/deleting"), Path(f"{top}.logdird/incoming")):
        place.mkdir(parents=True)
    staged(top, 7)
    return top


def staged(top: Path, number: int, root: str = "") -> None:
    place = top / root if root else Path(f"{top}.logdird")
    marker(partition(place / "deleting" / f"{TOPIC_ID}_{number}"), topic="pay", partition=number, path=f"pay-{number}")


def _create(top: Path, number: int) -> None:
    if not (top / f"new-{number}").exists():
        partition(top / f"new-{number}", topic_id=OTHER)


def _stage(top: Path, number: int) -> None:
    source, place = top / f"pay-{number}", Path(f"{top}.logdird/deleting/{TOPIC_ID}_{number}")
    if source.exists() and not place.exists():
        marker(source, topic="pay", partition=number, path=source.name)
        source.rename(place)


def _restore(top: Path, number: int) -> None:
    source, place = Path(f"{top}.logdird/deleting/{TOPIC_ID}_{number}"), top / f"pay-{number}"
    if source.exists() and not place.exists():
        (source / "replica.json").unlink()
        source.rename(place)


def _delete(top: Path, number: int) -> None:
    if (top / f"new-{number}").exists():
        (top / f"new-{number}").rename(top / f"new-{number}.{DELETE}")


def _erase(top: Path, number: int) -> None:
    shutil.rmtree(top / f"new-{number}.{DELETE}", ignore_errors=True)


def _move(top: Path, number: int) -> None:
    (top / f"pay-{number}.{FUTURE}").mkdir(exist_ok=True)


def _link(top: Path, number: int) -> None:
    if not os.path.lexists(top / f"linked-{number}.{FUTURE}"):
        (top / f"linked-{number}.{FUTURE}").symlink_to(top)


def _by_id(top: Path, number: int) -> None:
    place = top / OTHER[:2] / f"{OTHER}_{number}"
    if not place.exists():
        partition(place, topic_id=OTHER, topic_name="orders")


def _checkpoint(top: Path, number: int) -> None:
    made = top / "made"
    made.write_text(f"0\n1\nnew {number} {number}\n")
    made.rename(top / CHECKPOINT)


def _hidden(top: Path, number: int) -> None:
    if not (top / HIDDEN / "deleting" / f"{TOPIC_ID}_{number}").exists():
        staged(top, number, HIDDEN)


def _odd(top: Path, number: int) -> None:
    Path(os.fsdecode(os.fsencode(top) + b"/\xff-%d" % number)).mkdir(exist_ok=True)


def _grow(top: Path, number: int) -> None:
    """Let a replica that is asked for change inside: a segment, an id, something that is no file."""
    place = top / f"pay-{number % 4}"
    if place.exists():
        (place / f"{number:020}.log").write_bytes(bytes(number))
        (place / "made").write_text(f"version: 0\ntopic_id: {OTHER if number % 2 else TOPIC_ID}")
        (place / "made").rename(place / "partition.metadata")
        if number == 5:
            (place / "strange").mkdir(exist_ok=True)


CHANGES: tuple[Callable[[Path, int], None], ...] = (
    _create, _stage, _restore, _delete, _erase, _move, _link, _by_id, _checkpoint, _hidden, _odd, _grow,
)  # fmt: skip


@pytest.mark.parametrize("later_ms", [0, 5000])
@pytest.mark.parametrize("seed", range(8))
def test_looks_again_find_what_one_look_at_everything_finds(d1: Path, seed: int, later_ms: int) -> None:
    dice = random.Random(seed)
    looks = Looks(d1, later_ms)
    is_partial = 0
    for _ in range(12):
        for _ in range(dice.randrange(4)):
            dice.choice(CHANGES)(d1, dice.randrange(8))
        is_partial += looks.again(*ASKED).paths is not None
        assert without_offsets(looks.facts) == without_offsets(look(str(d1)))
    assert is_partial == 12


def without_offsets(facts: LogDirFacts) -> object:
    """Leave out what the checkpoint files say of replicas that are not asked for."""
    values = {name: getattr(facts, name) for name in LogDirFacts.__slots__}
    values["replicas"] = [
        (r.path, r.kind, r.ref, r.inode, r.log_bytes, r.problems, r.unexpected_entries) for r in facts.replicas
    ]
    return values


def test_what_is_asked_for_is_looked_into_and_nothing_else(d1: Path) -> None:
    looks = Looks(d1)
    for number in range(6):
        (d1 / f"pay-{number}" / f"{10:020}.log").write_bytes(bytes(5))
    _checkpoint(d1, 1)
    (d1 / CHECKPOINT).write_text("0\n1\npay 3 12\n")
    found = looks.again("pay-3", "pay-9", f"deleting/{TOPIC_ID}_7")
    assert found.paths is not None
    assert set(found.paths) >= {"pay-3", f"deleting/{TOPIC_ID}_7"}
    assert not set(found.paths).intersection(("pay-1", "pay-9"))
    assert [(one.path, one.segments) for one in looks.facts.replicas] == [
        (f"pay-{number}", 2 if number == 3 else 1) for number in range(6)
    ]
    assert looks.facts.replicas[3].checkpoints.recovery_point == 12


def test_what_was_looked_into_and_is_as_it_was_is_not_looked_into_again(d1: Path) -> None:
    looks = Looks(d1, later_ms=2000)
    first, second = "pay-1", f"deleting/{TOPIC_ID}_7"
    assert looks.again(first, second).paths == (second, first)
    assert looks.again(first, second).paths == ()
    (d1 / first / f"{50:020}.log").touch()
    assert looks.again(first, second).paths == (first,)
    (Path(f"{d1}.logdird") / second / "replica.json").write_text("other words in the same file")
    assert looks.again(first, second).paths == (second,)
    assert looks.facts.staged[0].marker is None


def test_what_changed_a_moment_ago_is_looked_into_again(d1: Path) -> None:
    """Two changes within one step of a file system's clock have one time."""
    looks = Looks(d1, later_ms=500)
    assert [looks.again("pay-1").paths for _ in range(3)] == [("pay-1",)] * 3


def test_another_directory_of_the_same_name_is_looked_into(d1: Path) -> None:
    """A topic deleted and created again: its directory has another inode."""
    looks = Looks(d1)
    (d1 / "pay-2").rename(d1 / "aside")
    partition(d1 / "pay-2", topic_id=OTHER)
    looks.again()
    assert str(looks.facts.replicas[2].ref.topic_id) == OTHER


def test_a_look_that_another_one_came_between_is_one_at_everything(d1: Path) -> None:
    """What was lost on its way would never be told of again."""
    looks = Looks(d1)
    _create(d1, 1)
    look_again(looks.memory, looks.top, looks.number, (), _live)
    assert looks.again().paths is None
    assert any(one.path == "new-1" for one in looks.facts.replicas)


def test_a15_a_part_that_cannot_be_listed_is_never_taken_for_an_empty_one(d1: Path) -> None:
    looks = Looks(d1)
    place = d1 / OTHER[:2]
    _by_id(d1, 0)
    looks.again()
    shutil.rmtree(place)
    place.symlink_to("nowhere")  # no directory: nothing lies in it
    assert looks.again().paths is not None
    place.unlink()
    hidden = d1 / HIDDEN
    shutil.rmtree(hidden)
    hidden.write_text("")
    looks.again()
    assert without_offsets(looks.facts) == without_offsets(look(str(d1)))


def test_names_of_a_log_dir_that_is_away_are_not_known(tmp_path: Path) -> None:
    assert list_names(str(tmp_path / "away"), 0) is None


def test_a_log_dir_that_went_away_has_its_problem(d1: Path) -> None:
    looks = Looks(d1)
    d1.rename(f"{d1}-away")
    found = looks.again()
    assert found.paths is None
    assert found.facts.problem is not None
