"""Plans of small fleets: the directory, its bytes, and that it appears whole or not at all."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from logdir.formats.own.inventory import Entry
from migrate.errors import OutputExistsError, PlanFormatError
from migrate.source.fleet import Fleet
from tests.migrate.fleet_builder import Builder, an_id, entry, live, live_by_id, read_json, read_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from logdir.errors import Problem

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark", reason="needs pyspark: pip install 'logdird[fleet]'")

JSON_FILES = ("summary.json", "waves.json", "disks.json", "report.html")


def frame_of(spark: SparkSession, builder: Builder) -> DataFrame:
    from migrate.source.data_source import LogDirSource, fleet_frame

    spark.dataSource.register(LogDirSource)
    return fleet_frame(spark, builder.fleet())


def plan(spark: SparkSession, builder: Builder, out: Path, former: Path | None = None, **more: Any) -> Path:
    from migrate.plan.build import plan_fleet

    plan_fleet(spark, frame_of(spark, builder), builder.fleet(), out, former, **more)
    return out


def rows(directory: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    found: list[dict[str, Any]] = []
    for path in directory.glob("*.parquet"):
        found += pq.read_table(path).to_pylist()
    return found


def holders(directory: Path, slug: str) -> list[tuple[Any, ...]]:
    return sorted(
        (row["unit"], row["node_id"], row["log_dir"] or "", row["name"] or "")
        for row in rows(directory / "conflicts")
        if row["slug"] == slug
    )


def brokers_of(directory: Path, cluster: int = 0) -> dict[int, tuple[str, list[str]]]:
    found = read_json(directory / "waves.json")["clusters"][cluster]["brokers"]
    return {broker["node_id"]: (broker["readiness"], broker["reasons"]) for broker in found}


def files_of(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.suffix != ".parquet"
    }


def two_clusters(folder: Path) -> Builder:
    """A fleet with every slug and something clean."""
    folder.mkdir()
    builder = Builder(folder)
    one, two = an_id("one"), an_id("two")
    builder.broker(1, [live("orders", 0, one), live("plain", 0)], [live("orders", 1, one)], rack="a")
    builder.broker(2, [live("orders", 0, one), live("orders", 1), entry("delete", "orders-7.x-delete")], rack="b")
    builder.broker(3, [live("orders", 0, two), entry("stray", "x-0.s-stray"), entry("unknown", "lost+found")])
    builder.broker(4, [live("renamed", 0, one)], [live_by_id("orders", 0, one)])
    builder.broker(5, [live("solo", 0, an_id("solo"))], [live("solo", 0, an_id("solo"))], node_id=6)
    builder.broker(6, [live("b", 0, problems=("partition-metadata-broken",))], problems=("meta-properties-malformed",))
    builder.broker(7, [live("c", 0, an_id("c"), problems=("symlink",))], cluster_id="other")
    builder.broker(1, [live("orders", 0, one)], cluster="west", paths=("/nowhere/at/all.jsonl",))
    return builder


@pytest.mark.slow
def test_every_slug_is_counted_and_held(spark: SparkSession, tmp_path: Path) -> None:
    out = plan(spark, two_clusters(tmp_path / "f"), tmp_path / "p")
    summary = read_json(out / "summary.json")
    # By hand, from the fleet above.
    assert summary["conflicts"] == {
        "disk-unread": 1,
        "foreign-cluster-disk": 1,
        "foreign-node-disk": 2,
        "id-in-two-clusters": 1,
        "identity-broken": 1,
        "leftover": 2,
        "metadata-file-broken": 1,
        "missing-id": 2,
        "node-id-twice": 1,
        "one-id-two-names": 1,
        "one-name-two-ids": 1,
        "partition-twice-on-broker": 2,
        "replicas-differ-in-id": 1,
        "unknown-entry": 1,
    }
    one = an_id("one")
    assert [row[0] for row in holders(out, "one-name-two-ids")] == ["east|orders"] * 6
    assert [row[1] for row in holders(out, "replicas-differ-in-id")] == [1, 2, 3, 4]
    assert {row[0] for row in holders(out, "one-id-two-names")} == {f"east|{one}"}
    assert {row[0] for row in holders(out, "id-in-two-clusters")} == {one}
    twice = [row[0] for row in holders(out, "partition-twice-on-broker")]
    assert twice == ["east|4|orders|0"] * 2 + ["east|5|solo|0"] * 2
    assert [row[:2] for row in holders(out, "node-id-twice")] == [("east|6", 5), ("east|6", 6)]
    assert holders(out, "disk-unread") == [("west|1|1", 1, "", "")]
    (unread,) = (row["detail"] for row in rows(out / "conflicts") if row["slug"] == "disk-unread")
    assert "all.jsonl" in unread
    # Two entries of one node id: each row of waves.json has the disks of its own.
    document = read_json(out / "disks.json")
    brokers = [broker for cluster in read_json(out / "waves.json")["clusters"] for broker in cluster["brokers"]]
    assert len(document["brokers"]) == len(brokers)
    of_rank = {disk["broker"]: disk["node_id"] for disk in document["disks"]}
    assert [of_rank[entry["broker"]] for entry in document["brokers"]] == [broker["node_id"] for broker in brokers]
    assert [row[0] for row in holders(out, "unknown-entry")] == ["east|3|/data/4|log-dir|lost+found"]
    assert (summary["clusters"], summary["log_dirs"], summary["replicas"]) == (2, 12, 13)
    assert summary["bytes"] == 13 * 15 + 3 * 7


@pytest.mark.slow
def test_readiness_says_what_stands_in_the_way(spark: SparkSession, tmp_path: Path) -> None:
    out = plan(spark, two_clusters(tmp_path / "f"), tmp_path / "p")
    torn = ["id-in-two-clusters", "one-id-two-names", "one-name-two-ids", "replicas-differ-in-id"]
    assert brokers_of(out) == {
        1: ("blocked", torn),
        2: ("blocked", torn),
        3: ("blocked", ["leftover", "one-name-two-ids", "replicas-differ-in-id", "unknown-entry"]),
        4: ("blocked", sorted([*torn, "partition-twice-on-broker"])),
        5: ("blocked", ["foreign-node-disk", "node-id-twice", "partition-twice-on-broker"]),
        6: ("blocked", ["identity-broken", "metadata-file-broken", "node-id-twice"]),
        7: ("blocked", ["foreign-cluster-disk", "symlink"]),
    }
    assert brokers_of(out, 1) == {1: ("unknown", ["disk-unread", "id-in-two-clusters"])}
    assert read_json(out / "summary.json")["waves"] == 0
    assert list((out / "brokers").rglob("*")) == []


def clean_fleet(folder: Path) -> Builder:
    folder.mkdir()
    builder = Builder(folder)
    builder.policy("east", min_insync=1, topics=(("o*", 2), ("[!a-z]?", 1)), racks="ignore")
    a, b = an_id("a"), an_id("b")
    quoted = '/da"ta/ü\\\t'
    builder.broker(3, [live("orders", 0, a), live("idless", 0)], log_dir="/d1")
    orders = [live("orders", 0, a), live("orders", 10, a), live("orders", 2)]
    builder.broker(1, [*orders, live("new", 0, b)], log_dir=quoted)
    builder.broker(2, [live_by_id("orders", 0, a), live("idless", 1), entry("delete", "old-0.x-delete")], log_dir="/d1")
    builder.broker(9, [], log_dir="/empty")
    return builder


@pytest.mark.slow
def test_documents_hold_a_step_for_every_replica(spark: SparkSession, tmp_path: Path) -> None:
    out = plan(spark, clean_fleet(tmp_path / "f"), tmp_path / "p")
    summary, a = read_json(out / "summary.json"), an_id("a")
    minted = summary["minted"][0]["topic_id"]
    assert [(m["cluster"], m["topic"]) for m in summary["minted"]] == [("east", "idless")]
    header, *steps, footer = read_lines(out / "brokers/east/1.jsonl")
    assert header["log_dirs"] == ['/da"ta/ü\\\t']
    assert (header["verb"], header["plan"], header["node_id"]) == ("layout", 1, 1)
    assert [(s["step"], s["from"], s["id_from"]) for s in steps] == [
        (1, "new-0", "own"),
        (2, "orders-0", "own"),
        (3, "orders-10", "own"),
        (4, "orders-2", "siblings"),
    ]
    assert steps[3] == {
        "step": 4, "op": "relayout", "log_dir": '/da"ta/ü\\\t', "from": "orders-2", "to": f"{a[:2]}/{a}_2",
        "topic": "orders", "topic_id": a, "partition": 2, "id_from": "siblings", "log_bytes": 10,
    }  # fmt: skip
    assert footer["steps"] == 4
    second = read_lines(out / "brokers/east/2.jsonl")
    assert [(s["from"], s["topic_id"], s["id_from"]) for s in second[1:-1]] == [("idless-1", minted, "minted")]
    assert [line.get("steps") for line in read_lines(out / "brokers/east/9.jsonl")] == [None, 0]
    for path in (out / "brokers").rglob("*.jsonl"):
        *body, last = path.read_bytes().splitlines(keepends=True)
        assert hashlib.sha256(b"".join(body)).hexdigest() == read_lines(path)[-1]["sha256"]
        assert path.read_bytes().decode() == "".join(_canonical(line) for line in read_lines(path))
        assert last.endswith(b"\n")


def _canonical(value: object) -> str:
    import json

    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


@pytest.mark.slow
def test_digests_and_table_say_what_the_documents_say(spark: SparkSession, tmp_path: Path) -> None:
    builder = clean_fleet(tmp_path / "f")
    out = plan(spark, builder, tmp_path / "p")
    summary, waves = read_json(out / "summary.json"), read_json(out / "waves.json")["clusters"][0]
    paths = sorted(["waves.json", *(str(p.relative_to(out)) for p in (out / "brokers").rglob("*.jsonl"))])
    lines = "".join(f"{hashlib.sha256((out / p).read_bytes()).hexdigest()}  {p}\n" for p in paths)
    assert summary["plan_sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    digests = sorted(read_lines(path)[-1]["sha256"] for path in (tmp_path / "f").iterdir())
    assert summary["inventory_sha256"] == hashlib.sha256("".join(f"{d}\n" for d in digests).encode()).hexdigest()
    wave_of = {node: number for number, wave in enumerate(waves["waves"]) for node in wave}
    table = rows(out / "steps")
    for node in (1, 2, 3):
        written = read_lines(out / f"brokers/east/{node}.jsonl")[1:-1]
        mine = sorted((row for row in table if row["node_id"] == node), key=lambda row: row["step"])
        assert [{k: v for k, v in row.items() if k not in ("cluster", "node_id", "wave")} for row in mine] == written
        assert {row["wave"] for row in mine} == {wave_of[node]}
    assert [(b["node_id"], b["steps"], b["forecast_ms"]) for b in waves["brokers"]] == [
        (1, 4, 252),
        (2, 1, 251),
        (3, 2, 251),
        (9, 0, 250),
    ]
    # orders-0: r 3, floor 2; four partitions of one replica each.
    assert (summary["waves"], summary["lower_bound"], summary["offline_during"]) == (3, 3, 5)


def many_sets(folder: Path) -> Builder:
    """A fleet with many ways to make waves, two disks per broker, ids to mint."""
    folder.mkdir()
    builder, draw = Builder(folder), random.Random(5)
    held: list[list[Entry]] = [[] for _ in range(20)]
    for number in range(60):
        topic = f"t{number % 7}"
        for broker in draw.sample(range(10), draw.choice((1, 2, 3))):
            held[2 * broker + draw.randrange(2)].append(live(topic, number, None if topic == "t3" else an_id(topic)))
    for broker in range(10):
        builder.broker(broker, held[2 * broker], held[2 * broker + 1], rack=f"r{broker % 3}")
    return builder


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 4, 64])
@pytest.mark.parametrize("make", [two_clusters, many_sets, clean_fleet])
def test_order_and_partitions_change_no_byte(spark: SparkSession, tmp_path: Path, make: Any, partitions: int) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    from migrate.plan.build import plan_fleet

    builder = make(tmp_path / "f")
    expected = plan(spark, builder, tmp_path / "p")
    shuffled = frame_of(spark, builder).orderBy(F.rand(partitions)).repartition(partitions)
    plan_fleet(spark, shuffled, builder.fleet(), tmp_path / "q")
    assert_same_plan(tmp_path / "q", expected)


def reordered(fleet: Fleet) -> Fleet:
    """Return the fleet with its clusters, their brokers and the files of these in another order."""
    draw = random.Random(3)
    clusters = []
    for cluster in reversed(fleet.clusters):
        brokers = [replace(broker, inventories=broker.inventories[::-1]) for broker in cluster.brokers]
        draw.shuffle(brokers)
        clusters.append(replace(cluster, brokers=tuple(brokers)))
    return Fleet(clusters=tuple(clusters))


@pytest.mark.slow
@pytest.mark.parametrize("groups_limit", [1000, 0])
@pytest.mark.parametrize("make", [two_clusters, many_sets])
def test_the_order_of_the_fleet_file_changes_no_byte(
    spark: SparkSession, tmp_path: Path, make: Any, groups_limit: int
) -> None:
    from migrate.plan.build import plan_fleet
    from migrate.source.data_source import fleet_frame

    builder = make(tmp_path / "f")
    expected = plan(spark, builder, tmp_path / "p", groups_limit=groups_limit)
    fleet = reordered(builder.fleet())
    assert fleet != builder.fleet()
    plan_fleet(spark, fleet_frame(spark, fleet), fleet, tmp_path / "q", groups_limit=groups_limit)
    assert_same_plan(tmp_path / "q", expected)


def assert_same_plan(found: Path, expected: Path) -> None:
    """Compare what design §7.7 says is equal: all JSON and the report by bytes, the tables by sorted rows."""
    assert set(JSON_FILES) <= files_of(expected).keys()
    assert files_of(found).keys() == files_of(expected).keys()
    assert [name for name, data in files_of(found).items() if data != files_of(expected)[name]] == []
    for table in ("conflicts", "steps"):
        assert sorted(map(str, rows(found / table))) == sorted(map(str, rows(expected / table)))


@pytest.mark.slow
def test_former_ids_are_taken_first(spark: SparkSession, tmp_path: Path) -> None:
    builder = clean_fleet(tmp_path / "f")
    first = plan(spark, builder, tmp_path / "p")
    builder.broker(10, [live("other", 0, an_id("o"))])  # other inventories, so another id would be drawn
    again = plan(spark, builder, tmp_path / "q", former=first)
    fresh = plan(spark, builder, tmp_path / "r")
    minted = [read_json(path / "summary.json")["minted"] for path in (first, again, fresh)]
    assert minted[0] == minted[1] != minted[2]


@pytest.mark.slow
def test_an_id_that_occurs_in_the_fleet_is_not_minted(spark: SparkSession, tmp_path: Path) -> None:
    from migrate.plan.mint import mint

    builder = clean_fleet(tmp_path / "f")
    first = plan(spark, builder, tmp_path / "p")
    drawn = read_json(first / "summary.json")["minted"][0]["topic_id"]
    # The id of an earlier draw lies under deleting/ of a fleet with the same digests: taken digests by hand.
    sha = read_json(first / "summary.json")["inventory_sha256"]
    assert mint(sha, "east", "idless", set()) == drawn != mint(sha, "east", "idless", {drawn})


@pytest.mark.slow
def test_nothing_is_minted_beside_an_unread_disk(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    builder = Builder(folder)
    builder.broker(1, [live("idless", 0)])
    builder.broker(2, [live("named", 0, an_id("n")), live("named", 1)])
    builder.broker(3, [], paths=("/nowhere.jsonl",))
    out = plan(spark, builder, tmp_path / "p")
    assert brokers_of(out) == {1: ("blocked", ["missing-id"]), 2: ("clean", []), 3: ("unknown", ["disk-unread"])}
    assert read_json(out / "summary.json")["minted"] == []
    assert [s["id_from"] for s in read_lines(out / "brokers/east/2.jsonl")[1:-1]] == ["own", "siblings"]


@pytest.mark.slow
def test_a_broken_metadata_file_stops_its_topic(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    builder = Builder(folder)
    builder.broker(1, [live("t", 0)])
    builder.broker(2, [live("t", 0, problems=("partition-metadata-broken",))])
    builder.broker(3, [live("u", 0)])
    out = plan(spark, builder, tmp_path / "p")
    assert brokers_of(out) == {
        1: ("blocked", ["missing-id"]),
        2: ("blocked", ["metadata-file-broken"]),
        3: ("clean", []),
    }
    assert [m["topic"] for m in read_json(out / "summary.json")["minted"]] == ["u"]


@pytest.mark.parametrize("problem", ["symlink", pytest.param("unreadable", marks=pytest.mark.slow)])
def test_a_replica_that_cannot_be_moved_blocks(spark: SparkSession, tmp_path: Path, problem: str) -> None:
    (tmp_path / "f").mkdir()
    builder = Builder(tmp_path / "f")
    builder.broker(1, [live("t", 0, an_id("t"), problems=(problem,), log_bytes=None, bytes=None)])
    assert brokers_of(plan(spark, builder, tmp_path / "p")) == {1: ("blocked", [problem])}


@pytest.mark.slow
def test_pairs_replace_sets_beyond_the_limit(spark: SparkSession, tmp_path: Path) -> None:
    builder = clean_fleet(tmp_path / "f")
    out = plan(spark, builder, tmp_path / "p", groups_limit=0)
    cluster = read_json(out / "waves.json")["clusters"][0]
    assert cluster["from"] == "pairs"
    assert cluster["lower_bound"] == 3
    assert [len(set(wave) & {1, 2, 3}) for wave in cluster["waves"]] == [1, 1, 1]


def warnings_of(spark: SparkSession, builder: Builder, out: Path) -> list[Problem]:
    told: list[Problem] = []
    plan(spark, builder, out, warn=told.append)
    return told


@pytest.mark.slow
def test_a_topic_glob_without_a_match_is_told_and_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    builder = clean_fleet(tmp_path / "f")
    builder.broker(1, [live("audit-log", 0, an_id("w")), entry("delete", "gone-0.x-delete", topic="gone")], cluster="w")
    matching = (("o*", 2), ("orders", 3), ("*", 1))  # the second is shadowed by the first, and matches all the same
    builder.policy("east", topics=matching, racks="ignore")
    assert warnings_of(spark, builder, tmp_path / "p") == []
    builder.policy("east", topics=(("Orders", 2), *matching, ("audit-*", 2)), racks="ignore")
    builder.policy("w", topics=(("audit-*", 1), ("gone", 1), ("a[!u]*", 1)))
    told = warnings_of(spark, builder, tmp_path / "q")
    assert [(problem.slug, problem.path, problem.found) for problem in told] == [
        ("fleet-topic-glob-without-match", "clusters[0].topics[Orders]", "no topic of cluster east that matches"),
        ("fleet-topic-glob-without-match", "clusters[0].topics[audit-*]", "no topic of cluster east that matches"),
        ("fleet-topic-glob-without-match", "clusters[1].topics[gone]", "no topic of cluster w that matches"),
        ("fleet-topic-glob-without-match", "clusters[1].topics[a[!u]*]", "no topic of cluster w that matches"),
    ]
    assert {problem.fix for problem in told} == {"correct or remove the glob"}
    assert files_of(tmp_path / "q") == files_of(tmp_path / "p")


@pytest.mark.slow
def test_a_topic_glob_may_mean_what_lies_on_an_unread_disk(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    builder = Builder(tmp_path / "f")
    builder.broker(1, [live("t", 0)], broken=True)
    builder.policy("east", topics=(("t", 2),))
    (problem,) = warnings_of(spark, builder, tmp_path / "p")
    assert problem.found == "no topic of cluster east that matches on the disks that were read"


@pytest.mark.slow
def test_two_entries_of_one_node_are_two_brokers(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    builder = Builder(tmp_path / "f")
    builder.broker(1, [live("t", 0, an_id("t"))], rack="b")
    builder.broker(1, [live("t", 0, an_id("t"))], rack="a")
    out = plan(spark, builder, tmp_path / "p")
    summary = read_json(out / "summary.json")
    assert (summary["conflicts"]["node-id-twice"], summary["conflicts"]["partition-twice-on-broker"]) == (1, 0)
    assert [b["rack"] for b in read_json(out / "waves.json")["clusters"][0]["brokers"]] == ["a", "b"]


@pytest.mark.slow
def test_a_plan_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    def stop(stage: str) -> None:
        if stage == "writing steps and conflicts":
            raise KeyboardInterrupt

    builder = clean_fleet(tmp_path / "f")
    (tmp_path / "out").mkdir()
    with pytest.raises(KeyboardInterrupt):
        plan(spark, builder, tmp_path / "out" / "p", progress=stop)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_taken_name_is_refused_and_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    builder = clean_fleet(tmp_path / "f")
    (tmp_path / "p").mkdir()
    with pytest.raises(OutputExistsError):
        plan(spark, builder, tmp_path / "p")
    assert list((tmp_path / "p").iterdir()) == []


def test_a_former_plan_that_is_none_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PlanFormatError):
        plan(spark, clean_fleet(tmp_path / "f"), tmp_path / "p", former=tmp_path / "f")
    assert not (tmp_path / "p").exists()
