"""Whether Kafka's lock of a log dir is held, as a broker that starts would find out; takes no lock.

Spec: design §2 law 4; fcntl(2).
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import Final

_FLOCK: Final = struct.Struct("hhqqi4x")


def is_held(log_dir: Path) -> bool:
    """Whether a broker could not take Kafka's lock now."""
    try:
        descriptor = os.open(log_dir / ".lock", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        asks = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind: int = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asks))[0]
    finally:
        os.close(descriptor)
    return kind != fcntl.F_UNLCK
