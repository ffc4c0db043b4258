"""A log dir hangs while Kafka's locks are held: another process gets every other ``.lock`` within 2.5 s.

It hangs as it is written, on ext4 over a FUSE server, or as it is looked at once more under the locks: then one of its
files lies on such a server, for what was just read is in memory on any other disk. In the batch of crash recovery,
where a command has no other, else in its own.

Spec: design §2 laws 4, 6, §5 "One batch loop"; attacks A22, A49.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.builders import TOPIC_ID, log_dir, partition
from tests.hung.drawn import drawn
from tests.hung.locks import is_held
from tests.hung.rig import AT_MOST_S, KEEP, OLD, Broker, Running, Sick, all_ended, on_loop, on_served
from tests.hung.test_every_command import (
    INCOMPLETE,
    prepare,
    require_untouched_but_for_marks,
    require_works,
)
from tests.kernel.images import Images
from tests.logdir.cluster.log_dir import LogDir, noop, register, remove, topic
from tests.logdir.cluster.log_dir import partition as claimed
from tests.reconcile.universe import document, stopped
from tests.tools.reconcile_rig import age, raw

pytestmark = pytest.mark.root

WITHIN_S = 2.5
"""A broker that starts is refused for no longer than two seconds, and half a second to see that one is silent."""
LONG_S = 5
"""A time-out that is longer."""
RECOVERY = 0
"""Its batch is the first, and its first sync."""
OWN = 2
"""Syncs under the locks before the first of a command's own batch: recovery shows once that it can rename."""
CHECKPOINT = "recovery-point-offset-checkpoint"


class Amid(NamedTuple):
    """A command, and where in a batch it hangs."""

    words: str
    status: int = 4
    """1: the others are answered for, or something was done by then. 4: it needs every log dir, and is refused."""
    after: int = OWN
    """How many syncs under the locks are answered before one hangs."""
    read: str = ""
    """The name of the files, or of the empty directory, that it looks at once more under the locks."""
    slug: str = "log-dir-suspect"


AMID = {
    "stage": Amid("stage pay --even-over-limit --from {source}", 1, read="partition.metadata"),
    "staged purge": Amid("staged purge old --from {source}", 1, RECOVERY, "replica.json"),
    "staged hold": Amid("staged hold old", 1, RECOVERY, "replica.json"),
    "staged restore": Amid("staged restore old --even-if-unknown", read="replica.json"),
    "staged adopt": Amid("staged adopt old --as pay --even-if-unknown {again}", read="partition.metadata"),
    "reconcile": Amid("reconcile --from request:{folder}/stop.json --even-over-limit", read="partition.metadata"),
    "layout apply": Amid("layout apply {folder}/plan.jsonl", 1, read="meta.properties"),
    "handover": Amid("handover", read=CHECKPOINT, slug=INCOMPLETE),
}
WRITTEN = {
    **{
        f"{name}, recovery": case._replace(status=1 if name == "stage" else 4, after=RECOVERY)
        for name, case in AMID.items()
        if case.after != RECOVERY
    },
    **AMID,
}


def something_to_do(broker: Broker) -> None:
    """Add what the commands are about, so that each has a batch of its own where there is one."""
    prepare(broker)
    for number, disk in enumerate(broker.disks):
        (disk / CHECKPOINT).write_text(f"0\n1\npay {number} 7\n")
        age(disk / f"keep-{number}")
    stop = document(stopped(delete=True, keep=(KEEP, (0, 1, 2))), api="StopReplica", form="kip", sequence=1)
    (broker.folder / "stop.json").write_text(json.dumps(stop))
    log = again(broker)
    log.lead(1)
    log.append(register(1, fenced=True), register(2))
    for number, (name, topic_id) in enumerate((("old", OLD), ("pay", TOPIC_ID))):
        log.append(topic(name, raw(topic_id)), *(claimed(raw(topic_id), one, (1,)) for one in range(3)))
        if number == 0:
            log.append(remove(raw(topic_id)))
    log.append(noop())


def something_to_recover(broker: Broker) -> None:
    """Add what a staging that was cut off leaves on the sick disk: recovery reads its marker under the locks."""
    something_to_do(broker)
    cut_off = broker.sick / "cut-1"
    partition(cut_off, topic_id=KEEP)
    shutil.copy2(next(Path(f"{broker.sick}.logdird", "deleting").glob("*/replica.json")), cut_off)


def again(broker: Broker) -> LogDir:
    """Return the log of a controller in which ``old`` was deleted and another topic ``pay`` made."""
    top = broker.folder / "again"
    if not top.exists():
        log_dir(top, node=9, directory="AAAAAAAAAAAAAAAAAAAAEA")
    return LogDir(top / "__cluster_metadata-0")


def words_of(broker: Broker, case: Amid) -> list[str]:
    """Return the words of a command."""
    log = broker.folder / "again" / "__cluster_metadata-0"
    adopting = f"--from metadata:{log} --high-watermark 11 --leader-epoch 1"
    words = case.words.format(source=broker.source[1], folder=broker.folder, again=adopting).split()
    return words if case.words == "handover" else [*words, "--apply"]


def others(broker: Broker) -> tuple[Path, Path]:
    """Return the log dirs that answer."""
    return broker.disks[0], broker.disks[2]


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


def require_free_in_time(sick: Sick, case: Amid, *hung: str) -> None:
    """Type a command, let the disk hang amid a batch, and assert that a broker could start on the others in time."""
    broker = sick.broker
    sick.hang(*hung, f"held={broker.disks[0]}")
    running = broker.begin(*words_of(broker, case), "--disk-timeout", str(LONG_S))
    found = holds(running, others(broker))
    answer = running.answer()
    since = sick.hung_since()
    for path, times in found.items():
        print(path.name, [(round(taken - since, 2), round(freed - since, 2)) for taken, freed in times])
    print([one["found"] for one in answer.problems if one["path"] == str(broker.sick)], round(answer.seconds, 1), "s")
    assert [one["path"] for one in answer.problems if one["slug"] == case.slug] == [str(broker.sick)], answer
    assert answer.status == case.status, answer
    assert answer.seconds > LONG_S, "it did not wait for the one that hangs: the test shows nothing"
    for times in found.values():
        assert any(taken <= since < freed for taken, freed in times), "it hung while it held no lock"
        assert all(freed - max(taken, since) < WITHIN_S for taken, freed in times)
    sick.go_on()
    assert all_ended(answer.session)
    require_works(broker)


WAYS = [*(("written", name) for name in WRITTEN), *(("read again", name) for name in AMID)]


@pytest.mark.parametrize(("way", "command"), drawn(WAYS, 4))
def test_a22_a49_the_locks_of_the_others_are_free_in_time(
    way: str, command: str, images: Images, tmp_path: Path
) -> None:
    """A broker could start on the others, though the command still waits for the one that hangs."""
    if way == "written":
        case = WRITTEN[command]
        with on_loop(images, tmp_path, something_to_do) as sick:
            sick.broker.seen()
            require_free_in_time(sick, case, "FSYNC", f"after={case.after}")
    else:
        case = AMID[command]
        filled = something_to_recover if case.after == RECOVERY else something_to_do
        with on_served(tmp_path, filled, case.read) as sick:
            require_free_in_time(sick, case, "ALL")
            require_untouched_but_for_marks(sick)
