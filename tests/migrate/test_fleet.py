"""The fleet file: read to the letter, every problem at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdir.errors import ConfigError
from migrate.source.fleet import BrokerEntry, Cluster, Fleet, min_insync_for, parse_fleet, read_fleet
from migrate.source.fleet_json import parse_fleet_json, render_fleet

BROKER = "brokers: [{node_id: 1, inventories: [a.jsonl]}]"


def problems(text: str, path: str = "/x/fleet.yaml") -> list[tuple[str, str]]:
    with pytest.raises(ConfigError) as caught:
        parse_fleet(text.encode(), path)
    for problem in caught.value.problems:
        assert "\n" not in problem.line()
        assert problem.path.startswith(path)
    return [(problem.slug.removeprefix("fleet-"), problem.path.removeprefix(path)) for problem in caught.value.problems]


def cluster(body: str) -> str:
    return "clusters:\n- name: a\n" + "".join(f"  {line}\n" for line in body.splitlines())


def test_whole_file_becomes_values_in_its_order(tmp_path: Path) -> None:
    for name in ("2-b.jsonl", "2-a.jsonl", "1.jsonl.gz"):
        (tmp_path / "inv").mkdir(exist_ok=True)
        (tmp_path / "inv" / name).touch()
    file = tmp_path / "fleet.yaml"
    file.write_text(
        """
