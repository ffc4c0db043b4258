"""A work root goes whole or not at all: whether it may is looked at in every directory it takes a name out of."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from logdir.disk.kernel.host import HostDirectory, HostDisk
from logdir.disk.root import removal
from logdir.disk.root.init import init
from logdir.disk.root.plan import plan_init
from logdir.errors import NoPermissionError, ReadOnlyDiskError, RefusedError
from logdir.formats.own.work_root_file import WorkRootKind
from tests.builders import log_dir
from tests.tools.ctl import tree

CALLS = (removal.remove_root, removal.require_removable, removal.require_rights)


def made(folder: Path, kind: WorkRootKind) -> str:
    top = str(log_dir(folder / "parent" / "d1"))
    plan = plan_init(HostDisk(), top, requested=kind, fs_type="ext4")
    init(HostDisk(), plan, made_at_ms=5, reserve_bytes=4096)
    return top


def refusing(monkeypatch: pytest.MonkeyPatch, place: str, number: int) -> None:
    def answer(self: HostDirectory) -> None:
        if self.path == place:
            raise OSError(number, os.strerror(number), place)

    monkeypatch.setattr(HostDirectory, "require_changeable", answer)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (WorkRootKind.BESIDE, ""),
        (WorkRootKind.BESIDE, "/d1.logdird"),
        (WorkRootKind.BESIDE, "/d1.logdird/deleting"),
        (WorkRootKind.BESIDE, "/d1.logdird/incoming"),
        (WorkRootKind.IN_PLACE, "/d1"),
        (WorkRootKind.IN_PLACE, "/d1/__cluster_metadata-2147483647"),
    ],
)
def test_nothing_of_a_work_root_goes_where_a_right_is_missing(
    call: object, kind: WorkRootKind, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = made(tmp_path, kind)
    before = tree(tmp_path)
    refusing(monkeypatch, f"{tmp_path}/parent{place}", errno.EACCES)
    assert callable(call)
    with pytest.raises(NoPermissionError, match="permission to remove the work root"):
        call(HostDisk(), top)
    assert tree(tmp_path) == before
    monkeypatch.undo()
    removal.require_rights(HostDisk(), top)
    assert removal.remove_root(HostDisk(), top) == (kind,)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.parametrize(("number", "expected"), [(errno.EROFS, ReadOnlyDiskError), (errno.ENAMETOOLONG, RefusedError)])
def test_what_else_speaks_against_it_is_an_error_of_ours(
    call: object, number: int, expected: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = made(tmp_path, WorkRootKind.BESIDE)
    before = tree(tmp_path)
    refusing(monkeypatch, f"{top}.logdird", number)
    assert callable(call)
    with pytest.raises(expected, match=os.strerror(number)) as caught:
        call(HostDisk(), top)
    assert ("a shorter name in log.dirs" in str(caught.value)) is (number == errno.ENAMETOOLONG)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_a_directory_with_the_name_of_a_file_of_ours_is_called_one(call: object, tmp_path: Path) -> None:
    top = made(tmp_path, WorkRootKind.BESIDE)
    file = Path(f"{top}.logdird/work-root.json")
    file.unlink()
    file.mkdir()
    before = tree(tmp_path)
    assert callable(call)
    with pytest.raises(
        RefusedError, match=r"wrong-file-type: .*work-root\.json: expected a regular file, found something else"
    ):
        call(HostDisk(), top)
    assert tree(tmp_path) == before
