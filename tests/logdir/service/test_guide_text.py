"""The guide through an adoption as text: at most 80 columns, and a shell reads the commands as they were."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from logdir.cluster.image import Broker, Partition, Topic
from logdir.decide.staged.adoption import Gone
from logdir.decide.staged.guide import GuideStep, GuideWords, plan_guide
from logdir.formats.own.replica_marker import Checkpoints
from logdir.service.report.guide_text import guide_lines
from tests.logdir.decide.builders import OTHER_ID, WALL_MS, facts, staged_replicas
from tests.logdir.decide.test_adopt_here import CAPTURED, image, known


def lines(text: str, command: str | None) -> tuple[str, ...]:
    return guide_lines((GuideStep(step=1, text=text, command=command),))


def test_only_the_first_line_of_a_step_has_its_number() -> None:
    steps = [GuideStep(step=number, text=text, command=None) for number, text in ((1, "a"), (1, "b"), (2, "c"))]
    assert guide_lines(steps) == ("1. a", "   b", "2. c")
    assert guide_lines(()) == ()


@pytest.mark.parametrize(("length", "number"), [(73, 1), (74, 2)])
def test_a_command_stands_behind_its_text_if_both_fit_into_80_columns(length: int, number: int) -> None:
    found = lines("Do:", "x" * length)
    assert len(found) == number
    assert max(map(len, found)) <= 80


COMMANDS = (
    (
        "kafka-topics.sh --bootstrap-server h1:9092 --create --topic pay --replica-assignment 1:2:3,1:2:3 "
        "--config retention.ms=-1 --config retention.bytes=-1"
    ),
    "logdirctl staged adopt eXOy6xj-Q8ivrWAlsZGnkw --as pay $QUORUM --server-properties '/etc/a b/x y' --apply",
    "logdirctl staged ls eXOy6xj-Q8ivrWAlsZGnkw --log-dirs '/it'\"'\"'s a,/b c' --json > /var/tmp/pay.broker-1.json",
    "logdirctl staged export eXOy6xj-Q8ivrWAlsZGnkw -o /var/tmp/undo --server-properties /etc/kafka/server.properties",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_shell_reads_a_broken_command_as_the_whole_one(command: str) -> None:
    _, *typed = lines("Do:", command)
    assert len(typed) > 1
    assert max(map(len, typed)) <= 80
    assert all(line.endswith(" \\") for line in typed[:-1])
    assert shlex.split("\n".join(typed).replace("\\\n", "")) == shlex.split(command)  # which a shell takes out first


def test_an_option_is_not_parted_from_its_value() -> None:
    ends = [line.removesuffix(" \\").split()[-1] for command in COMMANDS for line in lines("Do:", command)]
    assert not {"--config", "--server-properties", "--replica-assignment", "--log-dirs", "-o", ">"} & set(ends)


def test_a_word_that_is_longer_than_a_line_stays_whole() -> None:
    path = "/a" * 60
    assert lines(f"7 B: {path} -> {path}", f"x {path}") == (
        "1. 7 B:",
        f"   {path}",
        "   ->",
        f"   {path}",
        "     x \\",
        f"       {path}",
    )


def test_the_page_about_undoing_shows_what_is_printed() -> None:
    page = (Path(__file__).parents[3] / "docs" / "undo.md").read_text("utf-8")
    section = page.partition("\n### Let `staged restore` lead you\n")[2].partition("\n### ")[0]
    (shown,) = re.findall(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    marker = replace(CAPTURED, topic="payments", topic_id=OTHER_ID, partition=0, checkpoints=Checkpoints())
    top = "/var/lib/kafka/d1"
    item = replace(staged_replicas(marker, log_dir=top, log_bytes=1 << 30, first_offset=0), root=f"{top}.logdird")
    endpoints = (("PLAINTEXT", "kafka1", 9092, 0),)
    topic = Topic("payments", bytes(OTHER_ID), {0: Partition((1,), (1,))})
    cluster = known(image(former={bytes(OTHER_ID): topic}, brokers={1: Broker(bytes(16), 1, endpoints=endpoints)}))
    gone = Gone(
        items=(item,), cluster=cluster, node_id=1, now_ms=WALL_MS, log_ends={(item.log_dir, item.path): 1_234_567}
    )
    words = GuideWords(broker="--server-properties /etc/kafka/server.properties", is_running=True, is_quorum_known=True)
    assert guide_lines(plan_guide(gone, words, [facts(log_dir=top, staged=(item,))])) == tuple(shown.splitlines())
