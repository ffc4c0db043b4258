"""docs/operations.md, typed as it stands: what needs neither a broker nor a disk of its own.

A daemon runs on the log dirs of a broker that does not run; what a section begins with is made here.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from tests.free_space import require_room
from tests.logdir.daemon.rig import Daemon, daemon, until
from tests.operations_page import ALARMS, PAGE, SECTIONS, SETTINGS, TYPED_BY, VALUES, section
from tests.test_errors_documented import LISTED
from tests.tools.ctl import Said, ctl
from tests.tools.test_quarantine import put_back
from tests.typed_page import Host, lines_of, only_looks, sections, settings_of, statuses_of
from tools.cli.arguments import Exit

ROOT = Path(__file__).parents[1]
TOPIC = "payments"
OFTEN = "sweep.interval.ms: 500\n"
HOURS = 5
SKIP = "LOGDIRD_SKIP_GATE"


def reloaded(one: Daemon) -> list[int]:
    """Return when the configuration was read again."""
    return [event.at_ms for event in one.status().events if event.event == "reloaded"]


def refused(one: Daemon) -> list[str]:
    """Return why the configuration was not taken."""
    return [problem.line() for problem in one.status().waiting if problem.slug == "config-error"]


def slugs(one: Daemon) -> set[str]:
    """Return of what kinds the problems are that wait for an operator."""
    return {problem.slug for problem in one.status().waiting}


def reload(one: Daemon) -> None:
    """Send SIGHUP, and wait until the file was read again."""
    before = reloaded(one)
    assert one.process is not None
    one.process.send_signal(signal.SIGHUP)
    until("the file is read again", lambda: reloaded(one) != before or bool(refused(one)))


def restart(one: Daemon) -> None:
    assert one.stop() == 0
    one.start()


def gate(one: Daemon) -> Said:
    """Type what the unit of the broker does before it starts; the broker itself does not run here."""
    return ctl("handover", "--config", one.config, "--quiet")


def host_of(one: Daemon, more: Mapping[str, Callable[[], object]] | None = None) -> Host:
    values = {
        "CONFIG": one.config,
        "SOCKET": one.socket,
        "STATE": one.folder / "state",
        "TEXTFILE": one.folder / "b1.prom",
        "PROPERTIES": one.server_properties,
        "TOPIC": TOPIC,
        "DISK": one.log_dirs[1],
    }
    actions: dict[str, Callable[[], object]] = {
        "systemctl stop logdird@b1": one.stop,
        "systemctl start logdird@b1": one.start,
        "systemctl restart logdird@b1": lambda: restart(one),
        "systemctl reload logdird@b1": lambda: reload(one),
        **(more or {}),
    }
    return Host(one.folder / "host", VALUES, values, actions)


@contextmanager
def with_a_capture(folder: Path, more: str = "") -> Iterator[Daemon]:
    """Run a daemon that has captured a replica of the topic on the second disk."""
    with daemon(folder, more=f"{OFTEN}{more}") as one:
        gone = one.delete(one.make(TOPIC, disk=1))
        until("it is captured", lambda: one.status().captured == 1)
        one.remove(gone)
        yield one


def test_a_deletion_of_a_broker_that_has_stopped_is_kept(tmp_path: Path) -> None:
    require_room(tmp_path)
    with daemon(tmp_path, is_started=False) as one:
        gone = one.delete(one.make(TOPIC))
        host_of(one).type_section(section("A topic was deleted, and the broker has stopped"))
        one.remove(gone)  # As the next start of the broker does.
        assert len(one.staged()) == 1


@pytest.mark.slow
def test_a25_a_disk_that_was_away_is_accepted_after_a_look(tmp_path: Path) -> None:
    with with_a_capture(tmp_path) as one:
        assert one.stop() == 0
        put_back(tmp_path, HOURS)
        one.start()
        host_of(one).type_section(section("A disk is back that was away"))
        assert [(disk.state.value, disk.held) for disk in one.status().log_dirs] == [("online", 0), ("online", 1)]


@pytest.mark.slow
def test_a17_a_time_without_a_look_is_named_and_counted_anew(tmp_path: Path) -> None:
    with daemon(tmp_path, more=OFTEN) as one:
        state = tmp_path / "state"
        until("it has looked", (state / "last-look").exists)
        assert one.stop() == 0
        boot, boottime, wall = (state / "last-look").read_text().split()
        # As if it had looked last a minute and a half before it was stopped.
        (state / "last-look").write_text(f"{boot} {int(boottime) - 90_000} {int(wall) - 90_000}\n")
        one.start()
        host_of(one).type_section(section("Deletions were missed"))
        assert one.status().gaps == 0
        assert (state / "gaps.json.seen").exists()


@pytest.mark.slow
def test_a_purge_is_stopped_and_goes_on(tmp_path: Path) -> None:
    with with_a_capture(tmp_path, "delete.topic.delay.ms: 10s\n") as one:
        blocks = section("Purges are to stop")
        host = host_of(one)
        host.type_section(blocks[:3])
        due_ms = one.status().next_due_ms
        assert due_ms is not None
        until("it is due, and was looked at", lambda: (one.status().looked_at_ms or 0) > due_ms + 1000)
        assert len(one.staged(1)) == 1
        host.type_section(blocks[3:])
        until("it is purged", lambda: one.staged(1) == [])
        until("nothing waits for the file", lambda: "pause-file" not in slugs(one))


@pytest.mark.slow
def test_what_goes_too_early_is_held_and_a_purge_says_why_it_stays(tmp_path: Path) -> None:
    with with_a_capture(tmp_path) as one:
        host = host_of(one)
        host.type_section(section("Something is purged too early"))
        assert one.config.read_text().endswith("pressure: hold\n")
        assert (one.status().log_dirs[1].held, refused(one)) == (1, [])
        host.type_section(section("Something is not purged"))
        assert len(one.staged(1)) == 1


@pytest.mark.slow
def test_the_configuration_is_changed_and_one_that_does_not_fit_is_corrected(tmp_path: Path) -> None:
    with daemon(tmp_path, more=f"{OFTEN}delete.topic.delay.ms: 4h\n") as one:
        host = host_of(one)
        host.type_section(section("Change the configuration"))
        with one.config.open("a") as file:
            file.write("presure: hold\n")
        reload(one)
        assert len(refused(one)) == 1
        host.type_section(section("The configuration is not taken"))
        until("nothing waits", lambda: refused(one) == [])
        assert "delete.topic.delay.ms: 24h\n" in one.config.read_text()


@pytest.mark.slow
def test_the_daemon_is_upgraded_beside_its_broker(tmp_path: Path) -> None:
    with with_a_capture(tmp_path) as one:
        before = one.status().pid
        host_of(one).type_section(section("Upgrade logdird"))
        assert one.status().pid != before
        assert len(one.staged(1)) == 1


@pytest.mark.slow
def test_the_gate_says_why_a_broker_is_not_started_and_is_passed_by_its_one_way_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with daemon(tmp_path, more=OFTEN) as one:
        one.log_dirs[1].rename(tmp_path / "away")
        starts: list[Said] = []
        actions: dict[str, Callable[[], object]] = {
            f"systemctl set-environment {SKIP}=1": lambda: monkeypatch.setenv(SKIP, "1"),
            f"systemctl unset-environment {SKIP}": lambda: monkeypatch.delenv(SKIP),
            "systemctl start kafka": lambda: starts.append(gate(one)),
        }
        host_of(one, actions).type_section(section("The broker is not started"))
        (said,) = starts
        assert (said.status, said.err.startswith("logdirctl handover: gate-skipped: ")) == (Exit.DONE, True), said
        assert gate(one).status == Exit.REFUSED, "the way round is closed again"


@pytest.mark.slow
def test_a30_log_starts_that_a_failed_start_lost_are_written_back(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False, more=OFTEN) as one:
        one.make(TOPIC, disk=1)
        starts = one.log_dirs[1] / "log-start-offset-checkpoint"
        starts.write_text(f"0\n1\n{TOPIC} 0 5\n")
        one.start()
        assert gate(one) == Said(Exit.DONE, "", "")
        starts.write_text("0\n0\n")  # As a start leaves it that does not get through its registration.
        passed: list[Said] = []
        actions: dict[str, Callable[[], object]] = {
            "systemctl stop kafka": lambda: None,
            "systemctl start kafka": lambda: passed.append(gate(one)),
        }
        assert "checkpoint-log-starts-lost" in gate(one).err
        host_of(one, actions).type_section(section("A start of the broker failed"))
        assert passed == [Said(Exit.DONE, "", "")]
        assert starts.read_text() == f"0\n1\n{TOPIC} 0 5\n"


@pytest.mark.slow
def test_a_log_dir_without_a_watch_is_named(tmp_path: Path) -> None:
    with daemon(tmp_path, more=OFTEN) as one:
        until("both have their process", lambda: len(one.watches()) == 2)
        until("both are watched", lambda: all(disk.is_watched for disk in one.status().log_dirs))
        # New ones are started half a minute after these.
        for pid in one.watches():
            os.kill(pid, signal.SIGKILL)
        host_of(one).type_section(section("A log dir is not watched"))


@pytest.mark.slow
def test_a_file_that_lies_in_the_place_of_the_metrics_is_named_and_moved_away(tmp_path: Path) -> None:
    textfile = tmp_path / "b1.prom"
    textfile.write_text("of another exporter\n")
    with daemon(tmp_path, more=f"{OFTEN}metrics.textfile: {textfile.name}\n") as one:
        host_of(one).type_section(section("The status page or the metrics are missing"))
        assert textfile.with_name("b1.prom.other").read_text() == "of another exporter\n"
        until("the metrics are written", textfile.exists)
        assert textfile.read_bytes().startswith(b"# HELP logdird_")


@pytest.mark.slow
def test_a_report_of_a_fault_is_written_and_listed(tmp_path: Path) -> None:
    with with_a_capture(tmp_path) as one:
        host_of(one).type_section(section("A fault of logdird"))
        assert len(list((one.folder / "host").glob("logdird-report-*.tar.gz"))) == 1


def test_every_section_with_a_block_is_typed_by_a_test() -> None:
    blocks = {heading: found for heading, found in SECTIONS.items() if heading != SETTINGS}
    assert {heading for heading, found in blocks.items() if any(_is_typed(one) for one in found)} == set(TYPED_BY)
    for heading, path in TYPED_BY.items():
        assert f'section("{heading}")' in (ROOT / path).read_text("utf-8"), heading
    # What is shown is compared, so it stands behind something that is typed.
    for found in blocks.values():
        assert {one.kind for one in found} <= {"sh", "text"}
        assert not found or found[0].kind == "sh"
        for before, one in pairwise(found):
            assert one.kind == "sh" or _is_typed(before)


def _is_typed(block: object) -> bool:
    return getattr(block, "kind", "") == "sh" and not getattr(block, "why_not", "")


def test_the_page_sets_what_its_commands_use() -> None:
    typed = [line for found in SECTIONS.values() for one in found if one.kind == "sh" for line in lines_of(one.text)]
    assert set(re.findall(r"\$\{?([A-Z]+)", "\n".join(typed))) == set(VALUES)
    # What takes part in a plan is applied by the same words.
    assert any(line.endswith("--apply") for line in typed)


def test_every_section_says_what_not_to_do() -> None:
    parts = dict(part.split("\n", 1) for part in re.split(r"^## ", PAGE, flags=re.M)[1:])
    assert {heading for heading, text in parts.items() if "Do **not** " not in text} == {
        SETTINGS,
        ALARMS,
        "A topic was deleted, and the broker has stopped",
        "Change the configuration",
        "Go back to an older logdird",
    }


def test_every_alarm_leads_to_a_section_and_every_slug_is_explained() -> None:
    table = PAGE.partition(f"## {ALARMS}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) >= 9
    for words, _, see in rows:
        headings = re.findall(r"\*([A-Z][^*]+)\*", see)
        assert set(headings) <= set(SECTIONS), see
        pages = re.findall(r"\]\(([a-z-]+\.md)(?:#[a-z-]+)?\)", see)
        assert all((ROOT / "docs" / page).is_file() for page in pages), see
        assert headings or pages or "systemctl" in see
        for slug in re.findall(r"`([a-z]+(?:-[a-z]+)+)`", words):
            # A state of a log dir is none.
            assert slug in LISTED or slug == "read-only", slug


def test_blocks_and_values_of_a_page_are_read_as_they_stand() -> None:
    page = "# T\n\n## A\n\n```sh\nX=1   # one\nY='2 3'\n```\n\n<!-- not typed: why -->\n```sh\nz\n```\n\n## B\n"
    found = sections(page)
    assert [(one.kind, one.why_not) for one in found["A"]] == [("sh", ""), ("sh", "why")]
    assert found["B"] == []
    assert settings_of(found["A"][0]) == {"X": "1", "Y": "2 3"}


@pytest.mark.parametrize(
    ("line", "is_look", "statuses"),
    [
        ("logdirctl status --config x", True, {0, 1}),
        ("logdirctl status --config x   # exit status 1", True, {1}),
        ("logdirctl staged hold x --apply", False, {0}),
        ("touch x", False, {0}),
    ],
)
def test_what_a_line_may_end_with_is_known(line: str, is_look: bool, statuses: set[int]) -> None:
    assert (only_looks(line), statuses_of(line)) == (is_look, statuses)


def test_what_the_page_shows_and_nothing_prints_is_found(tmp_path: Path) -> None:
    blocks = sections("## A\n\n```sh\necho one\n```\n\n```text\ntwo\n```\n")["A"]
    with pytest.raises(AssertionError, match=r"not shown: \['two'\]"):
        Host(tmp_path / "host", {}, {}, {}).type_section(blocks)


def test_a_command_that_ends_otherwise_than_the_page_says_is_found(tmp_path: Path) -> None:
    blocks = sections("## A\n\n```sh\nfalse\ntrue # exit status 1\n```\n")["A"]
    with pytest.raises(AssertionError, match=r"statuses: \[\('false', 1\), \('true # exit status 1', 0\)\]"):
        Host(tmp_path / "host", {}, {}, {}).type_section(blocks)


def test_a_line_is_shown_with_the_values_of_the_test(tmp_path: Path) -> None:
    page = "## A\n\n```sh\nDO=1\necho '/etc/x   found' \"$CONFIG\"\n```\n\n```text\n/here/y found …y\n```\n"
    host = Host(tmp_path / "host", {"CONFIG": "/here/y"}, {"CONFIG": "/etc/x"}, {})
    with pytest.raises(AssertionError, match="not shown"):
        host.type_section(sections(page)["A"])
    Host(tmp_path / "two", {"CONFIG": "/here/y"}, {"CONFIG": "/etc/x"}, {}).type_section(
        sections(page.replace("…y", "…x"))["A"]
    )


def test_what_a_test_does_itself_comes_in_its_turn(tmp_path: Path) -> None:
    order: list[str] = []
    path = tmp_path / "seen"
    host = Host(tmp_path / "host", {}, {}, {"systemctl stop kafka": lambda: order.append(path.read_text())})
    script = f"echo before >>{path}\nsystemctl stop kafka   # now\necho after >>{path}\n"
    host.type_section(sections(f"## A\n\n```sh\n{script}```\n")["A"])
    assert (order, path.read_text()) == (["before\n"], "before\nafter\n")
