"""Every real KRaft tree, changed and changed back, is started by stock brokers and serves what an untouched copy does.

Of each tree one copy stays as it is. The other is taken to topic ids and back and staged and restored by processes
killed on the way. Then a stock broker is started on both: by the release that wrote the tree, and on those of 3.x by
the newest release too. Log start and log end of every partition are those of the manifest, and every field of every
record is that of the untouched copy.

Spec: design §2 law 3, §9; kafka-behaviour §10; attacks A11, A21, A36.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import trees
from tests.kafka.rig import CLEAN_EXIT
from tests.kafka.there_and_back import contents, layout_there_and_back, live, stage_there_and_back
from tests.kafka.tree_rig import KILLED, NEWEST, SEED, Start, copied, ranges, serve, starts, tree_rig
from tests.proof.claims import TREES_START
from tests.proof.plugin import Recorder
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

pytestmark = pytest.mark.kafka

OWN, UPGRADED = TREES_START.sizes


def test_the_trees_to_start_are_as_many_as_there_are() -> None:
    every = starts(own=99, upgrades=99)
    assert len(set(every)) == len(every)
    for label, upgrades in ((OWN, False), (UPGRADED, True)):
        assert sum(one.is_upgrade == upgrades for one in every) == TREES_START.sizes[label].full
    assert {one.tree for one in every} == {n for n in trees.NAMES if trees.manifest(n)["mode"] == "kraft"}


@pytest.mark.parametrize("tree", sorted({one.tree for one in starts(own=99, upgrades=99)}))
def test_what_is_expected_of_a_tree_is_its_manifest_but_for_a_log_start_a_kill_undid(tree: str) -> None:
    topics = trees.manifest(tree)["topics"]
    said = {(t, int(p)): tuple(span) for t, one in topics.items() for p, span in one["partitions"].items()}
    expected = ranges(tree)
    assert expected.keys() == said.keys()
    differ = {of: (said[of], expected[of]) for of in said if said[of] != expected[of]}
    assert differ == ({("trimmed", 0): ((45, 80), (0, 80))} if tree == KILLED else {})


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("start", starts(TREES_START.count(OWN), TREES_START.count(UPGRADED)), ids=str)
def test_a_tree_that_went_there_and_back_is_served_as_an_untouched_copy(
    start: Start,
    jars: Callable[[str], Path],
    kafka_root: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_proof: Recorder,
) -> None:
    draw = random.Random(f"{SEED} {start}")
    root = kafka_root / f"{start}-{os.urandom(4).hex()}"
    rig, broker = tree_rig(start, libs=jars(start.release), client_libs=jars(NEWEST), root=root)
    with rig:
        untouched, touched = copied(start.tree, root / "untouched"), copied(start.tree, root / "touched")
        assert contents(touched) == contents(untouched)
        words = ("--log-dirs", ",".join(map(str, touched)))
        is_clean = trees.manifest(start.tree)["shutdown"] == "clean"
        assert ctl("init", *words, "--apply").status == Exit.DONE
        kills = layout_there_and_back(touched, root, draw, monkeypatch)
        kills += stage_there_and_back(touched, draw, monkeypatch, is_clean=is_clean)
        assert ctl("uninstall", *words, "--apply").status == Exit.DONE
        # Of a killed broker restored replicas lack their last index files, which it makes again: as asserted there.
        assert not is_clean or contents(touched) == contents(untouched)

        # The client is there before the broker: what a broker of 3.7 or older keeps for a day only is read at once.
        client, wanted, served, left = rig.client, ranges(start.tree), [], []
        for log_dirs in (untouched, touched):
            broker.properties["log.dirs"] = ",".join(map(str, log_dirs))
            broker.start()
            served.append(serve(client, wanted))
            assert set(client.topics()) == {topic for topic, _ in wanted}
            assert broker.stop() == CLEAN_EXIT
            left.append(live(log_dirs))
        for found in served:
            assert {of: (said.uncommitted.begin, said.uncommitted.end) for of, said in found.items()} == wanted
        assert served[0] == served[1]
        assert left[0] == left[1] == {f"{topic}-{partition}" for topic, partition in wanted}
        # One transaction was aborted, one was left open.
        assert any(said.committed.records < said.uncommitted.records for said in served[0].values())
        assert any(said.committed.end < said.uncommitted.end for said in served[0].values())
        records = sum(said.uncommitted.records for said in served[0].values())
    record_proof(
        TREES_START,
        {UPGRADED if start.is_upgrade else OWN: 1, "kills": len(kills), "partitions": len(wanted), "records": records},
        seeds=SEED,
    )
