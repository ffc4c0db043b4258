"""Whose log start an entry was that a broker took out of its checkpoint file."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdir import clock
from logdir.service.batch.seen_starts import SeenStarts
from logdir.service.log_dirs.glances import Glances
from logdir.worker.glance import Since, glance
from logdir.worker.state import WorkerState

A, B = "pay-0.0123456789abcdef0123456789abcdef-delete", "pay-0.ffffffffffffffffffffffffffffffff-delete"


class Rig:
    """One log dir, its clock, and the looks at it."""

    def __init__(self, log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log_dir, self.now_ms = str(log_dir), 1_000_000
        monkeypatch.setattr(clock, "boottime_ms", lambda: self.now_ms)
        self.seen = SeenStarts()
        self.names: tuple[str, ...] | None = ()
        self.is_silent = False

    def look(self, *names: str, **offsets: int) -> int | None:
        """Let the file hold these entries, and the log dir these directories; return what is known of the first."""
        entries = "".join(f"{topic} 0 {offset}\n" for topic, offset in offsets.items())
        Path(self.log_dir, "log-start-offset-checkpoint").write_text(f"0\n{len(offsets)}\n{entries}")
        since = Since(stamp=self.seen.stamp(self.log_dir))
        found = glance(WorkerState(), self.log_dir, since, is_owner_required=False, is_place_required=False)
        self.seen.read(Glances(self.now_ms, {} if self.is_silent else {self.log_dir: found}))
        self.seen.note(self.log_dir, self.names, names)
        self.names = names
        self.seen.keep_only({(self.log_dir, name) for name in names})
        return self.seen.of((self.log_dir, names[0])) if names else None


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(tmp_path, monkeypatch)


def test_the_entry_that_a_live_replica_had_at_the_last_look_is_its_own(rig: Rig) -> None:
    rig.look(pay=17, other=3)
    rig.now_ms += 10_000
    assert rig.look(A, other=3) == 17
    # It stays known until the directory is gone, however long its capture takes.
    rig.now_ms += 300_000
    assert rig.look(A, other=3) == 17
    rig.look(other=3)
    assert rig.look(A, other=3) is None


def test_a_directory_that_was_there_before_the_first_look_may_be_of_an_older_topic_of_the_name(rig: Rig) -> None:
    rig.look(pay=17)
    rig.names = None
    assert rig.look(A, pay=17) is None
    assert rig.look(A, pay=17) is None


def test_of_two_entries_the_newer_one_counts(rig: Rig) -> None:
    rig.look(pay=17)
    rig.look(pay=19)
    assert rig.look(A) == 19


def test_an_entry_of_a_topic_that_was_made_again_is_not_the_old_ones(rig: Rig) -> None:
    """At the look at which the old one is found the new one has an entry already."""
    rig.look()
    assert rig.look(A, pay=5) is None


def test_where_two_directories_were_one_partition_nothing_is_known(rig: Rig) -> None:
    rig.look(pay=17)
    assert rig.look(A, B) is None
    # One of them was known before: the entry of the look between is the second one's.
    rig.look()
    rig.look(pay=17)
    assert rig.look(A, pay=4) == 17
    assert rig.look(A, B) == 17
    assert rig.seen.of((rig.log_dir, B)) is None


@pytest.mark.parametrize(("age_ms", "expected"), [(59_999, 17), (60_000, None)])
def test_a_look_as_old_as_the_delete_delay_may_be_of_another_topic_of_the_name(
    rig: Rig, age_ms: int, expected: int | None
) -> None:
    rig.look(pay=17)
    rig.now_ms += age_ms
    assert rig.look(A) == expected


def test_after_a_look_without_an_answer_nothing_is_known(rig: Rig) -> None:
    rig.look(pay=17)
    rig.is_silent = True
    rig.look()
    rig.is_silent = False
    assert rig.look(A) is None


def test_a_look_whose_listing_failed_counts_for_no_entry(rig: Rig) -> None:
    """The file that was read for it may be that of a topic made again since the directories were listed last."""
    rig.look()
    names = rig.names
    rig.look(pay=5)
    rig.names = names  # as it is kept where a log dir could not be listed
    rig.seen.forget(rig.log_dir)
    assert rig.look(A, pay=5) is None


def test_a_directory_whose_name_is_none_of_kafkas_has_no_entry(rig: Rig) -> None:
    rig.look(pay=17)
    assert rig.look("pay-0-delete") is None
