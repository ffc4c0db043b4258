"""Stands in for a broker: takes Kafka's lock in every log dir, notes what it found there, and runs until it is ended.

Started as ``broker.py SEEN LOG_DIR …``. It ends at once with status 1 where a lock is taken, as a broker does. It knows
nothing of logdird but the place of a work root beside a log dir, so that it can say what the start gate left.
"""

from __future__ import annotations

import fcntl
import json
import signal
import sys
import time
from pathlib import Path


def main() -> int:
    """Run; return the exit status."""
    seen, *log_dirs = sys.argv[1:]
    started_us = time.monotonic_ns() // 1000
    files = []
    for log_dir in log_dirs:
        file = Path(log_dir, ".lock").open("wb")  # noqa: SIM115 - held until the end
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            print(f"{log_dir}: {error}", file=sys.stderr)
            return 1
        files.append(file)
    handed = [Path(f"{log_dir}.logdird", "handover.json").exists() for log_dir in log_dirs]
    # Whole, or not there: who waits for it reads it at once.
    Path(f"{seen}.new").write_text(json.dumps({"started_us": started_us, "handed_over": handed}))
    Path(f"{seen}.new").rename(seen)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
