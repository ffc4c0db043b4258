"""docs/operations.md, typed as it stands: what needs neither a broker nor a disk of its own.

A daemon runs on the log dirs of a broker that does not run; what a section begins with is made here.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from tests.logdir.daemon.rig import Daemon, daemon, until
from tests.operations_page import ALARMS, PAGE, SECTIONS, SETTINGS, TYPED_BY, VALUES, section
from tests.test_errors_documented import LISTED
from tests.tools.test_quarantine import put_back
from tests.typed_page import Host, lines_of, only_looks, sections, settings_of, statuses_of

ROOT = Path(__file__).parents[1]
TOPIC = "payments"
OFTEN = "sweep.interval.ms: 500\n"
HOURS = 5


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


def host_of(one: Daemon) -> Host:
    values = {
        "CONFIG": one.config,
        "SOCKET": one.socket,
        "STATE": one.folder / "state",
        "PROPERTIES": one.server_properties,
        "TOPIC": TOPIC,
        "DISK": one.log_dirs[1],
    }
    actions: dict[str, Callable[[], object]] = {
        "systemctl stop logdird@b1": one.stop,
        "systemctl start logdird@b1": one.start,
        "systemctl restart logdird@b1": lambda: restart(one),
        "systemctl reload logdird@b1": lambda: reload(one),
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
        assert headings or "systemctl" in see
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
