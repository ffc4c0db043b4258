"""``staged adopt --with FILE``: what another broker of the replicas holds is known by its listing alone, or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logdir.service.cluster.other_brokers import read_listings
from tests.builders import CLUSTER
from tests.tools.adopt_rig import NEW, OLD, RECORDS, SEGMENT, AdoptRig, assert_refused, edited, make
from tests.tools.ctl import ctl, ctl_json, held
from tools.cli.arguments import Exit


class Pair:
    """Two stopped brokers; the first is the only voter of the quorum."""

    def __init__(self, folder: Path, *, records: int = RECORDS) -> None:
        self.one = AdoptRig(make(folder / "one"), replicas=(1, 2))
        self.two = AdoptRig(make(folder / "two"), node=2, replicas=(1, 2), records=records)
        self.listings = {1: self.one.listing(folder / "one.json"), 2: self.two.listing(folder / "two.json")}


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def test_a16_every_broker_of_the_replicas_adopts_with_the_listing_of_the_other(pair: Pair) -> None:
    status, plan = pair.one.adopt_json("--with", pair.listings[2])
    assert status == Exit.DONE
    assert (plan["stop"], plan["start"]) == ([2, 1], [1, 2])
    assert [(one["node_id"], one["log_end"]) for one in plan["adoptions"]] == [(1, 100), (2, 100)]
    assert len(plan["items"]) == 1  # what is done here
    assert pair.one.adopt("--with", pair.listings[2], "--apply").status == Exit.DONE
    said = pair.two.adopt("--with", pair.listings[1], *pair.two.controller(), "--apply")
    assert said.status == Exit.DONE, said
    assert (pair.one.adopted() / SEGMENT).read_bytes() == (pair.two.adopted() / SEGMENT).read_bytes()


def test_a16_without_the_listing_of_the_other_broker_it_is_refused_with_what_to_type_there(pair: Pair) -> None:
    said = assert_refused(pair.one)
    assert "no listing of broker 2" in said
    assert f"stop broker 2, run there: logdirctl staged ls {OLD} --json > FILE" in said


def test_a16_a_broker_that_holds_nothing_is_refused_and_the_other_way_is_named(pair: Pair) -> None:
    said = ctl("staged", "ls", OLD, *pair.two.named, "--json")
    value = json.loads(said.out)
    value["result"]["items"] = []
    pair.listings[2].write_text(json.dumps(value))
    said_of = assert_refused(pair.one, "--with", pair.listings[2])
    assert "no staged files on 2" in said_of
    assert "create the topic again with its only replica of partition 0 on broker 1" in said_of


def test_a16_files_that_end_apart_are_refused_and_the_furthest_is_named(tmp_path: Path) -> None:
    pair = Pair(tmp_path, records=RECORDS + 7)
    said = assert_refused(pair.one, "--with", pair.listings[2])
    assert "found 100 on 1, 107 on 2" in said
    assert "only replica of partition 0 on broker 2" in said


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param({"broker_runs": True}, "broker 2 ran when its listing was made", id="it ran"),
        pytest.param({"broker_runs": None}, "broker 2 ran when its listing was made", id="not known whether it ran"),
        pytest.param({"log_end": None}, "found 100 on 1, unknown on 2", id="no end"),
        pytest.param({"cluster_id": "another"}, "a listing of cluster", id="another cluster"),
        pytest.param({"cluster_id": None}, "a listing of cluster", id="no cluster"),
        pytest.param({"node_id": None}, "a listing that names its node", id="no node"),
        pytest.param({"node_id": 1}, "one listing for each other broker", id="this broker"),
        pytest.param({"node_id": 3}, "no listing of broker 2", id="a third broker"),
        pytest.param({"exit": 1}, "exit status 1", id="not whole"),
        pytest.param(
            {"state": "incoming"}, "no staged files on 2; a partial capture on broker 2", id="a17 partial there"
        ),
        pytest.param({"state": "purging"}, "no staged files on 2", id="being purged there"),
        pytest.param({"state": "broken"}, "no staged files on 2", id="broken there"),
        pytest.param({"tiered": True}, "no staged files on 2; the local part only", id="a33 tiered there"),
        pytest.param({"topic_id": NEW}, "no staged files on 2", id="of another topic"),
        pytest.param({"partition": 1}, "no staged files on 2", id="of another partition"),
        pytest.param({"undo_until_ms": 1}, "those on broker 2 may be purged by now", id="due there"),
    ],
)
def test_a_listing_that_does_not_do_refuses(pair: Pair, changed: dict[str, object], words: str) -> None:
    edited(pair.listings[2], **changed)
    said = assert_refused(pair.one, "--with", pair.listings[2])
    assert words in said
    assert "logdirctl staged" in said or "create the topic again" in said


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", "one object of JSON", id="empty"),
        pytest.param(b"\x00\xff garbage", "one object of JSON", id="garbage"),
        pytest.param(b"[]", "an object", id="a list"),
        pytest.param(b"[" * 100_000, "one object of JSON", id="deep"),
        pytest.param(b'{"command":"staged ls","command":"staged ls"}', "a key stands twice", id="a key twice"),
        pytest.param(b'{"command":"inventory","format":1,"exit":0,"result":{}}', "staged ls in command", id="another"),
        pytest.param(b'{"command":"staged ls","format":2,"exit":0,"result":{}}', "format 1", id="newer"),
        pytest.param(
            b'{"command":"staged ls","format":1,"exit":0,"result":{}}', "a list in result.items", id="no items"
        ),
        pytest.param(
            b'{"command":"staged ls","format":1,"exit":0,"result":{"items":[7],"node_id":2,"cluster_id":"c",'
            b'"broker_runs":false}}',
            "an object in items[0]",
            id="an item that is none",
        ),
    ],
)
def test_a_file_that_is_no_listing_is_named(pair: Pair, data: bytes, words: str) -> None:
    pair.listings[2].write_bytes(data)
    said = assert_refused(pair.one, "--with", pair.listings[2], status=Exit.PROBLEMS)
    assert words in said
    assert str(pair.listings[2]) in said
    assert "logdirctl staged ls --json" in said


def test_a_listing_that_cannot_be_read_or_is_given_twice_is_named(pair: Pair, tmp_path: Path) -> None:
    assert "--with" in assert_refused(pair.one, "--with", tmp_path / "nope", status=Exit.USAGE)
    assert "--with" in assert_refused(pair.one, "--with", tmp_path, status=Exit.USAGE)
    twice = assert_refused(pair.one, "--with", pair.listings[2], "--with", pair.listings[2])
    assert "as in another file" in twice


def test_a_listing_says_which_broker_it_is_of_and_where_files_end(pair: Pair) -> None:
    status, listed = ctl_json("staged", "ls", OLD, *pair.two.named)
    assert status == Exit.DONE
    assert (listed["node_id"], listed["broker_runs"]) == (2, False)
    assert [one["log_end"] for one in listed["items"]] == [100]
    with held(pair.two.disks[1] / ".lock"):
        _, listed = ctl_json("staged", "ls", OLD, *pair.two.named)
    assert listed["broker_runs"] is True


def test_a_listing_says_of_which_topic_the_files_are(pair: Pair) -> None:
    found = read_listings([str(pair.listings[2])], cluster_id=CLUSTER, node_id=1)
    assert {one.ref.topic for one in found.staged} == {"pay"}
