"""Damaged copies of good files, the same ones at every run."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence

PROOF = os.environ.get("LOGDIRD_PROOF") == "1"
"""Whether to run at full size."""


def proof_size(full: int) -> int:
    """Return ``full`` in proof mode, else a tenth of it."""
    return full if PROOF else full // 10


def mutations(originals: Sequence[bytes], pieces: Sequence[bytes], count: int, seed: int = 1) -> Iterator[bytes]:
    """Yield ``count`` damaged copies: cut, bit flipped, byte or piece put in, span removed or doubled."""
    draw = random.Random(seed)
    for _ in range(count):
        data = bytearray(draw.choice(originals))
        for _ in range(draw.randint(1, 3)):
            at = draw.randint(0, len(data))
            match draw.randrange(6):
                case 0:
                    del data[at:]
                case 1 if at < len(data):
                    data[at] ^= 1 << draw.randrange(8)
                case 2:
                    data[at : at + 1] = bytes([draw.randrange(256)])
                case 3:
                    data[at:at] = draw.choice(pieces)
                case 4:
                    del data[at : at + draw.randint(1, 9)]
                case _:
                    data[at:at] = data[at : at + draw.randint(1, 30)]
        yield bytes(data)
