"""What a broker takes from its server.properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdir.errors import ConfigError, FormatError, MalformedFileError
from logdir.formats.kafka.server_properties import ServerProperties, parse, render
from tests.logdir.formats.contract import PATH, only_format_errors
from tests.proof.plugin import Recorder

GOOD = b"# broker\nprocess.roles=broker\nnode.id=3\nlog.dirs=/d1, /d2\nbroker.rack=east\nmetadata.log.dir=/m\n"

READ = {
    "all": (GOOD, ServerProperties(("/d1", "/d2"), 3, "east", "/m", True)),
    "nothing": (b"", ServerProperties(("/tmp/kafka-logs",), None, None, "/tmp/kafka-logs")),
    "log.dir": (b"log.dir=/a,/b", ServerProperties(("/a", "/b"), None, None, "/a")),
    "log.dirs wins": (b"log.dir=/x\nlog.dirs=/a", ServerProperties(("/a",), None, None, "/a")),
    "trimmed at both ends": (b"log.dirs = /a ,\t/b  \t", ServerProperties(("/a", "/b"), None, None, "/a")),
    "blanks inside a path stay": (b"log.dirs=/a b,/c", ServerProperties(("/a b", "/c"), None, None, "/a b")),
    "continued": (b"log.dirs=/a,\\\n    /b", ServerProperties(("/a", "/b"), None, None, "/a")),
    "empty elements": (b"log.dirs=/a ,, /b ,", ServerProperties(("/a", "/b"), None, None, "/a")),
    "equal elements": (b"log.dirs=/b,/a,/b", ServerProperties(("/b", "/a"), None, None, "/b")),
    "other spellings stay": (b"log.dirs=/a,/a/,a", ServerProperties(("/a", "/a/", "a"), None, None, "/a")),
    "broker.id": (b"broker.id= 7 ", ServerProperties(("/tmp/kafka-logs",), 7, None, "/tmp/kafka-logs")),
    "equal ids": (
        b"broker.id=7\nnode.id=+07",
        ServerProperties(("/tmp/kafka-logs",), 7, None, "/tmp/kafka-logs"),
    ),
    "-1 is not set": (b"broker.id=-1", ServerProperties(("/tmp/kafka-logs",), None, None, "/tmp/kafka-logs")),
    "rack trimmed": (b"log.dirs=/a\nbroker.rack= a b ", ServerProperties(("/a",), None, "a b", "/a")),
    "variable without a provider": (
        b"log.dirs=${env:X}",
        ServerProperties(("${env:X}",), None, None, "${env:X}"),
    ),
}
REJECTED = {
    "log.dirs empty": (b"log.dirs=\nlog.dir=/a", ["log.dirs"]),
    "only commas": (b"log.dirs= , ,", ["log.dirs"]),
    "metadata.log.dir empty": (b"log.dirs=/a\nmetadata.log.dir= ", ["metadata.log.dir"]),
    "id in words": (b"node.id=one", ["node.id"]),
    "id empty": (b"node.id=", ["node.id"]),
    "id too large": (b"broker.id=2147483648", ["broker.id"]),
    "id below -1": (b"broker.id=-2", ["broker.id"]),
    "ids differ": (b"node.id=1\nbroker.id=2", ["node.id and broker.id"]),
    "-1 and another": (b"node.id=1\nbroker.id=-1", ["node.id and broker.id"]),
    "variable": (b"config.providers=env\nnode.id=${env:ID}\nlog.dirs=${env:DIRS}", ["log.dirs"]),
    "all at once": (b"node.id=x\nlog.dirs=\nmetadata.log.dir=", ["node.id", "log.dirs", "metadata.log.dir"]),
}


@pytest.mark.parametrize(("data", "value"), READ.values(), ids=READ.keys())
def test_reads_what_a_broker_reads(data: bytes, value: ServerProperties) -> None:
    assert parse(data, PATH) == value


@pytest.mark.parametrize(("data", "words"), REJECTED.values(), ids=REJECTED.keys())
def test_reports_every_problem(data: bytes, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(data, PATH)
    problems = caught.value.problems
    assert len(problems) == len(words)
    for problem, word in zip(problems, words, strict=True):
        assert problem.path == PATH
        assert word in problem.expected
        assert problem.found


def test_broken_escape_is_a_malformed_file() -> None:
    with pytest.raises(MalformedFileError):
        parse(b"log.dirs=\\u12", PATH)


@pytest.mark.parametrize("separator", ["=", ":", " ", "\t"])
def test_a_value_that_a_backslash_joins_with_the_next_line_is_not_shown(separator: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"log.dirs=/a\nnode.id=1\\\nssl.key.password{separator}s3cret".encode(), PATH)
    (problem,) = caught.value.problems
    assert "1ssl.key.password" in problem.found
    assert "s3cret" not in problem.line()


PATHS = st.from_regex(r"/[a-zé€:=# ]*[a-z]", fullmatch=True)


@given(
    st.lists(PATHS, min_size=1, max_size=5, unique=True).map(tuple),
    st.none() | st.integers(0, 2**31 - 1),
    st.none() | st.from_regex(r"[a-z]([a-z: ]*[a-z])?", fullmatch=True),
    PATHS,
)
def test_round_trip(log_dirs: tuple[str, ...], node_id: int | None, rack: str | None, metadata: str) -> None:
    value = ServerProperties(log_dirs, node_id, rack, metadata)
    assert parse(render(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        ServerProperties((), 1, None, "/a"),
        ServerProperties(("/a,b",), 1, None, "/a"),
        ServerProperties(("/a ",), 1, None, "/a"),
        ServerProperties(("/a",), -5, None, "/a"),
        ServerProperties(("/a",), 1, " x", "/a"),
    ],
    ids=["none", "comma", "blank", "id", "rack"],
)
def test_never_writes_what_would_not_read_back(value: ServerProperties) -> None:
    with pytest.raises(ValueError):
        render(value)


def test_damaged_files_raise_one_of_two_families(record_proof: Recorder) -> None:
    only_format_errors(
        record_proof,
        "server.properties",
        parse,
        [GOOD, b"log.dirs=/a\nnode.id=1\n"],
        [b"\n", b"\\", b"\\u", b"log.dirs=\n", b"node.id=x\n", b",", b"broker.id=9\n", b"\xff", b"-"],
        (FormatError, ConfigError),
    )


@pytest.mark.parametrize(
    "key",
    ["broker.rack", "log.dir", "broker.id", "node.id", "metadata.log.dir", "ssl.keystore.password", "process.roles"],
)
def test_no_variable_in_a_key_that_is_not_needed_stops_anything(key: str) -> None:
    text = f"config.providers=env\nlog.dirs=/a,/b\n{key}=${{env:IT}}\n"
    value = parse(text.encode())
    assert value.log_dirs == ("/a", "/b")
    assert (value.node_id, value.rack) == (None, None)
    assert value.unknown == ((key,) if key in ("broker.rack", "broker.id", "node.id", "metadata.log.dir") else ())


@pytest.mark.parametrize("text", ["log.dirs=${env:IT}", "log.dir=${env:IT}", "log.dirs=/a,${env:IT}/b"])
def test_log_dirs_that_are_a_variable_are_not_guessed(text: str) -> None:
    with pytest.raises(ConfigError):
        parse(f"config.providers=env\n{text}\n".encode())


def test_a_node_id_that_is_given_is_not_lost_for_an_old_key_that_is_a_variable() -> None:
    assert parse(b"config.providers=env\nlog.dirs=/a\nnode.id=3\nbroker.id=${env:IT}\n").node_id == 3
