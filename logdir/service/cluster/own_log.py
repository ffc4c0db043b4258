"""The metadata logs that this host's broker wrote: which one is in use, where it ends, and whether an image reaches its
end.

Only reads. Not here: the contents of a log (``logdir.cluster``), reading a source (``image_source``).

Spec: design §3.3 "Restore"; kafka-formats §8.1; attacks A47, A48.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from logdir.cluster.image import Image
from logdir.errors import MalformedFileError, Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts
from logdir.paths import METADATA_DIR
from logdir.service.cluster.source import QuorumWord
from logdir.service.log_dirs.config import BrokerConfig
from logdir.worker_call import worker_call


@worker_call
def own_log(named: BrokerConfig, facts: Iterable[LogDirFacts]) -> str | None:
    """Return the metadata log that the broker writes; ``None`` if there is none.

    Args:
        named: The broker; its configuration names the directory, otherwise the log dirs are searched.
        facts: Facts of its log dirs.
    """
    if named.metadata_log_dir is not None and named.is_kraft is not False:
        return f"{os.path.abspath(named.metadata_log_dir)}/{METADATA_DIR}"
    if "metadata.log.dir" in named.unknown:
        return None  # A metadata log in a log dir may be an abandoned one.
    found = _logs_in(facts)
    if len(found) < 2:
        return next(iter(found), None)
    # All but one of several logs were abandoned: the broker continues the one that ends last.
    return max(found, key=lambda path: _end_of(path) or 0)


def own_logs(named: BrokerConfig, facts: Sequence[LogDirFacts]) -> tuple[str, ...]:
    """Return every metadata log that the broker wrote: that of ``own_log``, and abandoned ones in its log dirs."""
    own = own_log(named, facts)
    return tuple(dict.fromkeys((*(() if own is None else (own,)), *_logs_in(facts))))


def _end_of(directory: str, *, is_torn_read: bool = True) -> int | None:
    # Loaded where there is a log to read: most of the start of a command that finds none would be this.
    from logdir.cluster.metadata_log import end_of

    return end_of(directory, is_torn_read=is_torn_read)


def _logs_in(facts: Iterable[LogDirFacts]) -> list[str]:
    is_there = (one for one in facts if any(replica.kind is Kind.METADATA for replica in one.replicas))
    return [f"{one.log_dir}/{METADATA_DIR}" for one in is_there]


def as_ended(image: Image, directory: str) -> Image:
    """Return the image of an own log; if bytes after its last record batch are no record batch, mark the
    image as ending before them.
    """
    if image.ended is not None or _end_of(directory, is_torn_read=False) is not None:
        return image
    found = "bytes that are no record batch after the last whole one: they may have been anything"
    return replace(image, ended=Problem(MalformedFileError.code, directory, "whole record batches to its end", found))


def _end_of_own(named: BrokerConfig, facts: Sequence[LogDirFacts]) -> int | None:
    """Return the end offset of the newest metadata log that the broker wrote; ``None`` if it is not known.

    A log abandoned by a change of ``metadata.log.dir`` ended then; only the configuration shows which log the broker
    writes now. After a torn record batch there may have been more. The configured log may be new on a replaced disk, or
    restored from an older copy: entries that another log has beyond it were committed once.
    """
    if named.metadata_log_dir is None or not named.is_kraft:
        return None
    ends = [_end_of(path, is_torn_read=False) for path in own_logs(named, facts)]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def ends_now(image: Image, named: BrokerConfig, facts: Sequence[LogDirFacts]) -> bool:
    """Whether the log of the only voter was read to its very end, so that nothing can have changed since."""
    return image.ended is None and image.offset == _end_of_own(named, facts)


def reaches(image: Image, word: QuorumWord | None, named: BrokerConfig, facts: Sequence[LogDirFacts]) -> bool:
    """Whether an image reaches a high watermark that was read after the broker stopped.

    The log of a stopped broker ends before such a watermark, because the quorum continues to write. A watermark equal
    to that end may be from before a kill, because the broker may have had everything that was committed. No own log
    reaches a watermark of another log.
    """
    if word is None or image.ended is not None:
        return False
    own_end = _end_of_own(named, facts)
    return own_end is not None and image.offset >= word.high_watermark > own_end


def is_same(one: str, other: str) -> bool:
    """Whether two paths lead to one file; ``False`` if one cannot be read."""
    try:
        return Path(one).samefile(other)
    except OSError:
        return False
