"""Whether a broker runs on log dirs, by Kafka's lock; takes no lock, and makes no file.

Not here: taking the locks (``disk.locks``).

Spec: design §2 law 4; attacks A22.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from logdir.disk.locks import KAFKA_LOCK, holder
from logdir.errors import ConfigError, Problem

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


def is_running(log_dirs: Iterable[str]) -> bool:
    """Whether somebody holds Kafka's lock in a log dir; takes none, and makes no file.

    Raises:
        ConfigError: a lock file may not be read, and no other can be.
    """
    denied: ConfigError | None = None
    is_asked = False
    for log_dir in log_dirs:
        path = f"{log_dir}/{KAFKA_LOCK}"
        try:
            descriptor = os.open(path, _OPEN)
        except PermissionError as error:
            problem = Problem("config-error", path, "the right to read it", str(error.strerror))
            denied = ConfigError((problem,))
            continue
        except OSError:
            continue  # a log dir that is away tells nothing; the others' locks are held, too
        try:
            is_asked = True
            if holder(descriptor) is not None:
                return True
        finally:
            os.close(descriptor)
    if denied is not None and not is_asked:
        raise denied
    return False
