"""A process that removes all claimed replicas of a log dir side by side, and is gone before one call.

``python -m tests.logdir.disk.dying_purge LOG_DIR CALL``: ends with 9 if it came to that call, with 0 if all is gone.
"""

from __future__ import annotations

import os
import sys
from itertools import count

from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.replica.purge import remove_all
from logdir.disk.root.work_root import open_root


def main(log_dir: str, last: str) -> None:
    """Remove them, as far as it comes."""
    calls = count()

    def tell(call: Call) -> None:
        if next(calls) == int(last):
            os._exit(9)

    with open_root(HostDisk(tell), log_dir) as root:
        open_dir = root.open_dir
        names = [name for name in open_dir.deleting.names() if name.endswith(".purging")]
        remove_all(open_dir, names, in_use=lambda directory, name: False, at_once=2)


if __name__ == "__main__":
    main(*sys.argv[1:])
