"""``logdirctl capture``: what a broker staged itself is kept by hard links, beside a running broker, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdir.disk.kernel.host import HostDirectory
from tests.builders import TOPIC_ID, log_dir, partition
from tests.tools.ctl import ctl, ctl_json, held, tree
from tools.cli.arguments import Exit

UNIQUE = "0123456789abcdef0123456789abcdef"
DELETED, STRAY = f"pay-0.{UNIQUE}-delete", f"old-7.{UNIQUE}-stray"
HOUR_MS = 60 * 60 * 1000


@pytest.fixture
def named(tmp_path: Path) -> tuple[str, str]:
    """Make two log dirs: one with a ``-delete``, one with a ``-stray``; both have a live replica."""
    one, two = log_dir(tmp_path / "d1"), log_dir(tmp_path / "d2", directory="AAAAAAAAAAAAAAAAAAAABA")
    partition(one / DELETED)
    partition(two / STRAY, topic_id="MkU3OEVBNTcwNTJENDM2Qg")
    for top in (one, two):
        partition(top / f"live-{top.name[1]}", topic_id="b8tRS7h4TJ2Vt43Dp85v2A")
    words = ("--log-dirs", f"{one},{two}")
    assert ctl("init", *words, "--apply").status == Exit.DONE
    return words


def test_a_plan_changes_nothing_and_says_for_how_long_each_is_kept(named: tuple[str, str], tmp_path: Path) -> None:
    before = tree(tmp_path)
    status, result = ctl_json("capture", *named)
    assert status == Exit.DONE
    rows = [(item["path"], item["state"], item["undo_until_ms"] is None) for item in result["items"]]
    assert rows == [(DELETED, "planned", False), (STRAY, "planned", True)]
    said = ctl("capture", "pay", *named, "--delay", "5h")
    assert said.out.splitlines()[-1] == f"next: logdirctl capture pay {' '.join(named)} --delay 5h --apply"
    assert tree(tmp_path) == before


def test_a17_what_its_broker_removes_is_there_afterwards(named: tuple[str, str], tmp_path: Path) -> None:
    one = tmp_path / "d1"
    whole = {path.name: path.read_bytes() for path in (one / DELETED).iterdir()}
    with held(one / ".lock"):  # its broker runs
        status, result = ctl_json("capture", *named, "--apply")
    assert (status, [item["state"] for item in result["items"]]) == (Exit.DONE, ["done", "done"])
    kept = Path(f"{one}.logdird/deleting/{TOPIC_ID}_0")
    assert result["items"][0]["new_path"] == f"deleting/{TOPIC_ID}_0"
    assert {path.name for path in (one / DELETED).iterdir()} == set(whole)  # nothing of the broker's is changed
    for name in whole:
        assert (one / DELETED / name).samefile(kept / name)
        (one / DELETED / name).unlink()
    (one / DELETED).rmdir()
    assert {name: (kept / name).read_bytes() for name in whole} == whole
    _, listed = ctl_json("staged", "ls", *named)
    found = {item["path"]: (item["state"], item["reason"], item["delay_ms"]) for item in listed["items"]}
    assert found[f"deleting/{TOPIC_ID}_0"] == ("counting", "captured", 4 * HOUR_MS)
    assert found["deleting/MkU3OEVBNTcwNTJENDM2Qg_7"] == ("held", "captured", None)
    (tmp_path / "out").mkdir()
    assert ctl("staged", "export", "pay", *named, "-o", tmp_path / "out", "--apply").status == Exit.DONE
    assert (tmp_path / "out/pay-0" / f"{0:020}.log").read_bytes() == whole[f"{0:020}.log"]


def test_a_second_capture_finds_the_first_and_keeps_its_deadline(named: tuple[str, str]) -> None:
    _, first = ctl_json("capture", "pay", *named, "--apply")
    status, again = ctl_json("capture", "pay", *named, "--delay", "9h", "--apply")
    assert status == Exit.DONE
    assert again["items"][0]["new_path"] == first["items"][0]["new_path"]
    assert again["items"][0]["undo_until_ms"] == first["items"][0]["undo_until_ms"]
    _, listed = ctl_json("staged", "ls", *named)
    assert [item["delay_ms"] for item in listed["items"]] == [4 * HOUR_MS]


def test_a17_what_its_broker_removes_meanwhile_is_a_part_and_can_be_exported(
    named: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = tmp_path / "d1"
    (one / DELETED / f"{9:020}.log").write_bytes(b"second")
    real = HostDirectory.link
    linked: list[str] = []

    def beside_a_removal(self: HostDirectory, name: str, to: HostDirectory, new_name: str) -> None:
        real(self, name, to, new_name)
        linked.append(name)
        if len(linked) == 2:  # the broker removes from the first segment on
            (one / DELETED / f"{0:020}.log").unlink(missing_ok=True)

    monkeypatch.setattr(HostDirectory, "link", beside_a_removal)
    status, result = ctl_json("capture", "pay", *named, "--apply")
    monkeypatch.undo()
    (item,) = result["items"]
    assert (status, item["state"], item["new_path"]) == (Exit.PROBLEMS, "undone", f"incoming/{TOPIC_ID}_0")
    assert "staged export" in item["detail"] or "export copies it" in item["detail"]
    _, listed = ctl_json("staged", "ls", *named)
    (line,) = listed["items"]
    assert (line["state"], "staged export copies what was captured" in line["detail"]) == ("incoming", True)
    assert ctl("staged", "restore", "pay", *named, "--even-if-unknown", "--apply").status != Exit.DONE
    (tmp_path / "out").mkdir()
    assert ctl("staged", "export", "pay", *named, "-o", tmp_path / "out", "--apply").status == Exit.DONE
    assert (tmp_path / "out/pay-0" / f"{9:020}.log").read_bytes() == b"second"
    for verb in ("purge", "restore", "hold"):
        ctl("staged", verb, *(["pay"] if verb != "purge" else []), *named, "--apply")
    assert Path(f"{one}.logdird/incoming/{TOPIC_ID}_0").is_dir()


def test_nothing_there_and_nothing_meant_are_two_things(tmp_path: Path, named: tuple[str, str]) -> None:
    said = ctl("capture", "nope", *named)
    assert (said.status, "nothing-selected" in said.err) == (Exit.PROBLEMS, True)
    said = ctl("capture", "live", *named)  # what is live is nothing to be captured
    assert (said.status, "nothing-selected" in said.err) == (Exit.PROBLEMS, True)
    ctl("capture", *named, "--apply")
    for path in (tmp_path / "d1" / DELETED, tmp_path / "d2" / STRAY):
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    said = ctl("capture", *named)
    assert (said.status, said.err) == (Exit.DONE, "")
    assert "there is no -delete and no -stray directory" in said.out


def test_bad_words_change_nothing(named: tuple[str, str], tmp_path: Path) -> None:
    before = tree(tmp_path)
    for words in (["a/b"], ["--hold", "--delay", "4h"], ["--delay", "-1"], ["--delay", "14400"]):
        said = ctl("capture", *words, *named, "--apply")
        assert said.status == Exit.USAGE, words
    assert tree(tmp_path) == before
