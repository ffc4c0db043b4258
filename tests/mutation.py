"""Damaged copies of good files, the same ones at every run."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

SEED = 1
"""What damage is drawn with."""


def mutations(originals: Sequence[bytes], pieces: Sequence[bytes], count: int, seed: int = SEED) -> Iterator[bytes]:
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
