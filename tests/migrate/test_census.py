"""The disks of a fleet counted: usable, unread, foreign, broken, twice."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from migrate.plan.census import Census, digest_of, take_census
from migrate.source.disk_row import DiskRow
from migrate.source.fleet import BrokerEntry, Fleet
from tests.migrate.fleet_builder import a_cluster


def disk(broker: int, source: int, log_dir: str | None = "/a", **more: Any) -> DiskRow:
    values: dict[str, Any] = {"sha256": f"{source:064x}", "status": "ok", "node_id": broker, "cluster_id": "id"}
    return DiskRow(broker=broker, source=source, log_dir=log_dir, **(values | more))


def broken(broker: int, source: int) -> DiskRow:
    return DiskRow(broker=broker, source=source, sha256=None, status="broken", problems=("not-whole",))


def fleet(*brokers: int, log_dirs: tuple[str, ...] = (), rack: str | None = None, **policy: Any) -> Fleet:
    entries = [BrokerEntry(node_id=node, rack=rack, log_dirs=log_dirs, inventories=()) for node in brokers]
    return Fleet(clusters=(a_cluster("c", tuple(entries), **policy),))


def units(census: Census, slug: str) -> list[tuple[int, str]]:
    return sorted((holder.broker, holder.unit) for holder in census.holders if holder.slug == slug)


@pytest.mark.parametrize(
    ("rows", "log_dirs", "unread"),
    [
        ([disk(0, 0)], (), 0),
        ([broken(0, 0)], (), 1),
        ([broken(0, 0), broken(0, 1)], (), 2),
        ([disk(0, 0, status="unreadable")], (), 1),
        ([disk(0, 0), disk(0, 1)], (), 1),
        ([disk(0, 0), disk(0, 1), disk(0, 2)], (), 1),
        ([disk(0, 0), disk(0, 1, status="unreadable")], (), 1),
        ([disk(0, 0), disk(0, 1, "/b"), broken(0, 2)], (), 1),
        ([disk(0, 0, log_dirs=("/a", "/b"))], (), 1),
        ([disk(0, 0, log_dirs=("/a", "/b")), broken(0, 1)], (), 1),
        ([disk(0, 0, log_dirs=("/a", "/b", "/c")), broken(0, 1)], (), 2),
        ([disk(0, 0, log_dirs=("/a", "/b")), disk(0, 1, "/b")], (), 0),
        ([disk(0, 0, status="unreadable", log_dirs=("/x",))], (), 2),
        ([disk(0, 0)], ("/a",), 0),
        ([disk(0, 0)], ("/b", "/c"), 2),
        ([disk(0, 0, log_dirs=("/b",))], ("/b", "/c"), 2),
        ([], ("/b",), 1),
    ],
)
def test_unread_disks_are_the_larger_of_two_counts(rows: list[DiskRow], log_dirs: tuple[str, ...], unread: int) -> None:
    census = take_census(fleet(0, log_dirs=log_dirs), rows)
    assert census.brokers[0].unread == unread
    assert units(census, "disk-unread") == [(0, f"c|0|{n + 1}") for n in range(unread)]
    assert census.log_dirs == len(census.brokers[0].disks) + unread


def test_an_unread_disk_is_not_left_without_the_name_that_somebody_gives_it() -> None:
    rows = [
        disk(0, 0, "/a", log_dirs=("/a", "/b")), disk(0, 1, "/c", status="unreadable", problems=("io-error",)),
        broken(0, 2),
    ]  # fmt: skip
    census = take_census(fleet(0, log_dirs=("/d",)), rows)
    assert [unread.log_dir for unread in census.brokers[0].unread_disks] == ["/b", "/c", "/d"]
    details = [holder.detail for holder in census.holders]
    assert [name in detail for name, detail in zip(("/b", "/c", "/d"), details, strict=True)] == [True] * 3
    assert "io-error" in details[1]
    assert "source 2" in details[0]
    (alone,) = take_census(fleet(0), [broken(0, 0)]).brokers[0].unread_disks
    assert alone.log_dir is None
    assert "not-whole" in alone.why


def test_two_entries_of_one_node_id_are_not_the_same_line_twice() -> None:
    same = ("/var/lib/kafka",)
    entries = tuple(
        BrokerEntry(node_id=1, rack=None, log_dirs=(), inventories=(f"/x/{host}/1.jsonl",)) for host in ("h1", "h2")
    )
    rows = [disk(broker, broker, same[0], node_id=1) for broker in (0, 1)]
    forth = take_census(Fleet(clusters=(a_cluster("c", entries),)), rows)
    details = sorted(holder.detail for holder in forth.holders)
    assert ["h1/1.jsonl" in detail for detail in details] == [True, False]
    assert ["h2/1.jsonl" in detail for detail in details] == [False, True]
    moved = tuple(
        BrokerEntry(node_id=1, rack=None, log_dirs=(), inventories=(f"/y/z/{host}/1.jsonl",)) for host in ("h2", "h1")
    )
    back = take_census(Fleet(clusters=(a_cluster("c", moved),)), rows)
    assert sorted(holder.detail for holder in back.holders) == details


def test_one_log_dir_on_two_brokers_is_usable_on_both() -> None:
    census = take_census(fleet(0, 1), [disk(0, 0), disk(1, 1)])
    assert census.unusable == frozenset()


def test_ranks_follow_what_brokers_are_and_not_where_they_are_listed() -> None:
    # Node 5 is listed twice; only what its disks say tells the two apart.
    rows = [disk(0, 0), disk(1, 1), disk(2, 2, sha256="f" * 64), disk(3, 3, "/b"), disk(4, 4, sha256="e" * 64)]
    census = take_census(fleet(9, 2, 5, 10, 5), rows)
    assert census.ranks() == (3, 0, 2, 4, 1)
    two = Fleet(clusters=(a_cluster("z", fleet(1).clusters[0].brokers), a_cluster("b", fleet(7).clusters[0].brokers)))
    assert take_census(two, [disk(0, 0), disk(1, 1)]).ranks() == (1, 0)


def test_a_disk_that_is_not_usable_says_nothing_else() -> None:
    rows = [disk(0, 0), disk(1, 1, status="unreadable", node_id=0, cluster_id="other", directory_id="d", rack="r")]
    census = take_census(fleet(0, 1), [*rows, disk(0, 2, "/b", directory_id="d")])
    assert {holder.slug for holder in census.holders} == {"disk-unread"}
    assert census.unusable == {1}
    assert census.brokers[1].rack is None
    assert census.clusters[0].has_unread


def test_the_cluster_id_is_the_most_frequent_then_the_smallest() -> None:
    rows = [disk(0, 0, "/a", cluster_id="z"), disk(0, 1, "/b", cluster_id="z"), disk(1, 2, cluster_id="a")]
    assert take_census(fleet(0, 1), rows).clusters[0].cluster_id == "z"
    assert take_census(fleet(0, 1), rows[1:]).clusters[0].cluster_id == "a"
    assert take_census(fleet(0, 1), []).clusters[0].cluster_id is None
    census = take_census(fleet(0, 1, cluster_id="a"), [*rows, disk(1, 3, "/n", cluster_id=None)])
    assert units(census, "foreign-cluster-disk") == [(0, "c|0|/a"), (0, "c|0|/b")]


def test_the_entrys_rack_wins_else_the_smallest() -> None:
    rows = [disk(0, 0, "/a", rack="s"), disk(0, 1, "/b", rack="r"), disk(0, 2, "/c", rack=None)]
    assert take_census(fleet(0), rows).brokers[0].rack == "r"
    assert take_census(fleet(0, rack="z"), rows).brokers[0].rack == "z"


def test_a_node_id_may_be_claimed_by_entries_and_by_disks() -> None:
    census = take_census(fleet(0, 0, 5), [disk(0, 0), disk(1, 1, node_id=0), disk(2, 2, node_id=0)])
    assert units(census, "node-id-twice") == [(0, "c|0"), (1, "c|0"), (2, "c|0")]
    assert units(census, "foreign-node-disk") == [(2, "c|5|/a")]
    assert dict(census.units) == {"node-id-twice": 1, "foreign-node-disk": 1}


@pytest.mark.parametrize("slug", ["meta-properties-missing", "no-permission"])
def test_a_disk_without_node_id_is_not_foreign_but_broken(slug: str) -> None:
    census = take_census(fleet(0), [disk(0, 0, node_id=None, problems=(slug,))])
    assert [(h.slug, h.detail) for h in census.holders] == [("identity-broken", slug)]


def test_a_directory_id_held_twice_breaks_both_and_each_counts() -> None:
    rows = [disk(0, 0, "/a", directory_id="d"), disk(1, 1, "/b", directory_id="d"), disk(1, 2, "/c", directory_id="e")]
    census = take_census(fleet(0, 1), rows)
    assert units(census, "identity-broken") == [(0, "c|0|/a"), (1, "c|1|/b")]
    assert dict(census.units) == {"identity-broken": 2}


def test_units_of_two_entries_with_one_node_id_count_for_each() -> None:
    census = take_census(fleet(7, 7), [broken(0, 0), broken(1, 1)])
    assert dict(census.units) == {"disk-unread": 2, "node-id-twice": 1}


def test_clusters_do_not_mix() -> None:
    east, west = (
        a_cluster(name, (BrokerEntry(node_id=0, rack=None, log_dirs=(), inventories=()),)) for name in ("east", "west")
    )
    rows = [disk(0, 0, node_id=0, directory_id="d"), disk(1, 1, node_id=0, directory_id="d", cluster_id="w")]
    census = take_census(Fleet(clusters=(east, west)), rows)
    assert census.holders == ()
    assert [cluster.cluster_id for cluster in census.clusters] == ["id", "w"]


def test_digests_are_of_usable_inventories_sorted() -> None:
    rows = [disk(0, 9, "/a"), disk(0, 3, "/b"), broken(0, 1), disk(1, 2)]
    census = take_census(fleet(0, 1), rows)
    lines = "".join(f"{n:064x}\n" for n in (2, 3, 9))
    assert census.inventory_sha256 == hashlib.sha256(lines.encode()).hexdigest()
    assert census.brokers[0].inventory_sha256 == digest_of([f"{9:064x}", f"{3:064x}"])
    assert census.brokers[0].log_dirs == ("/a", "/b")


def test_the_order_of_rows_changes_nothing() -> None:
    rows = [disk(b, 10 * b + n, f"/{n}", rack=f"r{n}", directory_id=f"{n}", node_id=n) for b in (0, 1) for n in (0, 1)]
    rows.append(broken(1, 99))
    assert take_census(fleet(0, 1), rows) == take_census(fleet(0, 1), rows[::-1])


def test_rows_of_another_fleet_are_refused() -> None:
    with pytest.raises(ValueError, match="no broker entry 1"):
        take_census(fleet(0), [disk(1, 0)])
    with pytest.raises(ValueError, match="twice"):
        take_census(fleet(0), [disk(0, 0), disk(0, 0, "/b")])
