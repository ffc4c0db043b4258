"""A process that holds a lock of one kind until its standard input ends: ``python lock_holder.py KIND PATH``."""

import fcntl
import os
import struct
import sys


def hold(kind: str, path: str) -> None:
    """Take the lock, say so, and keep it until standard input ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    if kind == "posix":
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
    print("held", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    hold(*sys.argv[1:])
