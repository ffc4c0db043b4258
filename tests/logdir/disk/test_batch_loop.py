"""The batch loop ends, whatever its callables answer, and takes the locks no more often than there is work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, product, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdir.disk.batch_loop import Turn, run
from logdir.errors import LogDirReplacedError

UNDECIDED = "undecided"


@dataclass
class Rig:
    """Plays a script of turns, and keeps what the loop did."""

    turns: Iterator[Turn[int, str]]
    expires: Iterator[bool] = field(default_factory=lambda: repeat(False))
    is_held: bool = False
    holds: int = 0
    decided: int = 0
    events: list[str] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    reported_under_lock: bool = False

    @contextmanager
    def hold(self) -> Iterator[Rig]:
        self.holds += 1
        self.is_held = True
        try:
            yield self
        finally:
            self.is_held = False

    def require_held(self) -> None:
        self.events.append("held?")

    def expired(self, now_boottime_ms: int, /) -> bool:
        return next(self.expires, False)

    def decide(self, left: KeysView[int]) -> Turn[int, str]:
        assert self.is_held
        self.decided += 1
        return next(self.turns, Turn())

    def report(self, results: Sequence[str]) -> None:
        self.reported_under_lock |= self.is_held
        self.reported += results

    def run(self, items: Iterable[int]) -> list[str]:
        run(
            items,
            hold=self.hold,
            decide=self.decide,
            undecided=lambda key: f"{UNDECIDED} {key}",
            report=self.report,
            now_ms=lambda: 0,
        )
        return self.reported


def step_of(handled: Mapping[int, str], rig: list[str] | None = None) -> Callable[[], Mapping[int, str]]:
    def step() -> Mapping[int, str]:
        if rig is not None:
            rig.append("step")
        return handled

    return step


def turn_of(settled: Iterable[int], steps: Iterable[Iterable[int]], *, endless: bool = False) -> Turn[int, str]:
    listed = [step_of({key: f"done {key}" for key in keys}) for keys in steps]

    def begin() -> Iterable[Callable[[], Mapping[int, str]]]:
        yield from listed
        if endless:
            yield from repeat(step_of({}))

    return Turn(settled={key: f"settled {key}" for key in settled}, steps=begin)


_KEYS = st.integers(-2, 9)
_TURNS = st.lists(
    st.builds(turn_of, st.lists(_KEYS), st.lists(st.lists(_KEYS), max_size=6), endless=st.booleans()), max_size=12
)


@given(st.integers(0, 8), _TURNS, st.lists(st.booleans(), max_size=40))
def test_no_behaviour_of_its_callables_keeps_the_loop_from_its_end(
    count: int, turns: list[Turn[int, str]], expires: list[bool]
) -> None:
    rig = Rig(turns=iter(turns), expires=iter(expires))
    reported = rig.run(range(count))
    # Each item is reported once, and nothing else is.
    assert sorted(int(text.split()[-1]) for text in reported) == list(range(count))
    # The locks are taken no more often than there are items, and only while an item is left.
    assert rig.holds == rig.decided <= count
    assert not rig.reported_under_lock


def test_every_small_case_ends_with_every_item_reported_once() -> None:
    """All scripts of two turns over up to two items, each turn settling and doing any of them, or none."""
    some: list[tuple[int, ...]] = [(), (0,), (1,), (0, 1), (7,)]
    rows: list[list[tuple[int, ...]]] = [[], *([keys] for keys in some), [(0,), (1,)]]
    one_turn = [(settled, steps) for settled in some for steps in rows]
    for count, first, second, expires in product((1, 2), one_turn, one_turn, (False, True)):
        rig = Rig(turns=iter([turn_of(*first), turn_of(*second)]), expires=repeat(expires))
        reported = rig.run(range(count))
        assert sorted(int(text.split()[-1]) for text in reported) == list(range(count))
        assert rig.holds <= count


def test_no_lock_is_taken_for_nothing() -> None:
    rig = Rig(turns=iter(()))
    assert rig.run(()) == []
    assert rig.holds == 0


def test_no_lock_is_taken_again_once_all_is_handled() -> None:
    rig = Rig(turns=iter([turn_of((0,), [(1,), (2,)])]))
    assert rig.run(range(3)) == ["settled 0", "done 1", "done 2"]
    assert rig.holds == 1


def test_no_turn_that_takes_nothing_out_is_followed_by_another() -> None:
    rig = Rig(turns=iter([turn_of((0,), ()), turn_of((), ()), turn_of((1, 2), ())]))
    assert rig.run(range(3)) == ["settled 0", "undecided 1", "undecided 2"]
    assert rig.holds == 2


def test_no_step_without_the_locks_being_looked_at_right_before_it() -> None:
    rig = Rig(turns=iter(()))
    steps = [step_of({key: "done"}, rig.events) for key in range(3)]
    rig.turns = iter([Turn(steps=lambda: steps)])
    rig.run(range(3))
    assert rig.events == ["held?", "step"] * 3


def test_no_step_is_begun_once_the_turn_has_expired() -> None:
    rig = Rig(turns=iter([turn_of((), [(0,), (1,)]), turn_of((), [(1,)])]), expires=iter([True, True]))
    assert rig.run(range(2)) == ["done 0", "done 1"]
    assert rig.holds == 2


def test_no_endless_row_of_steps_is_carried_out_beyond_the_number_of_items() -> None:
    carried: list[str] = []
    rig = Rig(turns=iter([Turn(steps=lambda: islice(repeat(step_of({}, carried)), 1000))]))
    assert rig.run(range(3)) == ["undecided 0", "undecided 1", "undecided 2"]
    assert len(carried) == 3


def test_no_item_is_touched_or_reported_after_a_turn_that_is_over() -> None:
    rig = Rig(turns=iter([Turn(settled={0: "settled 0"}, steps=lambda: [step_of({1: "done 1"})], is_over=True)]))
    assert rig.run(range(2)) == ["settled 0"]


def test_no_error_of_a_step_hides_what_was_done_before_it() -> None:
    def broken() -> Mapping[int, str]:
        raise LogDirReplacedError("/d/.lock", expected="the file we locked", found="another")

    rig = Rig(turns=iter([Turn(steps=lambda: [step_of({0: "done 0"}), broken])]))
    with pytest.raises(LogDirReplacedError):
        rig.run(range(2))
    assert rig.reported == ["done 0"]
    assert not rig.is_held
