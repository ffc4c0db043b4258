"""What a daemon must be able to do on every log dir of its broker, proven before it relies on it.

It runs as the owner of the log dirs, and can link and lease a file of the broker on each disk.

Not here: the proof on one log dir (``disk.root.probe``).

Spec: design §5, §6; attacks A7, A9, A17.
"""

from __future__ import annotations

import os

from logdir.disk.root.work_root import WorkRoot
from logdir.errors import LogDirError, LogDirSuspectError, NoPermissionError, WorkRootOwnedError
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.log_dirs.ports import connected
from logdir.service.log_dirs.request import BrokerRequest
from logdir.worker.remote import gather
from logdir.worker.state import take_owner_lock
from logdir.worker.work_root import prove_use


def check(request: BrokerRequest) -> tuple[LogDirError, ...]:
    """Prove on every log dir what a start of the daemon needs there; changes nothing that lasts.

    A log dir on which another logdird process works was proven by that process, and is passed over.

    Returns:
        The error of each log dir that fails, in the order of the configuration.

    Raises:
        ConfigError: the broker's configuration is invalid.
    """
    errors: list[LogDirError] = []
    with connected(request) as ports:
        for log_dir, pending in ports.begin_roots(is_start_block_allowed=False):
            try:
                with map_os_errors(log_dir):
                    require_owner(pending.result())
                    ports.port(log_dir).run_opened(take_owner_lock)
                    ports.port(log_dir).run_opened(prove_use)
            except WorkRootOwnedError:
                continue
            except LogDirError as error:
                errors.append(error)
    return tuple(errors)


def require_owner(root: WorkRoot) -> None:
    """Check that this process runs as the owner of a log dir.

    Raises:
        NoPermissionError: it runs as another user.
    """
    uid = os.geteuid()
    if root.open_dir.owner.uid != uid:
        raise NoPermissionError(
            root.open_dir.log_dir,
            expected=f"a log dir of user {uid}, as which logdird runs",
            found=f"one of user {root.open_dir.owner.uid}",
            fix="run logdird as the owner of the log dirs; all of them have the same",
        )


def prove(broker: OpenBroker) -> dict[str, LogDirError]:
    """Prove on every log dir that may be changed that files of the broker can be linked and leased.

    A log dir that does not answer in time is noted.

    Returns:
        The error of each log dir that fails, in the order of the configuration.
    """
    errors: dict[str, LogDirError] = {}
    begun = {
        open_dir.log_dir: broker.ports.port(open_dir.log_dir).begin_opened(prove_use) for open_dir in broker.changeable
    }
    gather(begun.values())
    for log_dir, pending in begun.items():
        try:
            with map_os_errors(log_dir):
                pending.result()
        except LogDirSuspectError as error:
            broker.ports.note(error)
        except LogDirError as error:
            errors[log_dir] = error
    return errors
