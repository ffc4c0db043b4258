"""Whatever is damaged in a metadata log: an image says what the undamaged log says up to its offset, or a typed error.

No batch whose checksum fails counts, nor any behind it, and where one lies must follow from the one before. Not covered
by any checksum, and so believed: the epoch of a batch (it may make an image longer or shorter, never other), the names
of segments and snapshots, and whatever was sealed with a new checksum. Of sealed bytes we ask typed errors alone, and
that nothing of them reaches what lies before.

Spec: kafka-formats §7.3, §8; design §4; attacks A2.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from logdir.cluster import metadata_log
from logdir.cluster.image import Image
from logdir.cluster.metadata_log import Watermark
from logdir.errors import LogDirError, MalformedFileError
from logdir.wire.batch_writer import encode_batch
from logdir.wire.batches import Batch, read_batches
from logdir.wire.errors import WireError
from logdir.wire.records import HEADER
from tests.logdir.cluster.log_dir import (
    OLD,
    A,
    B,
    LogDir,
    begin,
    change,
    end,
    noop,
    partition,
    register,
    remove,
    topic,
)
from tests.logdir.wire.golden_metadata import METADATA
from tests.mutation import SEED, mutations
from tests.proof.metadata_claims import DAMAGED_LOGS
from tests.proof.plugin import Recorder

NODE = 1
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
LATE = bytes(range(1, 17))
GOLDEN = ("3.3.2-kraft", "4.3.1-kraft")
WEIGHTS = (12, 6, 1, 1)
"""Of the worlds: one that a stock node wrote takes ten times as long."""
_PIECES = (b"\0", b"\x80", b"\xff" * 4, b"\x7f\xff\xff\xff", bytes(40), bytes(512))
_EPOCH = slice(12, 16)


class Piece(NamedTuple):
    """A batch of an undamaged file."""

    batch: Batch
    sealed: bytes
    """What a checksum covers, or the place decides: all but the epoch."""


def _sealed(data: bytes) -> bytes:
    return data[: _EPOCH.start] + data[_EPOCH.stop :]


@dataclass(frozen=True, kw_only=True)
class World:
    """An undamaged log and what is said of it at each offset."""

    directory: Path
    files: Mapping[Path, bytes]
    pieces: Mapping[Path, Sequence[Piece]]
    snapshot: int
    """Where an image begins."""
    end: int
    epoch: int
    at: Mapping[int, Image]
    """By the offset they end at."""
    seen: Mapping[int, Image]
    """The same, of the log from its first record on: with every removal that it shows."""

    def read(self, to: int, known: Image | None = None, *, is_checked: bool = True) -> Image:
        mark = Watermark(offset=to, epoch=self.epoch, is_prefix_checked=is_checked)
        return metadata_log.read(str(self.directory), node_id=NODE, cluster_id=CLUSTER, watermark=mark, known=known)

    def past(self) -> Image | None:
        return metadata_log.read_with_past(str(self.directory), node_id=NODE, cluster_id=CLUSTER)

    def whole_to(self, path: Path, data: bytes) -> int | None:
        """Return the offset of the first batch of a segment that a damage reached, ``None`` if it reached none."""
        for batch, sealed in self.pieces[path]:
            if _sealed(data[batch.position : batch.position + batch.size]) != sealed:
                return batch.base_offset
        return None

    def check(self, image: Image) -> None:
        """Compare what an image says."""
        true = self.at[image.offset]
        for name in ("names", "topics", "brokers", "features", "tiered", "as_of_ms"):
            assert getattr(image, name) == getattr(true, name), name
        seen = self.seen[image.offset]
        assert image.removed.items() <= seen.removed.items()
        assert image.left.items() <= seen.left.items()


def _made(directory: Path, *, has_snapshot: bool) -> Path:
    log = LogDir(directory)
    log.lead(1)
    log.append(register(1), register(2))
    log.append(topic("a", A), partition(A, 0, (1, 2)), partition(A, 1, (1, 2)), partition(A, 2, (1, 2)))
    log.append(topic("old", OLD), partition(OLD, 0, (1, 2)))
    log.append(remove(OLD))
    log.append(change(A, 1, replicas=(2, 3), isr=(2, 3)))
    log.roll()
    log.append(noop())
    if has_snapshot:
        taken = partition(A, 1, (2, 3), leader=1, partitionEpoch=1, directories=())
        log.snapshot(register(1), register(2), topic("a", A), partition(A, 0, (1, 2)), taken, partition(A, 2, (1, 2)))
    log.append(noop(), topic("b", B), partition(B, 0, (1, 2)))
    log.append(change(A, 0, isr=(1,)), noop())
    log.lead(3)
    log.append(begin(), topic("late", LATE))
    log.append(partition(LATE, 0, (2, 1)), end(), change(LATE, 0, isr=(2,), leader=2))
    log.roll()
    log.append(remove(B))
    log.append(change(A, 2, replicas=(2, 3), isr=(2, 3)))
    log.append(change(LATE, 0, leader=1))
    log.append(noop(), noop())
    return directory


def _copied(name: str, directory: Path) -> Path:
    directory.mkdir()
    for path in (METADATA / name).iterdir():
        if path.suffix in (".log", ".checkpoint"):
            (directory / path.name).write_bytes(path.read_bytes())
    return directory


def _images(directory: Path, first: int, last: int, epoch: int) -> dict[int, Image]:
    found: dict[int, Image] = {}
    for offset in range(first, last + 1):
        mark = Watermark(offset=offset, epoch=epoch, is_prefix_checked=True)
        image = metadata_log.read(str(directory), node_id=NODE, cluster_id=CLUSTER, watermark=mark)
        assert image.ended is None
        found.setdefault(image.offset, image)
    return found


def _world(directory: Path, spare: Path) -> World:
    files = {path: path.read_bytes() for path in sorted(directory.iterdir())}
    pieces = {path: [Piece(one, _sealed(one.data)) for one in read_batches(data)] for path, data in files.items()}
    segments = [path for path in files if path.suffix == ".log"]
    last = pieces[segments[-1]][-1].batch
    spare.mkdir()
    for path in segments:
        (spare / path.name).write_bytes(files[path])
    snapshot = metadata_log.read(str(directory), node_id=NODE, cluster_id=CLUSTER).offset
    limits = last.last_offset + 1, last.leader_epoch
    return World(
        directory=directory,
        files=files,
        pieces=pieces,
        snapshot=snapshot,
        end=limits[0],
        epoch=limits[1],
        at=_images(directory, snapshot, *limits),
        seen=_images(spare, 0, *limits),
    )


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> list[World]:
    top = tmp_path_factory.mktemp("worlds")
    made = [_made(top / "with", has_snapshot=True), _made(top / "without", has_snapshot=False)]
    return [_world(one, top / f"{one.name}-log") for one in (*made, *(_copied(name, top / name) for name in GOLDEN))]


def test_an_undamaged_log_says_the_same_with_and_without_its_snapshot(worlds: list[World]) -> None:
    for world in worlds:
        assert world.end in world.at
        for offset, image in world.at.items():
            assert image.names == world.seen[offset].names
            world.check(image)
        past = world.past()
        assert (past is None) == (world.snapshot == 0)
        assert world.read(world.end, past).removed == world.seen[world.end].removed
    assert worlds[0].seen[worlds[0].end].removed.keys() == {OLD, B}
    assert worlds[0].at[worlds[0].end].removed.keys() == {B}
    assert worlds[0].seen[worlds[0].end].left.keys() == {(A, 1), (A, 2)}


def _moved(draw: random.Random, pieces: Sequence[Piece]) -> bytes:
    """Return whole batches of which one is lost, doubled, elsewhere, or says another offset or epoch."""
    batches = [batch.data for batch, _ in pieces]
    at = draw.randrange(len(batches))
    match draw.randrange(5):
        case 0:
            del batches[at]
        case 1:
            batches.insert(draw.randint(0, len(batches)), batches[at])
        case 2:
            other = draw.randrange(len(batches))
            batches[at], batches[other] = batches[other], batches[at]
        case 3:
            said = pieces[at].batch.base_offset + draw.choice((-1, 1)) * draw.choice((1, 2, 3, 1 << draw.randrange(40)))
            batches[at] = said.to_bytes(8, "big", signed=True) + batches[at][8:]
        case _:
            said = max(0, pieces[at].batch.leader_epoch + draw.choice((-1, 1, 1 << draw.randrange(30))))
            batches[at] = batches[at][: _EPOCH.start] + said.to_bytes(4, "big") + batches[at][_EPOCH.stop :]
    return b"".join(batches)


def _damaged(draw: random.Random, world: World, path: Path) -> bytes:
    if draw.random() < 0.3:
        return _moved(draw, world.pieces[path])
    (data,) = mutations([world.files[path]], _PIECES, 1, draw.randrange(1 << 30))
    return data


class Case(NamedTuple):
    """One question to a damaged log."""

    to: int
    known: Image | None
    """Read before the damage."""
    is_checked: bool


def _case(draw: random.Random, world: World) -> Case:
    to = world.end if draw.random() < 0.7 else draw.choice(sorted(world.at))
    # By a daemon that has read it before, or by one that just began.
    known = world.at[draw.choice(sorted(world.at))] if draw.random() < 0.3 else None
    return Case(to, known, draw.random() < 0.7)


def _is_typed(error: LogDirError, world: World) -> None:
    assert error.path.startswith(f"{world.directory}")
    assert error.expected
    assert error.found
    assert len(str(error).splitlines()) == 1


def _ask(world: World, case: Case) -> Iterator[Image]:
    """Yield the past and what is read behind it; nothing where that is refused."""
    past = world.past()
    if past is not None:
        yield past
    try:
        image = world.read(case.to, case.known or past, is_checked=case.is_checked)
    except (WireError, MalformedFileError) as error:
        _is_typed(error, world)
    else:
        assert image.offset <= max(world.snapshot, case.to, _known_to(case))
        yield image


def test_no_image_of_a_damaged_log_says_more_than_the_records_before_it(
    worlds: list[World], record_proof: Recorder
) -> None:
    draw = random.Random(SEED)
    count = DAMAGED_LOGS.count("logs")
    ends: dict[str, int] = dict.fromkeys(("refused", "before", "whole"), 0)
    for _ in range(count):
        (world,) = draw.choices(worlds, WEIGHTS)
        path = draw.choice(sorted(world.files))
        data = _damaged(draw, world, path)
        case = _case(draw, world)
        _put(path, data)
        try:
            images = list(_ask(world, case))
        finally:
            _put(path, world.files[path])
        first = world.whole_to(path, data)
        for image in images:
            world.check(image)
            if path.suffix == ".log" and first is not None and first >= max(world.snapshot, _known_to(case)):
                assert image.offset <= first
        ends[_end_of(world, case, images)] += 1
    assert min(ends.values()) > count // 20, ends
    record_proof(DAMAGED_LOGS, {"logs": count}, seeds=SEED)


def _known_to(case: Case) -> int:
    return 0 if case.known is None else case.known.offset


def _end_of(world: World, case: Case, images: list[Image]) -> str:
    if not images:
        return "refused"
    return "whole" if max(image.offset for image in images) >= case.to else "before"


def _put(path: Path, data: bytes) -> None:
    """Write a file over itself: cut to nothing first, ext4 would flush it at every close."""
    with path.open("r+b", buffering=0) as file:
        file.write(data)
        file.truncate(len(data))


def _forged(draw: random.Random, batch: Batch) -> bytes:
    """Return a batch with damaged records, or another header, whose checksum holds."""
    body = batch.data[HEADER.size :]
    if draw.random() < 0.8:
        (body,) = mutations([body], _PIECES, 1, draw.randrange(1 << 30))
    said: dict[str, Any] = {
        "base_offset": batch.base_offset,
        "leader_epoch": batch.leader_epoch,
        "attributes": batch.attributes,
        "last_offset_delta": batch.last_offset_delta,
        "base_timestamp": batch.base_timestamp,
        "max_timestamp": batch.max_timestamp,
        "count": batch.count,
    }
    if draw.random() < 0.3:
        field = draw.choice(sorted(said))
        bits = {"attributes": 16, "base_offset": 64, "base_timestamp": 64, "max_timestamp": 64}.get(field, 32)
        said[field] = draw.choice((0, 1, -1, draw.randrange(-(1 << bits - 1), 1 << bits - 1)))
    return encode_batch(body, **said)


def test_forged_logs_whose_checksums_hold_raise_only_typed_errors(worlds: list[World], record_proof: Recorder) -> None:
    draw = random.Random(SEED)
    count = DAMAGED_LOGS.count("logs whose checksums hold")
    refused = longer = 0
    for _ in range(count):
        (world,) = draw.choices(worlds, WEIGHTS)
        path = draw.choice(sorted(world.files))
        batch = draw.choice(world.pieces[path]).batch
        original = world.files[path]
        forged = original[: batch.position] + _forged(draw, batch) + original[batch.position + batch.size :]
        case = _case(draw, world)
        _put(path, forged)
        try:
            images = list(_ask_of_forged(world, case))
        finally:
            _put(path, original)
        for image in images:
            if path.suffix == ".log" and image.offset <= batch.base_offset:
                world.check(image)
            else:
                longer += 1
                assert all(image.topics[one].name == name for name, one in image.names.items())
                assert not image.topics.keys() & image.removed.keys()
        refused += not images
    assert refused > count // 50
    assert longer > count // 10
    record_proof(DAMAGED_LOGS, {"logs whose checksums hold": count}, seeds=SEED)


def _ask_of_forged(world: World, case: Case) -> Iterator[Image]:
    try:
        yield world.read(case.to, world.past(), is_checked=case.is_checked)
    except (WireError, MalformedFileError) as error:
        _is_typed(error, world)
