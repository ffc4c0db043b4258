"""The metadata tree: the stock shell's names, every node reachable by the path that is shown of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logdir.ids import TopicId
from logdir.metadata.contents import Contents, ContentsFold
from logdir.metadata.paths import path_of, resolve
from logdir.metadata.source import Look, read_directory
from logdir.metadata.tree import Directory, Found, Leaf, below, build, children, find
from logdir.wire.metadata_fast import decode_fast
from logdir.wire.metadata_records import MetadataRecord, encode
from tests.logdir.cluster.log_dir import A, B, change, partition, record, register, topic
from tests.logdir.wire.golden_metadata import METADATA


def look(*records: MetadataRecord, **changed: Any) -> Look:
    fold = ContentsFold("here")
    fold.add((at, decode_fast(encode(one))) for at, one in enumerate(records))
    fields: dict[str, Any] = {
        "origin": "here",
        "contents": fold.contents,
        "snapshot": None,
        "committed": 0,
        "offset": len(records),
        "epoch": 3,
        "as_of_ms": 1_700_000_000_120,
        "kraft_version": None,
        "voters": None,
        "open_transaction": None,
        "is_log_behind": False,
        "ended": None,
    }
    return Look(**fields | changed)


def values(one: Look) -> dict[str, object]:
    root = build(one, {"version": "1"})
    return {path_of(found.names): found.node.value for found in below(Found((), root)) if isinstance(found.node, Leaf)}


def paths(one: Look, path: str) -> list[str]:
    return [path_of(found.names) for found in find(build(one, {}), resolve((), path))]


@pytest.mark.parametrize(
    "directory", sorted(path for path in METADATA.iterdir() if path.is_dir()), ids=lambda d: d.name
)
def test_every_node_is_found_by_its_path(directory: Path) -> None:
    root = build(read_directory(str(directory)), {"version": "1"})
    nodes = list(below(Found((), root)))
    assert len(nodes) > 100
    for one in nodes:
        (found,) = find(root, resolve((), path_of(one.names)))
        assert found.names == one.names
        if isinstance(one.node, Leaf):
            assert found.node == one.node
    directories = {path_of(one.names) for one in nodes if isinstance(one.node, Directory)}
    assert {"/", "/local", "/image", "/image/topics/byName/plain", "/image/cluster/brokers"} <= directories


def test_the_names_of_the_stock_shell() -> None:
    root = build(look(), {})
    (image,) = find(root, resolve((), "/image"))
    assert isinstance(image.node, Directory)
    assert children(image.node) == [
        "acls",
        "clientQuotas",
        "cluster",
        "configs",
        "delegationToken",
        "features",
        "producerIds",
        "provenance",
        "scram",
        "topics",
    ]
    found = values(look())
    assert found["/image/producerIds/nextProducerId"] == -1
    assert found["/image/provenance"] == "offset -1, epoch 3, time 2023-11-14T22:13:20.12Z[UTC]"
    assert paths(look(), "/image/scram/*") == ["/image/scram/SCRAM-SHA-256", "/image/scram/SCRAM-SHA-512"]


def test_topics_by_name_and_by_id() -> None:
    moved = change(A, 1, replicas=(2, 3), leader=3, isr=(3,))
    one = look(topic("a", A), *(partition(A, at, (1, 2)) for at in (0, 1, 10, 2)), topic("b.c", B), moved)
    found = values(one)
    by_id = f"/image/topics/byId/{TopicId(A)}"
    for base in ("/image/topics/byName/a", by_id):
        assert found[f"{base}/name"] == "a"
        assert found[f"{base}/id"] == str(TopicId(A))
        assert found[f"{base}/1"] == {
            "replicas": [2, 3],
            "directories": ["A" * 22] * 2,
            "isr": [3],
            "removingReplicas": [],
            "addingReplicas": [],
            "elr": [],
            "lastKnownElr": [],
            "leader": 3,
            "leaderRecoveryState": "RECOVERED",
            "leaderEpoch": 1,
            "partitionEpoch": 1,
        }
    # Numbers by their value.
    assert paths(one, "/image/topics/byName/a/*")[:4] == [f"/image/topics/byName/a/{at}" for at in (0, 1, 2, 10)]
    assert paths(one, "/image/topics/by{Name,Id}/*/id") == [
        *sorted(f"/image/topics/byId/{TopicId(one)}/id" for one in (A, B)),
        "/image/topics/byName/a/id",
        "/image/topics/byName/b.c/id",
    ]
    # Other spellings of a number or an id are no names.
    for other in ("byName/a/01", "byName/a/+1", "byName/a/\u0661", f"byId/{TopicId(A)}==", "byId/x", "byName/a/1/x"):
        assert paths(one, f"/image/topics/{other}") == []


def test_brokers_controllers_and_features() -> None:
    endpoint = {"name": "C", "host": "h", "port": 1, "securityProtocol": 0}
    controller = record(27, controllerId=7, incarnationId=A, zkMigrationReady=False, endPoints=(endpoint,), features=())
    levels = [record(12, name=name, featureLevel=level) for name, level in (("metadata.version", 30), ("x", 2))]
    found = values(look(register(4, epoch=9), controller, *levels, record(21, zkMigrationState=3)))
    broker: Any = found["/image/cluster/brokers/4"]
    assert (broker["brokerId"], broker["brokerEpoch"], broker["endPoints"][0]["host"]) == (4, 9, "h4")
    assert broker["incarnationId"] == str(TopicId(b"incarnation-no-1"))
    assert broker["logDirs"] == [str(TopicId(bytes(range(16))))]
    other: Any = found["/image/cluster/controllers/7"]
    assert other["endPoints"] == [endpoint]
    assert found["/image/features/metadataVersion"] == 30
    assert found["/image/features/finalized_x"] == 2
    assert found["/image/features/zkMigrationState"] == "POST_MIGRATION"
    assert "/image/features/finalized_metadata.version" not in found


def test_settings_by_resource_and_quotas_by_entity() -> None:
    def config(kind: int, resource: str, value: str) -> MetadataRecord:
        return record(4, resourceType=kind, resourceName=resource, name="k", value=value)

    def quota(*entity: tuple[str, str | None]) -> MetadataRecord:
        parts = tuple({"entityType": kind, "entityName": name} for kind, name in entity)
        return record(14, entity=parts, key="q", value=1e7, remove=False)

    kinds = {
        2: "TOPIC:r",
        4: "BROKER:r",
        8: "BROKER_LOGGER:r",
        16: "CLIENT_METRICS:r",
        32: "GROUP:r",
        99: "UNKNOWN(99):r",
    }
    configs = [config(kind, "r", str(kind)) for kind in kinds]
    quotas = [
        quota(("user", "a"), ("client-id", "b")),
        quota(("user", None)),
        quota(("user", "")),
        quota(("ip", "::1")),
        quota(("user", "x)_ip(y/\x1b")),
    ]
    found = values(look(*configs, config(4, "", "default"), config(32, "a/b*", "odd"), *quotas))
    for kind, name in kinds.items():
        assert found[f"/image/configs/{name}/k"] == str(kind)
    assert found["/image/configs/BROKER/k"] == "default"
    assert found["/image/configs/GROUP:a\\/b\\*/k"] == "odd"
    assert [path for path in found if path.startswith("/image/clientQuotas/")] == [
        "/image/clientQuotas/clientId(b)_user(a)/q",
        "/image/clientQuotas/ip(::1)/q",
        "/image/clientQuotas/user/q",
        "/image/clientQuotas/user()/q",
        "/image/clientQuotas/user(x\\\\)_ip\\\\(y\\/\\x1b)/q",
    ]


def test_secrets_access_lists_and_tokens() -> None:
    acl: dict[str, Any] = {"resourceType": 2, "resourceName": "t", "patternType": 3, "principal": "User:u", "host": "*"}
    token: dict[str, Any] = {"owner": "o", "requester": "r", "renewers": ("x",), "issueTimestamp": 1, "maxTimestamp": 2}
    scram: dict[str, Any] = {"salt": b"\xff" * 16, "storedKey": b"", "serverKey": b"", "iterations": 4096}
    found = values(
        look(
            record(18, id=A, **acl, operation=3, permissionType=3),
            record(10, **token, expirationTimestamp=3, tokenId="a/b"),
            record(11, name="..", mechanism=2, **scram),
            record(11, name="", mechanism=1, **scram),
        )
    )
    assert found[f"/image/acls/byId/{TopicId(A)}"] == {
        "id": str(TopicId(A)),
        **acl,
        "operation": 3,
        "permissionType": 3,
    }
    one: Any = found["/image/delegationToken/a\\/b"]
    assert (one["owner"], one["renewers"]) == ("o", ["x"])
    # Salt is no id, though it has as many bytes.
    other: Any = found["/image/scram/SCRAM-SHA-512/\\.\\."]
    assert other["salt"] == "/////////////////////w=="
    assert "/image/scram/SCRAM-SHA-256/\\e" in found


def test_what_is_known_of_the_log() -> None:
    found = values(look(noted := record(20), snapshot="s", committed=1, open_transaction=5, kraft_version=1))
    assert noted.name == "NO_OP_RECORD"
    assert found["/local/version"] == "1"
    assert found["/local/snapshot"] == "s"
    assert (found["/local/committedOffset"], found["/local/endOffset"]) == (1, 1)
    assert (found["/local/openTransaction"], found["/local/kraftVersion"]) == (5, 1)
    assert "/local/voters" not in found


@pytest.mark.parametrize("as_of_ms", [0, 1, 1_000, -1, 1 << 62, 253_402_300_799_999, 253_402_300_800_000])
def test_any_time_is_shown(as_of_ms: int) -> None:
    text = str(values(look(as_of_ms=as_of_ms))["/image/provenance"])
    assert text.endswith("Z[UTC]")
    assert ("?" in text) == (not 0 <= as_of_ms < 253_402_300_800_000)


def test_a_path_that_leads_nowhere() -> None:
    one = look(topic("a", A))
    for path in ("/x", "/image/provenance/x", "/image/topics/byName/b", "/image/topics/byName/a/0", "/*/x/*"):
        assert paths(one, path) == []
    assert paths(one, "/") == ["/"]
    assert Contents().topics == {}


@pytest.mark.parametrize(
    ("number", "name"),
    [(0, "NONE"), (1, "MIGRATION"), (2, "PRE_MIGRATION"), (3, "POST_MIGRATION"), (4, "ZK"), (9, 9)],
)
def test_no_state_of_a_migration_is_shown_as_a_bare_number(number: int, name: object) -> None:
    found = values(look(record(12, name="metadata.version", featureLevel=21), record(21, zkMigrationState=number)))
    assert found["/image/features/zkMigrationState"] == name


@pytest.mark.parametrize(("level", "state"), [(7, "NONE"), (21, "NONE"), (22, None), (30, None)])
def test_no_state_of_a_migration_is_shown_where_releases_have_none(level: int, state: str | None) -> None:
    found = values(look(record(12, name="metadata.version", featureLevel=level)))
    assert found.get("/image/features/zkMigrationState") == state
