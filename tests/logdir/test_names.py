"""Names of topics and directories, in both layouts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdir.errors import InvalidNameError
from logdir.ids import TopicId
from logdir.names import (
    DirForm,
    IdDir,
    PartitionDir,
    WorkDir,
    collides,
    is_legal_topic,
    is_prefix,
    name_for,
    parse_id_dir,
    parse_index,
    parse_partition_dir,
    parse_stock,
    parse_work_dir,
    render_id_dir,
    render_partition_dir,
    require_legal_topic,
)
from logdir.paths import HIDDEN_WORK_ROOT, METADATA_DIR, METADATA_TOPIC
from tests.logdir.formats.contract import java_answers, java_text
from tests.proof.claims import NAMES
from tests.proof.plugin import Recorder
from tests.second_name_parser import Name, read_name

U = "0123456789abcdef0123456789abcdef"
TEXT = "eXOy6xj-Q8ivrWAlsZGnkw"
ID = TopicId.parse(TEXT)
C, D, F, S = DirForm.CURRENT, DirForm.DELETE, DirForm.FUTURE, DirForm.STRAY

# kafka-formats §6.2, §5.4 and kafka-behaviour §10.1.
STOCK: dict[str, PartitionDir | None] = {
    "my-topic-3": PartitionDir("my-topic", 3, C, None),
    f"a.b-1.{U}-delete": PartitionDir("a.b", 1, D, U),
    f"x-y-0.{U}-future": PartitionDir("x-y", 0, F, U),
    f"x-0.{U}-stray": PartitionDir("x", 0, S, U),
    "foo--1": PartitionDir("foo-", 1, C, None),
    "foo-+1": PartitionDir("foo", 1, C, None),
    "foo-007": PartitionDir("foo", 7, C, None),
    "foo-2147483647": PartitionDir("foo", 2147483647, C, None),
    "foo-٣": PartitionDir("foo", 3, C, None),
    ".Trash-1000": PartitionDir(".Trash", 1000, C, None),
    "é b-0": PartitionDir("é b", 0, C, None),
    "a-0.x-delete": PartitionDir("a", 0, D, "x"),
    "a-0.x-y-delete": PartitionDir("a", 0, D, "x-y"),
    "a.x-0.x.y-delete": None,
    "a-0.\u00a0-delete": PartitionDir("a", 0, D, "\u00a0"),
    f"a-1.{U}-delete-0": PartitionDir(f"a-1.{U}-delete", 0, C, None),
    HIDDEN_WORK_ROOT: PartitionDir(METADATA_TOPIC, 2147483647, C, None),
    METADATA_DIR: PartitionDir(METADATA_TOPIC, 0, C, None),
    "": None,
    "lost+found": None,
    ".snapshot": None,
    "deleting": None,
    "eX": None,
    f"{TEXT}_0": None,
    "foo-": None,
    "-1": None,
    "foo-bar": None,
    "x-delete": None,
    "x-1-delete": None,
    "foo-0-delete": None,
    "ghost-2147483648": None,
    "foo-1_0": None,
    "foo- 1": None,
    "foo-\U0001d7ce": None,
    f"a b-0.{U}-delete": None,
    f"a-0.{U}-delete ": None,
    f"-0.{U}-delete": None,
    f"a-.{U}-delete": None,
    "a-0.-delete": None,
    "a-0.x.-delete": None,
    "remote-log-index-cache": None,
}


@pytest.mark.parametrize("name", STOCK)
def test_reads_what_a_stock_broker_reads(name: str) -> None:
    expected = STOCK[name]
    second = read_name(name)
    if expected is None:
        assert second is None
        with pytest.raises(InvalidNameError) as caught:
            parse_stock(name)
        assert caught.value.expected
        assert caught.value.found
    else:
        assert parse_stock(name) == expected
        assert second == Name(expected.topic, expected.partition, expected.form.value, expected.unique)
        assert render_partition_dir(expected) == name or not name.isascii() or "+" in name or "00" in name


def test_answers_as_the_stock_class() -> None:
    counts: Counter[bool] = Counter()
    for data, answer in java_answers("directory-name"):
        name = data.decode()
        try:
            parts = parse_stock(name)
        except InvalidNameError:
            ours = "error"
        else:
            ours = f"ok {java_text(parts.topic)} {parts.partition}"
        assert ours == answer, name
        second = read_name(name)
        assert answer == (f"ok {java_text(second.topic)} {second.partition}" if second else "error"), name
        counts[answer == "error"] += 1
    assert min(counts[True], counts[False]) >= 100


_TOPICS = (
    "a",
    "x-y-3",
    "a.b",
    "__consumer_offsets",
    "foo-",
    "0",
    "a.delete",
    "t" * 200,
    "é",
    "\u00a0",
    "9-9.9-9",
)
_PIECES = (
    "-", "-", ".", "+", "0", "1", "9", "a", "-delete", "-future", "-stray", "delete", " ", "\t", "\n", "\x0b",
    "\x1c", "\x85", "\u00a0", "\u2003", "٣", "߀", "０", "\U0001d7ce", "²", "½", "Ⅷ", "_", "2147483648",
    "2147483647", U, "é", "\ufeff",
)  # fmt: skip


def _grammatical(draw: random.Random) -> str:
    name = f"{draw.choice(_TOPICS)}-{draw.choice((0, 1, 7, 42, 99999, 2147483647, draw.randrange(2**33)))}"
    if draw.random() < 0.6:
        name += f".{draw.choice((U, U, 'x', 'a-b', 'a.b'))}-{draw.choice(('delete', 'future', 'stray'))}"
    return name


def _names(count: int, seed: int) -> Iterator[str]:
    """Half made by the grammar and edited one to three times, a quarter as made, a quarter of any pieces."""
    draw = random.Random(seed)
    for number in range(count):
        if number % 4 == 3:
            yield "".join(draw.choice(_PIECES) for _ in range(draw.randint(0, 7)))
            continue
        name = _grammatical(draw)
        if number % 4 != 2:
            for _ in range(draw.randint(1, 3)):
                at = draw.randint(0, len(name))
                match draw.randrange(4):
                    case 0:
                        name = name[:at] + draw.choice(_PIECES) + name[at:]
                    case 1:
                        name = name[:at] + name[at + 1 :]
                    case 2:
                        name = name[:at] + draw.choice(_PIECES) + name[at + 1 :]
                    case _:
                        name = name[:at] + name[at : at + 1] + name[at:]
        yield name


def test_two_readers_agree_on_a_million_names(record_proof: Recorder) -> None:
    count, seed = NAMES.count("names"), 516
    legal = 0
    for name in _names(count, seed):
        second = read_name(name)
        try:
            parts = parse_stock(name)
        except InvalidNameError:
            assert second is None, name
            continue
        assert second == (parts.topic, parts.partition, parts.form.value, parts.unique), name
        legal += 1
    assert 0.2 * count <= legal <= 0.8 * count
    record_proof(NAMES, {"names": count, "legal": legal}, seeds=seed)


@given(st.text())
def test_two_readers_agree_on_any_text(name: str) -> None:
    try:
        parts: PartitionDir | None = parse_stock(name)
    except InvalidNameError:
        parts = None
    second = read_name(name)
    assert (parts and (parts.topic, parts.partition)) == (second and (second.topic, second.partition))


def test_both_readers_know_the_same_digits() -> None:
    for code in range(0xD800):
        name = f"a-{chr(code)}"
        second = read_name(name)
        try:
            partition: int | None = parse_stock(name).partition
        except InvalidNameError:
            partition = None
        assert partition == (second.partition if second else None), hex(code)


STRICT = {
    "a-0": True, "x-y-3-0": True, f"a-0.{U}-delete": True, f"a-12.{U}-future": True, f"a-0.{U}-stray": True,
    "a-00": False, "a-+1": False, "a-٣": False, "é-0": False, "a b-0": False, "..-0": False, ".-0": False,
    "a-0.x-delete": False, f"a-0.{U.upper()}-delete": False, f"a-01.{U}-delete": False, "a": False,
    f"a-0.b-1.{U}-delete": True, "a-2147483648": False, "t" * 249 + "-0": True, "t" * 250 + "-0": False,
}  # fmt: skip


@pytest.mark.parametrize("name", STRICT)
def test_our_reader_takes_only_names_kafka_would_write(name: str) -> None:
    parts = parse_partition_dir(name)
    assert (parts is not None) == STRICT[name]
    if parts is not None:
        assert render_partition_dir(parts) == name


LEGAL = {
    "a": True, "A.b_c-9": True, "a" * 249: True, "...": True, "__consumer_offsets": True,
    "": False, ".": False, "..": False, "a" * 250: False, "a b": False, "a/b": False, "é": False,
    "a\n": False, "٣": False,
}  # fmt: skip


@pytest.mark.parametrize("topic", LEGAL)
def test_legal_topics(topic: str) -> None:
    assert is_legal_topic(topic) == LEGAL[topic]
    if LEGAL[topic]:
        assert require_legal_topic(topic) == topic
    else:
        with pytest.raises(InvalidNameError) as caught:
            require_legal_topic(topic, "/d")
        assert caught.value.found


def test_collisions_are_those_of_metric_names() -> None:
    assert collides("a.b", "a_b")
    assert not collides("a.b", "a-b")
    assert not collides("a", "A")


# kafka-formats §6.3: characters of the topic kept.
KEPT = [
    (D, {0: 213, 10: 212, 100: 211, 99999: 209}),
    (S, {0: 214, 10: 213, 100: 212, 99999: 210}),
]


@pytest.mark.parametrize(("form", "kept"), KEPT, ids=["delete", "stray"])
def test_long_topics_are_cut_as_kafka_cuts_them(form: DirForm, kept: dict[int, int]) -> None:
    for partition, characters in kept.items():
        name = name_for("t" * 249, partition, form, U)
        parts = parse_partition_dir(name)
        assert len(name) == 255
        assert parts == PartitionDir("t" * characters, partition, form, U)
        assert parts.is_truncated
        uncut = parse_partition_dir(name_for("t" * (characters - 1), partition, form, U))
        assert uncut is not None
        assert not uncut.is_truncated


def test_future_names_are_never_cut() -> None:
    assert len(name_for("t" * 213, 0, F, U)) == 255
    with pytest.raises(InvalidNameError):
        name_for("t" * 214, 0, F, U)


@pytest.mark.parametrize(
    ("partition", "form", "unique"),
    [(-1, C, None), (2**31, C, None), (0, C, U), (0, D, None), (0, S, "x"), (0, F, U.upper())],
    ids=["negative", "too large", "current with", "delete without", "not hex", "upper case"],
)
def test_wrong_calls_make_no_name(partition: int, form: DirForm, unique: str | None) -> None:
    with pytest.raises(ValueError):
        name_for("a", partition, form, unique)


INDEXES = {"0": 0, "1": 1, "2147483647": 2147483647}


@pytest.mark.parametrize("text", ["", "00", "01", "+1", "-1", " 1", "1\n", "٣", "2147483648", "99999999999", "1_0"])
def test_other_spellings_are_no_index(text: str) -> None:
    assert parse_index(text) is None


@pytest.mark.parametrize("text", INDEXES)
def test_indexes(text: str) -> None:
    assert parse_index(text) == INDEXES[text]


@pytest.mark.parametrize("text", [TEXT, ID.hex(), "7973b2eb-18fe-43c8-afad-6025b191a793"])
def test_id_directories_are_read_in_three_spellings(text: str) -> None:
    assert parse_id_dir(f"{text}_3") == IdDir(ID, 3)


@pytest.mark.parametrize(
    "name",
    [
        TEXT, f"{TEXT}_", f"{TEXT}_03", f"{TEXT}-3", f"{TEXT}==_3", f"{TEXT[:-1]}x_3",
        f"{ID.hex().upper()}_3", f"{'A' * 22}_0", f"{'0' * 32}_0", f"{TEXT}_3 ", f"_{TEXT}_3", "_3",
        f"{TEXT[:-1]}_3",
        f"{TEXT}_2147483648",
    ],
)  # fmt: skip
def test_other_names_are_no_id_directories(name: str) -> None:
    assert parse_id_dir(name) is None


IDS = st.binary(min_size=16, max_size=16).filter(any).map(TopicId)


@given(IDS, st.integers(0, 2**31 - 1))
def test_id_directories_round_trip(topic_id: TopicId, partition: int) -> None:
    prefix, _, name = render_id_dir(topic_id, partition).partition("/")
    assert is_prefix(prefix)
    assert name.startswith(prefix)
    assert parse_id_dir(name) == IdDir(topic_id, partition)
    # No stock broker takes it for a partition, whatever dashes the id holds.
    assert read_name(name) is None


@pytest.mark.parametrize("name", ["a", "abc", "a.", "é1", "", "a\n", "٣٣"])
def test_other_names_are_no_prefixes(name: str) -> None:
    assert not is_prefix(name)


WORK: dict[str, WorkDir | None] = {
    f"{TEXT}_3": WorkDir(ID, None, 3, 1, ""),
    f"{TEXT}_3.2": WorkDir(ID, None, 3, 2, ""),
    f"{TEXT}_3.10.purging": WorkDir(ID, None, 3, 10, "purging"),
    f"{TEXT}_3.purging": WorkDir(ID, None, 3, 1, "purging"),
    f"{TEXT}_3.ready": WorkDir(ID, None, 3, 1, "ready"),
    "no-id.a_0": WorkDir(None, "a", 0, 1, ""),
    "no-id.a.b_0.2.purging": WorkDir(None, "a.b", 0, 2, "purging"),
    "no-id.a_1.2_0": WorkDir(None, "a_1.2", 0, 1, ""),
    "no-id.no-id.a_0.3": WorkDir(None, "no-id.a", 0, 3, ""),
    f"{TEXT}_3.1": None,
    f"{TEXT}_3.0": None,
    f"{TEXT}_3.02": None,
    f"{TEXT}_3.purging.2": None,
    f"{TEXT}_3.purging.ready": None,
    f"{TEXT}_3.{'9' * 5000}": None,
    f"{TEXT}_3.old": None,
    "no-id._0": None,
    "no-id.a": None,
    "no-id.a_00": None,
    "no-id.a b_0": None,
    "a_0": None,
    "": None,
    ".purging": None,
}


@pytest.mark.parametrize("name", WORK, ids=lambda name: name[:40] or "empty")
def test_names_of_the_work_root(name: str) -> None:
    assert parse_work_dir(name) == WORK[name]
