"""The log dirs of one stopped broker changed by ``logdirctl``, killed on the way, and changed back.

``logdirctl`` runs as a process of its own that gets a real SIGKILL at a call drawn beforehand. Whatever was cut off
must go back to the same bytes and times of change.

Spec: design §2 law 3, §3.3, §8.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.root.work_root import open_root
from tests.logdir.disk.layout_rig import document, header_of, steps_of
from tests.tools.ctl import HOME, ctl, ctl_json, tree
from tests.tools.layout_fleet import Planned, apply, rollback
from tools.cli.arguments import Exit

METADATA: Final = "__cluster_metadata-0"
_INDEXES: Final = (".index", ".timeindex", ".txnindex")
_FUTURE: Final = re.compile(r"(.+)\.[0-9a-f]{32}-future")
_OUR_HOST_DISK: Final = "logdir.worker.state.HostDisk"
_KILLED: Final = """
import os, signal, sys
from logdir.disk.kernel.host import HostDisk
from logdir.worker import state
from logdir.worker.start import placed
from tools.logdirctl.main import main
left = int(sys.argv[1])
def tell(call):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
state.HostDisk = lambda: HostDisk(tell)
with placed(is_here=True):
    sys.exit(main(sys.argv[2:], sys.stdout, sys.stderr))
