"""logdirctl beside a daemon: its requests go there, and what it prints is what it would have printed alone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from concurrent.futures import Future
from pathlib import Path

import pytest

from logdir.daemon.faults import StoppingError, stopping_error
from logdir.daemon.report.counters import Counters
from logdir.daemon.requests import Request, Requests
from logdir.daemon.socket.routes import path_of
from logdir.errors import Problem
from tests.builders import TOPIC_ID
from tests.logdir.daemon.rig import Daemon, ask, daemon, until
from tests.oracle.oracle import answer
from tests.reconcile.universe import document, listed
from tests.tools.ctl import Said, ctl, held, launch
from tests.tools.reconcile_rig import GONE, age
from tools.cli.arguments import Exit


def captured(one: Daemon) -> None:
    gone = one.delete(one.make())
    until("it is captured", lambda: one.status().captured == 1)
    one.remove(gone)


def plan_of(one: Daemon) -> Path:
    """Write the document of a plan that takes the broker to topic ids."""
    into = one.folder / "inventories"
    assert ctl("inventory", "--server-properties", one.server_properties, "-o", into).status == Exit.DONE
    fleet = one.folder / "fleet.yaml"
    text = "clusters:\n  - name: c\n    brokers:\n      - node_id: 1\n        inventories: [{}/*.jsonl]\n"
    fleet.write_text(text.format(into))
    (data,) = answer(fleet).documents.values()
    plan = one.folder / "1.jsonl"
    plan.write_bytes(data)
    return plan


def altered_over_the_socket(one: Daemon, plan: Path) -> Problem:
    """Send a document of which one step was altered; return the daemon's problem, the same as that of a file."""
    text = plan.read_text().replace('"partition":1,', '"partition":2,')
    body = json.dumps({"apply": True, "request": {"verb": "apply", "document": text}}).encode()
    head = f"POST {path_of('layout')} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    value = json.loads(ask(one.socket, head.encode() + body).partition(b"\r\n\r\n")[2])
    (problem,) = (Problem(**found) for found in value["problems"])
    file = plan.with_name("altered.jsonl")
    file.write_text(text)
    said = ctl("layout", "apply", file, "--config", one.config, "--apply")
    assert said.status == value["exit"]
    assert problem.line().replace("LayoutRequest.document", str(file)) in said.err
    return problem


def timeless(said: Said) -> Said:
    """Instants follow the clock of each call."""
    return said._replace(out=re.sub(r"20[0-9-]{8}T[0-9:]{8}Z|(?<=_ms\":)[0-9]+", "WHEN", said.out))


@pytest.mark.slow
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


