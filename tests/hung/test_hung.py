"""One log dir of three hangs: every command answers for the others in time, and names that one.

Not here: a cold disk, on which a command hangs at one point after the other (``test_points``); all other commands
(``test_every_command``).

Spec: design §2 laws 4, 6, §5 "A port per log dir", §6 (exit status).
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.hung.rig import (
    AT_MOST_S,
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
from tests.hung.test_every_command import prepare
from tests.kernel.images import Images
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
WITHIN_S = 2.5
"""A broker that starts is refused for no longer than two seconds, and half a second to see that one is silent."""
LONG_S = 5
"""A time-out that is longer."""


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


@pytest.mark.parametrize("hung", ["LOOKUP GETATTR", "OPENDIR", "READDIR", "READ"])
@pytest.mark.parametrize("command", READING)
def test_a49_a_command_that_reads_answers_for_the_others(
    command: str, hung: str, images: Images, tmp_path: Path
) -> None:
    with on_fuse(tmp_path) as sick:
        broker = sick.broker
        words = asked(broker, READING[command])
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
        require_in_time(answer, lambda: broker.sees(*words))


CHANGING = {"stage": STAGE, "staged purge": PURGE}
EVERY = {
    **{name: (words, False) for name, words in READING.items()},
    **{f"{name}, planned": (words, False) for name, words in CHANGING.items()},
    **{f"{name}, applied": ((*words, "--apply"), True) for name, words in CHANGING.items()},
}


@pytest.mark.parametrize("command", CHANGING)
def test_a_change_whose_writes_hang_is_made_on_the_others_and_nothing_follows_it(
    command: str, images: Images, tmp_path: Path
) -> None:
    with on_loop(images, tmp_path) as sick:
        broker = sick.broker
        assert broker.seen() == sick.before  # what is read from now on is in memory
        sick.hang("WRITE", "FSYNC")
        answer = broker.sees(*asked(broker, CHANGING[command]), "--apply")
        require_others(answer, broker)
        require_asleep(answer.session)
        require_done_on_the_others(answer, broker)
        require_nothing_follows(sick, answer)
        require_works_again(broker, CHANGING[command])
        require_in_time(answer, lambda: broker.sees(*asked(broker, CHANGING[command])))


@pytest.mark.parametrize("command", CHANGING)
def test_a_change_on_a_frozen_disk_is_made_on_the_others(command: str, images: Images, tmp_path: Path) -> None:
    """The locks hang already: taking one makes its file."""
    with on_frozen(images, tmp_path) as sick:
        broker = sick.broker
        sick.hang()
        answer = broker.sees(*asked(broker, CHANGING[command]), "--apply")
        require_others(answer, broker)
        require_asleep(answer.session)
        require_done_on_the_others(answer, broker)
        require_nothing_follows(sick, answer)
        require_works_again(broker, CHANGING[command])
        require_in_time(answer, lambda: broker.sees(*asked(broker, CHANGING[command])))


@pytest.mark.parametrize("command", [name for name, (_, is_applied) in EVERY.items() if not is_applied])
def test_what_only_reads_is_not_hindered_by_a_frozen_disk(command: str, images: Images, tmp_path: Path) -> None:
    with on_frozen(images, tmp_path) as sick:
        broker = sick.broker
        sick.hang()
        answer = broker.sees(*asked(broker, EVERY[command][0]))
        assert (answer.status, answer.suspects) == (0, []), answer
        assert str(broker.sick) in {log_dir for log_dir, _ in rows_of(answer)}


IN_BATCHES = {
    "stage": STAGE,
    "staged purge": PURGE,
    "staged restore": ("staged", "restore", "old", "--even-if-unknown"),
    "layout apply": ("layout", "apply", "{folder}/plan.jsonl"),
}


@pytest.mark.parametrize("command", IN_BATCHES)
def test_a49_the_locks_of_the_others_are_free_in_time(command: str, images: Images, tmp_path: Path) -> None:
    """A broker could start on the others, though the command still waits for the one that hangs."""
    with on_loop(images, tmp_path, prepare) as sick:
        broker = sick.broker
        broker.seen()
        words = [word.format(folder=broker.folder) for word in IN_BATCHES[command]]
        if command in CHANGING:
            words += broker.source
        sick.hang("WRITE", "FSYNC")
        running = broker.begin(*words, "--apply", "--disk-timeout", str(LONG_S))
        found = holds(running, others(broker))
        answer = running.answer()
        since = sick.hung_since()
        for path, times in found.items():
            print(path.name, [(round(taken - since, 2), round(freed - since, 2)) for taken, freed in times])
        assert answer.suspects == [str(broker.sick)], answer
        assert answer.seconds > LONG_S, "it did not wait for the one that hangs: the test shows nothing"
        for times in found.values():
            assert any(taken <= since < freed for taken, freed in times), "it hung while it held no lock"
            assert all(freed - max(taken, since) < WITHIN_S for taken, freed in times)
        sick.go_on()
        assert all_ended(answer.session)


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
        require_in_time(second, lambda: broker.sees(*planned(asked(broker, words))))


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


def holds(running: Running, log_dirs: Sequence[Path]) -> dict[Path, list[tuple[float, float]]]:
    """Return from when to when Kafka's lock of each log dir was held while a command runs, on ``time.monotonic``.

    Each is from just before it was seen held until it was seen free: another process could take it by then.
    """
    found: dict[Path, list[tuple[float, float]]] = {path: [] for path in log_dirs}
    since: dict[Path, float] = {}
    free = dict.fromkeys(log_dirs, time.monotonic())
    end = time.monotonic() + AT_MOST_S
    while since or not running.is_over:
        assert time.monotonic() < end, "a lock is held, or the command runs, for good"
        for path in log_dirs:
            if is_held(path):
                since.setdefault(path, free[path])
            else:
                free[path] = time.monotonic()
                if path in since:
                    found[path].append((since.pop(path), free[path]))
        time.sleep(0.001)
    return found


def is_held(log_dir: Path) -> bool:
    """Whether a broker could not take Kafka's lock now; takes none itself."""
    try:
        descriptor = os.open(log_dir / ".lock", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        asks = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind: int = struct.unpack("hhqqi4x", fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asks))[0]
    finally:
        os.close(descriptor)
    return kind != fcntl.F_UNLCK


