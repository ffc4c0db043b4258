"""logdirctl beside a daemon: its requests go there, and what it prints is what it would have printed alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.logdir.daemon.rig import Daemon, daemon, until
from tests.tools.ctl import Said, ctl
from tools.cli.arguments import Exit


def captured(one: Daemon) -> None:
    gone = one.delete(one.make())
    until("it is captured", lambda: one.status().captured == 1)
    one.remove(gone)


def timeless(said: Said) -> Said:
    """Instants follow the clock of each call."""
    return said._replace(out=re.sub(r"20[0-9-]{8}T[0-9:]{8}Z|(?<=_ms\":)[0-9]+", "WHEN", said.out))


def test_a_plan_is_printed_as_without_the_daemon(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        captured(one)
        typed = [
            ["staged", "purge", "pay"],
            ["staged", "purge"],
            ["staged", "hold", "pay"],
            ["staged", "restore", "pay"],
            ["staged", "restore", "nope"],
            ["staged", "adopt", "pay", "--as", "pay"],
            ["capture"],
            ["stage", "pay"],
        ]
        there = [ctl(*words, "--config", one.config) for words in typed]
        there_json = [ctl(*words, "--config", one.config, "--json") for words in typed]
        assert one.stop() == 0
        for words, said, said_json in zip(typed, there, there_json, strict=True):
            assert timeless(ctl(*words, "--config", one.config)) == timeless(said), words
            assert timeless(ctl(*words, "--config", one.config, "--json")) == timeless(said_json), words


def test_a_hold_is_done_by_the_daemon(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        captured(one)
        alone = ctl("staged", "hold", "pay", "--server-properties", one.server_properties, "--apply")
        assert (alone.status, "work-root-owned" in alone.err) == (Exit.REFUSED, True)
        said = ctl("staged", "hold", "pay", "--config", one.config, "--apply")
        assert said.status == Exit.DONE, said
        until("it is held", lambda: one.status().log_dirs[0].held == 1)
        assert [event["command"] for event in one.events() if event["event"] == "request"] == ["staged hold"]


def test_an_export_is_written_where_the_operator_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with daemon(tmp_path) as one:
        captured(one)
        (tmp_path / "out").mkdir()
        monkeypatch.chdir(tmp_path)
        said = ctl("staged", "export", "pay", "--config", one.config, "-o", "out", "--apply")
        assert said.status == Exit.DONE, said
        (copy,) = (tmp_path / "out").iterdir()
        assert (copy / "00000000000000000007.log").stat().st_size == 20


def test_what_is_wrong_is_answered_with_its_exit_status(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        wrong = ctl("staged", "purge", "--even-if-early", "--config", one.config)
        assert (wrong.status, "config-error" in wrong.err) == (Exit.USAGE, True)
        said = ctl("staged", "hold", "pay", "--config", one.config, "--json")
        assert said.status == Exit.PROBLEMS
        assert json.loads(said.out)["problems"][0]["slug"] == "nothing-selected"


@pytest.mark.parametrize("option", ["--skip-log-dir", "--even-if-stale-disk"])
def test_an_option_about_opening_log_dirs_is_refused_by_name(tmp_path: Path, option: str) -> None:
    with daemon(tmp_path) as one:
        said = ctl("staged", "hold", "pay", "--config", one.config, option, one.log_dirs[1])
        assert said.status == Exit.USAGE
        assert option in said.err
        assert "stop logdird first" in said.err


def test_without_a_daemon_the_command_does_it_itself(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        captured(one)
        assert one.stop() == 0
        assert ctl("staged", "hold", "pay", "--config", one.config, "--apply").status == Exit.DONE


def test_status_shows_the_daemon(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        captured(one)
        said = ctl("status", "--config", one.config)
        assert said.status == Exit.DONE, said
        assert "b1: RUNNING since " in said.out
        assert "captured 1, missed 0, purged 0; 0 requests wait" in said.out
        value = json.loads(ctl("status", "--socket", one.socket, "--json").out)["result"]
        assert (value["state"], value["state_number"], value["node_id"]) == ("RUNNING", 3, 1)
        assert [disk["state"] for disk in value["items"]] == ["online", "online"]
        assert one.stop() == 0
        said = ctl("status", "--config", one.config)
        assert (said.status, "daemon-unreachable" in said.err) == (Exit.REFUSED, True)
