"""What a start of a broker lost of its checkpoint files, over all log dirs: in words, and the way back.

Nothing of it keeps a broker from its start: no record is lost by it. Lost log starts bring back records that
``kafka-delete-records`` removed; an operator puts them back, or accepts that (``LogStarts``). The other files are
written anew by a broker that starts.

Not here: what counts as lost (``decide.checkpoint_copies``), reading the files (``disk.record.handover``).

Spec: design §8; kafka-behaviour §2.9, §2.12; attacks A30.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple

from logdir.decide import log_start
from logdir.decide.checkpoint_copies import Losses, LostLogStart, directory_of
from logdir.disk.record import checkpoints, handover
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, LogDirSuspectError, Problem, RefusedError
from logdir.formats.kafka.offset_checkpoint import TopicPartition
from logdir.formats.own.replica_marker import Checkpoints
from logdir.paths import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from logdir.refusal_slug import Why
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.text import utc
from logdir.worker.remote import gather

LOG_STARTS_LOST: Final = "checkpoint-log-starts-lost"
ENTRIES_LOST: Final = "checkpoint-entries-lost"
LOSSES: Final = frozenset((LOG_STARTS_LOST, ENTRIES_LOST, Why.CHECKPOINT_UNREADABLE.value))
"""Slugs of all problems here."""
_NAMED: Final = 3
"""How many partitions a message names."""
_RESTORE: Final = "logdirctl handover --log-starts restore"
_WRITTEN_ANEW: Final = {
    RECOVERY_POINTS: "after an unclean stop it reads these logs in full",
    HIGH_WATERMARKS: "its replicas learn them from their leaders",
    CLEANER_OFFSETS: "it compacts these logs from their beginning",
}
"""What follows from the loss of entries, until a broker that runs writes the file anew."""


class LogStarts(Enum):
    """What becomes of log starts that a start of the broker lost."""

    RESTORE = "restore"
    """They are written back, as high as a copy has them, where none lies behind the end of its log."""
    ACCEPT = "accept"
    """The older copies are forgotten, and the records stay that are there again."""


class Comparisons:
    """The last comparison of each log dir; it is made again only where a file has changed."""

    def __init__(self) -> None:
        """Begin with none."""
        self._last: dict[str, tuple[str, tuple[Problem, ...]]] = {}
        """Stamp and problems, by log dir."""

    def compare(self, broker: OpenBroker, open_dirs: Sequence[OpenLogDir]) -> tuple[Problem, ...]:
        """Compare the checkpoint files of log dirs with their copies; return what was lost. Only reads.

        A log dir that does not answer is noted. One whose files cannot be read has no problem here: a handover reports
        it.

        Args:
            broker: The broker.
            open_dirs: Some of its log dirs that answer.
        """
        last, self._last = self._last, {}
        begun = [
            (one.log_dir, broker.begin_at(handover.compare, one, last.get(one.log_dir, ("", ()))[0]))
            for one in open_dirs
        ]
        gather(pending for _, pending in begun)
        for log_dir, pending in begun:
            try:
                with map_os_errors(log_dir):
                    stamp, losses = pending.result()
            except LogDirSuspectError as error:
                broker.ports.note(error)
            except LogDirError:
                continue
            else:
                is_same = losses is None
                problems = last[log_dir][1] if is_same else tuple(problems_of(log_dir, losses or Losses()))
                self._last[log_dir] = stamp, problems
        return tuple(problem for _, problems in self._last.values() for problem in problems)


def compared(broker: OpenBroker, open_dirs: Sequence[OpenLogDir]) -> tuple[Problem, ...]:
    """Compare once, as ``Comparisons.compare``."""
    return Comparisons().compare(broker, open_dirs)


def problems_of(log_dir: str, losses: Losses) -> Iterator[Problem]:
    """Yield the problems of the losses of a log dir: one for each file."""
    if losses.log_starts:
        copied_ms = max(one.copied_ms for one in losses.log_starts)
        wanted = _listed([f"{directory_of(one.partition)} at {one.offset}" for one in losses.log_starts])
        yield Problem(
            LOG_STARTS_LOST,
            f"{log_dir}/{LOG_STARTS}",
            f"the log starts of the copy of {utc(copied_ms)} (UTC): {wanted}",
            "lower ones" if all(one.found is not None for one in losses.log_starts) else "none, or lower ones",
            f"records that kafka-delete-records removed are served again: stop the broker, then {_RESTORE}; or accept "
            "that: logdirctl handover --log-starts accept",
        )
    for lost in losses.entries:
        names = _listed([directory_of(partition) for partition in lost.partitions])
        yield Problem(
            ENTRIES_LOST,
            f"{log_dir}/{lost.name}",
            f"the entries of the copy of {utc(lost.copied_ms)} (UTC) for {names}",
            "none of them: a start of the broker failed, or emptied the file",
            f"a broker that runs writes it anew, and until then {_WRITTEN_ANEW[lost.name]}; look into its log for why "
            "its last start failed",
        )
    for name in losses.malformed:
        yield Problem(
            Why.CHECKPOINT_UNREADABLE.value,
            f"{log_dir}/{name}",
            "a checkpoint file as Kafka writes it",
            "one that no broker reads: it takes the log dir offline, or cannot open its partitions",
            f"stop the broker and move the file away: a missing one counts as empty; then {_RESTORE}",
        )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


class Restorable(NamedTuple):
    """The log starts that a log dir has lost, by what becomes of them."""

    offsets: dict[TopicPartition, int]
    """Those to write back."""
    left: tuple[LostLogStart, ...]
    """Those that are not, because of where their logs end."""
    stamp: str
    """Of the files that were compared."""


def restorable(broker: OpenBroker, open_dir: OpenLogDir) -> Restorable:
    """Return the log starts to write back in a log dir, and those that are not. Reads the end of each log.

    Raises:
        LogDirError: the files or the log dir cannot be read.
    """
    with map_os_errors(open_dir.log_dir):
        stamp, losses = broker.begin_at(handover.compare, open_dir).result()
    wanted: dict[TopicPartition, int] = {}
    left: list[LostLogStart] = []
    for one in (losses or Losses()).log_starts:
        end = broker.ports.log_end(open_dir.log_dir, open_dir.log_dir, directory_of(one.partition))
        entries, _ = log_start.within(Checkpoints(log_start=one.offset), end)
        if entries.log_start is None:
            left.append(one)
        else:
            wanted[one.partition] = one.offset
    return Restorable(wanted, tuple(left), stamp)


def put_back(broker: OpenBroker, open_dir: OpenLogDir, found: Restorable) -> None:
    """Write log starts back into the checkpoint file of a log dir; every lock of the broker is held.

    To read the ends of many logs takes a while, without a lock: a broker may have run and ended meanwhile, and its logs
    may be others now.

    Raises:
        RefusedError: a file is not as it was compared.
        LogDirError: as ``disk.record.checkpoints.put_back_log_starts``.
    """
    with map_os_errors(open_dir.log_dir):
        if broker.begin_at(handover.compare, open_dir, found.stamp).result().losses is not None:
            raise RefusedError(
                f"{open_dir.log_dir}/{LOG_STARTS}",
                why=Why.CHANGED,
                expected="checkpoint files as they were when the ends of the logs were read",
                found="a file that was written since",
                fix="nothing was written back in this log dir: repeat the command",
            )
        broker.begin_at(checkpoints.put_back_log_starts, open_dir, found.offsets).result()
