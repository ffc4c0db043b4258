"""Files and directories appear whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from logdir.errors import OutputError, RefusedError
from migrate.errors import OutputExistsError
from migrate.plan.publish import new_directory, write_file


def test_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_file(path, b"old")
    write_file(path, (b"n", b"ew"))
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_failure_leaves_the_former_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_file(path, b"old")

    def pieces() -> Iterator[bytes]:
        yield b"new"
        raise KeyError

    with pytest.raises(KeyError):
        write_file(path, pieces())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_file_in_no_directory_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        write_file(tmp_path / "none" / "f", b"")


def test_directory_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    with new_directory(path) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "f").write_bytes(b"x")
        assert not path.exists()
    assert (path / "sub" / "f").read_bytes() == b"x"
    assert list(tmp_path.iterdir()) == [path]


def test_directory_of_a_failure_is_gone(tmp_path: Path) -> None:
    with pytest.raises(KeyError), new_directory(tmp_path / "plan") as folder:  # noqa: PT012 - the body is the test
        (folder / "f").touch()
        raise KeyError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EIO])
def test_a_body_that_cannot_write_is_one_line_with_the_final_name(tmp_path: Path, number: int) -> None:
    with pytest.raises(OutputError) as caught, new_directory(tmp_path / "plan") as folder:  # noqa: PT012 - as above
        (folder / "f").touch()
        raise OSError(number, os.strerror(number))
    assert (caught.value.path, caught.value.found) == (str(tmp_path / "plan"), os.strerror(number))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_vanishes_under_the_body_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "parent").mkdir()
    with pytest.raises(OutputError), new_directory(tmp_path / "parent" / "plan"):
        shutil.rmtree(tmp_path / "parent")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_somebody_made_anew_is_not_taken_for_ours(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="removed while"), new_directory(tmp_path / "plan") as folder:  # noqa: PT012
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / "only-the-second-half").touch()
    assert list(tmp_path.iterdir()) == []


def test_a_lost_connection_is_not_called_a_failed_write(tmp_path: Path) -> None:
    with pytest.raises(ConnectionResetError), new_directory(tmp_path / "plan"):
        raise ConnectionResetError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_taken_name_is_refused_before_the_work(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "plan"
    if kind == "directory":
        path.mkdir()
    elif kind == "file":
        path.touch()
    else:
        path.symlink_to("nowhere")
    ran = False
    with pytest.raises(OutputExistsError), new_directory(path):
        ran = True
    assert not ran
    assert list(tmp_path.iterdir()) == [path]


def test_name_taken_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    with pytest.raises(OutputExistsError), new_directory(path):  # noqa: PT012 - the body is the test
        path.mkdir()
        (path / "theirs").touch()
    assert [p.name for p in path.iterdir()] == ["theirs"]
    assert list(tmp_path.iterdir()) == [path]


def test_missing_parent_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(OutputError), new_directory(tmp_path / "none" / "plan"):
        pass


@pytest.mark.parametrize("place", ["d1/out", "d1/topic-0/out", "link/out", "d1.logdird/out"])
def test_no_directory_is_published_into_a_log_dir_or_work_root(tmp_path: Path, place: str) -> None:
    (tmp_path / "d1" / "topic-0").mkdir(parents=True)
    (tmp_path / "d1" / "meta.properties").write_text("version=1\nnode.id=1\n")
    (tmp_path / "d1.logdird").mkdir()
    (tmp_path / "d1.logdird" / "work-root.json").write_text("{}\n")
    (tmp_path / "link").symlink_to(tmp_path / "d1")
    before = sorted(map(str, tmp_path.rglob("*")))
    with pytest.raises(RefusedError), new_directory(tmp_path / place):
        pytest.fail("it was begun")
    assert sorted(map(str, tmp_path.rglob("*"))) == before
