"""What an adoption, and what a start makes of one that was interrupted, must not do on what lies on another disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from logdir.disk.kernel.host import Call
from logdir.disk.recover_broker import recover_broker
from logdir.disk.replica.adopt import AdoptItem, ready_names
from logdir.disk.replica.outcome import Result
from logdir.errors import LogDirSuspectError, ReadOnlyDiskError
from logdir.formats.kafka import partition_metadata
from logdir.formats.kafka.partition_metadata import PartitionMetadata
from logdir.formats.own import replica_marker
from logdir.formats.own.replica_marker import Intent, ReplicaMarker
from logdir.ids import TopicId
from tests.logdir.disk.rescue import FILES, NEW, NEW_FILES, OLD, files_of, put, quick_path, stopped
from tests.logdir.disk.test_adopt import RESCUED, Host

ANOTHER = TopicId.parse("b8tRS7h4TJ2Vt43Dp85v2A")
ANOTHERS = {**NEW_FILES, "partition.metadata": partition_metadata.render(PartitionMetadata(0, ANOTHER))}
READY = f"{NEW}_0.ready"


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[[int], Host]]:
    count = iter(range(10_000))
    with quick_path(tmp_path) as path:
        yield lambda present: Host(path / str(next(count)), present)


def interrupted(host: Host) -> Host:
    """Stop it before the rescued files are renamed to their live name; what was live is staged by then."""

    with stopped(
        host,
        lambda _, call: (
            call.name == "rename" and READY in call.path and not host.live(0).exists() and not host.live(1).exists()
        ),
    ):
        host.adopt()
    assert not any(host.live(number).exists() for number in (0, 1))
    assert os.listdir(host.work(0) / "incoming") == [READY]
    return host


@pytest.mark.parametrize(("present", "other"), [(0, 1), (1, 1), (1, 0), (0, 0)])
def test_a16_no_start_finishes_an_adoption_while_its_name_is_live_on_any_disk(
    fresh: Callable[[int], Host], present: int, other: int
) -> None:
    """Its broker made another one meanwhile: two of one name would stop it loudly, or one be lost."""
    host = interrupted(fresh(present))
    put(host.live(other), NEW_FILES)
    found = host.recover()
    assert (found.finished, len(found.withdrawn), found.troubled) == ((), 1, ())
    assert [number for number in (0, 1) if host.live(number).exists()] == [other]
    assert files_of(host.live(other)) == NEW_FILES
    assert files_of(host.work(0) / f"deleting/{RESCUED}") == FILES


def test_a16_no_start_finishes_or_withdraws_an_adoption_while_a_log_dir_is_left_out(
    fresh: Callable[[int], Host],
) -> None:
    """The one that is away may hold the replica that speaks against it."""
    host = interrupted(fresh(0))
    put(host.live(1), NEW_FILES)
    with ExitStack() as stack:
        found = recover_broker(host.open_dirs(stack)[:1], is_whole=False)
    assert (found.adoptions.finished, found.adoptions.withdrawn, found.troubled) == ((), (), ())
    assert not host.live(0).exists()
    assert os.listdir(host.work(0) / "incoming") == [READY]
    assert files_of(host.work(0) / f"deleting/{RESCUED}") == FILES
    assert [path.rpartition("/")[2] for path in host.recover().withdrawn] == [READY]


def test_a16_no_adoption_is_done_for_another_id_than_the_topic_has_by_now(fresh: Callable[[int], Host]) -> None:
    """Deleted and made once more since it was decided: the files would become a topic's that nobody chose."""
    host = fresh(0)
    put(host.live(0), ANOTHERS)
    outcome = host.adopt()
    assert (outcome.result, host.calls) == (Result.UNDONE, [])
    assert files_of(host.live(0)) == ANOTHERS
    assert files_of(host.work(0) / f"deleting/{RESCUED}") == FILES


def test_a16_no_live_log_of_another_id_counts_as_adopted_though_it_has_the_files(fresh: Callable[[int], Host]) -> None:
    """Of files that are shared the rescued copy is all that is left once the live one is removed."""
    host = fresh(0)
    assert host.adopt(lambda item: replace(item, keep=True)).result is Result.DONE
    put(host.live(0), {"partition.metadata": ANOTHERS["partition.metadata"]})
    assert host.adopt().result is Result.UNDONE
    assert files_of(host.work(0) / f"deleting/{RESCUED}") == FILES


