"""Refusals that no other test meets: a probe that fails for no known reason, and thousands of names taken."""

from __future__ import annotations

import errno
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from logdir.disk.kernel.unique_name import free_name
from logdir.disk.root import probe
from logdir.errors import RefusedError
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.ids import TopicId
from logdir.names import WorkDir
from tests.builders import TOPIC_ID
from tests.logdir.disk.staged_rig import make_log_dir, opened


def test_a_probe_that_fails_for_no_known_reason_says_what_the_kernel_does(tmp_path: Path) -> None:
    with opened(make_log_dir(tmp_path / "d1")) as open_dir:
        error = probe.refusal(open_dir, OSError(errno.EMLINK, "Too many links"))
    assert isinstance(error, RefusedError)
    assert (error.slug, error.found) == ("rename-failed", "Too many links")


@pytest.mark.parametrize(("number", "is_refused"), [(errno.ENOSPC, False), (errno.EXDEV, True)])
def test_a_probe_on_a_full_disk_proves_nothing_and_forbids_nothing(
    number: int, is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what is staged on a full disk could never be purged: its directories may have no room for one more name."""

    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    refusal = pytest.raises(RefusedError, match="mounts-differ") if is_refused else nullcontext()
    with opened(make_log_dir(tmp_path / "d1")) as open_dir:
        monkeypatch.setattr(probe, "round_trip", fails)
        with refusal:
            probe.prove(WorkRootKind.BESIDE, open_dir)


def test_a_name_is_refused_once_thousands_are_taken(tmp_path: Path) -> None:
    def taken(name: str) -> None:
        raise FileExistsError

    with (
        opened(make_log_dir(tmp_path / "d1")) as open_dir,
        pytest.raises(RefusedError, match=r"^no-free-name: .*purge what is staged"),
    ):
        free_name(open_dir.deleting, WorkDir(TopicId.parse(TOPIC_ID), None, 0, 1, ""), taken)
