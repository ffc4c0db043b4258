"""The line of progress on a terminal: it comes, counts everything once, and does not stay."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.tools.ctl import ctl, two_disks
from tests.tools.reconcile_rig import Rig
from tools.cli import Exit
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
    monkeypatch.setattr("tools.logdirctl.progress._QUIET_S", 0.0)
    monkeypatch.setattr("tools.logdirctl.progress._NOTE_EVERY_S", 0.0)
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
