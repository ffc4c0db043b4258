"""The judge judged: the generator's shares, and tiny fleets whose plan was worked out by hand."""

from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.oracle.conflicts import SLUGS
from tests.oracle.drafts import DAMAGES, new_entry, new_line, render_inventory
from tests.oracle.fleets import make_damaged_fleet, make_fleet, slug_shares, unproven_slugs
from tests.oracle.handmade import ID_A, ID_B, PLAIN, Tiny, live
from tests.oracle.oracle import Answer, answer, floor_of, mint, mint_free
from tests.oracle.reading import Cluster, parse_inventory


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny(tmp_path)


def brokers_of(found: Answer, number: int = 0) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = found.clusters[number].waves_entry["brokers"]
    return rows


def units_of(found: Answer, slug: str) -> dict[str, int]:
    """Unit -> holders."""
    rows = [row[-1] for row in found.conflict_rows if row[0] == slug]
    return {unit: rows.count(unit) for unit in rows}


def test_forty_fleets_show_each_slug_in_a_quarter_and_spare_a_quarter(tmp_path: Path) -> None:
    answers = [answer(make_fleet(seed, tmp_path / str(seed)).path) for seed in range(40)]
    assert unproven_slugs(answers) == [], slug_shares(answers)
    states = [found.summary["brokers"] for found in answers]
    brokers = sum(sum(state.values()) for state in states)
    assert sum(state["clean"] for state in states) > brokers / 2
    assert sum(state["unknown"] for state in states) > 10
    assert {step["id_from"] for found in answers for step in found.steps} == {"own", "siblings", "minted"}
    assert any(
        all(broker["readiness"] == "clean" for broker in one.waves_entry["brokers"])
        for found in answers
        for one in found.clusters
    )


def test_slug_shares_notice_a_slug_that_never_comes(tiny: Tiny) -> None:
    tiny.cluster("k")
    tiny.broker("k", 1, ("/d", [live("t", 0, ID_A)]))
    assert set(unproven_slugs([tiny.answer()])) == set(SLUGS)


def test_a_seed_writes_the_same_bytes_again(tmp_path: Path) -> None:
    def listing() -> dict[str, bytes]:
        make_fleet(7, tmp_path / "f")
        files = {str(path): path.read_bytes() for path in (tmp_path / "f").rglob("*") if path.is_file()}
        shutil.rmtree(tmp_path / "f")
        return files

    assert listing() == listing()


def test_every_damage_is_sown_within_some_hundred_seeds() -> None:
    from tests.oracle.fleets import make_drafts

    drafts = [make_drafts(seed)[0] for seed in range(400)]
    brokers = [broker for clusters in drafts for cluster in clusters for broker in cluster.brokers]
    assert {disk.damage for broker in brokers for disk in broker.disks} == {None, *DAMAGES}
    assert any(broker.walked for broker in brokers)


def test_every_damage_makes_its_broker_unknown(tmp_path: Path) -> None:
    rows = brokers_of(answer(make_damaged_fleet(tmp_path).path))
    assert [row["readiness"] for row in rows] == ["blocked", "clean", *["unknown"] * (len(rows) - 2)]
    found = answer(tmp_path / "fleet.yaml")
    numbers = [
        len([unit for unit in units_of(found, "disk-unread") if unit.startswith(f"all-damages|{n}|")])
        for n in range(len(rows))
    ]
    assert numbers == [0, 0, *[1] * len(DAMAGES), 2, 2, 2, 1]


