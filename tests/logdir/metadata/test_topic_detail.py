"""Settings and eligible leaders read again from a metadata log, up to the very record an image ends before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdir.cluster import metadata_log
from logdir.cluster.image import Image, Source
from logdir.cluster.metadata_log import Watermark
from logdir.metadata.topic_config import TYPES, shown
from logdir.metadata.topic_detail import BROKER_NAMES, Details, configs_of, read_details
from logdir.wire.metadata_records import MetadataRecord
from tests.logdir.cluster.log_dir import (
    A,
    B,
    LogDir,
    abort,
    begin,
    end,
    noop,
    partition,
    record,
    register,
    remove,
    topic,
)


def config(name: str, value: str | None, *, of: str = "a", kind: int = 2) -> MetadataRecord:
    return record(4, resourceType=kind, resourceName=of, name=name, value=value)


def elr(number: int, eligible: tuple[int, ...] | None, last: tuple[int, ...] | None = None) -> MetadataRecord:
    fields: dict[str, Any] = dict.fromkeys(
        ("isr", "replicas", "removingReplicas", "addingReplicas", "directories"), None
    )
    return record(
        5, 2, partitionId=number, topicId=A, leader=-2, leaderRecoveryState=-1, eligibleLeaderReplicas=eligible,
        lastKnownElr=last, **fields,
    )  # fmt: skip


def clear_elr(name: str) -> MetadataRecord:
    return record(28, topicName=name)


@pytest.fixture
def log(tmp_path: Path) -> LogDir:
    made = LogDir(tmp_path / "__cluster_metadata-0")
    made.lead(1)
    made.append(register(1), topic("a", A), partition(A, 0, (1, 2)), partition(A, 1, (1, 2)))
    return made


def image_of(log: LogDir, offset: int | None = None) -> Image:
    mark = Watermark(offset=log.offset if offset is None else offset, epoch=log.epoch, is_prefix_checked=True)
    return metadata_log.read(str(log.directory), node_id=1, cluster_id=None, watermark=mark)


def details(log: LogDir, offset: int | None = None) -> Details:
    found = read_details(image_of(log, offset), [A])
    assert found is not None
    return found


def configs(log: LogDir, offset: int | None = None) -> dict[str, str]:
    return dict(details(log, offset).topics[A].configs)


def test_settings_are_set_changed_and_taken_back(log: LogDir) -> None:
    log.append(config("retention.ms", "1"), config("flush.ms", "2"), config("flush.ms", "3", of="b"))
    log.append(config("retention.ms", "9"), config("flush.ms", None))
    assert configs(log) == {"retention.ms": "9"}


def test_it_ends_where_the_image_ends(log: LogDir) -> None:
    first = log.append(config("retention.ms", "1"))
    log.append(config("retention.ms", "2"))
    assert configs(log, first) == {"retention.ms": "1"}
    assert configs(log) == {"retention.ms": "2"}


def test_settings_go_with_their_topic(log: LogDir) -> None:
    """One that is made anew under the name has none of them."""
    log.append(config("retention.ms", "1", of="b"), topic("b", B), partition(B, 0, (1,)))
    log.append(remove(B))
    fresh = bytes(range(1, 17))
    log.append(topic("b", fresh), partition(fresh, 0, (1,)))
    found = read_details(image_of(log), [fresh, A])
    assert found is not None
    assert (dict(found.topics[fresh].configs), dict(found.topics[A].configs)) == ({}, {})


@pytest.mark.parametrize(("last", "value"), [(end, "2"), (abort, "1"), (noop, "1")], ids=["end", "abort", "open"])
def test_transactions_count_whole_or_not_at_all(log: LogDir, last: Any, value: str) -> None:
    log.append(config("retention.ms", "1"))
    log.append(begin(), config("retention.ms", "2"), elr(0, (2,)))
    log.append(last())
    assert configs(log) == {"retention.ms": value}
    assert dict(details(log).topics[A].elr) == ({0: (2,)} if value == "2" else {})


def test_eligible_leaders_and_the_last_known_ones_are_told_apart(log: LogDir) -> None:
    log.append(elr(0, (2,), (1,)), elr(1, (1, 2)))
    log.append(elr(0, None, (2,)))
    found = details(log).topics[A]
    assert (dict(found.elr), dict(found.last_known_elr)) == ({0: (2,), 1: (1, 2)}, {0: (2,)})
    log.append(clear_elr("b"))
    assert dict(details(log).topics[A].elr) == {0: (2,), 1: (1, 2)}
    for name in ("a", ""):
        log.append(elr(0, (2,), (1,)), clear_elr(name))
        found = details(log).topics[A]
        assert (dict(found.elr), dict(found.last_known_elr)) == ({}, {})


def test_a_snapshot_and_the_tail_behind_it(log: LogDir) -> None:
    log.append(config("retention.ms", "1"), config("flush.ms", "1"))
    log.snapshot(
        config("retention.ms", "1"), config("flush.ms", "1"), register(1), topic("a", A), partition(A, 0, (1, 2))
    )
    at = log.offset
    log.roll()
    log.append(config("flush.ms", None), config("log.segment.bytes", "5", of="", kind=4))
    assert configs(log) == {"retention.ms": "1"}
    assert details(log).brokers == {"": {"log.segment.bytes": "5"}}
    assert configs(log, at) == {"retention.ms": "1", "flush.ms": "1"}
    (log.directory / f"{0:020}.log").unlink()
    assert configs(log) == {"retention.ms": "1"}


def test_what_cannot_be_told_any_more_is_none(log: LogDir, tmp_path: Path) -> None:
    log.append(config("retention.ms", "1"))
    image = image_of(log)
    assert read_details(replace(image, source=Source.ZNODES), [A]) is None
    assert read_details(replace(image, origin=str(tmp_path / "nowhere")), [A]) is None
    log.segment.rename(log.directory / f"{7:020}.log")  # what was before it is gone, and no snapshot tells
    assert read_details(image, [A]) is None
    (log.directory / f"{7:020}.log").rename(log.segment)
    data = bytearray(log.segment.read_bytes())
    data[30] ^= 1
    log.segment.write_bytes(data)
    assert read_details(image, [A]) is None
    log.segment.write_bytes(b"")
    found = read_details(image, [A])
    assert found is not None
    assert dict(found.topics[A].configs) == {}


def test_damage_behind_the_image_hides_nothing_and_a_gap_before_its_end_everything(log: LogDir) -> None:
    log.append(config("retention.ms", "1"))
    image = image_of(log)
    size = log.segment.stat().st_size
    with log.segment.open("ab") as file:
        file.write(bytes(100))
    found = read_details(image, [A])
    assert found is not None
    assert dict(found.topics[A].configs) == {"retention.ms": "1"}
    data = bytearray(log.segment.read_bytes()[:size])
    last = data.rindex(log.epoch.to_bytes(4, "big"), 0, data.index(b"retention.ms")) - 12
    data[last + 7] += 1  # its base offset, which no checksum covers
    log.segment.write_bytes(data)
    assert read_details(image, [A]) is None


def test_the_nearest_setting_of_a_broker_wins(log: LogDir) -> None:
    log.append(config("retention.ms", "1"), config("log.retention.ms", "2", of="", kind=4))
    log.append(config("log.segment.bytes", "3", of="", kind=4), config("log.segment.bytes", "4", of="1", kind=4))
    log.append(config("log.segment.bytes", "5", of="2", kind=4))
    own = {"log.segment.bytes": "6", "log.preallocate": " true ", "log.retention.hours": "7", "segment.ms": "8"}
    told = details(log)
    assert configs_of(told, A, 1, own) == (("preallocate", "true"), ("retention.ms", "1"), ("segment.bytes", "4"))
    assert configs_of(told, A, 3, own) == (("preallocate", "true"), ("retention.ms", "1"), ("segment.bytes", "3"))
    assert configs_of(told, B, 3, {}) == (("retention.ms", "2"), ("segment.bytes", "3"))


def test_a_setting_is_told_as_a_broker_understood_it(log: LogDir) -> None:
    """Whoever set it: the topic, the cluster, a broker, or its own file."""
    log.append(config("min.cleanable.dirty.ratio", "0.50"), config("cleanup.policy", " compact, delete"))
    log.append(config("preallocate", "TRUE"), config("retention.ms", "0100"), config("flush.ms", "1 s"))
    log.append(config("log.segment.bytes", " +5", of="", kind=4), config("log.roll.ms", "07", of="1", kind=4))
    log.append(config("what.is.this", " 01 "))
    own = {"log.cleaner.delete.retention.ms": "0009", "compression.type": "\x1fgzip ", "log.roll.jitter.ms": " 01 "}
    assert dict(configs_of(details(log), A, 1, own)) == {
        "cleanup.policy": "compact,delete",
        "compression.type": "gzip",
        "delete.retention.ms": "9",
        "flush.ms": "1 s",
        "min.cleanable.dirty.ratio": "0.5",
        "preallocate": "true",
        "retention.ms": "100",
        "segment.bytes": "5",
        "segment.jitter.ms": "1",
        "segment.ms": "7",
        "what.is.this": " 01 ",
    }


@pytest.mark.parametrize(
    ("name", "values"),
    [
        # What ConfigDef of 4.3.1 makes of them; what it refuses stays as it is.
        (
            "min.cleanable.dirty.ratio",
            {
                "1": "1.0", ".5": "0.5", "5.": "5.0", "1e-4": "1.0E-4", "0.5d": "0.5", "0.5F": "0.5", "+0.25": "0.25",
                "1_0": "1_0", "NaN": "NaN", "nan": "nan", "Infinity": "Infinity", "inf": "inf", " 0.5 ": "0.5",
                "1e999": "Infinity", "\u0663": "\u0663", "1e99999999999": "Infinity", "": "", "-": "-", "1e": "1e",
                "0.5 d": "0.5 d", ".": ".", "d": "d",
            },
        ),
        (
            "cleanup.policy",
            {
                "": "", " ": "", "a,,b": "a,,b", "a ,\t b ,": "a,b,", "a\xa0,b": "a\xa0,b", ",a": ",a",
                "a\x0b,b": "a,b", "a\x1f,b": "a\x1f,b",
            },
        ),
        ("preallocate", {" False ": "false", "yes": "yes", "tr\u00dce": "tr\u00dce", "fal\u017fe": "false"}),
        ("segment.bytes", {"+7": "7", "2147483648": "2147483648", "02147483648": "02147483648", "1 0": "1 0"}),
        ("retention.ms", {"02147483648": "2147483648", "\xa05": "\xa05", "-01": "-1"}),
        ("compression.type", {" gzip ": "gzip", "\xa0x": "\xa0x"}),
    ],
)  # fmt: skip
def test_values_are_read_and_written_as_javas(name: str, values: dict[str, str]) -> None:
    assert {value: shown(name, value) for value in values} == values


def test_of_every_broker_setting_the_type_is_known() -> None:
    assert BROKER_NAMES.keys() < TYPES.keys()
    assert len(TYPES) == 36  # of 3.3 to 4.3, without one that is internal


def test_no_broker_setting_stands_for_two() -> None:
    assert len(set(BROKER_NAMES.values())) == len(BROKER_NAMES) == 28
