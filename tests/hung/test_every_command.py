"""Every command beside a disk that hangs: in time, by its name, with an answer for the others or a refusal.

What ``test_hung`` shows of the commands that read, stage and purge in depth, this shows of all others, by one table.

Spec: design §2 laws 4, 6, §5 "A port per log dir", §6 (exit status).
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.builders import TOPIC_ID, partition
from tests.hung.rig import (
    TIMEOUT_S,
    Answer,
    Answering,
    Broker,
    Running,
    Sick,
    all_ended,
    on_frozen,
    on_lock,
    on_loop,
    processes_of,
    require_in_time,
)
from tests.kernel.images import Images
from tests.tools.ctl import ctl, tree

pytestmark = pytest.mark.root

_KEEP = "MkU3OEVBNTcwNTJENDM2QQ"
_GONE = "AAAAAAAAAAAAAAAAAAAAZQ"
_UNIQUE = "0123456789abcdef0123456789abcdef"


class Case(NamedTuple):
    """One command."""

    words: str
    """``{source}``, ``{folder}`` and ``{sick}`` stand for what the rig has."""
    status: int
    """1: the others are answered for. 0: the operator named the disk. 4: it needs every log dir, and is refused."""
    states: frozenset[str] = frozenset()
    """Of the rows of the others."""
    slug: str = "log-dir-suspect"
    """Of the problem that names the disk."""


INCOMPLETE = "log-dirs-incomplete"
PLANNED, DONE = frozenset({"planned"}), frozenset({"done"})
READING = {
    "reconcile": Case("reconcile --from {source}", 4),
    "layout status": Case("layout status", 1),
    "layout apply": Case("layout apply {folder}/plan.jsonl", 4),
    "layout check": Case("layout check {folder}/plan.jsonl", 4),
    "layout verify": Case("layout verify {folder}/plan.jsonl", 4),
    "layout finalize": Case("layout finalize --for-broker next", 4),
    "handover": Case("handover --plan", 4, slug=INCOMPLETE),
    "staged adopt": Case("staged adopt old --as pay --from {source}", 4),
    "uninstall": Case("uninstall", 4),
    "capture": Case("capture", 1, PLANNED),
    "staged hold": Case("staged hold old", 1, PLANNED),
    "staged export": Case("staged export old -o {folder}/out", 1, PLANNED),
    "init": Case("init", 4),
}
CHANGING = {
    "reconcile": Case("reconcile --from {source} --apply", 4),
    "layout apply": Case("layout apply {folder}/plan.jsonl --apply", 4),
    "layout rollback": Case("layout rollback --apply", 4),
    "handover": Case("handover", 4, slug=INCOMPLETE),
    "staged adopt": Case("staged adopt old --as pay --from {source} --apply", 4),
    "uninstall": Case("uninstall --apply", 4),
    "init": Case("init --apply", 4),
    "capture": Case("capture --apply", 1, DONE),
    "staged hold": Case("staged hold old --apply", 1, DONE),
    "staged export": Case("staged export old -o {folder}/out --apply", 1, DONE),
    "handover without it": Case("handover --skip-log-dir {sick}", 0, DONE),
}
GOING_ON = {name: case for name, case in CHANGING.items() if case.states}
REFUSED = {name: case for name, case in CHANGING.items() if case.status == 4}


def prepare(broker: Broker) -> None:
    """Add what the commands of the table are about: a plan of the layout, a deleted topic, a place for copies."""
    (broker.folder / "out").mkdir()
    lines: list[dict[str, Any]] = [{
        "plan": 1, "verb": "layout", "cluster": "c", "cluster_id": "MkU3OEVBNTcwNTJENDM2Qk", "node_id": 1,
        "inventory_sha256": "0" * 64, "log_dirs": sorted(map(str, broker.disks)),
    }]  # fmt: skip
    for number, disk in enumerate(broker.disks):
        partition(disk / f"gone-{number}.{_UNIQUE}-delete", topic_id=_GONE)
        for topic, topic_id in (("keep", _KEEP), ("pay", TOPIC_ID)):
            lines.append({
                "step": len(lines), "op": "relayout", "log_dir": str(disk), "from": f"{topic}-{number}",
                "to": f"{topic_id[:2]}/{topic_id}_{number}", "topic": topic, "topic_id": topic_id,
                "partition": number, "id_from": "own", "log_bytes": 10,
            })  # fmt: skip
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    footer = {"steps": len(lines) - 1, "sha256": hashlib.sha256(data).hexdigest()}
    (broker.folder / "plan.jsonl").write_bytes(data + json.dumps(footer).encode() + b"\n")


Prepare = Callable[[Broker], object]


def typed(broker: Broker, case: Case) -> Answer:
    """Type a command of the table."""
    return broker.sees(*words_of(broker, case))


def words_of(broker: Broker, case: Case) -> list[str]:
    """Return the words of a command."""
    return case.words.format(source=broker.source[1], folder=broker.folder, sick=broker.sick).split()


def require_named(answer: Answer, broker: Broker, case: Case) -> None:
    """Assert that a command named the one disk that hangs, and gave its status for it."""
    print(case.words, "took", round(answer.seconds, 1), "s")
    assert [one["path"] for one in answer.problems if one["slug"] == case.slug] == [str(broker.sick)], (case, answer)
    assert answer.status == case.status, (case, answer)


def require_all_in_time(answers: Sequence[tuple[Case, Answer]]) -> None:
    """Assert that commands answered in time."""
    for _, answer in answers:
        require_in_time(answer)


def states_of(answer: Answer) -> dict[str, set[str]]:
    """Return the states of the rows of an answer, by log dir."""
    found: dict[str, set[str]] = {}
    for row in answer.result["items"]:
        found.setdefault(row["log_dir"], set()).add(row["state"])
    return found


def others(broker: Broker) -> tuple[Path, ...]:
    """Return the log dirs that answer."""
    return broker.disks[0], broker.disks[2]


def unchanged(broker: Broker) -> dict[str, tuple[object, ...]]:
    """Return what lies in the log dirs that answer, and in their work roots."""
    return tree(*others(broker), *(Path(f"{path}.logdird") for path in others(broker)))


def require_works(broker: Broker) -> None:
    """Assert that the disk is used again as soon as it answers."""
    listed = broker.sees("staged", "ls")
    assert (listed.status, listed.suspects) == (0, []), listed


def test_a49_every_command_that_looks_beside_a_disk_on_which_no_signal_ends_a_process(
    images: Images, tmp_path: Path
) -> None:
    with on_loop(images, tmp_path, prepare) as sick:
        broker = sick.broker
        sick.hang("READ")
        before = unchanged(broker)
        answers = []
        # What is refused changes nothing either, with --apply or without.
        for case in (*READING.values(), *REFUSED.values()):
            answer = typed(broker, case)
            require_named(answer, broker, case)
            assert "D" in processes_of(answer.session).values(), (case, "no worker sleeps: the test shows nothing")
            answers.append((case, answer))
            if case.states:
                assert states_of(answer) == {str(path): set(case.states) for path in others(broker)}, (case, answer)
            assert unchanged(broker) == before, case
        sick.go_on()
        assert all_ended(*(answer.session for _, answer in answers))
        assert broker.seen() == sick.before
        require_works(broker)
        require_all_in_time(answers)


@contextmanager
def cold(images: Images, folder: Path, prepare: Prepare = prepare) -> Iterator[Sick]:
    """Let every look at the disk hang."""
    with on_loop(images, folder, prepare) as sick:
        yield sick._replace(hang=lambda: sick.hang("READ"))


@contextmanager
def unwritten(images: Images, folder: Path, prepare: Prepare = prepare) -> Iterator[Sick]:
    """Let every change of the disk hang; what is looked at is in memory."""
    with on_loop(images, folder, prepare) as sick:
        assert sick.broker.seen() == sick.before
        yield sick._replace(hang=lambda: sick.hang("WRITE", "FSYNC"))


@contextmanager
def frozen(images: Images, folder: Path, prepare: Prepare = prepare) -> Iterator[Sick]:
    """Freeze the disk."""
    with on_frozen(images, folder, prepare) as sick:
        yield sick


RIGS: dict[str, Callable[..., AbstractContextManager[Sick]]] = {
    "cold": cold,
    "unwritten": unwritten,
    "frozen": frozen,
}


@pytest.mark.parametrize("rig", RIGS)
def test_a49_what_goes_on_without_a_disk_that_hangs_is_done_on_the_others(
    rig: str, images: Images, tmp_path: Path
) -> None:
    with RIGS[rig](images, tmp_path) as sick:
        broker = sick.broker
        sick.hang()
        answers = []
        for name, case in GOING_ON.items():
            # The worker of the command before, killed, may still hold the locks of the disk: that is no broker.
            answer = typed(broker, case)
            require_named(answer, broker, case)
            answers.append((case, answer))
            found = states_of(answer)
            assert {str(path): found.get(str(path)) for path in others(broker)} == {
                str(path): set(case.states) for path in others(broker)
            }, (name, answer)
        sick.go_on()
        assert all_ended(*(answer.session for _, answer in answers))
        require_untouched_but_for_marks(sick)
        require_works(broker)
        require_all_in_time(answers)


def require_untouched_but_for_marks(sick: Sick) -> None:
    """Assert that every replica of the disk is as it was: no call came late."""

    def replicas(found: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
        return {path: what for path, what in found.items() if path.endswith((".log", ".index", "replica.json"))}

    assert replicas(sick.broker.seen()) == replicas(sick.before)


@pytest.mark.parametrize("rig", ["unwritten", "frozen"])
def test_a49_what_needs_every_disk_and_cannot_write_to_one_changes_none(
    rig: str, images: Images, tmp_path: Path
) -> None:
    with RIGS[rig](images, tmp_path) as sick:
        broker = sick.broker
        sick.hang()
        before = replicas_of(broker)
        answers = []
        for name, case in REFUSED.items():
            answer = typed(broker, case)
            require_named(answer, broker, case)
            answers.append((case, answer))
            assert replicas_of(broker) == before, name
        sick.go_on()
        assert all_ended(*(answer.session for _, answer in answers))
        require_untouched_but_for_marks(sick)
        require_works(broker)
        require_all_in_time(answers)


def replicas_of(broker: Broker) -> dict[str, tuple[object, ...]]:
    """Return what lies on the disks that answer but for what a command writes of itself: who owns, and when it ran."""
    own = ("owner.lock", "heartbeat.json", "staging-limit.json")
    return {path: what for path, what in unchanged(broker).items() if not path.endswith(own)}


UNDER_LOCKS = {
    **{name: case for name, case in REFUSED.items() if name != "init"},
    "staged restore": Case("staged restore old --even-if-unknown --apply", 4),
    # In this order each still finds something to do on the others.
    "capture": CHANGING["capture"],
    "stage": Case("stage pay --even-over-limit --from {source} --apply", 1, DONE),
    "staged hold": Case("staged hold pay --apply", 1, DONE),
    "staged purge": Case("staged purge old --from {source} --apply", 1, DONE),
    "handover without it": CHANGING["handover without it"],
}


KAFKAS_LOCK = {
    "OPEN": tuple(UNDER_LOCKS),
    "SETLK": ("reconcile", "staged restore", "stage"),  # to the command as if it could not be opened
    "FLUSH": tuple(UNDER_LOCKS),
}


@pytest.mark.parametrize("hung", KAFKAS_LOCK)
def test_a22_a_hang_at_kafkas_own_lock(hung: str, images: Images, tmp_path: Path) -> None:
    """Opening it, locking it, closing it: the log dir is SUSPECT, the others are done or refused by its name."""
    with on_lock(tmp_path, prepare) as sick:
        broker = sick.broker
        before = replicas_of(broker)
        for name in KAFKAS_LOCK[hung]:
            case = UNDER_LOCKS[name]
            sick.hang(hung)
            answer = typed(broker, case)
            sick.go_on()
            assert all_ended(answer.session)
            require_named(answer, broker, case)
            require_all_in_time([(case, answer)])
            if case.states:
                found = states_of(answer)
                assert {str(path): found.get(str(path)) for path in others(broker)} == {
                    str(path): set(case.states) for path in others(broker)
                }, (name, answer)
            else:
                assert replicas_of(broker) == before, name
            require_untouched_but_for_marks(sick)
        require_works(broker)


def metadata_on(disk: int) -> Callable[[Broker], None]:
    """Let a log dir hold the broker's metadata log."""

    def put(broker: Broker) -> None:
        shutil.copytree(broker.folder / "cluster" / LOG, broker.disks[disk] / LOG)

    return put