def require_nothing_follows(sick: Sick, answer: Answer) -> None:
    """Assert that the call that hung is the last that is made: its worker ends, and the disk stays as it is then."""
    sick.go_on()
    assert all_ended(answer.session)
    then = sick.broker.seen()
    assert names_in(sick.broker) == (["keep-1", "meta.properties", "pay-1"], ["old"])
    time.sleep(0.5)
    assert sick.broker.seen() == then


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
        require_in_time(answer, lambda: broker.sees(*planned(NEEDS_ALL[command])))


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


def names_in(broker: Broker) -> tuple[list[str], list[str]]:
    """Return what lies in the log dir on the sick disk but for Kafka's lock, and the topics staged there."""
    markers = Path(f"{broker.sick}.logdird", "deleting").glob("*/replica.json")
    topics = sorted(json.loads(path.read_text("utf-8"))["topic"] for path in markers)
    return sorted(name for name in os.listdir(broker.sick) if name != ".lock"), topics


def require_works_again(broker: Broker, words: Sequence[str]) -> None:
    """Assert that commands do all of their work as soon as the disk answers."""
    listed = broker.sees("staged", "ls")
    assert (listed.status, listed.suspects) == (0, []), listed
    for name, changing in CHANGING.items():
        if words[0] == changing[0] and "ls" not in words:
            again = broker.sees(*asked(broker, changing), "--apply")
            assert (again.status, again.suspects) == (0, []), (name, again)
            assert states(again)[str(broker.sick)] == {"done"}
