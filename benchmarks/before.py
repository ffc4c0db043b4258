"""Whole commands of this tree against those of an earlier revision, each installed as a user has it.

``python -m benchmarks.before REVISION [--dir DIR] [--partitions N] [--rounds N]``

Both work on equal trees in turn. A change works through the ports of its log dirs, which the other benchmarks of
changes leave out.

Spec: design §10.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import HOME, ROUNDS, Row, Took, in_turn, installed, medians_of, rows_of, run, show
from benchmarks.relayout import Step, plan_bytes
from benchmarks.trees import CLUSTER_ID, FILES, NODE, make_log_dir
from benchmarks.unsynced import default_dir

PARTITIONS = 2_000
_AT_MOST = 1.05
_STAGE = ("--even-if-unknown", "--even-over-limit", "--hold", "--apply")


@contextmanager
def revision(name: str) -> Iterator[str]:
    """Install a revision of this repository; yield its ``bin``."""
    with tempfile.TemporaryDirectory(prefix="logdird-bench-") as work:
        packed = subprocess.run(["git", "-C", HOME, "archive", name], check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", work], check=True, input=packed)
        with installed(work) as bin_dir:
            yield bin_dir


def _stage(work: str, tops: Sequence[str]) -> list[str]:
    """Return the words of a stage of everything."""
    return ["stage", "topic-*", *_STAGE]


def _relayout(work: str, tops: Sequence[str]) -> list[str]:
    """Return the words that take everything to topic-id directories, with the plan that they need."""
    plan = os.path.join(work, "plan.jsonl")
    steps = []
    for top in tops:
        for name in sorted(name for name in os.listdir(top) if name.startswith("topic-")):
            topic, _, partition = name.rpartition("-")
            topic_id = Path(top, name, "partition.metadata").read_text().rpartition(" ")[2]
            steps.append(Step(top, name, topic, topic_id, int(partition)))
    Path(plan).write_bytes(plan_bytes(CLUSTER_ID, NODE, steps))
    return ["layout", "apply", plan, "--apply"]


_Words = Callable[[str, Sequence[str]], list[str]]


def _change_once(words_of: _Words, bin_dir: str, home: str, partitions: int) -> Took:
    """Make two log dirs, change everything on them, and return how long that took."""
    with tempfile.TemporaryDirectory(prefix="logdird-bench-", dir=home) as work:
        tops = [os.path.join(work, f"d{number}") for number in (1, 2)]
        for number, top in enumerate(tops, start=1):
            make_log_dir(top, partitions=partitions // 2, disk=number)
        command, named = os.path.join(bin_dir, "logdirctl"), ["--log-dirs", ",".join(tops)]
        run([command, "init", *named, "--apply"])
        words = words_of(work, tops)
        os.sync()
        took = run([command, *words, *named])
        live = [name for top in tops for name in os.listdir(top) if name.startswith("topic-")]
        if live:
            raise SystemExit(f"{len(live)} replicas were not changed, the first {live[0]}")
        return took


def _change(words_of: _Words, bins: dict[str, str], home: str, partitions: int, rounds: int) -> dict[str, Took]:
    times: dict[str, list[Took]] = {name: [] for name in bins}
    for number in range(rounds + 1):
        for name, bin_dir in bins.items():
            took = _change_once(words_of, bin_dir, home, partitions)
            if number:
                times[name].append(took)
    return medians_of(times)


def measure(name: str, home: str, partitions: int, rounds: int) -> list[Row]:
    """Measure inventories of one disk and of two, a stage and a change of layout."""
    with installed() as now, revision(name) as then, tempfile.TemporaryDirectory(dir=home) as work:
        one, two = os.path.join(work, "d1"), os.path.join(work, "d2")
        make_log_dir(one, disk=1)
        make_log_dir(two, disk=2)
        what = {"inventory, warm": one, "inventory of two disks, warm": f"{one},{two}"}
        rows = []
        for words, dirs in what.items():
            bins = {words: now, name: then}
            commands = {
                key: [os.path.join(path, "logdirctl"), "inventory", "--log-dirs", dirs] for key, path in bins.items()
            }
            rows += rows_of(in_turn(commands, rounds), {words: name}, {words: _AT_MOST})
        shutil.rmtree(one)
        shutil.rmtree(two)
        for what_for, words_of in {"stage": _stage, "layout apply": _relayout}.items():
            words = f"{what_for} of {partitions:,} × {FILES} files on two disks"
            took = _change(words_of, {words: now, name: then}, home, partitions, rounds)
            rows += rows_of(took, {words: name}, {words: _AT_MOST})
        return rows


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("--dir", metavar="DIR")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    wanted = parser.parse_args()
    print(show(measure(wanted.revision, wanted.dir or default_dir(), wanted.partitions, wanted.rounds)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
