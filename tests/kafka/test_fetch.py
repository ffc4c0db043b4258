"""The cache of stock releases: where it lies, that it is whole or not there, what a failing fetch says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka.fetch import FetchError, cache_dir, coordinates, fetch, is_whole, render_pom

pytestmark = pytest.mark.kafka

WORKING_MVN = """#!/bin/sh
echo run >> {log}
for word in "$@"; do case $word in -DoutputDirectory=*) out=${{word#*=}};; esac; done
mkdir -p "$out" && echo jar > "$out/kafka_2.13-9.9.9.jar"
"""
FAILING_MVN = """#!/bin/sh
echo run >> {log}
echo '[INFO] trying'
echo '[ERROR] Could not find artifact org.apache.kafka:kafka_2.13:jar:9.9.9'
echo '[ERROR] more of it'
exit 1
"""


@pytest.fixture
def mvn_log(tmp_path: Path) -> Path:
    return tmp_path / "mvn.log"


def put_mvn(script: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make ``mvn`` mean ``script`` for the programs this test starts."""
    program = log.parent / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text(script.format(log=log))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({"LOGDIRD_KAFKA_CACHE": "/own", "XDG_CACHE_HOME": "/xdg", "HOME": "/home/u"}, "/own", id="own"),
        pytest.param({"XDG_CACHE_HOME": "/xdg", "HOME": "/home/u"}, "/xdg/logdird/kafka", id="xdg"),
        pytest.param({"LOGDIRD_KAFKA_CACHE": "", "HOME": "/home/u"}, "/home/u/.cache/logdird/kafka", id="home"),
    ],
)
def test_the_cache_is_where_the_environment_says(environ: dict[str, str], expected: str) -> None:
    assert cache_dir(environ) == Path(expected)


def test_the_pom_names_the_coordinates_and_no_address() -> None:
    pom = render_pom("4.3.1")
    assert "<artifactId>kafka_2.13</artifactId><version>4.3.1</version>" in pom
    assert "<artifactId>kafka-tools</artifactId><version>4.3.1</version>" in pom
    assert "repositor" not in pom
    assert pom.count("<dependency>") == len(coordinates("4.3.1")) == len(coordinates("3.9.2")) + 1


def test_a_release_is_fetched_once_and_again_when_a_jar_is_cut(
    tmp_path: Path, mvn_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_mvn(WORKING_MVN, mvn_log, monkeypatch)
    cache = tmp_path / "cache"
    libs = fetch("9.9.9", cache)
    assert fetch("9.9.9", cache) == libs
    assert mvn_log.read_text() == "run\n"
    (libs / "kafka_2.13-9.9.9.jar").write_text("")
    assert not is_whole(libs.parent)
    assert fetch("9.9.9", cache) == libs
    assert mvn_log.read_text() == "run\n" * 2
    assert is_whole(libs.parent)


def test_three_failing_tries_end_in_one_line_and_leave_nothing(
    tmp_path: Path, mvn_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_mvn(FAILING_MVN, mvn_log, monkeypatch)
    cache = tmp_path / "cache"
    pauses: list[float] = []
    with pytest.raises(FetchError) as caught:
        fetch("9.9.9", cache, pause=pauses.append)
    message = str(caught.value)
    assert "\n" not in message
    assert "Kafka 9.9.9 cannot be fetched (3 tries)" in message
    assert "Could not find artifact org.apache.kafka:kafka_2.13:jar:9.9.9" in message
    assert "LOGDIRD_KAFKA_CACHE" in message
    assert mvn_log.read_text() == "run\n" * 3
    assert pauses == [2.0, 4.0]
    assert [path.name for path in cache.iterdir()] == ["fetch.lock"]


def test_without_maven_the_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchError, match="install Maven"):
        fetch("9.9.9", tmp_path / "cache")
