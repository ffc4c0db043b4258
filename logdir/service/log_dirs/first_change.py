"""The first change of this release on the log dirs of a broker: what is kept from then on, and where.

``logdirctl init`` says it before it makes the first work root of a host. On work roots that an older release made, the
first command with ``--apply`` says it before it changes anything. Which command is the first is read off
``work-root.json``: the first one brings it to the version of this release (``disk.root.upgrade``). Nothing else is kept
for that, so a work root that is made anew is explained anew.

Not here: making work roots (``service.init``).

Spec: design §3.2, §3.3; issue "The daemon at home on a host"; style §5.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from logdir.decide.staged.deadline import DEFAULT_DELAY_MS
from logdir.disk.root.reserve import RESERVE_BYTES
from logdir.disk.root.upgrade import upgrade
from logdir.errors import DiskFullError, LogDirSuspectError, Problem
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors_or_quarantine
from logdir.service.report.reporter import Reporter
from logdir.text import age, size
from logdir.worker.remote import gather


def what_is_kept(places: Iterable[str]) -> str:
    """Return the text for an operator about what is kept, of several lines.

    Args:
        places: The paths of the work roots.
    """
    return f"""\
What is kept on this host, and where (logdirctl uninstall takes it back):
  in the work root of each log dir, and nowhere else: {", ".join(places)}
  deleting/   replicas staged, whole, until their deadline ({age(DEFAULT_DELAY_MS)} after the staging, if no other delay
  is set) or until you restore or purge them; nothing of them is deleted before
  incoming/   captures and adoptions that are not complete
  reserve     {size(RESERVE_BYTES)}, given up when the disk is full; probe/, owner.lock, work-root.json
  heartbeat.json, staging-limit.json, controller.json, handover.json   when this host ran, how much was staged within
  24 hours, the newest metadata offset that a reconcile acted on, and copies of the broker's checkpoint files
  in a replica that is staged: replica.json, with the reason and the deadline
  what is staged is listed by logdirctl staged ls; logdirctl staged restore brings it back"""


def begin(broker: OpenBroker, reporter: Reporter) -> None:
    """Bring the work roots of an older release to the version of this one, and say what is kept from now on.

    Args:
        broker: The broker, opened for changes; the command has changed nothing yet.
        reporter: Hears the text, if a work root was of an older release.

    Raises:
        LogDirError: as ``upgrade_all``.
    """
    if upgrade_all(broker):
        reporter.warn(what_is_kept(open_dir.work.path for open_dir in broker.open_dirs))


def upgrade_all(broker: OpenBroker) -> tuple[str, ...]:
    """Bring the work roots of log dirs that may be changed to the version of this release.

    A full disk keeps its work root as it is, for the next time: nothing that is new can be written there either. A log
    dir that stops answering is noted.

    Returns:
        The log dirs whose work root was of an older release.

    Raises:
        LogDirError: as ``disk.root.upgrade``, for a log dir that ``--skip-log-dir`` does not name.
    """
    begun = {open_dir.log_dir: broker.begin_at(upgrade, open_dir) for open_dir in broker.changeable}
    gather(begun.values())
    older = []
    for log_dir, pending in begun.items():
        with _noting(broker, log_dir):
            if pending.result():
                older.append(log_dir)
    return tuple(older)


@contextmanager
def _noting(broker: OpenBroker, log_dir: str) -> Iterator[None]:
    def close(closed: str, why: Problem) -> None:
        broker.quarantined.setdefault(closed, why)
        broker.notes.append(why)

    try:
        with map_os_errors_or_quarantine(log_dir, broker.without, close):
            try:
                yield
            except DiskFullError:
                return
    except LogDirSuspectError as error:
        broker.ports.note(error)
