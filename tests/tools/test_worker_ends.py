"""A worker that ends between two steps of a batch: its log dir is named SUSPECT, and every replica has its row."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from logdir.service.log_dirs.kafka_locks import HeldLocks
from logdir.worker.remote import RemotePort
from tests.builders import partition
from tests.tools.adopt_rig import OLD, AdoptRig
from tests.tools.ctl import ctl, two_disks
from tools.cli.arguments import Exit


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch, workers: None) -> list[str]:
    """Kill the worker of each log dir named in the list, before the first step of a batch."""
    named: list[str] = []
    real = HeldLocks.require_held

    def require_held(held: HeldLocks) -> None:
        for port in held._ports:
            if isinstance(port, RemotePort) and port.log_dir in named and not port.is_suspect:
                os.kill(port.pid, signal.SIGKILL)
        real(held)

    monkeypatch.setattr(HeldLocks, "require_held", require_held)
    return named


def _named(tmp_path: Path) -> tuple[tuple[str, str], tuple[Path, Path]]:
    disks = two_disks(tmp_path)
    for number, disk in enumerate(disks):
        partition(disk / f"own{number}-0", topic_id=f"AAAAAAAAAAAAAAAAAAAA{number}A")
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    return named, disks


@pytest.mark.parametrize("verb", ["stage", "restore"])
def test_the_others_are_worked_on_and_every_replica_has_its_row(verb: str, tmp_path: Path, ends: list[str]) -> None:
    named, disks = _named(tmp_path)
    stage = ("stage", "own*", *named, "--even-if-unknown", "--even-over-limit", "--apply")
    words: tuple[str, ...] = stage
    if verb == "restore":
        assert ctl(*stage).status == Exit.DONE
        words = ("staged", "restore", "own*", *named, "--even-if-unknown", "--apply")
    ends.append(str(disks[0]))
    status, out, _ = ctl(*words, "--json")
    said = json.loads(out)
    assert status == Exit.PROBLEMS, said
    rows = [(item["topic"], item["state"]) for item in said["result"]["items"]]
    assert sorted(rows) == [("own0", "undone"), ("own1", "done")]
    assert ("log-dir-suspect", str(disks[0])) in [(one["slug"], one["path"]) for one in said["problems"]]


def test_an_adoption_is_not_begun_beside_it(tmp_path: Path, ends: list[str]) -> None:
    rig = AdoptRig(tmp_path)
    ends.append(str(rig.disks[1]))
    status, said = rig.adopt_json("--apply")
    assert status == Exit.PROBLEMS, said
    assert [item["state"] for item in said["items"]] == ["undone"]
    assert rig.deleting() == [f"{OLD}_0"]
    assert rig.live().is_dir()
