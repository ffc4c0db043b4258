"""Which topics ``logdirctl stage`` keeps its hands off (A38)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import log_dir, partition
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

TOPICS = (
    "__transaction_state", "__consumer_offsets", "__share_group_state", "__remote_log_metadata", "Orders", "orders",
    *(f"t{number}" for number in range(14)),
)  # fmt: skip


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    made = log_dir(tmp_path / "d1")
    for number, topic in enumerate(TOPICS):
        partition(made / f"{topic}-0", topic_id=f"MkU3OEVBNTcwNTJENDM{number:02}A")
    assert ctl("init", "--log-dirs", made, "--apply").status == Exit.DONE
    return made


@pytest.mark.parametrize("topic", TOPICS[:4])
def test_a38_no_internal_topic_is_staged_unless_it_is_said(disk: Path, topic: str) -> None:
    assert (
        ctl("stage", topic, "--even-if-unknown", "--log-dirs", disk, "--even-over-limit", "--apply").status
        == Exit.REFUSED
    )
    assert (disk / f"{topic}-0").is_dir()
    assert ctl("stage", topic, "--log-dirs", disk, "--internal", "--even-if-unknown", "--apply").status == Exit.DONE
    assert not (disk / f"{topic}-0").exists()


@pytest.mark.parametrize(("glob", "kept", "gone"), [("Ord*", "Orders", "orders"), ("ord*", "orders", "Orders")])
def test_a38_no_glob_protects_or_leaves_out_a_topic_for_its_capitals(
    disk: Path, glob: str, kept: str, gone: str
) -> None:
    for topic, status in ((kept, Exit.REFUSED), (gone, Exit.DONE)):
        assert (
            ctl("stage", topic, "--even-if-unknown", "--log-dirs", disk, "--protect", glob, "--apply").status == status
        )
    assert (disk / f"{kept}-0").is_dir()
    assert not (disk / f"{gone}-0").exists()
