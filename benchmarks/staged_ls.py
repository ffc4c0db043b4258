"""``logdirctl staged ls`` of a broker with twelve log dirs, against as many bare interpreters one after the other.

``python -m benchmarks.staged_ls [--dir DIR] [--log-dirs N] [--staged N] [--rounds N]``

Spec: design §10 (start of a command), §6 ``staged ls``.
"""

from __future__ import annotations

import argparse
import os
import tempfile

from benchmarks.measure import Row, in_turn, installed, rows_of, show
from benchmarks.stage import items_of
from benchmarks.trees import META
from benchmarks.unsynced import opened, topic_id
from logdir.disk.kernel.host import HostDisk
from logdir.disk.replica import staging
from logdir.disk.root.init import init
from logdir.disk.root.plan import plan_init

LOG_DIRS, STAGED, ROUNDS = 12, 200, 31
_AT_MOST = 150 / 124
"""150 ms, on a machine on which twelve interpreters take 124 ms."""


def make(work: str, log_dirs: int, staged: int) -> list[str]:
    """Make the log dirs of a broker and stage so many replicas on them in all; return their paths."""
    tops = [os.path.join(work, f"d{number + 1}") for number in range(log_dirs)]
    for number, top in enumerate(tops):
        os.mkdir(top)
        with open(os.path.join(top, "meta.properties"), "w", encoding="utf-8") as file:
            file.write(META.format(node=1, disk=f"{number + 10}"))
        for index in range(number, staged, log_dirs):
            path = os.path.join(top, f"topic-{index:05}-0")
            os.mkdir(path)
            with open(os.path.join(path, "partition.metadata"), "xb") as file:
                file.write(f"version: 0\ntopic_id: {topic_id(index)}".encode())
            with open(os.path.join(path, f"{0:020}.log"), "xb") as file:
                file.write(bytes(100))
        init(HostDisk(), plan_init(HostDisk(), top, fs_type="ext4", unsupported_fs=True), made_at_ms=0)
    with opened(HostDisk(), tops) as open_dirs:
        outcomes = [outcome for one in open_dirs for outcome in staging.stage(one, items_of(one))]
    if len(outcomes) != staged or any(outcome.place is None for outcome in outcomes):
        raise SystemExit("not all were staged")
    return tops


def measure(
    home: str | None = None, *, log_dirs: int = LOG_DIRS, staged: int = STAGED, rounds: int = ROUNDS
) -> list[Row]:
    """Install, make the log dirs, and run both in turn."""
    with installed() as bin_dir, tempfile.TemporaryDirectory(prefix="logdird-bench-", dir=home) as work:
        tops = make(work, log_dirs, staged)
        python = os.path.join(bin_dir, "python")
        bare = f"{log_dirs} × python -I -c pass"
        listing = f"staged ls, {log_dirs} log dirs, {staged} staged"
        commands = {
            bare: ["/bin/sh", "-c", f'for _ in {" ".join("x" * log_dirs)}; do "{python}" -I -c pass; done'],
            listing: [os.path.join(bin_dir, "logdirctl"), "staged", "ls", "--log-dirs", ",".join(tops)],
        }
        return rows_of(in_turn(commands, rounds), {listing: bare}, {listing: _AT_MOST})


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", metavar="DIR")
    parser.add_argument("--log-dirs", type=int, default=LOG_DIRS)
    parser.add_argument("--staged", type=int, default=STAGED)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    wanted = parser.parse_args()
    print(show(measure(wanted.dir, log_dirs=wanted.log_dirs, staged=wanted.staged, rounds=wanted.rounds)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
