"""What a broker and its daemon do on file systems that a test has mounted: ``python -m tests.kafka.on_mounts``.

Mounts are made by root. The broker and the daemon are run by a user without capabilities, so this is a program of its
own, which the test starts by ``.ci/as-user``.

Spec: design §3.1, §3.3; attacks A5, A14, A50.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from tests.kafka.daemon_rig import (
    OFTEN,
    PROPERTIES,
    Side,
    adopt,
    await_all_in_sync,
    await_captured,
    await_log_starts,
    beside,
    fill,
    told,
    work_root,
)
from tests.kafka.fetch import RELEASES, cache_dir, fetch
from tests.kafka.no_rights import require_no_rights
from tests.kafka.rig import Broker, Rig, await_true
from tests.kafka.undo_rig import stop
from tests.logdir.daemon.rig import Process

_SHARE_WRITTEN: Final = 0.05
_ROUNDS: Final = 36
_VALUE_BYTES: Final = 50_000


def in_place(rig: Rig, folder: Path, log_dirs: Sequence[Path]) -> None:
    """A deleted topic comes back on log dirs that are mount roots, whose work roots can only lie in them."""
    broker = _broker(rig, log_dirs, PROPERTIES)
    replicas = [[1]] * (2 * len(log_dirs))
    with beside(broker, folder / "logdird", more=OFTEN) as daemon:
        side = Side(broker, daemon)
        for log_dir in log_dirs:
            assert os.path.ismount(log_dir)
            assert work_root(log_dir).parent == log_dir
        old, written = fill(rig, "lost", replicas)
        await_log_starts(side, "lost", replicas)
        rig.client.delete("lost")
        await_captured(side, old, replicas)
        rig.client.create_on("lost", replicas)
        await_all_in_sync(rig, "lost", replicas)
        stop(broker)
        adopt(daemon, old, "lost")
        broker.start()
        await_all_in_sync(rig, "lost", replicas)
        assert told(rig, "lost", len(replicas)) == written


def filling(rig: Rig, folder: Path, log_dirs: Sequence[Path]) -> None:
    """A disk that captured replicas would fill: no write of the broker fails, and what goes is the oldest."""
    (top,) = log_dirs
    properties = {
        **PROPERTIES,
        "log.segment.delete.delay.ms": "1000",
        "log.index.size.max.bytes": "65536",
        "log.segment.bytes": "1048576",
    }
    broker = _broker(rig, [top / "kafka"], properties)
    size = shutil.disk_usage(top).total
    records = int(size * _SHARE_WRITTEN) // _VALUE_BYTES
    with beside(broker, folder / "logdird", more=OFTEN) as daemon:
        rig.client.create_on("stays", [[1]])
        least = 1.0
        for number in range(_ROUNDS):
            rig.client.create_on(f"topic-{number}", [[1]])
            await_all_in_sync(rig, f"topic-{number}", [[1]])
            rig.client.produce(f"topic-{number}", records=records, value_bytes=_VALUE_BYTES)
            rig.client.produce("stays", records=10)
            usage = shutil.disk_usage(top)
            least = min(least, usage.free / usage.total)
            rig.client.delete(f"topic-{number}")
            await_true("the broker removes it", partial(_is_removed, broker, f"topic-{number}"))
        await_true("each is told of", lambda: len(_topics(daemon, "captured", "not-captured")) == _ROUNDS)
        status = daemon.status()
        events = daemon.events()
        assert broker.is_running
        assert "No space left" not in broker.log_text
        assert rig.client.consume("stays").records == 10 * _ROUNDS
        captured, purged = ([one["path"] for one in events if one["event"] == kind] for kind in ("captured", "purged"))
        refused = [one["detail"] for one in events if one["event"] == "not-captured"]
        print(
            f"captured {status.captured}, passed {len(refused)}, purged {status.purged}, "
            f"never less than {least:.1%} free"
        )
        # More than the disk holds was written, and all of it captured but what came while too little was free.
        assert _ROUNDS * records * _VALUE_BYTES > 1.5 * size
        assert _topics(daemon, "captured", "not-captured") == {f"topic-{number}" for number in range(_ROUNDS)}
        assert all(one.startswith("low-space: ") for one in refused), refused
        assert 0 < least < 0.15  # The floor is a tenth, and was reached.
        assert status.purged >= _ROUNDS // 3
        assert len(captured) == status.captured
        assert len(purged) == status.purged
        assert len(set(purged)) == len(purged)


def _is_removed(broker: Broker, topic: str) -> bool:
    """Whether nothing is left of a topic of one partition, whether renamed or not."""
    return not any(path for top in broker.log_dirs for path in top.glob(f"{topic}-0*"))


def _topics(daemon: Process, *kinds: str) -> set[str]:
    """Return the topics of one partition that events of these kinds are about."""
    paths = (one["path"] for one in daemon.events() if one["event"] in kinds)
    return {path.partition("-0.")[0] for path in paths}


def _broker(rig: Rig, log_dirs: Sequence[Path], properties: Mapping[str, str]) -> Broker:
    """Start a broker on these log dirs."""
    broker = rig.add_broker(properties={**properties, "log.dirs": ",".join(map(str, log_dirs))})
    broker.start()
    return broker


SCENARIOS: Final[Mapping[str, Callable[[Rig, Path, Sequence[Path]], None]]] = {
    "in-place": in_place,
    "filling": filling,
}


def main(argv: Sequence[str]) -> int:
    """Run one scenario: its name, the release, a folder of its own, the mounted directories."""
    name, version, folder, *mounted = argv
    require_no_rights()
    cache = cache_dir(os.environ)
    place = Path(folder)
    libs, client_libs = fetch(version, cache), fetch(RELEASES[-1], cache)
    with Rig(version=version, libs=libs, client_libs=client_libs, cache=cache, root=place / "rig") as rig:
        SCENARIOS[name](rig, place, [Path(one) for one in mounted])
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