LOG = "__cluster_metadata-0"
METADATA = ("find /image", "cat /image/features", "shell", "dump")


def side_by_side(commands: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str, Running]]:
    """Begin commands by twos, and yield each: most of the time they wait."""
    for at in range(0, len(commands), 2):
        yield from [(words, suspect, begun(words)) for words, suspect in commands[at : at + 2]]


def answered(words: str) -> Answer:
    """Type a command that needs no broker."""
    return begun(words).answer()


def begun(words: str) -> Running:
    """Begin a command that needs no broker."""
    return Running((*words.split(), "--disk-timeout", str(TIMEOUT_S), "--json"))


def test_metadata_on_a_disk_that_hangs_is_one_line_in_time(images: Images, tmp_path: Path) -> None:
    with on_loop(images, tmp_path, metadata_on(1)) as sick:
        broker = sick.broker
        directory = str(broker.sick / LOG)
        segment = f"{directory}/{0:020}.log"
        sick.hang("READ")
        answers = []
        for words, suspect, running in side_by_side([
            (f"metadata ls {' '.join(broker.named)}", str(broker.sick)),
            (f"metadata dump {' '.join(broker.named)}", str(broker.sick)),
            *((f"metadata {one} --directory {directory}", directory) for one in METADATA),
            (f"metadata ls --snapshot {segment}", segment),
            (f"metadata dump {segment}", directory),
        ]):  # fmt: skip
            answer = running.answer()
            print(words, "took", round(answer.seconds, 1), "s")
            assert (answer.status, answer.suspects) == (4, [suspect]), (words, answer)
            assert answer.err.count("\n") <= 1, (words, answer)
            answers.append((words, answer))
        sick.go_on()
        assert all_ended(*(answer.session for _, answer in answers))
        assert broker.seen() == sick.before
        for _, answer in answers:
            require_in_time(answer)