def test_two_brokers_in_one_rack_by_hand(tiny: Tiny) -> None:
    tiny.cluster("k", cluster_id="K")
    tiny.broker("k", 2, ("/d", [live("t", 0, ID_A), live("u", 0, None, log_bytes=7)]))
    tiny.broker("k", 1, ("/e", [live("t", 0, None)]), ("/d", [live("solo", 3, ID_B, by_id=True)]))
    found = tiny.answer()
    everything = hashlib.sha256("".join(f"{one}\n" for one in sorted(tiny.digests.values())).encode()).hexdigest()
    raw = bytearray(hashlib.sha256(f"{everything}\0k\0u\0".encode() + b"0").digest()[:16])
    raw[6] = raw[6] % 16 + 64
    raw[8] = raw[8] % 64 + 128
    u_id = base64.urlsafe_b64encode(raw).decode()[:22]
    assert not u_id.startswith("-")
    assert found.summary == {
        "plan": 1,
        "clusters": 1,
        "brokers": {"clean": 2, "blocked": 0, "unknown": 0},
        "log_dirs": 3,
        "replicas": 4,
        "bytes": 440,
        "conflicts": {**dict.fromkeys(SLUGS, 0), "missing-id": 2},
        "minted": [{"cluster": "k", "topic": "u", "topic_id": u_id}],
        "offline_during": 2,
        "lower_bound": 2,
        "inventory_sha256": everything,
    }
    assert found.clusters[0].waves_entry == {
        "name": "k",
        "cluster_id": "K",
        "from": "sets",
        "lower_bound": 2,
        "brokers": [
            {
                "node_id": 1,
                "rack": None,
                "readiness": "clean",
                "reasons": [],
                "steps": 1,
                "log_bytes": 200,
                "forecast_ms": 251,
            },
            {
                "node_id": 2,
                "rack": None,
                "readiness": "clean",
                "reasons": [],
                "steps": 2,
                "log_bytes": 107,
                "forecast_ms": 251,
            },
        ],
    }
    own = hashlib.sha256(f"{tiny.digests['k-0.jsonl']}\n".encode()).hexdigest()
    body = (
        f'{{"cluster":"k","cluster_id":"K","inventory_sha256":"{own}","log_dirs":["/d"],"node_id":2,"plan":1,'
        f'"verb":"layout"}}\n'
        f'{{"from":"t-0","id_from":"own","log_bytes":100,"log_dir":"/d","op":"relayout","partition":0,"step":1,'
        f'"to":"Ac/{ID_A}_0","topic":"t","topic_id":"{ID_A}"}}\n'
        f'{{"from":"u-0","id_from":"minted","log_bytes":7,"log_dir":"/d","op":"relayout","partition":0,"step":2,'
        f'"to":"{u_id[:2]}/{u_id}_0","topic":"u","topic_id":"{u_id}"}}\n'
    )
    footer = f'{{"sha256":"{hashlib.sha256(body.encode()).hexdigest()}","steps":2}}\n'
    assert found.documents["brokers/k/2.jsonl"].decode() == body + footer
    assert b'"id_from":"siblings"' in found.documents["brokers/k/1.jsonl"]
    assert b'"log_dirs":["/d","/e"]' in found.documents["brokers/k/1.jsonl"]


def test_a_partition_found_twice_by_name_and_by_id_is_one_unit_at_the_smallest_name(tiny: Tiny) -> None:
    tiny.cluster("k")
    copies = [live("b", 0, ID_A), live("a", 0, ID_A), live("a", 0, ID_B, by_id=True), live("a", 1, ID_A)]
    tiny.broker("k", 1, ("/d", copies))
    found = tiny.answer()
    assert units_of(found, "partition-twice-on-broker") == {"k|1|a|0": 3}
    assert units_of(found, "one-id-two-names") == {f"k|{ID_A}": 3}
    assert units_of(found, "one-name-two-ids") == {"k|a": 3}
    assert units_of(found, "replicas-differ-in-id") == {"k|a|0": 2}


def test_a_node_id_claimed_by_a_disk_touches_both_entries(tiny: Tiny) -> None:
    tiny.cluster("k")
    tiny.broker("k", 1, ("/d", []), **{"/d": {"node_id": 2}})
    tiny.broker("k", 2, ("/d", []))
    tiny.broker("k", 3, ("/d", []), **{"/d": {"node_id": 9}})
    found = tiny.answer()
    assert units_of(found, "node-id-twice") == {"k|2": 2}
    assert units_of(found, "foreign-node-disk") == {"k|1|/d": 1, "k|3|/d": 1}
    assert [row["readiness"] for row in brokers_of(found)] == ["blocked"] * 3
    assert brokers_of(found)[1]["reasons"] == ["node-id-twice"]


