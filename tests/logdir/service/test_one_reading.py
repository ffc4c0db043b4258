"""What a command opens of a metadata log: each segment and snapshot once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from tests.logdir.cluster.log_dir import noop, remove
from tests.tools.adopt_rig import AdoptRig
from tests.tools.assignment_rig import ALONE
from tests.tools.ctl import ctl
from tests.tools.reconcile_rig import GONE, Rig, gone_records, raw
from tools.cli.arguments import Exit


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count how often each segment and snapshot is opened in this process."""
    opens: Counter[str] = Counter()
    real = os.open

    def counted(path: str, *arguments: object, **more: object) -> int:
        name = str(path)
        if name.endswith((".log", ".checkpoint")) and "__cluster_metadata" in name:
            opens[os.path.basename(name)] += 1
        return real(path, *arguments, **more)  # type: ignore[arg-type]  # as they came

    with mock.patch.object(os, "open", counted):
        yield opens


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """A broker that votes alone, whose log has three segments, two snapshots and a removal between them."""
    rig = Rig(tmp_path)
    log = rig.log()
    rig.snapshot(log, *gone_records())
    log.roll()
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    log.roll()
    log.append(noop(), noop())
    (log.directory / "quorum-state").write_text(ALONE)
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"process.roles=broker,controller\nnode.id=1\nlog.dirs={','.join(map(str, rig.disks))}\n"
        f"metadata.log.dir={rig.disks[0]}\n"
    )
    rig.named = "--server-properties", str(properties)
    return rig


COMMANDS = {
    "describe": ("describe", "--kafka-topics"),
    "describe rows": ("describe",),
    "strays": ("strays",),
    "reconcile": ("reconcile", "--from", "metadata:"),
    "reconcile --apply": ("reconcile", "--from", "metadata:", "--even-over-limit", "--apply"),
    "stage": ("stage", "pay-0", "--even-if-last", "--even-over-limit"),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_command_opens_each_file_of_the_log_once(rig: Rig, words: tuple[str, ...]) -> None:
    with counting() as opens:
        said = ctl(*words, *rig.named)
    assert said.status in (Exit.DONE, Exit.PROBLEMS), said
    assert opens
    assert set(opens.values()) == {1}, opens


@pytest.mark.parametrize("more", [(), ("--apply",)], ids=["plan", "apply"])
def test_an_adoption_opens_each_file_of_the_log_once(tmp_path: Path, more: tuple[str, ...]) -> None:
    rig = AdoptRig(tmp_path)
    with counting() as opens:
        assert rig.adopt(*more).status == Exit.DONE
    assert set(opens.values()) == {1}, opens


@pytest.mark.parametrize("more", [(), ("--apply",)], ids=["plan", "apply"])
def test_a_restore_opens_each_file_of_the_log_once(rig: Rig, more: tuple[str, ...]) -> None:
    staged = ctl("stage", "pay-0", *rig.named, "--even-if-last", "--even-over-limit", "--apply")
    assert staged.status == Exit.DONE, staged
    with counting() as opens:
        said = ctl("staged", "restore", "pay-0", *rig.named, *more)
    assert said.status == Exit.DONE, said
    assert opens
    assert set(opens.values()) == {1}, opens
