"""The line of progress on a terminal: it comes, counts everything once, and does not stay."""

from __future__ import annotations

import io
import json
import socket
import subprocess
from pathlib import Path

import pytest

from logdir.observe.log_end import log_end
from logdir.worker.channel import frame
from logdir.worker.remote import RemotePort, followed, gather
from logdir.worker.waiting import Waiting
from tests.tools.ctl import ctl, two_disks
from tests.tools.reconcile_rig import Rig
from tools.cli.arguments import Exit
from tools.logdirctl.main import main

Words = tuple[str, ...]
COMMANDS: dict[str, Words] = {
    "stage": ("stage", "pay", "--even-if-unknown"),
    "staged hold": ("staged", "hold", "pay"),
    "staged restore": ("staged", "restore", "pay", "--even-if-unknown"),
    "staged purge": ("staged", "purge", "pay", "--even-if-early", "--even-if-last", "--include-held"),
    "reconcile": ("reconcile", "--from", "metadata:"),
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def typed(words: Words, named: Words) -> str:
    """Type a command at a terminal; return what stands on it at the end, line by line."""
    err = Terminal()
    assert main([*words, *named, "--apply"], io.StringIO(), err) == Exit.DONE, err.getvalue()
    return err.getvalue()


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_of_progress_stays_on_a_terminal(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.cli.progress._QUIET_S", 0.0)
    monkeypatch.setattr("tools.cli.progress._NOTE_EVERY_S", 0.0)
    if command == "reconcile":
        total, named = 2, Rig(tmp_path).with_removal().named
    else:
        total, disks = 3, two_disks(tmp_path)
        named = ("--log-dirs", f"{disks[0]},{disks[1]}")
        assert ctl("init", *named, "--apply").status == Exit.DONE
        if command != "stage":
            assert ctl("stage", "pay", "--even-if-unknown", *named, "--apply").status == Exit.DONE
    written = typed(COMMANDS[command], named)
    shown, _, after = written.rpartition(f": {total} of {total}")
    assert shown, written
    assert after.startswith("\r\x1b[K")


@pytest.mark.parametrize("log_dirs", [1, 2])
def test_an_inventory_counts_entries_and_leaves_no_line(
    log_dirs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.cli.progress._QUIET_S", 0.0)
    named = ",".join(map(str, two_disks(tmp_path)[:log_dirs]))
    out, err = io.StringIO(), Terminal()
    assert main(["inventory", "--log-dirs", named, "--json"], out, err) == Exit.DONE
    rows = sum(one["rows"] for one in json.loads(out.getvalue())["result"]["items"])
    assert err.getvalue() == f"\rentries of {log_dirs} log dirs: {rows}\r\x1b[K"


def test_how_far_each_worker_is_comes_with_its_signs_of_life() -> None:
    ours, theirs = socket.socketpair()
    with theirs, subprocess.Popen(["sleep", "600"]) as worker:
        port = RemotePort("/d", worker.pid, ours, 10_000, Waiting())
        said: list[object] = [["alive", 9], ["result", 7]]
        heard = []

        def progress(counts: list[int]) -> None:
            heard.append(counts)
            if said:
                theirs.sendall(frame(said.pop(0)))

        pending = port.begin(log_end, "/d", "t-0")
        theirs.sendall(frame(["alive", 4]))
        with followed([port], progress):
            gather([pending])
        assert (pending.result(), heard) == (7, [[4], [9], [9]])
        worker.kill()
        port.close()