def test_the_most_frequent_cluster_id_wins_and_ties_go_to_the_smallest(tiny: Tiny) -> None:
    tiny.cluster("k")
    tiny.broker("k", 1, ("/d", []), **{"/d": {"cluster_id": "Z"}})
    tiny.broker("k", 2, ("/d", []), **{"/d": {"cluster_id": "B"}})
    tiny.broker("k", 3, ("/d", []), **{"/d": {"cluster_id": None}})
    found = tiny.answer()
    assert found.clusters[0].waves_entry["cluster_id"] == "B"
    assert units_of(found, "foreign-cluster-disk") == {"k|1|/d": 1}


def test_identities_shared_or_missing_are_each_counted_once(tiny: Tiny) -> None:
    tiny.cluster("k")
    missing = {"problems": ["meta-properties-missing"], "directory_id": "same"}
    tiny.broker("k", 1, ("/d", []), ("/e", []), **{"/d": missing, "/e": {"directory_id": "same"}})
    tiny.broker("k", 2, ("/d", []), ("/e", []), **{"/d": {"directory_id": None}, "/e": {"directory_id": None}})
    assert units_of(tiny.answer(), "identity-broken") == {"k|1|/d": 1, "k|1|/e": 1}


def test_an_id_in_two_clusters_is_one_unit_of_the_fleet(tiny: Tiny) -> None:
    for name in ("k", "l"):
        tiny.cluster(name)
        tiny.broker(name, 1, ("/d", [live("t", 0, ID_A), live("t", 1, ID_A)]))
    found = tiny.answer()
    assert found.summary["conflicts"]["id-in-two-clusters"] == 1
    assert units_of(found, "id-in-two-clusters") == {ID_A: 4}


def test_entries_that_count_and_entries_that_do_not(tiny: Tiny) -> None:
    rng = Random(0)
    tiny.cluster("k")
    broken = new_entry(rng, "stray", "t-0.00-stray", problems=("partition-metadata-broken",))
    tiny.broker("k", 1, ("/d", [broken]))
    tiny.broker("k", 2, ("/d", [new_entry(rng, "delete", "t-0.00-delete")]))
    tiny.broker("k", 3, ("/d", [new_entry(rng, "unknown", "f", problems=("plain-file",))]))
    tiny.broker("k", 4, ("/d", [new_entry(rng, "unknown", "dir")]))
    tiny.broker("k", 5, ("/d", [live("t", 0, None, problems=["partition-metadata-broken"])]))
    tiny.broker("k", 6, ("/d", [live("s", 0, None, problems=["symlink"], log_bytes=None, bytes=None)]))
    found = tiny.answer()
    assert [(row["readiness"], row["reasons"]) for row in brokers_of(found)] == [
        ("blocked", ["leftover", "metadata-file-broken"]),
        ("clean", []),
        ("clean", []),
        ("blocked", ["unknown-entry"]),
        ("blocked", ["metadata-file-broken"]),
        ("blocked", ["symlink"]),
    ]
    assert found.summary["conflicts"]["leftover"] == 2
    assert units_of(found, "missing-id") == {"k|6|/d|log-dir|s-0": 1}


