"""One log dir of three hangs at each point of the work: opening, listing, reading a marker, locking.

On ext4 on a loop device whose image lies on a FUSE server that does not answer, so that no signal ends who waits.
Writing is in ``test_hung``, for that needs no point: it hangs wherever it is.

Spec: design §2 laws 4, 6, §5 "A port per log dir", §6 (exit status).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.hung.drawn import drawn
from tests.hung.points import LOCKING, POINTS, cooled, set_apart
from tests.hung.rig import Answer, Sick, all_ended, on_loop, require_asleep, require_in_time
from tests.hung.test_hung import (
    CHANGING,
    EVERY,
    LOOK_AT_NO_LOCK,
    asked,
    require_done_on_the_others,
    require_others,
    require_works_again,
)
from tests.kernel.images import Images

pytestmark = pytest.mark.root

APPLIED = tuple(name for name, (_, is_applied) in EVERY.items() if is_applied)
TOGETHER = {
    "what only looks": tuple(name for name in EVERY if name not in APPLIED),
    **{name: (name,) for name in APPLIED},
}
"""A change needs a disk on which nothing hangs yet: behind a read that hangs a loop device writes nothing either."""
LOOK_AT_THE_LOCK = tuple(name for name in EVERY if name not in (*APPLIED, *LOOK_AT_NO_LOCK))


@pytest.mark.parametrize("commands", TOGETHER)
@pytest.mark.parametrize("at", POINTS)
def test_a49_a_command_answers_for_the_others_wherever_one_hangs(
    at: str, commands: str, images: Images, tmp_path: Path
) -> None:
    point = POINTS[at]
    with on_loop(images, tmp_path, partial(set_apart, point=point)) as sick:
        broker = sick.broker
        if not point.is_listed and point.is_looked_at:
            # They look up files that are not there, before they list: what is known not to be there stays known.
            for words in CHANGING.values():
                assert broker.sees(*asked(broker, words)).suspects == []
        answers = {}
        with cooled(broker, tmp_path / "served" / "image", point):
            sick.hang("READ")
            # The worker of the command before was killed, and sleeps on: the next one does not wait for that.
            for name in TOGETHER[commands]:
                answer = answers[name] = broker.sees(*asked(broker, EVERY[name][0]))
                require_others(answer, broker)
                require_asleep(answer.session, point.call)
        require_nothing_was_changed(sick, answers)


@pytest.mark.parametrize("command", APPLIED)
def test_a22_a_change_goes_on_without_a_disk_that_hangs_as_it_is_locked(
    command: str, images: Images, tmp_path: Path
) -> None:
    with on_loop(images, tmp_path, partial(set_apart, point=LOCKING)) as sick:
        broker = sick.broker
        with cooled(broker, tmp_path / "served" / "image", LOCKING):
            sick.hang("READ")
            looked = broker.sees("describe")
            assert (looked.status, looked.suspects) == (0, []), "it hangs before it is locked: the test shows nothing"
            answer = broker.sees(*asked(broker, EVERY[command][0]))
            require_others(answer, broker)
            require_asleep(answer.session, LOCKING.call)
        require_nothing_was_changed(sick, {command: answer})


@pytest.mark.parametrize("command", drawn(LOOK_AT_THE_LOCK, 1))
def test_a22_a_command_that_looks_answers_for_the_others_beside_a_lock_that_hangs(
    command: str, images: Images, tmp_path: Path
) -> None:
    """Whether a broker runs is seen by its lock: the file of one hangs as it is opened."""
    with on_loop(images, tmp_path, partial(set_apart, point=LOCKING)) as sick:
        broker = sick.broker
        with cooled(broker, tmp_path / "served" / "image", LOCKING):
            sick.hang("READ")
            for name in LOOK_AT_NO_LOCK:
                looked = broker.sees(*asked(broker, EVERY[name][0]))
                assert (looked.status, looked.suspects) == (0, []), "it hangs before the lock: the test shows nothing"
            answer = broker.sees(*asked(broker, EVERY[command][0]))
            require_others(answer, broker)
            require_asleep(answer.session, LOCKING.call)
        require_nothing_was_changed(sick, {command: answer})


def but_for_marks(found: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    """Return what lies on a disk but for what a change writes before it looks: when it ran, and what it may stage."""
    own = ("heartbeat.json", "staging-limit.json")
    return {path: what for path, what in found.items() if not path.endswith(own)}


def require_nothing_was_changed(sick: Sick, answers: dict[str, Answer]) -> None:
    """Let the disk answer: assert that no late call changed it, and that it is used again."""
    broker = sick.broker
    sick.go_on()
    assert all_ended(*(answer.session for answer in answers.values()))
    assert but_for_marks(broker.seen()) == but_for_marks(sick.before), "it was changed after all"
    for name, answer in answers.items():
        words, is_applied = EVERY[name]
        if is_applied:
            require_done_on_the_others(answer, broker)
        require_in_time(answer)
        require_works_again(broker, words)
