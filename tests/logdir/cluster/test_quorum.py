"""Who votes in the metadata quorum, from what lies beside a metadata log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logdir.cluster import metadata_log
from logdir.cluster.metadata_log import Watermark, end_of
from logdir.cluster.quorum import is_only_voter
from logdir.errors import MalformedFileError
from logdir.formats.kafka import quorum_state
from logdir.wire.batch_writer import control_batch
from logdir.wire.control import ControlRecord, encode_control
from tests import trees
from tests.logdir.cluster.log_dir import LogDir, noop, register

STATIC = '{{"clusterId":"","leaderId":{leader},"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{voters}],"data_version":0}}'  # noqa: E501
DYNAMIC = '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'


def static(*voters: int, leader: int = 1) -> str:
    listed = ",".join(f'{{"voterId":{voter}}}' for voter in voters)
    return STATIC.format(leader=leader, voters=listed)


def voters_record(log: LogDir, *voters: int) -> None:
    """Append the record that a leader of a dynamic quorum writes."""
    listed = tuple(
        {"voterId": voter, "voterDirectoryId": bytes(16), "endpoints": (),
         "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1}}
        for voter in voters
    )  # fmt: skip
    one = encode_control(ControlRecord(type=6, name="KRAFT_VOTERS", version=0, fields={"version": 0, "voters": listed}))
    with log.segment.open("ab") as file:
        file.write(control_batch([one], base_offset=log.offset, epoch=log.epoch, timestamp_ms=log.time_ms))
    log.offset += 1


@pytest.fixture
def log(tmp_path: Path) -> LogDir:
    made = LogDir(tmp_path / "__cluster_metadata-0")
    made.lead(1)
    made.append(register(1))
    return made


@pytest.mark.parametrize("name", [name for name in trees.NAMES if not name.endswith("zk")])
def test_every_tree_of_a_real_broker_names_its_only_voter(name: str) -> None:
    (directory,) = trees.unpack(name).glob("*/__cluster_metadata-0")
    is_alone = name != "3.9.2-migration"
    assert is_only_voter(str(directory), 1) is is_alone
    assert not is_only_voter(str(directory), 2)
    assert (end_of(str(directory)) or 0) > 50


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (static(1), True),
        (static(1, leader=-1), True),
        (static(1, leader=2), False),
        (static(2), False),
        (static(1, 2, 3), False),
        (static(), False),
        (DYNAMIC, False),
        ("", False),
        ('{"leaderId":1}', False),
        ('{"leaderId":1,"leaderEpoch":1,"currentVoters":[{"voterId":"1"}]}', False),
        ("[]", False),
    ],
)
def test_a47_who_is_not_known_to_be_the_only_voter_is_none(log: LogDir, text: str, expected: bool) -> None:
    (log.directory / "quorum-state").write_text(text)
    assert is_only_voter(str(log.directory), 1) is expected


def test_a47_of_a_dynamic_quorum_the_last_record_of_voters_counts(log: LogDir) -> None:
    directory = str(log.directory)
    assert not is_only_voter(directory, 1)  # nothing says who votes
    (log.directory / "quorum-state").write_text(DYNAMIC)
    voters_record(log, 1)
    log.append(noop())
    assert is_only_voter(directory, 1)
    voters_record(log, 1, 2)
    assert not is_only_voter(directory, 1)
    voters_record(log, 1)
    assert is_only_voter(directory, 1)
    log.segment.write_bytes(log.segment.read_bytes()[:-1] + b"\xff")
    assert not is_only_voter(directory, 1)


def test_the_end_of_a_log_is_that_of_its_last_whole_batch(log: LogDir) -> None:
    log.roll()
    assert end_of(str(log.directory)) == 2
    log.append(noop(), noop())
    assert end_of(str(log.directory)) == 4
    with log.segment.open("ab") as file:
        file.write(b"torn")
    assert end_of(str(log.directory)) == 4
    assert end_of(str(log.directory), is_torn_read=False) is None
    assert end_of(str(log.directory.parent)) is None
    assert end_of("/nowhere") is None


def test_a_snapshot_beyond_the_segments_ends_a_log(log: LogDir) -> None:
    """A log that its leader has gone past is emptied after the snapshot is whole; a kill comes between."""
    log.snapshot(noop(), offset=100)
    assert end_of(str(log.directory)) == 100


@pytest.mark.parametrize("kind", ["segment", "snapshot"])
def test_on_a_fifo_in_a_log_nobody_waits(log: LogDir, kind: str) -> None:
    name = "00000000000000000007.log" if kind == "segment" else "00000000000000000007-0000000001.checkpoint"
    os.mkfifo(log.directory / name)
    with pytest.raises(MalformedFileError, match="a regular file"):
        metadata_log.read(str(log.directory), node_id=1, cluster_id=None, watermark=Watermark(offset=99, epoch=1))


@pytest.mark.parametrize("data", [b"", b"{", b"1", b'{"leaderId":"1","leaderEpoch":1}', b'{"leaderId":1}'])
def test_a_quorum_state_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedFileError):
        quorum_state.parse(data, "/q")