def test_metadata_beside_a_disk_that_hangs_is_read(images: Images, tmp_path: Path) -> None:
    with on_loop(images, tmp_path, metadata_on(0)) as sick:
        broker = sick.broker
        files = [f"{broker.disks[disk]}/{LOG}/{0:020}.log" for disk in (1, 0)]
        sick.hang("READ")
        listed = broker.sees("metadata", "ls")
        assert (listed.status, listed.suspects) == (0, []), listed
        assert listed.result["log"]["origin"] == f"{broker.disks[0]}/{LOG}"
        dumped = answered(f"metadata dump {' '.join(files)}")
        assert (dumped.status, dumped.suspects) == (4, [str(broker.sick / LOG)]), dumped
        assert [bool(one["batches"]) for one in dumped.result["items"]] == [False, True]
        sick.go_on()
        assert all_ended(listed.session, dumped.session)


BOTH = (
    ("stage pay --even-over-limit --from {source}", 4, ["log"]),
    ("staged purge old --from {source}", 4, ["log"]),
    ("strays --from {source}", 1, ["log dir", "log"]),
    ("reconcile --from {source}", 4, ["log dir"]),
)
"""Which of the two is named: what needs every log dir is refused by that, what cannot do without the log by the log."""


def test_a_metadata_log_on_another_disk_that_hangs_takes_no_second_timeout(images: Images, tmp_path: Path) -> None:
    with on_loop(images, tmp_path) as sick:
        broker = sick.broker
        other = Answering(tmp_path / "cluster", tmp_path / "cluster-at", tmp_path / "cluster-control")
        try:
            source = f"{tmp_path}/cluster-at/{LOG}"
            sick.hang("READ")
            other.hang("ALL")
            answers = []
            before = unchanged(broker)
            for form, status, suspects in BOTH:
                words = form.format(source=f"metadata:{source}").split()
                answer = broker.sees(*words)
                print(form, "took", round(answer.seconds, 1), "s")
                found = [{str(broker.sick): "log dir", source: "log"}[path] for path in answer.suspects]
                assert (answer.status, found) == (status, suspects), (words, answer)
                answers.append((words, answer))
            other.go_on()
            sick.go_on()
            assert all_ended(*(answer.session for _, answer in answers))
            assert unchanged(broker) == before
            for _, answer in answers:
                require_in_time(answer)
        finally:
            other.close()


