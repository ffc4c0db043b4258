"""``--from cluster:FILE``: what two brokers say of the topic ids on these disks (design §4, "the live cluster")."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import CLUSTER, partition
from tests.logdir.wire.client.fake_cluster import HIDDEN, FakeCluster, Present, fake_cluster
from tests.tools.ctl import Said, ctl, ctl_json, held, tree
from tests.tools.reconcile_rig import GONE, PARTITIONS, PAY, Rig
from tools.cli.arguments import Exit

HERE = Present("pay", dict.fromkeys(range(PARTITIONS), ((1, 2), (1, 2))))
ELSEWHERE = Present("gone", {0: ((2, 3), (2, 3)), 1: ((2, 3), (2, 3))})


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FakeCluster]:
    """Brokers 2 and 3; ``pay`` is on this broker, which does not run, and nobody knows ``gone``."""
    with fake_cluster(tmp_path, CLUSTER) as made:
        made.said = {2: {PAY: HERE}, 3: {PAY: HERE}}
        yield made


def strays(rig: Rig, cluster: FakeCluster) -> tuple[int, dict[str, tuple[str, str | None]]]:
    status, result = ctl_json("strays", *rig.named, "--from", cluster.uri)
    found = {one["path"]: (one["state"], one["evidence"]["proof"]) for one in result.get("items", ())}
    return status, found


def slug(said: Said) -> str:
    (problem,) = json.loads(said.out)["problems"]
    return str(problem["slug"])


def test_an_id_that_two_brokers_do_not_know_is_gone_and_nothing_changes(rig: Rig, cluster: FakeCluster) -> None:
    before = tree(*rig.disks)
    assert strays(rig, cluster) == (
        Exit.DONE, {"gone-0": ("proven", "live-cluster"), "gone-1": ("proven", "live-cluster")},
    )  # fmt: skip
    assert (cluster.asked(2), cluster.asked(3)) == (1, 1)
    assert tree(*rig.disks) == before


@pytest.mark.parametrize(
    "said",
    [
        {2: {PAY: HERE, GONE: HIDDEN}, 3: {PAY: HERE, GONE: HIDDEN}},
        {2: {PAY: HERE, GONE: HIDDEN}, 3: {PAY: HERE}},
        {2: {PAY: HERE}, 3: {PAY: HERE, GONE: ELSEWHERE}},
        {2: {PAY: HERE, GONE: 5}, 3: {PAY: HERE}},
    ],
    ids=["29", "29 and 100", "found and 100", "another error and 100"],
)
def test_nothing_is_known_where_brokers_differ_or_the_topic_is_hidden(
    rig: Rig, cluster: FakeCluster, said: dict[int, dict[str, Any]]
) -> None:
    cluster.said = said
    status, found = strays(rig, cluster)
    assert status == Exit.DONE
    assert {state for state, _ in found.values()} <= {"unknown", "unproven"}
    assert {proof for _, proof in found.values()} == {None}
    done = ctl("reconcile", *rig.named, "--from", cluster.uri, "--even-over-limit", "--apply")
    assert (rig.disks[0] / "gone-0").is_dir(), done


def test_one_broker_proves_nothing(rig: Rig, cluster: FakeCluster) -> None:
    cluster.listed = (2,)
    found = ctl("strays", *rig.named, "--from", cluster.uri, "--json")
    # With one answer not even a replica of this node is known.
    assert slug(found) == "node-not-in-source"


def test_a_broker_that_does_not_answer_is_none_of_the_two(rig: Rig, cluster: FakeCluster) -> None:
    cluster.brokers[3].replies["Metadata"] = lambda talk: talk.cut()
    assert slug(ctl("strays", *rig.named, "--from", cluster.uri, "--json")) == "node-not-in-source"
    with fake_cluster(rig.folder / "d1.logdird", CLUSTER, (4,)) as other:
        other.said = {4: {PAY: HERE}}
        cluster.brokers[4] = other.brokers[4]
        cluster.listed = (2, 3, 4)
        assert strays(rig, cluster)[1]["gone-0"] == ("proven", "live-cluster")


def test_a_topic_that_is_elsewhere_is_no_proof(rig: Rig, cluster: FakeCluster) -> None:
    cluster.said = {node: {PAY: HERE, GONE: ELSEWHERE} for node in (2, 3)}
    assert strays(rig, cluster) == (Exit.DONE, {"gone-0": ("unproven", None), "gone-1": ("unproven", None)})


def test_a_directory_of_less_than_ten_minutes_is_not_gone(rig: Rig, cluster: FakeCluster) -> None:
    young = partition(rig.disks[0] / "young-0", topic_id="AAAAAAAAAAAAAAAAAAAAfw")
    assert strays(rig, cluster)[1]["young-0"] == ("unproven", None)
    assert ctl("reconcile", *rig.named, "--from", cluster.uri, "--even-over-limit", "--apply").status == Exit.PROBLEMS
    assert young.is_dir()


def test_the_cluster_of_another_id_is_refused(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with fake_cluster(tmp_path / "other", "AAAAAAAAAAAAAAAAAAAAZw") as other:
        other.said = {node: {PAY: HERE} for node in (2, 3)}
        assert slug(ctl("strays", *rig.named, "--from", other.uri, "--json")) == "source-foreign"


def test_two_brokers_of_two_clusters_are_refused(rig: Rig, cluster: FakeCluster) -> None:
    cluster.cluster_ids[3] = "AAAAAAAAAAAAAAAAAAAAZw"
    assert slug(ctl("strays", *rig.named, "--from", cluster.uri, "--json")) == "source-foreign"


def test_a20_a_cluster_that_lists_this_node_while_no_broker_runs_here_is_refused(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "listed").mkdir()
    with fake_cluster(tmp_path / "listed", CLUSTER, (1, 2)) as made:
        made.said = {node: {PAY: HERE} for node in (1, 2)}
        said = ctl("reconcile", *rig.named, "--from", made.uri, "--json")
        assert slug(said) == "node-runs-elsewhere"


def test_a_cluster_that_cannot_be_reached_is_one_error(rig: Rig, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1\n")
    for words in (("strays",), ("reconcile",), ("stage", "pay-0"), ("staged", "purge")):
        said = ctl(*words, *rig.named, "--from", f"cluster:{file}")
        assert said.err.count("cluster-unreachable") == 1, said
        assert said.status == Exit.REFUSED, said


def test_reconcile_stages_what_is_gone_and_purge_needs_an_answer_of_later(rig: Rig, cluster: FakeCluster) -> None:
    done = ctl("reconcile", *rig.named, "--from", cluster.uri, "--even-over-limit", "--delay-ms", 0, "--apply")
    assert done.status == Exit.DONE, done
    assert not (rig.disks[0] / "gone-0").exists()
    status, result = ctl_json("staged", "ls", *rig.named, "--from", cluster.uri)
    assert status == Exit.DONE
    (first, _) = result["items"]
    assert (first["evidence"]["kind"], first["evidence"]["proof"], first["assigned"]) == (
        "removed", "live-cluster", "gone",
    )  # fmt: skip
    refused = ctl("staged", "purge", GONE, *rig.named, "--from", cluster.uri, "--json")
    assert {one["slug"] for one in json.loads(refused.out)["problems"]} == {"no-evidence"}
    restored = ctl("staged", "restore", GONE, *rig.named, "--from", cluster.uri, "--json")
    assert {one["slug"] for one in json.loads(restored.out)["problems"]} == {"topic-gone"}


def test_a43_what_is_assigned_here_again_is_not_purged_and_can_be_restored(rig: Rig, cluster: FakeCluster) -> None:
    done = ctl("reconcile", *rig.named, "--from", cluster.uri, "--even-over-limit", "--delay-ms", 0, "--apply")
    assert done.status == Exit.DONE, done
    back = Present("gone", {0: ((1, 2), (2,)), 1: ((1, 2), (2,))})
    cluster.said = {node: {PAY: HERE, GONE: back} for node in (2, 3)}
    said = ctl("staged", "purge", GONE, *rig.named, "--from", cluster.uri, "--json")
    assert {one["slug"] for one in json.loads(said.out)["problems"]} == {"assigned-here"}
    # One of two brokers is enough to keep it.
    cluster.said[3].pop(GONE)
    said = ctl("staged", "purge", GONE, *rig.named, "--from", cluster.uri, "--json")
    assert {one["slug"] for one in json.loads(said.out)["problems"]} == {"assigned-here"}


def test_stage_says_who_else_is_in_sync(rig: Rig, cluster: FakeCluster) -> None:
    said = ctl("stage", "pay-0", *rig.named, "--from", cluster.uri)
    assert said.status == Exit.DONE, said
    assert "in the ISR of node 2" in said.out
    alone = Present("pay", dict.fromkeys(range(PARTITIONS), ((1, 2), (1,))))
    cluster.said[3][PAY] = alone
    said = ctl("stage", "pay-0", *rig.named, "--from", cluster.uri, "--json")
    assert "last-in-sync" in {one["slug"] for one in json.loads(said.out)["problems"]}


def test_describe_does_not_take_it(rig: Rig, cluster: FakeCluster) -> None:
    said = ctl("describe", *rig.named, "--from", cluster.uri)
    assert said.status == Exit.USAGE
    assert "expected a source with every partition" in said.err


@pytest.mark.parametrize(
    "words",
    [
        ("strays",),
        ("reconcile", "--even-over-limit", "--apply"),
        ("stage", "pay-0", "--apply"),
        ("staged", "restore", "pay-11", "--apply"),
        ("staged", "purge", "pay-11", "--even-if-early", "--apply"),
    ],
    ids=" ".join,
)
def test_no_lock_of_kafkas_is_held_while_brokers_are_asked(
    rig: Rig, cluster: FakeCluster, words: tuple[str, ...]
) -> None:
    assert ctl("stage", "pay-11", *rig.named, "--from", cluster.uri, "--apply").status == Exit.DONE
    answered = cluster.metadata
    seen = []

    def looking(node_id: int, talk: Any) -> None:
        for disk in rig.disks:
            # A broker could take it now.
            with held(disk / ".lock"):
                seen.append(node_id)
        answered(node_id, talk)

    cluster.metadata = looking  # type: ignore[method-assign]
    said = ctl(*words, *rig.named, "--from", cluster.uri)
    assert said.status in (Exit.DONE, Exit.PROBLEMS, Exit.REFUSED), said
    assert set(seen) == {2, 3}


def test_the_rule_is_that_of_topic_ids(rig: Rig, cluster: FakeCluster) -> None:
    said = ctl("reconcile", *rig.named, "--from", cluster.uri)
    assert "KIP-516, Describe Topics: two brokers know no such topic id" in said.out
