"""A daemon beside one log dir of four that hangs: it starts, works on the others, answers, takes the disk back.

What it does on the others is done, and answered, before the disk goes on: captures, purges that come due, holds. What
is asked of the disk that hangs is refused by its name, and never done late.

Spec: design §2 law 6; attacks A40, A41, A49; reliability §6.3, §7 rows 18, 20.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from logdir.daemon.state import LogDirState
from tests.builders import TOPIC_ID
from tests.hung.rig import KEEP, OLD, Broker, Sick, on_frozen, on_loop
from tests.kernel.images import Images
from tests.logdir.daemon.rig import UNIQUE, Process, until
from tests.tools.ctl import Said, ctl
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]

ANSWER_S = 1.0
"""A status comes from memory."""
DUE = "4s"
"""A deadline that comes after the disk froze, and before it goes on."""
START_S = 20.0
"""It waits three seconds for a disk; this machine has two cores, and others use them."""


def daemon_of(broker: Broker) -> Process:
    """Return a daemon for a broker of the rig, which waits one second for a disk."""
    folder = broker.folder / "logdird"
    folder.mkdir()
    (folder / "server.properties").write_text(f"broker.id=1\nlog.dirs={','.join(map(str, broker.disks))}\n")
    config = folder / "b1.yaml"
    config.write_text(
        "server.properties: server.properties\nstate.dir: state\nsocket: s.sock\nstaged.min.free: 1\n"
        "disk.timeout.ms: 1000\nsweep.interval.ms: 500\nauto.while.stopped: true\n"
    )
    return Process(config)


def delete(broker: Broker, number: int, topic: str = "pay") -> None:
    """Rename the live replica of a disk as a broker does."""
    path = broker.disks[number] / f"{topic}-{number}"
    path.rename(path.with_name(f"{path.name}.{UNIQUE}-delete"))


def state_of(daemon: Process, path: Path) -> LogDirState:
    began = time.monotonic()
    found = {disk.log_dir: disk.state for disk in daemon.status().log_dirs}
    assert time.monotonic() - began < ANSWER_S
    return found[str(path)]


def problem_of(daemon: Process, path: Path) -> str:
    return next(disk.problem.line() for disk in daemon.status().log_dirs if disk.log_dir == str(path) and disk.problem)


def states_of(pids: list[int]) -> dict[int, str]:
    """Return the state of each of these processes that has not ended."""
    found: dict[int, str] = {}
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            found |= {} if state in "ZX" else {pid: state}
    return found


def others(broker: Broker) -> list[Path]:
    """Return the log dirs that answer."""
    return [path for path in broker.disks if path != broker.sick]


def captured_on(daemon: Process, path: Path) -> bool:
    return any(Path(f"{path}.logdird/deleting").glob(f"{TOPIC_ID}_*")) and daemon.status().missed == 0


def is_purged_on(path: Path, topic_id: str = OLD) -> bool:
    """Whether what was due is gone."""
    return not any(Path(f"{path}.logdird/deleting").glob(f"{topic_id}_*"))


def done(said: Said) -> int:
    """Return how many lines of an answer say that something was done."""
    return len(re.findall(r"\bdone\b", said.out))


def asked(daemon: Process, verb: str, selector: str, *options: str) -> Said:
    """Ask the daemon for something about what is staged."""
    return ctl("staged", verb, selector, *options, "--config", daemon.config, "--apply")


def stage_keep(broker: Broker, daemon: Process) -> None:
    """Have the daemon stage a replica on every disk, which is due a few seconds later."""
    words = ("--delay", DUE, "--even-over-limit", *broker.source, "--config", daemon.config, "--apply")
    said = ctl("stage", "keep", *words)
    assert (said.status, done(said)) == (Exit.DONE, len(broker.disks)), said


def require_suspect_named(said: Said, path: Path, status: Exit) -> None:
    """Assert what a request was answered beside a disk that hangs."""
    assert said.status == status, said
    assert f"log-dir-suspect: {path}" in said.err


def the_others_do_what_is_asked(sick: Sick, daemon: Process) -> None:
    """Hold what was captured on the others. A restore is refused: the disk that hangs may hold the replica live."""
    held = asked(daemon, "hold", "pay")
    require_suspect_named(held, sick.broker.sick, Exit.PROBLEMS)
    assert done(held) == len(others(sick.broker)), held
    refused = asked(daemon, "restore", "pay-0", "--even-if-unknown")
    require_suspect_named(refused, sick.broker.sick, Exit.REFUSED)
    assert f"mount or repair {sick.broker.sick} first" in refused.err
    assert captured_on(daemon, sick.broker.disks[0])


def the_others_are_captured_and_the_disk_is_taken_back(sick: Sick, daemon: Process) -> None:
    """Delete on every disk: the second, which hangs, is captured on when it goes on, and the others before."""
    broker = sick.broker
    two = broker.sick
    for path in others(broker):
        delete(broker, broker.disks.index(path))
    until("the others are captured", lambda: all(captured_on(daemon, path) for path in others(broker)))
    assert state_of(daemon, two) is LogDirState.SUSPECT
    the_others_do_what_is_asked(sick, daemon)
    sick.go_on()
    until("the disk is taken back", lambda: state_of(daemon, two) is LogDirState.ONLINE, 90)
    until("what was due there is purged", lambda: is_purged_on(two) and is_purged_on(two, KEEP))
    until("it is as it was but for that", lambda: is_as_before(sick))
    delete(broker, 1)
    until("it is captured there, too", lambda: captured_on(daemon, two))


def is_as_before(sick: Sick) -> bool:
    """Whether what lasts on the disk is as it was before it hung."""
    try:
        return lasting(sick.broker.seen()) == lasting(sick.before)
    except FileNotFoundError:
        return False  # The daemon works on it meanwhile.


def lasting(found: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    """Return what lies on a disk but for what was or came due since the daemon started, and its heartbeat."""
    due = tuple(f"/deleting/{one}_" for one in (OLD, KEEP))
    return {
        path: what
        for path, what in found.items()
        if not any(one in path for one in due) and not path.endswith(("/heartbeat.json", "/heartbeat.json.tmp"))
    }


def require_only_captured(sick: Sick) -> None:
    """Assert that nothing came late, now that the daemon has ended: its disk is as it was, but for what was deleted."""
    two = sick.broker.sick
    live, gone, kept = f"{two}/pay-1", f"{two}/pay-1.{UNIQUE}-delete", f"{two}.logdird/deleting/{TOPIC_ID}_1"
    expected = {path.replace(live, gone): what for path, what in lasting(sick.before).items()}
    files = {path.replace(live, kept): what for path, what in sick.before.items() if path.startswith(f"{live}/")}
    found = lasting(sick.broker.seen())
    assert {path: what for path, what in found.items() if not path.startswith(kept)} == expected
    assert {path for path in found if path.startswith(kept)} == {kept, f"{kept}/replica.json", *files}
    assert files.items() <= found.items()


def test_a49_a_daemon_starts_beside_a_disk_whose_reads_hang_and_takes_it_back(images: Images, tmp_path: Path) -> None:
    with on_loop(images, tmp_path, count=4) as sick:
        broker = sick.broker
        two = broker.disks[1]
        sick.hang("READ")
        daemon = daemon_of(broker)
        began = time.monotonic()
        with daemon.running():
            assert time.monotonic() - began < START_S
            assert state_of(daemon, two) is LogDirState.SUSPECT
            assert any(problem.path == str(two) for problem in daemon.status().waiting)
            until("what was due on the others is purged", lambda: all(map(is_purged_on, others(broker))))
            the_others_are_captured_and_the_disk_is_taken_back(sick, daemon)
            assert daemon.stop() == 0
        require_only_captured(sick)


def test_a40_a49_a_disk_that_freezes_amid_the_work_harms_no_other_and_nothing_late(
    images: Images, tmp_path: Path
) -> None:
    with on_frozen(images, tmp_path, count=4) as sick:
        broker = sick.broker
        one, two, three, four = broker.disks
        daemon = daemon_of(broker)
        with daemon.running():
            assert [state_of(daemon, path) for path in broker.disks] == [LogDirState.ONLINE] * 4
            until("what was due is purged", lambda: all(map(is_purged_on, broker.disks)))
            stage_keep(broker, daemon)
            sick.hang()
            sick = sick._replace(before=broker.seen())
            assert not any(is_purged_on(path, KEEP) for path in broker.disks), (
                "it froze too late: the test shows nothing"
            )
            require_suspect_named(asked(daemon, "hold", "keep-1"), two, Exit.PROBLEMS)
            until("the disk is SUSPECT", lambda: state_of(daemon, two) is LogDirState.SUSPECT)
            held = asked(daemon, "hold", "keep-2")
            require_suspect_named(held, two, Exit.PROBLEMS)
            assert done(held) == 1, held
            until("what comes due on others is purged", lambda: is_purged_on(one, KEEP) and is_purged_on(four, KEEP))
            assert not is_purged_on(three, KEEP)
            assert broker.seen() == sick.before
            # What is due on the disk that hangs goes later, as it was never held: the answer was that it is not known.
            the_others_are_captured_and_the_disk_is_taken_back(sick, daemon)
            assert not is_purged_on(three, KEEP)
            held = asked(daemon, "hold", "pay")
            assert (held.status, done(held)) == (Exit.DONE, 4), held
            # None again, because the broker was opened again.
            assert daemon.status().captured == 4
            assert daemon.stop() == 0
        require_only_captured(sick)


@contextmanager
def beside_a_hung_worker(images: Images, folder: Path) -> Iterator[tuple[Sick, Process]]:
    """Run a daemon, a worker of which hangs on the frozen disk; at the end it stops, and nothing came late."""
    with on_frozen(images, folder, count=4) as sick:
        two = sick.broker.sick
        daemon = daemon_of(sick.broker)
        with daemon.running():
            sick.hang()
            assert ctl("staged", "hold", "old", "--config", daemon.config, "--apply").status == Exit.PROBLEMS
            until("the disk is SUSPECT", lambda: state_of(daemon, two) is LogDirState.SUSPECT)
            yield sick, daemon
            assert daemon.stop() == 0
        require_only_captured(sick)


def test_a41_the_daemon_after_one_that_was_killed_waits_for_its_worker_that_hangs(
    images: Images, tmp_path: Path
) -> None:
    with beside_a_hung_worker(images, tmp_path) as (sick, daemon):
        two = sick.broker.sick
        started = daemon.children()
        assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
        until("one of its workers is left, asleep in the kernel", lambda: [*states_of(started).values()] == ["D"])
        (old,) = states_of(started)
        daemon.start()
        assert state_of(daemon, two) is LogDirState.SUSPECT
        assert [state_of(daemon, path) for path in others(sick.broker)] == [LogDirState.ONLINE] * 3
        until("the old worker is named", lambda: f"pid {old} " in problem_of(daemon, two))
        assert states_of([old]) == {old: "D"}
        the_others_are_captured_and_the_disk_is_taken_back(sick, daemon)
        assert states_of([old]) == {}


def test_a40_a_configuration_read_again_does_not_open_a_disk_whose_worker_still_hangs(
    images: Images, tmp_path: Path
) -> None:
    with beside_a_hung_worker(images, tmp_path) as (sick, daemon):
        two = sick.broker.sick
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGHUP)
        until("the old process is named", lambda: ", which hangs in the kernel" in problem_of(daemon, two))
        assert [state_of(daemon, path) for path in others(sick.broker)] == [LogDirState.ONLINE] * 3
        (pid,) = re.findall(r"found pid (\d+), which hangs", problem_of(daemon, two))
        assert int(pid) in daemon.children()
        the_others_are_captured_and_the_disk_is_taken_back(sick, daemon)
        assert int(pid) not in daemon.children()