def test_what_may_not_be_minted_blocks_its_holders(tiny: Tiny) -> None:
    tiny.cluster("k")
    tiny.broker("k", 1, ("/d", [live("t", 0, None)]))
    tiny.broker("k", 2, "nowhere.jsonl")
    tiny.cluster("l")
    tiny.broker("l", 1, ("/d", [live("t", 0, None)]))
    tiny.broker("l", 2, ("/d", [live("t", 0, None, problems=["partition-metadata-broken"])]))
    tiny.broker("l", 3, ("/d", [live("t", 1, ID_A)]), ("/e", []), rack="r")
    tiny.cluster("m")
    tiny.broker("m", 1, ("/d", [live("t", 0, None)]))
    tiny.broker("m", 2, ("/d", [live("t", 0, None, problems=["partition-metadata-broken"])]))
    found = tiny.answer()
    assert [(row["readiness"], row["reasons"]) for row in brokers_of(found, 0)] == [
        ("blocked", ["missing-id"]),
        ("unknown", ["disk-unread"]),
    ]
    assert brokers_of(found, 1)[0]["readiness"] == "clean"
    assert [row["reasons"] for row in brokers_of(found, 2)] == [["missing-id"], ["metadata-file-broken"]]
    assert found.summary["minted"] == []


@pytest.mark.parametrize(
    ("make", "unread", "usable"),
    [
        (lambda tiny: tiny.broker("k", 1, ("/a", []), "gone.jsonl"), 1, 1),
        (lambda tiny: tiny.broker("k", 1, ("/a", []), ("/a", [])), 1, 0),
        (lambda tiny: tiny.broker("k", 1, ("/a", []), ("/a", []), ("/a", []), "gone.jsonl"), 2, 0),
        (lambda tiny: tiny.broker("k", 1, ("/a", []), **{"/a": {"log_dirs": ["/a", "/b", "/c"]}}), 2, 1),
        (
            lambda tiny: tiny.broker("k", 1, ("/a", []), "gone.jsonl", **{"/a": {"log_dirs": ["/a", "/b"]}}),
            1,
            1,
        ),
        (lambda tiny: tiny.broker("k", 1, ("/a", []), **{"/a": {"status": "unreadable"}}), 1, 0),
    ],
    ids=["gone", "doubled", "tripled-and-gone", "named", "named-and-gone", "unreadable"],
)
def test_unread_disks_are_the_larger_of_two_counts(
    tiny: Tiny, make: Callable[[Tiny], None], unread: int, usable: int
) -> None:
    tiny.cluster("k")
    make(tiny)
    found = tiny.answer()
    assert units_of(found, "disk-unread") == {f"k|1|{number}": 1 for number in range(1, unread + 1)}
    assert found.summary["log_dirs"] == unread + usable


def test_floors_follow_the_first_glob_that_matches() -> None:
    cluster = Cluster(
        name="k",
        cluster_id=None,
        min_insync=2,
        globs=(("a*", 1), ("ab*", 3)),
        respect_racks=True,
        brokers=(),
    )
    assert [floor_of(cluster, topic, 3) for topic in ("abc", "Abc")] == [1, 2]
    assert [floor_of(cluster, "x", replicas) for replicas in (1, 2, 3, 5)] == [0, 1, 2, 2]


def test_a_taken_or_dashed_id_moves_the_counter_on() -> None:
    first, second = (mint("0" * 64, "k", "t", counter) for counter in (0, 1))
    assert mint_free("0" * 64, "k", "t", set(), None) == first
    assert mint_free("0" * 64, "k", "t", {first}, None) == second
    assert mint_free("0" * 64, "k", "t", set(), ID_A) == ID_A
    assert mint_free("0" * 64, "k", "t", {ID_A}, ID_A) == first
    dashed = next(name for name in map(str, range(10_000)) if mint("0" * 64, "k", name, 0).startswith("-"))
    assert mint_free("0" * 64, "k", dashed, set(), None) == mint("0" * 64, "k", dashed, 1)


@pytest.mark.parametrize("at", [0, 10, -1, -2, -40])
def test_an_inventory_with_one_other_byte_is_not_whole(at: int) -> None:
    line = new_line(Random(1), cluster_id="K", node_id=1, log_dir="/d", rack=None)
    raw = bytearray(render_inventory(line, [live("t", 0, ID_A)], PLAIN))
    assert parse_inventory(bytes(raw)) is not None
    raw[at] ^= 2
    assert parse_inventory(bytes(raw)) is None