def test_the_commands_of_the_guide_are_for_the_daemon_as_the_request_was(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        captured(one)
        said = ctl("staged", "restore", "pay", "--config", one.config)
        text = " ".join(said.out.replace("\\\n", "").split())
        assert f"logdirctl staged hold {TOPIC_ID} --config {one.config} --apply" in text
        assert "--server-properties" not in text


def exported(one: Daemon, into: Path, size: int) -> subprocess.Popen[bytes]:
    """Begin the export of a captured replica that takes some seconds; it has begun at the end."""
    into.mkdir()
    gone = one.delete(one.make("big"))
    os.truncate(gone / f"{0:020}.log", size)
    until("it is captured", lambda: one.status().captured == 1)
    one.remove(gone)
    asked = launch("staged", "export", "big", "-o", into, "--config", one.config, "--apply")
    until("the copy has begun", lambda: any(into.glob("*.partial*/*.log")) or asked.poll() is not None)
    return asked


@pytest.mark.slow
def test_a17_a_deletion_is_captured_while_an_export_copies(tmp_path: Path) -> None:
    with daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        asked = exported(one, tmp_path / "copy", 1 << 30)
        one.delete(one.make("pay"))
        until("it is captured", lambda: one.status().captured == 2)
        assert asked.poll() is None
        out, err = asked.communicate(timeout=120)
        assert (asked.returncode, out.count(b" done ")) == (Exit.DONE, 1), err


@pytest.mark.slow
def test_a_handover_ends_an_export_that_keeps_the_broker_from_its_start(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        asked = exported(one, tmp_path / "copy", 1 << 31)
        said = ctl("handover", "--config", one.config)
        assert said.status == Exit.DONE, said
        _, err = asked.communicate(timeout=60)
        assert (asked.returncode, b"handed-over" in err) == (Exit.REFUSED, True), err
        assert one.staged() == [f"{TOPIC_ID}_0"]


def test_the_requests_of_a_daemon_that_ends_are_answered_although_a_client_has_left() -> None:
    requests = Requests()
    futures: list[Future[object]] = [Future(), Future()]
    for future in futures:
        requests.add(Request("capture", lambda work: None, future))
    assert futures[0].cancel()
    counters = Counters()
    for request in requests.take_all():
        request.refuse(stopping_error(), counters)
    assert isinstance(futures[1].exception(), StoppingError)
    assert counters.requests == {("capture", Exit.REFUSED): 1}


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
        assert re.search(r"path=pay-0\.[0-9a-f]{32}-delete undo_until=\d{4}-\d\d-\d\dT[\d:]+Z$", said.out, re.MULTILINE)
        value = json.loads(ctl("status", "--socket", one.socket, "--json").out)["result"]
        assert (value["state"], value["state_number"], value["node_id"]) == ("RUNNING", 3, 1)
        assert [disk["state"] for disk in value["items"]] == ["online", "online"]
        assert one.stop() == 0
        said = ctl("status", "--config", one.config)
        assert (said.status, "daemon-unreachable" in said.err) == (Exit.REFUSED, True)


@pytest.mark.parametrize("command", ["init", "uninstall"])
def test_what_needs_the_log_dirs_closed_is_refused_by_name(tmp_path: Path, command: str) -> None:
    with daemon(tmp_path) as one:
        said = ctl(command, "--config", one.config, "--apply")
        assert (said.status, said.out) == (Exit.REFUSED, "")
        assert said.err == (
            f"logdirctl {command}: work-root-owned: {command}: expected log dirs that no logdird has open, "
            f"found logdird, which answers on {one.socket}; stop logdird first\n"
        )
        body = b'{"apply": true, "request": {}}'
        head = f"POST /v1/use-cases/{command} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        (problem,) = json.loads(ask(one.socket, head + body).partition(b"\r\n\r\n")[2])["problems"]
        assert (problem["slug"], problem["path"], problem["fix"]) == ("work-root-owned", command, "stop logdird first")
        assert one.stop() == 0
        assert ctl(command, "--config", one.config, "--apply").status == Exit.DONE


def test_what_only_reads_works_beside_it(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        captured(one)
        znodes = tmp_path / "znodes.json"
        znodes.write_text('{"/brokers/topics/pay": {"version": 3, "partitions": {"0": [1]}}}')
        for words in (
            ["inventory"], ["describe"], ["strays", "--from", f"znodes:{znodes}"], ["staged", "ls"],
            ["layout", "status"], ["init"], ["status"],
        ):  # fmt: skip
            said = ctl(*words, "--config", one.config)
            assert (words, said.status) == (words, Exit.DONE), said


@pytest.mark.slow
def test_a_reconcile_is_planned_and_done_by_the_daemon_as_without_it(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        for number in range(4):
            age(one.make("pay", number))
            age(one.make("gone", number, disk=1, topic_id=GONE))
        file = tmp_path / "full.json"
        file.write_text(json.dumps(document(listed(pay=(TOPIC_ID, (0, 1, 2, 3))), type=2, sequence=1)))
        words = ("reconcile", "--from", f"request:{file}", "--config", one.config)
        typed = [words, (*words, "--even-over-limit"), (*words, "--json"), (*words, "--max-age-ms", -1)]
        there = [ctl(*more) for more in typed]
        assert one.stop() == 0
        for more, before in zip(typed, there, strict=True):
            assert timeless(ctl(*more)) == timeless(before), more
        one.start()
        said = ctl(*words, "--even-over-limit", "--apply")
        assert said.status == Exit.DONE, said
        assert len(one.staged(1)) == 4
        assert said.err.count("is staged, and can be restored until 20") == 4
        assert one.log.count("request.warning") == 4
        assert [(e["command"], e["done"]) for e in one.events() if e["event"] == "request"] == [("reconcile", 4)]


@pytest.mark.slow
def test_a_layout_is_changed_by_the_daemon_and_nothing_else_meanwhile(tmp_path: Path) -> None:
    with daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        for number in range(3):
            one.make("pay", number)
        plan = plan_of(one)
        words = ("layout", "check", plan, "--config", one.config)
        there, there_json = ctl(*words), ctl(*words, "--json")
        assert there.status == Exit.DONE, there
        altered = altered_over_the_socket(one, plan)
        assert (altered.slug, altered.found[:16]) == ("malformed-file", "3 steps, sha256 ")
        assert (one.log_dirs[0] / "pay-0").is_dir()
        said = ctl("layout", "apply", plan, "--config", one.config, "--apply")
        assert (said.status, "What is kept on this host" in said.err) == (Exit.DONE, True), said
        assert not (one.log_dirs[0] / "pay-0").exists()
        blocked = "layout-change-under-way"
        until("status says so", lambda: blocked in {problem.slug for problem in one.status().waiting})
        refused = ctl("stage", "pay", "--config", one.config)
        assert (refused.status, blocked in refused.err, "logdirctl layout status" in refused.err) == (4, True, True)
        # A daemon that is started behind a start block serves the layout verbs, too.
        one.stop(signal.SIGKILL)
        one.start()
        assert blocked in {problem.slug for problem in one.status().waiting}
        said = ctl("layout", "rollback", "--config", one.config, "--apply")
        assert said.status == Exit.DONE, said
        assert (one.log_dirs[0] / "pay-0").is_dir()
        until("nothing waits", lambda: one.status().waiting == ())
        assert [event["command"] for event in one.events() if event["event"] == "request"] == ["layout", "layout"]
        assert one.stop() == 0
        assert timeless(ctl(*words)) == timeless(there)
        assert timeless(ctl(*words, "--json")) == timeless(there_json)


@pytest.mark.slow
def test_beside_a_running_broker_both_are_planned_and_not_done(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        one.make()
        plan = plan_of(one)
        file = tmp_path / "full.json"
        file.write_text(json.dumps(document(listed(pay=(TOPIC_ID, (0,))), type=2, sequence=1)))
        (one.log_dirs[1] / ".lock").touch()
        with held(one.log_dirs[1] / ".lock"):
            for words in (["reconcile", "--from", f"request:{file}"], ["layout", "apply", plan]):
                assert ctl(*words, "--config", one.config).status == Exit.DONE
                assert ctl(*words, "--config", one.config, "--apply").status == Exit.BROKER_RUNS
        assert (one.log_dirs[0] / "pay-0").is_dir()