@pytest.mark.parametrize("change", ["marker", "presence"])
def test_a16_no_adoption_is_done_with_a_marker_of_another_id(fresh: Callable[[int], Host], change: str) -> None:
    host = fresh(0)

    def changed(item: AdoptItem) -> AdoptItem:
        if change == "marker":
            return replace(item, present_marker=replace(item.present_marker, topic_id=ANOTHER))
        return replace(item, topic_id=ANOTHER)

    assert host.adopt(changed).result is Result.UNDONE
    assert (host.calls, host.state()) == ([], "not adopted")


def test_a16_no_topic_of_the_same_id_adopts(fresh: Callable[[int], Host]) -> None:
    """Nothing was deleted: it is taken back as it is, and its indexes with it."""
    host = fresh(0)
    put(host.live(0), {"partition.metadata": FILES["partition.metadata"]})

    def same(item: AdoptItem) -> AdoptItem:
        return replace(item, topic_id=OLD, present_marker=replace(item.present_marker, topic_id=OLD))

    assert host.adopt(same).result is Result.UNDONE
    assert host.calls == []


def test_a16_no_start_finishes_an_adoption_for_what_was_staged_with_another_id(fresh: Callable[[int], Host]) -> None:
    """What was staged as a duplicate is of another id: nothing says whose the files are to be."""
    host = interrupted(fresh(0))
    (aside,) = [name for name in os.listdir(host.work(0) / "deleting") if name != RESCUED]
    marker = replace(host.marker(0, f"deleting/{aside}"), topic_id=ANOTHER)
    (host.work(0) / "deleting" / aside / replica_marker.FILE_NAME).write_bytes(replica_marker.render(marker))
    found = host.recover()
    assert (found.finished, len(found.withdrawn)) == ((), 1)
    assert not host.live(0).exists()
    assert files_of(host.work(0) / f"deleting/{RESCUED}") == FILES


def test_an_error_while_it_is_finished_leaves_the_rescued_files(fresh: Callable[[int], Host]) -> None:
    host = interrupted(fresh(1))
    for number in (0, 1):  # of somebody else
        (host.work(number) / "deleting" / "notes").write_bytes(b"x")
        (host.work(number) / "deleting" / f"{NEW}_0.9").write_bytes(b"x")

    def fail(number: int, call: Call) -> None:
        if call.name == "rename" and READY in call.path:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), call.path)

    host.before = fail
    with ExitStack() as stack:
        found = recover_broker(host.open_dirs(stack), is_whole=True)
    assert (found.adoptions.finished, len(found.adoptions.troubled)) == ((), 1)
    assert files_of(host.work(0) / f"deleting/{RESCUED}") == FILES
    host.before = lambda number, call: None
    for number in (0, 1):
        (host.work(number) / "deleting" / "notes").unlink()
        (host.work(number) / "deleting" / f"{NEW}_0.9").unlink()
    assert len(host.recover().finished) == 1
    assert host.state() == "adopted"


def _say(host: Host, change: Callable[[ReplicaMarker], ReplicaMarker]) -> None:
    """Change the marker of the rescued files, as if it had always said so."""
    path = host.work(0) / f"deleting/{RESCUED}/{replica_marker.FILE_NAME}"
    path.write_bytes(replica_marker.render(change(host.marker(0, f"deleting/{RESCUED}"))))


def test_a33_no_log_of_which_a_part_was_in_remote_storage_is_adopted(fresh: Callable[[int], Host]) -> None:
    """Its first segments lie under the id of the topic that is gone: as a whole it is another log."""
    host = fresh(0)
    _say(host, lambda marker: replace(marker, tiered=True))
    assert host.adopt().result is Result.UNDONE
    assert (host.calls, host.state()) == ([], "not adopted")


def test_no_copy_on_its_way_in_is_adopted(fresh: Callable[[int], Host]) -> None:
    """It may be half of one."""
    host = fresh(0)
    _say(host, lambda marker: replace(marker, intent=Intent.INCOMING, delay_ms=None))
    assert host.adopt().result is Result.UNDONE
    assert (host.calls, host.state()) == ([], "not adopted")


def test_a16_what_an_adoption_that_was_stopped_left_ready_does_not_stay_beside_the_next(
    fresh: Callable[[int], Host],
) -> None:
    host = fresh(0)

    with stopped(host, lambda _, call: call.name == "write" and call.path.endswith("/t-0/replica.json")):
        host.adopt()
    assert os.listdir(host.work(0) / "incoming") == [READY]
    assert host.adopt().result is Result.DONE
    assert host.state() == "adopted"