clusters:
- name: east.1_A-b
  cluster_id: abc
  min.insync.replicas: 2
  topics:
    "b*": {min.insync.replicas: 3}
    "*": {min.insync.replicas: 1}
  racks: ignore
  brokers:
  - {node_id: 0, rack: "1", log_dirs: [data/a, /data//b/, ../c]}
  - node_id: 0
    inventories: ["inv/2-*.jsonl", inv/1.jsonl.gz, "s3://bucket/x.jsonl", "file:///z%20z/y.jsonl"]
- name: west
  brokers: [{node_id: 7, log_dirs: [/only]}]
"""
    )
    fleet = read_fleet(str(file))
    assert fleet == Fleet(
        clusters=(
            Cluster(
                name="east.1_A-b",
                cluster_id="abc",
                min_insync_replicas=2,
                topics=(("b*", 3), ("*", 1)),
                racks="ignore",
                brokers=(
                    BrokerEntry(
                        node_id=0,
                        rack="1",
                        log_dirs=(f"{tmp_path}/data/a", "/data/b", f"{tmp_path.parent}/c"),
                        inventories=(),
                    ),
                    BrokerEntry(
                        node_id=0,
                        rack=None,
                        log_dirs=(),
                        inventories=(
                            f"{tmp_path}/inv/2-a.jsonl",
                            f"{tmp_path}/inv/2-b.jsonl",
                            f"{tmp_path}/inv/1.jsonl.gz",
                            "s3://bucket/x.jsonl",
                            "/z z/y.jsonl",
                        ),
                    ),
                ),
            ),
            Cluster(
                name="west",
                cluster_id=None,
                min_insync_replicas=None,
                topics=(),
                racks="respect",
                brokers=(BrokerEntry(node_id=7, rack=None, log_dirs=("/only",), inventories=()),),
            ),
        )
    )
    assert parse_fleet_json(render_fleet(fleet)) == fleet
    assert [(s.number, s.broker, s.is_walked, s.cluster, s.entry_node_id) for s in fleet.sources()] == [
        *((n, 0, True, "east.1_A-b", 0) for n in range(3)),
        *((n, 1, False, "east.1_A-b", 0) for n in range(3, 8)),
        (8, 2, True, "west", 7),
    ]


def test_first_matching_glob_wins_and_case_counts() -> None:
    text = cluster(
        'min.insync.replicas: 2\ntopics: {"b*": {min.insync.replicas: 3}, "bx": {min.insync.replicas: 9}}\n' + BROKER
    )
    (found,) = parse_fleet(text.encode(), "/f").clusters
    assert [min_insync_for(found, topic) for topic in ("bx", "B", "a")] == [3, 2, 2]


def test_path_that_is_not_there_is_no_problem() -> None:
    parse_fleet(cluster(BROKER).encode(), "/nowhere/fleet.yaml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [("nothing-listed", "")], id="empty file"),
        pytest.param("clusters: []", [("nothing-listed", ": clusters")], id="no clusters"),
        pytest.param("[]", [("wrong-type", "")], id="a list"),
        pytest.param("clusters: {}", [("wrong-type", ": clusters")], id="clusters a mapping"),
        pytest.param("{}", [("missing-key", "")], id="no key"),
        pytest.param("cluster: []", [("unknown-key", ""), ("missing-key", "")], id="unknown top key"),
        pytest.param(cluster("brokers: []"), [("nothing-listed", ": clusters[0].brokers")], id="no brokers"),
        pytest.param(cluster("cluster_id: x"), [("missing-key", ": clusters[0]")], id="brokers left out"),
        pytest.param(
            cluster("brokers: [{node_id: 1}]"),
            [("nothing-listed", ": clusters[0].brokers[0]")],
            id="broker lists nothing",
        ),
        pytest.param(
            cluster("brokers: [{node_id: 1, log_dirs: [], inventories: []}]"),
            [("nothing-listed", ": clusters[0].brokers[0]")],
            id="broker lists empty lists",
        ),
        *(
            pytest.param(
                cluster(f"brokers: [{{node_id: {value}, log_dirs: [/a]}}]"),
                [(slug, ": clusters[0].brokers[0].node_id")],
                id=f"node_id {value}",
            )
            for value, slug in (
                ("true", "wrong-type"),
                ('"1"', "wrong-type"),
                ("1.0", "wrong-type"),
                ("010", "wrong-type"),
                ("1:30", "wrong-type"),
                ("null", "wrong-type"),
                ("[1]", "wrong-type"),
                ("-1", "wrong-value"),
                ("2147483648", "wrong-value"),
            )
        ),
        *(
            pytest.param(
                cluster(f"min.insync.replicas: {value}\n" + BROKER), [(slug, ": clusters[0].min.insync.replicas")]
            )
            for value, slug in (("0", "wrong-value"), ("true", "wrong-type"), ("'2'", "wrong-type"))
        ),
        *(
            pytest.param(f"clusters: [{{name: {value}, {BROKER}}}]", [(slug, ": clusters[0].name")], id=f"name {value}")
            for value, slug in (
                ("1", "wrong-type"),
                ("''", "wrong-value"),
                ("a/b", "wrong-value"),
                ("..", "wrong-value"),
                ("é", "wrong-value"),
                ('"a\\n"', "wrong-value"),
                ("a" * 65, "wrong-value"),
            )
        ),
        pytest.param(cluster("racks: maybe\n" + BROKER), [("wrong-value", ": clusters[0].racks")], id="racks"),
        pytest.param(cluster("racks: true\n" + BROKER), [("wrong-type", ": clusters[0].racks")], id="racks bool"),
        pytest.param(cluster("topics: [a]\n" + BROKER), [("wrong-type", ": clusters[0].topics")], id="topics list"),
        pytest.param(cluster("topics: {a: 2}\n" + BROKER), [("wrong-type", ": clusters[0].topics[a]")], id="topic int"),
        pytest.param(
            cluster("topics: {a: {}}\n" + BROKER), [("missing-key", ": clusters[0].topics[a]")], id="topic {}"
        ),
        pytest.param(
            cluster("brokers: [{node_id: 1, log_dirs: /a}]"),
            [("wrong-type", ": clusters[0].brokers[0].log_dirs")],
            id="a path for a list",
        ),
        pytest.param(
            cluster("brokers: [{node_id: 1, log_dirs: ['s3://b/a']}]"),
            [("wrong-value", ": clusters[0].brokers[0].log_dirs[0]")],
            id="a URI to walk",
        ),
        pytest.param(
            cluster('brokers: [{node_id: 1, log_dirs: ["a\\0b"]}]'),
            [("wrong-value", ": clusters[0].brokers[0].log_dirs[0]")],
            id="a NUL",
        ),
        pytest.param(
            cluster("brokers: [{node_id: 1, inventories: ['none-*.jsonl']}]"),
            [("glob-without-match", ": clusters[0].brokers[0].inventories[0]")],
            id="glob",
        ),
        pytest.param(
            f"clusters: [{{name: a, {BROKER}}}, {{name: a, brokers: [{{node_id: 1, log_dirs: [/b]}}]}}]",
            [("listed-twice", ": clusters[1].name")],
            id="name twice",
        ),
        pytest.param(
            f"clusters: [{{name: a, {BROKER}}}, {{name: b, brokers: [{{node_id: 1, log_dirs: [./q/../a.jsonl]}}]}}]",
            [("listed-twice", ": clusters[1].brokers[0].log_dirs[0]")],
            id="path twice in two clusters, spelled otherwise",
        ),
        pytest.param(
            cluster("brokers: [{node_id: 1, inventories: [a, ./a, 'file:///x/a']}]"),
            [("listed-twice", f": clusters[0].brokers[0].inventories[{n}]") for n in (1, 2)],
            id="path twice in one broker, and as a URI",
        ),
    ],
)
def test_faults_are_named_with_their_place(text: str, expected: list[tuple[str, str]]) -> None:
    assert problems(text) == expected


def test_all_problems_come_at_once() -> None:
    text = """
clusters:
- name: a
  typo: 1
  min.insync.replicas: 0
  brokers:
  - {node_id: true, log_dirs: [/a]}
  - {node_id: 1, inventories: [/a, 3]}
- brokers: [{}]
"""
    assert sorted(slug for slug, _ in problems(text)) == [
        "listed-twice", "missing-key", "missing-key", "nothing-listed", "unknown-key", "wrong-type", "wrong-type",
        "wrong-value",
    ]  # fmt: skip


def test_path_listed_and_matched_by_a_glob_is_listed_twice(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).touch()
    text = cluster("brokers: [{node_id: 1, inventories: [a.jsonl]}, {node_id: 2, inventories: ['*.jsonl', 'b*']}]")
    found = problems(text, f"{tmp_path}/fleet.yaml")
    assert found == [
        ("listed-twice", ": clusters[0].brokers[1].inventories[0]"),
        ("listed-twice", ": clusters[0].brokers[1].inventories[1]"),
    ]


def test_glob_passes_directories_over_and_folder_is_no_glob(tmp_path: Path) -> None:
    folder = tmp_path / "[ab]*"
    (folder / "dir.jsonl").mkdir(parents=True)
    (folder / "f.jsonl").touch()
    found = parse_fleet(cluster("brokers: [{node_id: 1, inventories: ['*.jsonl']}]").encode(), f"{folder}/fleet.yaml")
    assert found.clusters[0].brokers[0].inventories == (f"{folder}/f.jsonl",)


@pytest.mark.parametrize("text", ["clusters: []\nclusters: []", cluster("brokers: []\nbrokers: []")])
def test_repeated_key_is_refused(text: str) -> None:
    ((slug, _),) = problems(text)
    assert slug == "file"


@pytest.mark.parametrize(
    "data",
    [
        b"a: [", b"\xff\xfe\xff", b"a: \x07", b"a: !!python/object:os.system {}", b"a: !!int x", b"a: !!timestamp x",
        b"a: !!bool x", b"? [a]\n: 1", b"a: 1\n---\nb: 2", b"a: *b", b"[" * 5000, b"a: " + b"9" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_yaml_is_one_line(data: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_fleet(data, "f")
    assert "\n" not in str(caught.value)


def test_aliases_that_multiply_stay_small() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(ConfigError) as caught:
        parse_fleet("\n".join([*lines, "clusters: [*a11]"]).encode(), "f")
    assert len(str(caught.value)) < 1000


def test_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(ConfigError):
            read_fleet(str(path))
