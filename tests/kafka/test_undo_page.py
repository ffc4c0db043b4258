"""docs/undo.md, typed as it stands on stock brokers: a replica staged and served empty since comes back whole.

Spec: design §3.3; kafka-behaviour §10.5, §10.6; attacks A16, A36, A48.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.kafka.client import Digest
from tests.kafka.rig import Broker, Rig
from tests.kafka.rotation import releases_of
from tests.kafka.undo_rig import QUICK, live, stage, staged, stop, type_
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "undo.md").read_text("utf-8")
TRIMMED: Final = 10
_BLOCK: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RETENTION_S: Final = 3


def typed(heading: str) -> str:
    """Return all that a section of the page says to type."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return "".join(_BLOCK.findall(section))


def run(script: str, values: Mapping[str, str], broker: Broker) -> None:
    """Type what a section says; its broker is stopped and started where it says so."""
    done = ""
    settings = "".join(f"{name}='{value}'\n" for name, value in values.items())
    environ = {**os.environ, "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}"}
    for part in re.split(r"^(systemctl \w+ kafka)\n", script, flags=re.MULTILINE):
        if part == "systemctl stop kafka":
            stop(broker)
        elif part == "systemctl start kafka":
            broker.start()
        else:
            # A shell keeps what was set before: it is set again, and nothing else of it is done again.
            kept = "".join(line for line in done.splitlines(keepends=True) if re.match(r"[A-Z]+=", line))
            said = subprocess.run(
                ["sh", "-euc", settings + kept + part], capture_output=True, text=True, env=environ, timeout=120
            )
            assert said.returncode == 0, (part, said.stdout, said.stderr)
            done += part


def test_the_page_sets_what_its_commands_use() -> None:
    (settings,) = _BLOCK.findall(PAGE.partition("\n## Back by ")[0])
    names = set(re.findall(r"^([A-Z]+)=", settings, re.MULTILINE))
    assert names == {"CONFIG", "TOPIC", "PARTITION", "NAME", "OUT", "LIVE"}
    commands = typed("Back by a rename") + typed("Back by a copy") + typed("What is still staged")
    used = set(re.findall(r"\$\{?([A-Z]+)", commands))
    assert used - set(re.findall(r"^([A-Z]+)=", commands, re.MULTILINE)) == names


def digests(rig: Rig, topic: str) -> tuple[Digest, Digest]:
    return rig.client.digest(topic), rig.client.digest(topic, isolation="read_committed")


def fill(rig: Rig, topic: str) -> tuple[Digest, Digest]:
    rig.client.create(topic)
    rig.client.produce_rich(topic, records=100)
    rig.client.produce_rich(topic, records=20, transactional_id=f"{topic}-yes")
    rig.client.produce_rich(topic, records=20, transactional_id=f"{topic}-no", commit=False)
    assert rig.client.trim(topic, 0, TRIMMED) == TRIMMED
    uncommitted, committed = digests(rig, topic)
    assert (uncommitted.begin, uncommitted.records, committed.records) == (TRIMMED, 130, 110)
    return uncommitted, committed


def values(broker: Broker, topic: str, folder: Path) -> dict[str, str]:
    """Return the page's values for one topic of the test."""
    (name,) = {
        path.rpartition("/deleting/")[2].partition("/")[0]
        for path, (*_, data) in staged(broker).items()
        if path.endswith("replica.json") and f'"topic":"{topic}"'.encode() in _bytes(data)
    }
    (now,) = (path for path in live(broker, topic) if path.name == f"{topic}-0")
    folder.mkdir()
    return {
        "CONFIG": str(broker.write_configuration()),
        "TOPIC": topic,
        "PARTITION": "0",
        "NAME": name,
        "OUT": str(folder),
        "LIVE": str(now),
    }


def _bytes(data: object) -> bytes:
    assert isinstance(data, bytes)
    return data


@pytest.fixture(params=releases_of("ways back"))
def rig(request: pytest.FixtureRequest, make_rig: Callable[[str], Rig]) -> Iterator[Rig]:
    with make_rig(request.param) as made:
        made.add_broker(log_dirs=3, properties=QUICK).start()
        yield made


def test_a48_what_a_start_served_empty_comes_back_whole_by_both_ways_of_the_page(rig: Rig, tmp_path: Path) -> None:
    (broker,) = rig.brokers
    client = rig.client
    client.create("others", 40)  # so that one topic is no large part of the broker
    topics = ("renamed", "copied", "again")
    written = {topic: fill(rig, topic) for topic in topics}
    stop(broker)
    assert type_(broker, "init", "--apply").status == Exit.DONE
    for topic in topics:
        stage(broker, topic, "--even-if-last")
    broker.start()
    client.delete("again")
    client.create("again")
    for topic in topics:
        assert client.digest(topic).records == 0
        client.produce(topic, records=3)
    kept = staged(broker)

    run(typed("Back by a rename"), values(broker, "renamed", tmp_path / "renamed"), broker)
    assert digests(rig, "renamed") == written["renamed"]
    for topic in ("copied", "again"):
        run(typed("Back by a copy"), values(broker, topic, tmp_path / topic), broker)
        assert digests(rig, topic) == written[topic]
        assert any((tmp_path / topic / "written-since").glob("*.log"))
        # What was copied is still staged as it was.
        assert {path: state for path, state in staged(broker).items() if path in kept}.items() <= kept.items()
    for _ in range(2):
        time.sleep(_RETENTION_S)
        assert {topic: digests(rig, topic) for topic in topics} == written
        stop(broker)
        broker.start()
    assert {topic: digests(rig, topic) for topic in topics} == written
    assert client.produce_rich("renamed", records=5) == written["renamed"][0].end + 4
    for topic in ("copied", "again"):
        assert client.produce_rich(topic, records=5) == written[topic][0].end + 4
    stop(broker)
    for topic in topics:
        run(typed("What is still staged"), values(broker, topic, tmp_path / f"{topic}-purged"), broker)
    assert staged(broker) == {}
