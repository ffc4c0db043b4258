"""``python -m tests.releases.make WHEEL``: make a tree in every state that a release can leave on disk.

The wheel is installed into an environment of its own; its ``logdirctl`` makes every change below a work root. A state
that exists only during a command is made by killing the command at the call named below. The trees go to
``tests/golden/releases``, under the version of the wheel.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from tests.builders import log_dir, partition
from tests.logdir.cluster.log_dir import LogDir, noop, register, remove
from tests.logdir.cluster.log_dir import partition as assigned
from tests.logdir.cluster.log_dir import topic as named
from tests.tools import adopt_rig, ctl, layout_fleet
from tests.tools.assignment_rig import ALONE
from tests.tools.reconcile_rig import age, raw
from tools.cli.arguments import Exit

GOLDEN = Path(__file__).parents[1] / "golden" / "releases"
LATER, HELD, CUT, GOING = "later", "held", "cut", "going"
_UNIQUE = "0123456789abcdef0123456789abcdef"
IDS = {
    LATER: "AAAAAAAAAAAAAAAAAAABBA",
    HELD: "AAAAAAAAAAAAAAAAAAABCA",
    CUT: "AAAAAAAAAAAAAAAAAAABDA",
    GOING: "AAAAAAAAAAAAAAAAAAABEA",
}
KILLED = """
import os, signal, sys
from unittest import mock
from logdir.disk.kernel.host import HostDisk
from logdir.worker import state
from tools.entry import logdirctl
name, within, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.argv[1:] = sys.argv[4:]
seen = []
def tell(call):
    if call.name == name and within in f"{call.path} {call.to}":
        seen.append(call)
        if len(seen) == count:
            os.killpg(0, signal.SIGKILL)
with mock.patch.object(state, "HostDisk", return_value=HostDisk(tell)):
    sys.exit(logdirctl())
"""


class Kill(NamedTuple):
    """A call of the host at which a command is killed, before it is made."""

    name: str
    within: str
    """Part of one of its paths."""
    nth: int = 1
    """Which of these calls, from 1."""


class Release:
    """A wheel, installed and run isolated: a checkout in the current directory or on ``PYTHONPATH`` is not it."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        venv.create(folder, with_pip=True)
        self._python = folder / "bin" / "python"
        install: list[str | Path] = [
            self._python,
            "-I",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--retries",
            "3",
        ]
        subprocess.run([*install, wheel], check=True)
        self._logdirctl = folder / "bin" / "logdirctl"
        self.version = self("--version").out.split()[-1]

    def __call__(self, *words: object) -> ctl.Said:
        """Type a command."""
        command: list[str | Path] = [self._python, "-I", self._logdirctl, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return ctl.Said(done.returncode, done.stdout, done.stderr)

    def well(self, *words: object) -> None:
        """Type a command that must be done."""
        said = self(*words)
        if said.status != Exit.DONE:
            raise SystemExit(f"{words}: expected exit status 0, found {said}")

    def killed(self, kill: Kill, *words: object) -> None:
        """Type a command that is killed at a call."""
        done = subprocess.run(
            [self._python, "-I", "-c", KILLED, kill.name, kill.within, str(kill.nth), *map(str, words)],
            start_new_session=True,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != -9:
            raise SystemExit(f"{words}: expected to be killed at {kill}, found {done}")


def staged(release: Release, folder: Path) -> None:
    """A replica with a deadline, one that is held, a capture and a purge that were cut off."""
    top = log_dir(folder / "d1")
    for topic in (LATER, HELD, GOING):
        partition(top / f"{topic}-0", topic_id=IDS[topic], segments={0: 100, 7: 20})
    partition(top / f"{CUT}-0.{_UNIQUE}-delete", topic_id=IDS[CUT], segments={0: 100, 7: 20})
    age(top)
    log = LogDir(top / "__cluster_metadata-0")
    (log.directory / "quorum-state").write_text(ALONE)
    log.lead(1)
    log.append(register(1))
    for topic in IDS:
        log.append(named(topic, raw(IDS[topic])), assigned(raw(IDS[topic]), 0, (1,)))
    log.append(remove(raw(IDS[LATER])), remove(raw(IDS[HELD])))
    log.append(noop())
    properties = folder / "server.properties"
    properties.write_text(f"process.roles=broker,controller\nnode.id=1\nlog.dirs={top}\n")
    words = ("--server-properties", properties)
    release.well("init", *words, "--apply")
    quorum = ("--from", "metadata:", "--high-watermark", log.offset, "--leader-epoch", "1")
    release.well("reconcile", *words, *quorum, "--even-over-limit", "--apply")
    release.well("staged", "hold", HELD, *words, "--apply")
    release.well("stage", GOING, *words, "--hold", "--even-if-last", "--even-over-limit", "--apply")
    release.killed(Kill("link", CUT, 2), "capture", *words, "--apply")
    release.killed(
        Kill("unlink", ".purging", 2),
        *("staged", "purge", GOING, *words, "--even-if-early", "--include-held", "--even-if-last", "--apply"),
    )


def adopting(release: Release, folder: Path) -> None:
    """An adoption that was cut off after it was certain, before the log was live."""
    with mock.patch.object(adopt_rig, "ctl", release):
        rig = adopt_rig.AdoptRig(folder)
        words = ("staged", "adopt", adopt_rig.OLD, "--as", "pay", *rig.named, "--apply")
    release.killed(Kill("rename", ".ready "), *words)


def start_block(release: Release, folder: Path) -> None:
    """A change of layout that was cut off: the start block stands, some replicas lie under their ids."""
    with mock.patch.object(layout_fleet, "ctl", release):
        broker = next(iter(layout_fleet.brokers_of(folder / "fleet").values()))
    release.killed(Kill("rename", "", 9), "layout", "apply", broker.plan, *broker.words, "--apply")
    broker.log_dirs[0].parent.rename(folder / "broker")
    shutil.rmtree(folder / "fleet")


STATES: dict[str, Callable[[Release, Path], None]] = {
    "staged": staged,
    "adopting": adopting,
    "start-block": start_block,
}


def main() -> int:
    """Make the trees of one release; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.releases.make", description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel.resolve()
    with tempfile.TemporaryDirectory() as made:
        release = Release(wheel, Path(made, "venv"))
        into = GOLDEN / release.version
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir(parents=True)
        for name, make in STATES.items():
            folder = Path(made, name)
            folder.mkdir()
            make(release, folder)
            for reserve in folder.rglob("reserve"):
                reserve.write_bytes(b"")  # random bytes, which do not compress
            with tarfile.open(into / f"{name}.tar.xz", "w:xz") as archive:
                archive.add(folder, arcname=".")
            print(f"{release.version} {name}: {sum(1 for _ in folder.rglob('*'))} entries")
    return 0


if __name__ == "__main__":
    sys.exit(main())
