"""Hints of refusals: none proposes what is refused, what is typed already, or nothing at all."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import pytest

from logdir.disk.kernel.host import HostDisk
from logdir.disk.locks import OwnerLock
from tests.tools.ctl import Said, ctl, ctl_json, two_disks
from tools.cli.arguments import Exit
from tools.logdirctl.main import main

Named = tuple[str, str]


@pytest.fixture
def named(tmp_path: Path) -> Named:
    """Two log dirs with work roots, and one replica that is staged."""
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert ctl("stage", "pay-0", "--even-if-unknown", "--even-over-limit", *named, "--apply").status == Exit.DONE
    return named


def proposed(said: Said) -> list[str]:
    (line,) = (line for line in said.out.splitlines() if line.startswith("next: logdirctl "))
    return shlex.split(line.removeprefix("next: logdirctl "))


@pytest.mark.parametrize("how", ["another name", "being purged"])
def test_no_selector_that_finds_nothing_is_answered_with_itself(how: str, named: Named, tmp_path: Path) -> None:
    more: tuple[str, ...] = ("--name", "nope")
    if how == "being purged":
        (staged,) = (tmp_path / "d1.logdird" / "deleting").iterdir()
        staged.rename(f"{staged}.purging")
        more = ()
    said = ctl("staged", "hold", "pay-0", *named, *more)
    (line,) = (line for line in said.err.splitlines() if "nothing-selected" in line)
    assert (said.status, "did you mean" in line) == (Exit.PROBLEMS, False)
    assert ("removal has begun" in line) == (how == "being purged")
    assert ctl(*proposed(said)).status == Exit.DONE


def test_a_work_root_that_is_owned_names_no_daemon(named: Named, tmp_path: Path) -> None:
    with HostDisk().open_top(f"{tmp_path}/d2.logdird") as work, OwnerLock.take(work):
        said = ctl("staged", "hold", "pay-0", *named, "--apply")
    assert (said.status, "work-root-owned" in said.err, "daemon" in said.err) == (Exit.REFUSED, True, False)


def test_no_disk_of_another_broker_is_asked_about_nor_answered_with_an_init_that_is_refused(
    named: Named, tmp_path: Path
) -> None:
    top = tmp_path / "d2"
    text = (top / "meta.properties").read_text()
    (top / "meta.properties").write_text(text.replace("node.id=1", "node.id=7").replace("broker.id=1", "broker.id=7"))
    said = ctl("staged", "ls", *named)
    (line,) = (line for line in said.err.splitlines() if ": foreign: " in line)
    assert not line.endswith("?")
    assert proposed(said)[0] != "init"
    refused = ctl("staged", "hold", "pay-0", *named)
    assert (refused.status, refused.err.rstrip().endswith("?")) == (Exit.REFUSED, False)


class Full(io.StringIO):
    """Standard output on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_no_full_standard_output_has_a_change_typed_again(named: Named, tmp_path: Path) -> None:
    err = io.StringIO()
    status = main(["staged", "hold", "pay-0", *named, "--apply"], Full(), err)
    assert (status, "stdout-failed" in err.getvalue(), "type it again" in err.getvalue()) == (1, True, False)
    _, listing = ctl_json("staged", "ls", *named)
    assert [item["delay_ms"] for item in listing["items"]] == [None]


def test_no_listing_of_a_layout_has_a_word_in_capitals_to_type(named: Named) -> None:
    said = ctl("layout", "status", *named)
    assert (said.status, "PLAN" in " ".join(proposed(said))) == (Exit.DONE, False)
    assert ctl(*proposed(said)).status == Exit.DONE


def test_no_export_copies_to_where_it_is_typed_because_its_place_is_empty(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    said = ctl("staged", "export", "pay-0", *named, "-o", "", "--apply")
    assert (said.status, "config-error: -o: " in said.err) == (Exit.USAGE, True)
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("delay", [("--delay", "4h"), ("--delay-ms", "0"), ("--delay", "30m")])
def test_no_delay_beside_hold_is_dropped(delay: tuple[str, str], named: Named) -> None:
    words = ("stage", "pay-1", "--even-if-unknown", "--even-over-limit", *named)
    said = ctl(*words, "--hold", *delay, "--apply")
    assert (said.status, "config-error: --delay: " in said.err) == (Exit.USAGE, True)
    assert ctl(*words, "--hold").status == Exit.DONE
