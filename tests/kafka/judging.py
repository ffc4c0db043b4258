"""What ``reconcile`` says of the disks of one node of a rig, and what lies there.

Directories are made to look older than the ten minutes that are waited for before anything is said of one. While the
node runs its own metadata log is asked, while it is down the controller's, each up to the high watermark.

Not here: what should be said (the tests).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from logdir.formats.kafka import partition_metadata
from tests.kafka.rig import Broker, Rig, await_true
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

ELSEWHERE: Final = "node-runs-elsewhere"
Key = tuple[str, int]
"""Topic id and partition."""
_SET_ASIDE: Final = ("planned", "waiting")
_OLD_S: Final = 20 * 60
_LOG: Final = "__cluster_metadata-0"


def dirs_of(broker: Broker) -> str:
    """Return its log dirs as a command is told them."""
    return ",".join(map(str, broker.log_dirs))


def begin(broker: Broker) -> None:
    """Make its work roots; it does not run."""
    said = ctl("init", "--log-dirs", dirs_of(broker), "--apply")
    assert said.status == Exit.DONE, said


def _named(broker: Broker) -> Iterator[Path]:
    for top in broker.log_dirs:
        for path in top.glob("*/partition.metadata"):
            if path.parent.name != _LOG and path.parent.name.rpartition("-")[2].isdigit():
                yield path


def held(broker: Broker) -> dict[Key, str]:
    """Return the live replicas on its disks: the names of their directories by topic id and partition."""
    found = {}
    for path in _named(broker):
        name = path.parent.name
        with suppress(FileNotFoundError):  # its broker removes it meanwhile
            read = partition_metadata.parse(path.read_bytes(), str(path))
            found[str(read.topic_id), int(name.rpartition("-")[2])] = name
    return found


def words(rig: Rig, broker: Broker) -> list[str]:
    """Return ``reconcile`` as it is typed for a node, with all that an operator could confirm."""
    then = time.time() - _OLD_S
    for path in _named(broker):
        with suppress(FileNotFoundError):
            os.utime(path, (then, then))
    epoch, watermark = rig.client.quorum()
    source = "" if broker.is_running else str(rig.brokers[0].log_dirs[0] / _LOG)
    at = ["--from", f"metadata:{source}", "--high-watermark", str(watermark), "--leader-epoch", str(epoch)]
    return ["reconcile", "--log-dirs", dirs_of(broker), *at, "--max-staged-percent", "100", "--even-if-older-metadata"]


def staged_replicas(rig: Rig, broker: Broker) -> set[Key] | None:
    """Return what would be staged; ``None`` where the node was killed a moment ago and still counts as running.

    It might be, with a copy of the disks: then nothing is said.
    """
    said = ctl(*words(rig, broker), "--json")
    if ELSEWHERE in said.err:
        assert said.status == Exit.REFUSED
        assert not broker.is_running
        return None
    assert said.status in (Exit.DONE, Exit.PROBLEMS), said
    items = [one for one in json.loads(said.out)["result"]["items"] if one["action"] == "stage"]
    return {(one["topic_id"], one["partition"]) for one in items if one["state"] in _SET_ASIDE}


def await_fenced(rig: Rig, broker: Broker) -> None:
    """Wait until the controller knows that a node is down. Blocks."""
    await_true("the controller knows that it is down", lambda: staged_replicas(rig, broker) is not None)
