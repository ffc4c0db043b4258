"""One log dir of three hangs: every command answers for the others in time, and names that one.

Not here: a cold disk, on which a command hangs at one point after the other (``test_points``); Kafka's locks while one
hangs (``test_amid_batch``); all other commands (``test_every_command``).

Spec: design §2 laws 4, 6, §5 "A port per log dir", §6 (exit status).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.builders import partition
from tests.hung.drawn import drawn
from tests.hung.late import Became, Everything, became, everything
from tests.hung.locks import is_held
from tests.hung.rig import (
    AT_MOST_S,
    TIMEOUT_S,
    Answer,
    Broker,
    Running,
    Sick,
    all_ended,
    on_frozen,
    on_fuse,
    on_loop,
    processes_of,
    require_asleep,
    require_in_time,
)
from tests.kafka.rotation import seed_of
from tests.kernel.images import Images
from tests.proof.sizes import SIZE, Size
from tests.tools.ctl import tree

pytestmark = pytest.mark.root

READING = {
    "staged ls": ("staged", "ls"),
    "inventory": ("inventory",),
    "describe": ("describe",),
    "strays": ("strays",),
}
STAGE = ("stage", "pay", "--even-over-limit")
PURGE = ("staged", "purge", "old")
SYNCS = range(100) if SIZE is Size.FULL else (seed_of(os.environ) % 8,)
"""How many syncs of the sick disk are answered before one hangs; a purge has the fewest, ten."""


def asked(broker: Broker, words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command with the source it needs."""
    return (*words, *(() if words[0] in ("describe", "inventory") or "ls" in words else broker.source))


