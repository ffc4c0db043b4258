"""What a command answers is said once, and is true of what was done."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.ctl import ctl, ctl_json, two_disks
from tools.cli.arguments import Exit


@pytest.fixture
def named(tmp_path: Path) -> list[str]:
    one, two = two_disks(tmp_path)
    words = ["--log-dirs", f"{one},{two}"]
    assert ctl("init", *words, "--apply").status == Exit.DONE
    return words


@pytest.mark.parametrize("verb", [["restore", "--even-if-unknown"], ["purge", "--even-if-early", "--even-if-last"]])
def test_what_becomes_of_a_replica_is_never_printed_twice(verb: list[str], named: list[str]) -> None:
    assert ctl("stage", "other", *named, "--even-if-unknown", "--apply").status == Exit.DONE
    said = ctl("staged", verb[0], "other", *named, *verb[1:], "--apply")
    (line,) = (line for line in said.err.splitlines() if "other-0" in line or "bytes" in line)
    what = line.partition("other-0: ")[2] or line.partition(f"staged {verb[0]}: ")[2]
    assert what
    assert what not in said.out


def test_a_failed_export_never_says_that_a_copy_is_there(named: list[str], tmp_path: Path) -> None:
    assert ctl("stage", "other", *named, "--even-if-unknown", "--apply").status == Exit.DONE
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "other-0").write_text("in the way")
    argv = ["staged", "export", "other", *named, "-o", str(tmp_path / "out"), "--apply"]
    status, result = ctl_json(*argv)
    assert (status, [item["state"] for item in result["items"]]) == (Exit.REFUSED, ["refused"])
    assert all("copied" not in item["detail"] and "copy at" not in item["detail"] for item in result["items"])
    assert str(tmp_path / "out" / "other-0") not in ctl(*argv).out


def test_an_unformatted_log_dir_is_never_exit_status_0(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for command in (["inventory"], ["describe"], ["staged", "ls"], ["init"], ["stage", "x"], ["layout", "status"]):
        said = ctl(*command, "--log-dirs", tmp_path / "d")
        assert said.status in (Exit.PROBLEMS, Exit.REFUSED), (command, said)
        assert "meta.properties" in said.err or "not-formatted" in said.err or "no work root" in said.err, command
        assert len(set(said.err.splitlines())) == said.err.count("\n")


@pytest.mark.parametrize("has_root", [True, False])
@pytest.mark.parametrize("data", [None, b"", b"version=0\n"], ids=["missing", "empty", "nobody's"])
def test_a_log_dir_without_identity_is_never_told_of_twice(tmp_path: Path, data: bytes | None, has_root: bool) -> None:
    one, two = two_disks(tmp_path)
    words = ["--log-dirs", f"{one},{two}"]
    if has_root:
        assert ctl("init", *words, "--apply").status == Exit.DONE
    (two / "meta.properties").unlink()
    if data is not None:
        (two / "meta.properties").write_bytes(data)
    for command in (["inventory"], ["describe"], ["staged", "ls"], ["init"], ["stage", "pay"], ["staged", "purge"]):
        said = ctl(*command, *words)
        about = [line.split(": ")[2].removesuffix("/meta.properties") for line in said.err.splitlines() if ": " in line]
        assert len(set(about)) == len(about) > 0, (command, said.err)
        assert str(two) in about or not has_root
