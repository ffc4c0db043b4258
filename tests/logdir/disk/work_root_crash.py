"""On what work roots are made and taken away: for their tests and their descriptors."""

from __future__ import annotations

from logdir.disk.root.init import init
from logdir.disk.root.plan import plan_init
from logdir.disk.root.removal import remove_root
from tests.builders import CLUSTER, DIRECTORY, META, TOPIC_ID
from tests.crash.model import ModelHost

SHAPES = {"beside": "/d1/kafka", "in-place": "/d1", "inside": "/d1/kafka"}
META_TEXT = META.format(node=1, directory=DIRECTORY, cluster=CLUSTER).encode()
RESERVE_BYTES = 48


def start(shape: str) -> ModelHost:
    host = ModelHost.with_disks("/d1", uid=7, gid=8)
    path = SHAPES[shape]
    host.plant(f"{path}/meta.properties", META_TEXT)
    live = f"{TOPIC_ID[:2]}/{TOPIC_ID}_0" if shape == "inside" else "a-0"
    host.plant(f"{path}/{live}/00000000000000000000.log", b"x")
    return host


def make(host: ModelHost, shape: str) -> None:
    done = init(host, plan_init(host, SHAPES[shape], fs_type="ext4"), made_at_ms=5, reserve_bytes=RESERVE_BYTES)
    assert done.kind.value == shape


def remove(host: ModelHost, shape: str) -> None:
    remove_root(host, SHAPES[shape])