"""
Tree = dict[str, tuple[object, ...]]


def contents(log_dirs: Sequence[Path]) -> Tree:
    """Return all that lies in log dirs of one folder, by paths relative to it."""
    (folder,) = {path.parent for path in log_dirs}
    return {str(Path(path).relative_to(folder)): said for path, said in tree(*log_dirs).items()}


def moving(log_dirs: Sequence[Path]) -> set[str]:
    """Return the replicas that were on their way between log dirs."""
    found = (_FUTURE.fullmatch(path.name) for top in log_dirs for path in top.iterdir())
    return {one[1] for one in found if one is not None}


def live(log_dirs: Sequence[Path]) -> set[str]:
    """Return the names of live replicas, and of those a broker staged."""
    return {
        path.name
        for top in log_dirs
        for path in top.iterdir()
        if path.is_dir() and path.name != METADATA and not path.name.endswith(("-delete", "-future"))
    }


class _Back:
    """One broker that goes there and back."""

    def __init__(self, log_dirs: tuple[Path, ...], plan: Path, draw: random.Random, patch: pytest.MonkeyPatch) -> None:
        self.broker = Planned(log_dirs, plan)
        # Whose metadata log it is, its configuration alone says: a restore rests on it.
        properties = log_dirs[0].parent / "server.properties"
        properties.write_text(f"process.roles=broker,controller\nlog.dirs={self.broker.words[1]}\n")
        self.words = "--server-properties", str(properties)
        self.moving = moving(log_dirs)
        self.first = contents(log_dirs)
        self.kills: list[str] = []
        self._draw, self._patch = draw, patch

    def check(self) -> None:
        """Check that everything is as it was."""
        assert contents(self.broker.log_dirs) == self.first, self.kills

    @contextmanager
    def counted(self) -> Iterator[list[Call]]:
        """Yield the calls that change a disk or make it durable, as they come."""
        told: list[Call] = []
        with self._patch.context() as patched:
            patched.setattr(_OUR_HOST_DISK, lambda: HostDisk(told.append))
            yield told

    def kill(self, calls: int, *argv: object) -> None:
        """Run a command that is killed at one of its calls; the process is gone then, and its locks with it."""
        at = self._draw.randrange(calls)
        words = [*map(str, argv), *self.words, "--apply"]
        done = subprocess.run(
            [sys.executable, "-c", _KILLED, str(at), *words], cwd=HOME, stdin=subprocess.DEVNULL, capture_output=True
        )
        self.kills.append(f"{' '.join(words[:2])} at call {at} of {calls}")
        assert done.returncode == -signal.SIGKILL, (self.kills[-1], done.stdout, done.stderr)


def layout_there_and_back(
    log_dirs: tuple[Path, ...], folder: Path, draw: random.Random, patch: pytest.MonkeyPatch
) -> list[str]:
    """Take a broker to topic ids and back: whole, killed on the way there, killed on the way back.

    Args:
        log_dirs: With work roots.
        folder: Where its plan is put.
        draw: Draws the calls.
        patch: Lets calls be counted.

    Returns:
        Where it was killed.
    """
    plan = folder / "plan.jsonl"
    with ExitStack() as stack:
        open_dirs = [stack.enter_context(open_root(HostDisk(), str(path))).open_dir for path in log_dirs]
        # Also those that are on their way elsewhere: as if the plan were older than the moves.
        plan.write_bytes(document(header_of(open_dirs), steps_of(open_dirs)))
    back = _Back(log_dirs, plan, draw, patch)
    broker = back.broker
    assert {step["from"] for step in broker.steps} == live(log_dirs)

    def applied() -> None:
        status, result = apply(broker)
        assert (status, result["finished"]) == (Exit.PROBLEMS if back.moving else Exit.DONE, True)
        assert {Path(one["path"]).name for one in result["items"] if one["state"] == "refused"} == back.moving
        for step in broker.steps:
            assert Path(step["log_dir"], step["to"]).exists() == (step["from"] not in back.moving), step

    def rolled_back() -> None:
        status, result = rollback(broker)
        assert (status, result["finished"]) == (Exit.DONE, True), (result, back.kills)
        back.check()

    # Lock files are made at the first time only.
    applied()
    rolled_back()
    with back.counted() as there:
        applied()
    with back.counted() as home:
        rolled_back()
    back.kill(len(there), "layout", "apply", plan)
    rolled_back()
    back.kill(len(there), "layout", "apply", plan)
    applied()
    back.kill(len(home), "layout", "rollback")
    rolled_back()
    return back.kills


def stage_there_and_back(
    log_dirs: tuple[Path, ...], draw: random.Random, patch: pytest.MonkeyPatch, *, is_clean: bool
) -> list[str]:
    """Set every replica aside and take it back: whole, killed on the way there, killed on the way back.

    Args:
        log_dirs: With work roots.
        draw: Draws the calls.
        patch: Lets calls be counted.
        is_clean: Whether the broker was stopped cleanly. Else the last index files of what was staged are gone: a
            broker makes them again, where it would trust what preallocated zeros are left in them.

    Returns:
        Where it was killed.
    """
    back = _Back(log_dirs, Path(), draw, patch)
    staging = ("stage", "*", "--internal", "--even-over-limit", "--even-if-last", "--even-if-unknown")
    restoring = ("staged", "restore", "*")
    names = live(log_dirs)

    def staged() -> None:
        status, result = ctl_json(*staging, *back.words, "--apply")
        assert status == Exit.PROBLEMS
        assert {one["path"] for one in result["items"] if one["state"] == "refused"} == {METADATA, *back.moving}
        assert not live(log_dirs) - back.moving

    def restored() -> None:
        said = ctl(*restoring, *back.words, "--apply")
        assert said.status == Exit.DONE or "nothing-selected" in said.err, (said, back.kills)
        assert live(log_dirs) == names
        if not is_clean:
            now = contents(log_dirs)
            gone = back.first.keys() - now.keys()
            assert gone <= _last_indexes(names - back.moving, back.first), back.kills
            back.first = {path: told for path, told in back.first.items() if path not in gone}
        back.check()

    # Index files are removed at the first time only.
    staged()
    restored()
    with back.counted() as there:
        staged()
    with back.counted() as home:
        restored()
    back.kill(len(there), *staging)
    restored()
    staged()
    back.kill(len(home), *restoring)
    restored()
    return back.kills


def _last_indexes(replicas: set[str], said: Tree) -> set[str]:
    """Return the index files of the newest segment of each replica."""
    newest: dict[str, str] = {}
    for path in said:
        folder, _, name = path.rpartition("/")
        if name.endswith(".log") and folder.rpartition("/")[2] in replicas:
            newest[folder] = max(newest.get(folder, ""), name.removesuffix(".log"))
    assert len(newest) == len(replicas)
    return {f"{folder}/{base}{ending}" for folder, base in newest.items() for ending in _INDEXES}
