"""A metadata log read while its broker appends, truncates, rolls, snapshots and renames."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from logdir.cluster import metadata_log
from logdir.cluster.image import Image
from logdir.cluster.metadata_log import Watermark
from logdir.wire.metadata_records import MetadataRecord
from tests.logdir.cluster.log_dir import LogDir, noop, register, topic

TOPICS = 400


class Writer(threading.Thread):
    """Creates topics one by one, with an uncommitted tail now and then that is cut off again."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.log = LogDir(directory)
        self.log.lead(1)
        self.log.append(register(1))
        self.committed = self.log.offset
        self.topics_at = {self.committed: 0}
        self.is_done = False

    def run(self) -> None:
        made: list[MetadataRecord] = [register(1)]
        for number in range(1, TOPICS + 1):
            made.append(topic(f"t{number}", number.to_bytes(16, "big")))
            self.log.append(made[-1], noop())
            self.topics_at[self.log.offset] = number
            self.committed = self.log.offset
            if number % 7 == 0:
                self._lose_a_tail(number)
            if number % 40 == 0:
                self._snapshot(made)
            if number % 25 == 0:
                self.log.roll()
        self.is_done = True

    def _lose_a_tail(self, number: int) -> None:
        """A deposed leader's record, that a new one overwrites."""
        size, offset = self.log.segment.stat().st_size, self.log.offset
        self.log.append(topic(f"lost{number}", (1000 + number).to_bytes(16, "big")))
        os.truncate(self.log.segment, size)
        self.log.offset = offset
        self.log.lead(self.log.epoch + 1)
        self.topics_at[self.log.offset] = number
        self.committed = self.log.offset

    def _snapshot(self, made: list[MetadataRecord]) -> None:
        hidden = self.log.directory / "being-written.checkpoint.part"
        path = self.log.snapshot_at(hidden, *made)
        hidden.rename(path)
        self.log.roll()
        for segment in sorted(self.log.directory.glob("*.log"))[:-1]:
            segment.rename(f"{segment}.deleted")
        for old in sorted(self.log.directory.glob("*.checkpoint"))[:-1]:
            old.rename(f"{old}.deleted")


def test_every_image_is_what_was_committed_at_its_offset(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "__cluster_metadata-0")
    writer.start()
    known: Image | None = None
    offsets: set[int] = set()
    while writer.is_alive() or not offsets or max(offsets) < writer.committed:
        committed = writer.committed
        # The epoch of the leader that said so, so that a lost tail of an older one is not taken for its own.
        mark = Watermark(offset=committed, epoch=writer.log.epoch, is_prefix_checked=True)
        image = metadata_log.read(str(writer.log.directory), node_id=1, cluster_id="x", watermark=mark, known=known)
        assert image.ended is None
        count = writer.topics_at[image.offset]
        assert set(image.names) == {f"t{number}" for number in range(1, count + 1)}
        assert not image.removed
        assert known is None or image.offset >= known.offset
        offsets.add(image.offset)
        known = image
    writer.join()
    assert writer.is_done
    assert max(offsets) == writer.committed
