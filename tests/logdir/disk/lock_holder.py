"""A process that holds a lock of one kind until its standard input ends: ``python lock_holder.py KIND PATH``."""

import fcntl
import os
import struct
import sys

KIND, PATH = sys.argv[1:]
descriptor = os.open(PATH, os.O_RDWR | os.O_CREAT, 0o644)
if KIND == "posix":
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
else:
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
print("held", flush=True)
sys.stdin.read()
