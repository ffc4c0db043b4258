"""What every release left on disk is read and finished by this one: nothing is lost, nothing needs a hand.

``python -m tests.releases.make WHEEL`` makes the trees of a release.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from logdir.disk.kernel.kernel_clock import read_instant
from tests.releases.rig import RELEASES, unpack
from tests.tools.ctl import ctl, ctl_json
from tools.cli.arguments import Exit

OLD, NEW = "eXOy6xj-Q8ivrWAlsZGnkw", "Sx1N2n2bQ6mQ1b8R3gXv7A"
LATER, HELD, CUT, GOING = (f"AAAAAAAAAAAAAAAAAAAB{letter}A" for letter in "BCDE")
FOUR_HOURS_MS = 14_400_000

pytestmark = pytest.mark.parametrize("release", RELEASES)


@pytest.mark.parametrize("uptime_ms", [3_600_000, FOUR_HOURS_MS])
def test_what_was_staged_held_cut_off_and_half_purged_is_listed_as_such(
    release: str, uptime_ms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = unpack(release, "staged", tmp_path)
    words = ("--server-properties", top / "server.properties")
    # However long this machine runs: its disk may have come from another.
    monkeypatch.setattr(
        "logdir.service.staged_listing.read_instant",
        lambda: read_instant()._replace(boot_id="of today", boottime_ms=uptime_ms),
    )
    status, listed = ctl_json("staged", "ls", *words)
    assert status == Exit.DONE, listed
    found = {one["topic_id"]: (one["state"], one["reason"], one["delay_ms"]) for one in listed["items"]}
    assert found == {
        LATER: ("counting", "topic-removed", FOUR_HOURS_MS),
        HELD: ("held", "topic-removed", None),
        GOING: ("purging", "operator", None),
        CUT: ("incoming", "captured", None),
    }


def test_a_half_purged_replica_goes_and_an_unfinished_capture_is_finished(release: str, tmp_path: Path) -> None:
    top = unpack(release, "staged", tmp_path)
    words = ("--server-properties", top / "server.properties")
    assert ctl("staged", "purge", *words, "--apply").status == Exit.DONE
    assert ctl("capture", *words, "--apply").status == Exit.DONE
    assert sorted(path.name for path in (top / "d1.logdird" / "deleting").iterdir()) == sorted(
        [f"{CUT}_0", f"{LATER}_0", f"{HELD}_0"]
    )
    assert not list((top / "d1.logdird" / "incoming").iterdir())
    segment = f"{7:020}.log"
    before = top / "d1" / "cut-0.0123456789abcdef0123456789abcdef-delete" / segment
    assert (top / "d1.logdird" / "deleting" / f"{CUT}_0" / segment).samefile(before)


def test_an_adoption_that_was_certain_is_finished(release: str, tmp_path: Path) -> None:
    top = unpack(release, "adopting", tmp_path)
    assert not (top / "d1" / "pay-0").exists()
    words = ("--server-properties", top / "server.properties")
    said = ctl("staged", "adopt", OLD, "--as", "pay", *words, "--apply")
    assert said.status == Exit.DONE, said
    live = top / "d1" / "pay-0"
    assert f"topic_id: {NEW}" in (live / "partition.metadata").read_text()
    assert (live / f"{0:020}.log").stat().st_size > 0
    status, listed = ctl_json("staged", "ls", *words)
    assert (status, [one["topic_id"] for one in listed["items"]]) == (Exit.DONE, [NEW])


def test_a_change_of_layout_that_was_cut_off_is_shown_and_rolled_back(release: str, tmp_path: Path) -> None:
    top = unpack(release, "start-block", tmp_path) / "broker"
    words = ("--log-dirs", f"{top / 'd1'},{top / 'd2'}")
    status, shown = ctl_json("layout", "status", *words)
    assert status == Exit.DONE
    assert {(one["state"], one["start_block"]) for one in shown["items"]} == {("applying", "set")}
    by_id, by_name = (sum(one[key] for one in shown["items"]) for key in ("by_id", "by_name"))
    assert by_id > 0
    assert by_name > 0
    assert ctl("layout", "rollback", *words, "--apply").status == Exit.DONE
    _, after = ctl_json("layout", "status", *words)
    assert {(one["start_block"], one["by_id"]) for one in after["items"]} == {("none", 0)}
    assert sum(one["by_name"] for one in after["items"]) == by_id + by_name
