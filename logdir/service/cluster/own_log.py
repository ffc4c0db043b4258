"""The metadata logs that the broker of this host wrote: which one it writes, where it ends, and what reaches its end.

Reads only. Not here: what a log says (``desired.metadata_log``), reading a source (``desired_source``).

Spec: design §3.3 "Restore"; kafka-formats §8.1; attacks A47, A48.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from logdir.cluster import metadata_log
from logdir.cluster.image import Image
from logdir.errors import MalformedFileError, Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts
from logdir.paths import METADATA_DIR
from logdir.service.cluster.source import QuorumWord
from logdir.service.log_dirs.config import BrokerConfig


def own_log(named: BrokerConfig, facts: Iterable[LogDirFacts]) -> str | None:
    """Return the metadata log that the broker itself writes, ``None`` if there is none.

    Args:
        named: The broker; its configuration says where, else it is looked for.
        facts: Of its log dirs.
    """
    if named.metadata_log_dir is not None and named.is_kraft is not False:
        return f"{os.path.abspath(named.metadata_log_dir)}/{METADATA_DIR}"
    if "metadata.log.dir" in named.unknown:
        return None  # what lies in a log dir may be one that was left behind
    found = _logs_in(facts)
    # Of several all but one were left behind: the broker goes on with the one that ends last.
    return max(found, key=lambda path: metadata_log.end_of(path) or 0) if len(found) > 1 else next(iter(found), None)


def own_logs(named: BrokerConfig, facts: Sequence[LogDirFacts]) -> tuple[str, ...]:
    """Return every metadata log that the broker wrote: the one of ``own_log``, and what was left in its log dirs."""
    own = own_log(named, facts)
    return tuple(dict.fromkeys((*(() if own is None else (own,)), *_logs_in(facts))))


def _logs_in(facts: Iterable[LogDirFacts]) -> list[str]:
    is_there = (one for one in facts if any(replica.kind is Kind.METADATA for replica in one.replicas))
    return [f"{one.log_dir}/{METADATA_DIR}" for one in is_there]


def as_ended(image: Image, directory: str) -> Image:
    """Return what an own log says to its end, as one that has ended before it, if bytes are left that are no batch."""
    if image.ended is not None or metadata_log.end_of(directory, is_torn_read=False) is not None:
        return image
    found = "bytes behind the last one that are none: anything may have stood there"
    return replace(image, ended=Problem(MalformedFileError.code, directory, "whole batches to its end", found))


def _end_of_own(named: BrokerConfig, facts: Sequence[LogDirFacts]) -> int | None:
    """Return where the newest of the metadata logs ends that the broker wrote; ``None`` if that is not known.

    One that a moved ``metadata.log.dir`` left behind ended then: only a configuration says which log the broker writes
    now. Behind a torn batch there may have been more. The log that is configured may be new on a disk that was
    replaced, or put back from an older copy: what another one holds beyond it was committed once.
    """
    if named.metadata_log_dir is None or not named.is_kraft:
        return None
    ends = [metadata_log.end_of(path, is_torn_read=False) for path in own_logs(named, facts)]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def ends_now(image: Image, named: BrokerConfig, facts: Sequence[LogDirFacts]) -> bool:
    """Whether what the only voter has in its log was read to its very end: nothing can have changed since."""
    return image.ended is None and image.offset == _end_of_own(named, facts)


def reaches(image: Image, word: QuorumWord | None, named: BrokerConfig, facts: Sequence[LogDirFacts]) -> bool:
    """Whether an image reaches a high watermark that was learnt after the broker stopped.

    The log of a stopped broker ends before it: a quorum writes on. What was committed before stands at that end at
    most: the broker may have had it all, so a watermark at that very end may be of before a kill. No own log reaches
    another one.
    """
    if word is None or image.ended is not None:
        return False
    own_end = _end_of_own(named, facts)
    return own_end is not None and image.offset >= word.high_watermark > own_end


def is_same(one: str, other: str) -> bool:
    """Whether two paths lead to one file; ``False`` where one cannot be looked at."""
    try:
        return Path(one).samefile(other)
    except OSError:
        return False
