"""Frames that stock nodes sent each other, with Kafka's own reading of them."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from logdir.wire.frames import message
from logdir.wire.message import Direction, Message

_FOLDER = Path(__file__).parents[2] / "golden" / "wire"


@dataclass(frozen=True)
class GoldenFrame:
    """A line."""

    origin: str
    direction: Direction
    api: str
    key: int
    version: int
    correlation_id: int
    client_id: str | None
    header_bytes: int | None
    data: bytes
    body: Any

    @property
    def message(self) -> Message:
        return message(self.api, self.direction, self.version)


@cache
def golden_frames() -> tuple[GoldenFrame, ...]:
    """Return all of them."""
    frames = []
    for path in sorted(_FOLDER.glob("*.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            value = json.loads(line)
            frames.append(
                GoldenFrame(
                    origin=path.name.removesuffix(".jsonl.gz"),
                    direction=Direction(value["dir"]),
                    api=value["api"],
                    key=value["key"],
                    version=value["version"],
                    correlation_id=value["corr"],
                    client_id=value.get("clientId"),
                    header_bytes=value.get("headerBytes"),
                    data=bytes.fromhex(value["hex"]),
                    body=value["body"],
                )
            )
    return tuple(frames)