def without_owner_lock(broker: Broker) -> None:
    """Let the work root on the second disk lack its lock: it is put back under Kafka's."""
    Path(f"{broker.sick}.logdird", "owner.lock").unlink()


def without_work_roots(broker: Broker) -> None:
    """Take everything of ours back."""
    for words in (("staged", "purge", "old", *broker.source), ("uninstall",)):
        said = ctl(*words, *broker.named, "--apply")
        assert said.status == 0, said


@pytest.mark.parametrize("hung", ["OPEN", "FLUSH"])
def test_a_lost_owner_lock_beside_a_kafka_lock_that_hangs(hung: str, images: Images, tmp_path: Path) -> None:
    with on_lock(tmp_path, without_owner_lock) as sick:
        broker = sick.broker
        before = replicas_of(broker)
        sick.hang(hung)
        answer = typed(broker, CHANGING["init"])
        sick.go_on()
        assert all_ended(answer.session)
        require_named(answer, broker, CHANGING["init"])
        require_all_in_time([(CHANGING["init"], answer)])
        assert replicas_of(broker) == before
        again = typed(broker, CHANGING["init"])
        assert (again.status, again.suspects) == (0, []), again
        require_works(broker)


@pytest.mark.parametrize("hung", ["READ", "WRITE FSYNC"])
def test_a49_work_roots_are_made_on_all_disks_or_it_is_said_on_which(hung: str, images: Images, tmp_path: Path) -> None:
    """A disk that cannot be looked at lets none be made; one that hangs as it is written ends it there, by its name."""
    with on_loop(images, tmp_path, without_work_roots) as sick:
        broker = sick.broker
        if hung != "READ":
            assert broker.seen() == sick.before
        sick.hang(*hung.split())
        before = unchanged(broker)
        answer = typed(broker, CHANGING["init"])
        case = CHANGING["init"] if hung == "READ" else Case("init --apply", 1)
        require_named(answer, broker, case)
        if hung == "READ":
            assert unchanged(broker) == before
        else:
            states = {row["log_dir"]: row["state"] for row in answer.result["items"]}
            assert states == dict(zip(map(str, broker.disks), ("done", "undone", "undone"), strict=True))
        sick.go_on()
        assert all_ended(answer.session)
        require_all_in_time([(case, answer)])
        again = typed(broker, CHANGING["init"])
        assert (again.status, again.suspects) == (0, []), again
        require_works(broker)
