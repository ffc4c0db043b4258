"""Arguments that do not fit: one line with *did you mean*, and with ``--json`` the envelope."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tools.cluster_log import elsewhere
from tests.tools.ctl import ctl, two_disks
from tools.cli.arguments import Exit


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (["stagd", "ls"], "staged"),
        (["inventroy"], "inventory"),
        (["staged", "restor", "x"], "restore"),
        (["staged", "ll"], "ls"),
        (["restore", "x"], "staged restore"),
        (["finalize"], "layout finalize"),
        (["inventory", "--server-propertis", "f"], "--server-properties"),
        (["stage", "x", "--log-dirs", "/d", "--aply"], "--apply"),
        (["stage", "--hld"], "--hold"),
        (["staged", "purge", "--even-if-erly"], "--even-if-early"),
        (["fleet", "plan", "f", "-o", "p", "--id", "x"], "--ids"),
        (["init", "--log-dirs", "/d", "--work-root", "besides"], "beside"),
    ],
)
def test_a_mistyped_word_is_never_refused_without_the_nearest_one(argv: list[str], meant: str) -> None:
    said = ctl(*argv)
    assert (said.status, said.out, said.err.count("\n")) == (Exit.USAGE, "", 1)
    assert f"did you mean {meant}?" in said.err


def test_an_override_is_never_proposed_to_whoever_did_not_begin_to_type_one() -> None:
    said = ctl("stage", "x", "--log-dirs", "/d", "--over-limit")
    assert (said.status, "--even-" in said.err) == (Exit.USAGE, False)


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["stage", "--json"], "stage"),
        (["stage", "--json", "x", "--log-dirs"], "stage"),
        (["stage", "x", "--json", "--log-dirs", "a", "--server-properties", "b"], "stage"),
        (["staged", "restore", "x", "--nonsense", "--json"], "staged restore"),
        (["staged", "nonsense", "--json"], "staged"),
        (["fleet", "plan", "--json"], "fleet plan"),
        (["reconcile", "--from", "metadata:", "--log-dirs", "/d", "--delay", "4 weeks", "--json"], "reconcile"),
        (["reconcile", "--from", "metadata:", "--log-dirs", "/d", "--max-staged-percent", "x", "--json"], "reconcile"),
        (["inventory", "--log-dirs", "/d", "more", "--json"], "inventory"),
        (["nonsense", "--json"], "logdirctl"),
        (["--json"], "logdirctl"),
        (["explain", "nonsense", "--json"], "explain"),
    ],
)
def test_wrong_usage_with_json_is_never_silent_on_standard_output(argv: list[str], command: str) -> None:
    said = ctl(*argv)
    assert (said.status, said.err.count("\n"), said.out.count("\n")) == (Exit.USAGE, 1, 1)
    value = json.loads(said.out)
    assert sorted(value) == ["command", "exit", "format", "problems", "result"]
    assert (value["command"], value["exit"], value["format"], value["result"]) == (command, 2, 1, {})
    (problem,) = value["problems"]
    assert sorted(problem) == ["expected", "fix", "found", "path", "slug"]
    assert all(problem[key] for key in ("slug", "path", "expected", "found"))


@pytest.mark.parametrize("command", ["describe", "staged ls", "stage", "staged restore"])
def test_a_mistyped_topic_is_never_answered_without_the_nearest_one(command: str, tmp_path: Path) -> None:
    one, two = two_disks(tmp_path)
    named = ["--log-dirs", f"{one},{two}"]
    assert ctl("init", *named, "--apply").status == Exit.DONE
    if command.startswith("staged"):
        assert ctl("stage", "other", *elsewhere(tmp_path), *named, "--apply").status == Exit.DONE
    said = ctl(*command.split(), "othr", *named)
    assert (said.status, "did you mean other?" in said.err) == (Exit.PROBLEMS, True)
    assert "did you mean" not in ctl(*command.split(), "zzz", *named).err


@pytest.mark.parametrize("text", ["4h", "240m", "14400s", "14400000ms", "14400000"])
def test_a_delay_is_never_asked_for_in_milliseconds_alone(text: str, tmp_path: Path) -> None:
    one, two = two_disks(tmp_path)
    named = ["--log-dirs", f"{one},{two}"]
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert ctl("stage", "other", *elsewhere(tmp_path), *named, "--delay", text, "--apply").status == Exit.DONE
    (item,) = json.loads(ctl("staged", "ls", *named, "--json").out)["result"]["items"]
    assert item["delay_ms"] == 14_400_000


@pytest.mark.parametrize(
    ("text", "is_asked"),
    [("1", True), ("14400", True), ("86399", True), ("86400", False), ("0", False), ("14400ms", False), ("30s", False)],
)
@pytest.mark.parametrize("override", [[], ["--even-over-limit"]])
def test_a_unit_alone_answers_the_question_whether_milliseconds_were_meant(
    text: str, is_asked: bool, override: list[str], tmp_path: Path
) -> None:
    one, two = two_disks(tmp_path)
    named = ["--log-dirs", f"{one},{two}"]
    assert ctl("init", *named, "--apply").status == Exit.DONE
    said = ctl("stage", "other", *elsewhere(tmp_path), *named, "--delay-ms", text, *override)
    assert said.status == (Exit.USAGE if is_asked else Exit.DONE)
    assert ("milliseconds?" in said.err) is is_asked
    # After an override nothing is proposed that would be refused without it.
    assert text == "0" or is_asked or ("--delay " in said.out.rpartition("next: ")[2]) is (not override)


@pytest.mark.parametrize("text", ["4weeks", "h", "", "1.5h", "٤h", "99999999999999999d", "4h30m"])
def test_what_is_no_duration_is_never_taken_for_one(text: str) -> None:
    said = ctl("stage", "x", "--log-dirs", "/d", f"--delay={text}")
    assert (said.status, said.err.count("\n")) == (Exit.USAGE, 1)
    assert "--delay" in said.err


@pytest.mark.parametrize("command", [("inventory",), ("describe",), ("strays",), ("stage", "x"), ("layout", "status")])
def test_a_server_properties_that_is_not_in_its_format_is_no_problem_of_a_disk(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(b"log.dirs=/nowhere\ngarb\\u00zz=1\n")
    said = ctl(*command, "--server-properties", path)
    assert (said.status, said.out, said.err.count("\n")) == (Exit.USAGE, "", 1)
    assert f" config-error: {path}: expected four hexadecimal digits" in said.err


@pytest.mark.parametrize("command", [("inventory",), ("stage", "x", "--json"), ("layout", "status")])
def test_no_error_of_a_server_properties_shows_a_password(command: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(b"log.dirs=/nowhere\nssl.keystore.password=s3cret\\users\n")
    said = ctl(*command, "--server-properties", path)
    assert said.status == Exit.USAGE
    assert "another text in line 2, ssl.keystore.password" in said.err + said.out
    assert "s3cret" not in said.err + said.out