def planned(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command without ``--apply``."""
    return tuple(word for word in words if word != "--apply")


def rows_of(answer: Answer) -> set[tuple[str, str]]:
    """Return log dir and name of each replica in an answer; of an inventory, of each entry."""
    found = set()
    for row in answer.result.get("items", ()):
        if "disk" in row:
            found |= {(row["disk"]["log_dir"], entry["name"]) for entry in row["entries"]}
        else:
            found.add((row["log_dir"], row["path"]))
    return found


def others(broker: Broker) -> tuple[Path, Path]:
    """Return the log dirs that answer."""
    return broker.disks[0], broker.disks[2]


def require_others(answer: Answer, broker: Broker) -> None:
    """Assert that a command answered for the two disks that do, and called the third suspect."""
    print("took", round(answer.seconds, 1), "s")
    assert answer.suspects == [str(broker.sick)], answer
    assert answer.status == 1, answer
    assert set(map(str, others(broker))) <= {log_dir for log_dir, _ in rows_of(answer)}, answer


LOOKING = {
    **READING,
    **{f"{name}, planned": words for name, words in {"stage": STAGE, "staged purge": PURGE}.items()},
}
KAFKAS_LOCK = ("OPEN:.lock", "GETLK:.lock", "FLUSH:.lock")
"""Whether a broker runs is seen by its lock: opening the file, asking who holds it, and closing it may hang."""
LOOK_AT_NO_LOCK = ("inventory", "describe")
HUNG_AS_THEY_READ = [
    *((command, hung) for command in READING for hung in ("LOOKUP GETATTR", "OPENDIR", "READDIR", "READ")),
    *((command, hung) for command in LOOKING if command not in LOOK_AT_NO_LOCK for hung in KAFKAS_LOCK),
]


@pytest.mark.parametrize(("command", "hung"), drawn(HUNG_AS_THEY_READ, 13))
def test_a49_a_command_that_reads_answers_for_the_others(
    command: str, hung: str, images: Images, tmp_path: Path
) -> None:
    with on_fuse(tmp_path) as sick:
        broker = sick.broker
        words = asked(broker, LOOKING[command])
        before = broker.sees(*words)
        assert (before.status, before.suspects) == (0, []), before
        sick.hang(*hung.split())
        answer = broker.sees(*words)
        require_others(answer, broker)
        assert processes_of(answer.session), "no worker hangs: the test shows nothing"
        sick.go_on()
        assert all_ended(answer.session)
        after = broker.sees(*words)
        assert (after.status, after.suspects, rows_of(after)) == (0, [], rows_of(before))
        require_in_time(answer)


@pytest.mark.parametrize("command", LOOK_AT_NO_LOCK)
def test_what_looks_at_no_lock_is_not_hindered_by_one_that_hangs(command: str, images: Images, tmp_path: Path) -> None:
    with on_fuse(tmp_path) as sick:
        broker = sick.broker
        sick.hang(*KAFKAS_LOCK)
        answer = broker.sees(*asked(broker, LOOKING[command]))
        assert (answer.status, answer.suspects) == (0, []), answer
        assert str(broker.sick) in {log_dir for log_dir, _ in rows_of(answer)}


READ_ENDS = {"staged ls": ("staged", "ls", "--json"), "describe": ("describe", "--kafka-json")}


@pytest.mark.parametrize("command", drawn(tuple(READ_ENDS), 1))
def test_a49_a_log_that_hangs_as_its_end_is_read_is_named(command: str, images: Images, tmp_path: Path) -> None:
    """The last that is read of a disk: all replicas are known by then."""
    with on_fuse(tmp_path) as sick:
        broker = sick.broker
        # Of a move between two disks the ends of both logs tell how far it is.
        partition(tmp_path / "backing" / "d2" / f"pay-0.{'0' * 32}-future", segments={0: 10})
        sick.hang(f"OPEN:{0:020}.log")
        running = Running((*READ_ENDS[command], *broker.named, "--disk-timeout", str(TIMEOUT_S)))
        status, out, err = running.text()
        assert processes_of(running.session), "no worker hangs: the test shows nothing"
        assert (status, err.count(f"log-dir-suspect: {broker.sick}: ")) == (1, 1), err
        assert all(str(path) in out for path in broker.disks)
        sick.go_on()
        assert all_ended(running.session)


CHANGING = {"stage": STAGE, "staged purge": PURGE}
EVERY = {
    **{name: (words, False) for name, words in LOOKING.items()},
    **{f"{name}, applied": ((*words, "--apply"), True) for name, words in CHANGING.items()},
}


@pytest.mark.parametrize("command", CHANGING)
def test_a_change_whose_writes_hang_is_made_on_the_others_and_nothing_follows_it(
    command: str, images: Images, tmp_path: Path
) -> None:
    with on_loop(images, tmp_path) as sick:
        broker = sick.broker
        assert broker.seen() == sick.before  # what is read from now on is in memory
        before = everything(broker)
        sick.hang("WRITE", "FSYNC")
        answer = broker.sees(*asked(broker, CHANGING[command]), "--apply")
        require_others(answer, broker)
        require_asleep(answer.session)
        require_done_on_the_others(answer, broker)
        assert what_follows(command, sick, answer, before) is Became.NOTHING
        require_in_time(answer)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", drawn(tuple(CHANGING), 1))
def test_a40_a_change_that_hangs_at_any_of_its_syncs_is_done_on_the_others_and_whole_there(
    command: str, images: Images, tmp_path: Path
) -> None:
    """Before, between and after what it writes: at full size each, else one of them."""
    found = []
    for at in SYNCS:
        (tmp_path / str(at)).mkdir()
        with on_loop(images, tmp_path / str(at)) as sick:
            broker = sick.broker
            broker.seen()
            before = everything(broker)
            sick.hang("FSYNC", f"after={at}")
            answer = broker.sees(*asked(broker, CHANGING[command]), "--apply")
            if not answer.suspects:
                break
            print("after", at, [one["found"] for one in answer.problems if one["slug"] == "log-dir-suspect"])
            require_others(answer, broker)
            require_asleep(answer.session)
            require_done_on_the_others(answer, broker)
            found.append(what_follows(command, sick, answer, before))
            require_in_time(answer)
    assert found, "it syncs nothing: the test shows nothing"
    if SIZE is Size.FULL:
        assert not answer.suspects, "it has more syncs than were tried"
        assert {Became.NOTHING, Became.DONE} <= set(found), found


@pytest.mark.parametrize("command", CHANGING)
def test_a_change_on_a_frozen_disk_is_made_on_the_others(command: str, images: Images, tmp_path: Path) -> None:
    """The locks hang already: taking one makes its file."""
    with on_frozen(images, tmp_path) as sick:
        broker = sick.broker
        before = everything(broker)
        sick.hang()
        answer = broker.sees(*asked(broker, CHANGING[command]), "--apply")
        require_others(answer, broker)
        require_asleep(answer.session)
        require_done_on_the_others(answer, broker)
        assert what_follows(command, sick, answer, before) is Became.NOTHING
        require_in_time(answer)


@pytest.mark.parametrize("command", [name for name, (_, is_applied) in EVERY.items() if not is_applied])
def test_what_only_reads_is_not_hindered_by_a_frozen_disk(command: str, images: Images, tmp_path: Path) -> None:
    with on_frozen(images, tmp_path) as sick:
        broker = sick.broker
        sick.hang()
        answer = broker.sees(*asked(broker, EVERY[command][0]))
        assert (answer.status, answer.suspects) == (0, []), answer
        assert str(broker.sick) in {log_dir for log_dir, _ in rows_of(answer)}


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_command_that_is_ended_while_one_hangs_lets_the_others_go(
    end: signal.Signals, images: Images, tmp_path: Path
) -> None:
    with on_loop(images, tmp_path) as sick:
        broker = sick.broker
        broker.seen()
        sick.hang("WRITE", "FSYNC")
        running = broker.begin(*asked(broker, STAGE), "--apply", "--disk-timeout", "60")
        require(lambda: is_held(broker.disks[0]), "no lock was ever seen: the test shows nothing")
        require(lambda: sleeps_on(running.session), "no worker sleeps: the test shows nothing")
        running.end(end)  # and its output ends with it
        require(lambda: not any(map(is_held, others(broker))), "the locks of the others are held")
        require(lambda: set(processes_of(running.session).values()) <= {"D"}, "a worker that does not sleep goes on")
        # Whoever comes next while it hangs goes on without it.
        next_one = broker.sees("staged", "ls")
        assert next_one.status in (0, 1)
        assert set(map(str, others(broker))) <= {log_dir for log_dir, _ in rows_of(next_one)}
        sick.go_on()
        assert all_ended(running.session, next_one.session)
        require_works_again(broker, STAGE)


@pytest.mark.parametrize("command", ["staged ls", "stage, planned", "staged purge, applied"])
def test_a_second_command_while_the_worker_of_the_first_still_hangs(
    command: str, images: Images, tmp_path: Path
) -> None:
    words, _ = EVERY[command]
    with on_loop(images, tmp_path) as sick:
        broker = sick.broker
        sick.hang("READ")
        first = broker.sees(*asked(broker, STAGE), "--apply")
        assert first.suspects == [str(broker.sick)], first
        second = broker.sees(*asked(broker, words))
        assert second.suspects == [str(broker.sick)], second
        sick.go_on()
        assert all_ended(first.session, second.session)
        assert broker.seen() == sick.before
        require_works_again(broker, words)
        require_in_time(second)


def sleeps_on(session: int) -> bool:
    """Whether a process of a session sleeps in the kernel for a second: a moment of that is what any disk takes."""
    for _ in range(20):
        if "D" not in processes_of(session).values():
            return False
        time.sleep(0.05)
    return True


def require(is_so: Callable[[], bool], otherwise: str) -> None:
    """Wait until something is so."""
    end = time.monotonic() + AT_MOST_S
    while not is_so():
        assert time.monotonic() < end, otherwise
        time.sleep(0.005)


def what_follows(command: str, sick: Sick, answer: Answer, before: Everything) -> Became:
    """Let the disk answer, and return what became of a change there.

    Asserts that the call that hung is the last that is made, that the change is not begun or whole, to the byte, and
    that it is whole once the command is typed again.

    Args:
        command: A name in ``CHANGING``.
        sick: The disk; it hangs.
        answer: What the command answered.
        before: What lay on the disk.
    """
    broker = sick.broker
    sick.go_on()
    assert all_ended(answer.session)
    then = everything(broker)
    found = became(command, before, broker)
    time.sleep(0.5)
    assert everything(broker) == then
    if found is Became.NOTHING:
        require_works_again(broker, CHANGING[command])
    else:
        # Nothing is left to be asked for by its name; what is claimed is removed all the same.
        broker.sees(*asked(broker, CHANGING[command]), "--apply")
    assert became(command, before, broker) is Became.DONE
    assert not list(Path(f"{broker.sick}.logdird").glob("*.tmp"))
    return found


NEEDS_ALL = {
    "staged restore": ("staged", "restore", "old"),
    "staged restore, applied": ("staged", "restore", "old", "--apply"),
    "uninstall": ("uninstall",),
}


@pytest.mark.parametrize("command", NEEDS_ALL)
def test_a49_what_needs_every_disk_is_refused_by_the_name_of_the_one_that_hangs(
    command: str, images: Images, tmp_path: Path
) -> None:
    with on_loop(images, tmp_path) as sick:
        broker = sick.broker
        sick.hang("READ")
        before = tree(*others(broker))
        answer = broker.sees(*NEEDS_ALL[command])
        assert (answer.status, answer.suspects) == (4, [str(broker.sick)]), answer
        assert tree(*others(broker)) == before
        sick.go_on()
        assert all_ended(answer.session)
        assert broker.seen() == sick.before
        require_in_time(answer)


def require_done_on_the_others(answer: Answer, broker: Broker) -> None:
    """Assert that a change is done on the two disks that answer."""
    found = states(answer)
    assert [found.get(str(path)) for path in others(broker)] == [{"done"}, {"done"}], answer


def states(answer: Answer) -> dict[str, set[str]]:
    """Return the states of a command's rows, by log dir."""
    found: dict[str, set[str]] = {}
    for row in answer.result["items"]:
        found.setdefault(row["log_dir"], set()).add(row["state"])
    return found


def require_works_again(broker: Broker, words: Sequence[str]) -> None:
    """Assert that commands do all of their work as soon as the disk answers."""
    listed = broker.sees("staged", "ls")
    assert (listed.status, listed.suspects) == (0, []), listed
    for name, changing in CHANGING.items():
        if words[0] == changing[0] and "ls" not in words:
            again = broker.sees(*asked(broker, changing), "--apply")
            assert (again.status, again.suspects) == (0, []), (name, again)
            assert states(again)[str(broker.sick)] == {"done"}