def test_a16_no_adoption_takes_away_what_another_has_made_ready(fresh: Callable[[int], Host]) -> None:
    host = interrupted(fresh(0))
    (host.work(0) / "incoming" / READY).rename(host.work(0) / "incoming" / f"{NEW}_7.ready")
    put(host.live(0), NEW_FILES)
    assert host.adopt().result is Result.DONE
    assert os.listdir(host.work(0) / "incoming") == [f"{NEW}_7.ready"]


def test_the_last_name_of_a_rescued_file_is_not_withdrawn(fresh: Callable[[int], Host]) -> None:
    """Somebody removed what was rescued: what was ready to be live is all that is left of it, and says so."""
    host = interrupted(fresh(0))
    put(host.live(0), NEW_FILES)
    segment = "00000000000000000005.log"
    (host.work(0) / f"deleting/{RESCUED}/{segment}").unlink()
    with ExitStack() as stack:
        found = recover_broker(host.open_dirs(stack), is_whole=True).adoptions
    assert (found.finished, found.withdrawn) == ((), ())
    assert [problem.path.rpartition("/")[2] for problem in found.troubled] == [segment]
    assert os.listdir(host.work(0) / "incoming") == [READY]
    assert (host.work(0) / "incoming" / READY / segment).read_bytes() == FILES[segment]


def test_a16_where_neither_can_be_live_nothing_is_withdrawn_and_the_next_start_goes_on(
    fresh: Callable[[int], Host],
) -> None:
    """Staged for nothing, and its way back is blocked: a topic without a log would be made empty by its broker."""
    host = fresh(0)

    def fail(number: int, call: Call) -> None:
        if call.name == "rename" and call.to.endswith("/t-0"):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), call.path)

    host.before = fail
    with pytest.raises(ReadOnlyDiskError):
        host.adopt()
    assert os.listdir(host.work(0) / "incoming") == [READY]
    host.before = lambda number, call: None
    assert len(host.recover().finished) == 1
    assert host.state() == "adopted"


@pytest.mark.parametrize("is_renamed", [False, True], ids=["before the rename", "after it"])
def test_a_disk_that_does_not_answer_while_the_files_become_live_leaves_the_rest_to_recovery(
    fresh: Callable[[int], Host], is_renamed: bool
) -> None:
    """It is not known whether they are live: with the new replica put back, the partition might be live twice."""
    host = fresh(1)
    silent: list[str] = []

    def hang(number: int, call: Call) -> None:
        is_here = call.path.startswith(str(host.tops[0]))
        is_publishing = call.name == "rename" and call.to.endswith("/t-0")
        is_begun = host.live(0).exists() and is_here if is_renamed else is_publishing and is_here
        if is_begun or (silent and is_here):
            silent.append(call.name)
            raise LogDirSuspectError(str(host.tops[0]), expected="an answer within 10 s", found="none")

    host.before = hang
    with pytest.raises(LogDirSuspectError):
        host.adopt()
    assert silent
    assert not host.live(1).exists()
    host.before = lambda number, call: None
    host.recover()
    assert host.state() == "adopted"


def test_a_marker_that_cannot_be_removed_under_its_live_name_undoes_no_adoption(fresh: Callable[[int], Host]) -> None:
    host = fresh(0)

    def fail(number: int, call: Call) -> None:
        if call.name == "unlink" and call.path.endswith("/t-0/replica.json"):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), call.path)

    host.before = fail
    assert host.adopt().result is Result.DONE
    host.before = lambda number, call: None
    host.recover()
    assert host.state() == "adopted"


def test_what_keeps_the_new_replica_from_being_staged_is_named_and_nothing_is_adopted(
    fresh: Callable[[int], Host],
) -> None:
    host = fresh(0)

    def fail(number: int, call: Call) -> None:
        if call.name == "rename" and call.path.endswith("/t-0"):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), call.path)

    host.before = fail
    outcome = host.adopt()
    assert outcome.result is Result.UNDONE
    assert os.strerror(errno.EACCES) in str(outcome.error)
    assert os.listdir(host.work(0) / "incoming") == []
    assert files_of(host.live(0)) == NEW_FILES


def test_a_copy_with_its_own_id_that_is_ready_is_no_adoption_for_a_start_to_withdraw(
    fresh: Callable[[int], Host],
) -> None:
    host = interrupted(fresh(0))
    path = host.work(0) / "incoming" / READY / replica_marker.FILE_NAME
    own = replace(replica_marker.parse(path.read_bytes()), topic_id=NEW)
    assert own.intent is Intent.INCOMING
    path.write_bytes(replica_marker.render(own))
    with ExitStack() as stack:
        assert ready_names(host.open_dirs(stack)[0]) == ()
