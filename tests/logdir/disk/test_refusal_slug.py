"""Refusals that no other test meets: a probe that fails for no known reason, and thousands of names taken."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from logdir.disk.kernel.unique_name import free_name
from logdir.disk.root import probe
from logdir.errors import RefusedError
from logdir.ids import TopicId
from logdir.names import WorkDir
from tests.builders import TOPIC_ID
from tests.logdir.disk.staged_rig import make_log_dir, opened


def test_a_probe_that_fails_for_no_known_reason_says_what_the_kernel_does(tmp_path: Path) -> None:
    with opened(make_log_dir(tmp_path / "d1")) as open_dir:
        error = probe.refusal(open_dir, OSError(errno.EMLINK, "Too many links"))
    assert isinstance(error, RefusedError)
    assert (error.slug, error.found) == ("rename-failed", "Too many links")


def test_a_name_is_refused_once_thousands_are_taken(tmp_path: Path) -> None:
    def taken(name: str) -> None:
        raise FileExistsError

    with (
        opened(make_log_dir(tmp_path / "d1")) as open_dir,
        pytest.raises(RefusedError, match=r"^no-free-name: .*purge what is staged"),
    ):
        free_name(open_dir.deleting, WorkDir(TopicId.parse(TOPIC_ID), None, 0, 1, ""), taken)
