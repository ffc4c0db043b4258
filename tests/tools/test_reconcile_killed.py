"""``logdirctl reconcile`` in many batches, and killed before any call."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pytest

from logdir.decide.image.position import highest
from logdir.disk.replica import staging
from logdir.formats.own import staging_limit_file
from logdir.service.log_dirs.kafka_locks import HeldLocks
from tests.builders import partition
from tests.logdir.cluster.log_dir import remove
from tests.proof.metadata_claims import RECONCILE_KILLS
from tests.proof.plugin import Recorder
from tests.proof.sizes import SIZE, Size
from tests.reconcile.universe import document, listed
from tests.tools.ctl import ctl_json
from tests.tools.reconcile_rig import (
    GONE,
    OTHER,
    PARTITIONS,
    PAY,
    DiedError,
    Rig,
    age,
    dying,
    raw,
)
from tools.cli.arguments import Exit

EVERY = tuple(range(PARTITIONS))
FULL = 2
_STEP = {Size.SAMPLE: 10, Size.CI: 2, Size.FULL: 1}[SIZE]
"""Of the calls of a command, one in so many is its last."""


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_what_takes_many_batches_is_decided_again_in_each_and_comes_to_the_same_end(rig: Rig) -> None:
    partition(rig.disks[1] / "new-1", topic_id=None)
    age(rig.disks[1])
    states = listed(pay=(PAY, EVERY[:3]), new=(OTHER, (1,)))
    source = rig.document(document(states, type=FULL, sequence=3))
    expired = mock.patch.object(HeldLocks, "expired", return_value=True)
    with expired as batches, mock.patch.object(staging, "AT_ONCE", 2):
        status, result = ctl_json("reconcile", "--from", source, *rig.named, "--apply", "--even-over-limit")
    # One id; of each disk five or six replicas, by twos.
    assert batches.call_count == 1 + 3 + 3
    assert (status, {item["state"] for item in result["items"]}) == (Exit.DONE, {"done"})
    assert [item["action"] for item in result["items"]] == ["give-id"] + ["stage"] * 11
    assert len(rig.deleting()) == 11
    (counted,) = staging_limit_file.parse(Path(f"{rig.disks[0]}.logdird/staging-limit.json").read_bytes())
    assert (counted.partitions, counted.topics) == (11, 2)


def _end(rig: Rig) -> tuple[object, ...]:
    """What there is in the end, but for instants."""
    metadata = rig.disks[1] / "new-1" / "partition.metadata"
    markers = [(name, rig.marker(name)["reason"], rig.marker(name)["delay_ms"]) for name in rig.deleting()]
    return rig.live(), markers, metadata.read_text() if metadata.exists() else None, highest(rig.controller())


@pytest.mark.parametrize("kind", ["request", "metadata"])
def test_killed_before_any_call_and_said_again_it_reaches_the_same_end(
    kind: str, tmp_path: Path, record_proof: Recorder
) -> None:
    ends = set()
    at = kills = 0
    while True:
        rig = Rig(tmp_path / f"{at}")
        partition(rig.disks[1] / "new-1", topic_id=None)
        age(rig.disks[1])
        if kind == "metadata":
            log = rig.log()
            log.append(remove(raw(GONE)))
            rig.snapshot(log)
            source = "metadata:"
        else:
            states = listed(pay=(PAY, EVERY), new=(OTHER, (1,)))
            source = rig.document(document(states, type=FULL, sequence=3))
        asked = ("reconcile", "--from", source, *rig.named, "--apply", "--even-over-limit")
        is_dead = False
        with dying(at) as calls:
            try:
                ctl_json(*asked)
            except DiedError:
                is_dead = True
        made = len(calls)
        was_begun = any(one.requests for one in rig.controller())
        assert was_begun or kind == "metadata" or not set(rig.deleting()) & {f"{GONE}_0", f"{GONE}_1"}
        if is_dead and was_begun:
            # Nothing older than what was begun is followed any more.
            older = rig.document(document(listed(pay=(OTHER, EVERY)), type=FULL, sequence=1), "older.json")
            assert rig.reconcile(older, "--apply", "--even-over-limit").status == Exit.REFUSED
        status, _ = ctl_json(*asked)
        assert status in (Exit.DONE, Exit.PROBLEMS), at
        assert not [item for item in ctl_json(*asked)[1]["items"] if item["action"]], at
        ends.add(json.dumps(_end(rig), default=str))
        assert len(ends) == 1, at
        if not is_dead:
            break
        kills += 1
        at += _STEP
    assert made > 20
    assert f"{GONE}_0" in ends.pop()
    record_proof(RECONCILE_KILLS, {"kills": kills})
