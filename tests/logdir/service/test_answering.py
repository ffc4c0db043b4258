"""What is asked over the socket and only reads: the answer is that of the command, and nothing else is opened."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logdir.errors import ConfigError, LogDirSuspectError, Problem
from logdir.service.cluster.source import SourceRequest
from logdir.service.reading import answering
from logdir.service.reading.answering import MORE_KEYS, Answered, Hanging, OwnBroker, answer_into
from logdir.service.reading.questions import READINGS, DescribeQuestion, StagedLsQuestion, StraysQuestion, is_of_own_log
from logdir.worker.calls import Descriptor
from tests.generated.test_openapi import faults
from tests.tools.cluster_log import elsewhere
from tests.tools.ctl import ctl, tree, two_disks

TITLES = {"staged ls": "StagedLs", "layout status": "LayoutStatus"}
MUCH = 1 << 20


class Rig:
    """Two log dirs with live and staged replicas, the configuration of their broker, and a file for answers."""

    def __init__(self, folder: Path, file: int) -> None:
        self.disks = [str(one) for one in two_disks(folder)]
        properties = folder / "server.properties"
        properties.write_text(f"broker.id=1\nlog.dirs={','.join(self.disks)}\n")
        self.broker = OwnBroker(str(properties), None, str(folder / "b1.yaml"), 10_000)
        self.named = ("--server-properties", properties)
        source = elsewhere(folder)
        assert ctl("init", *self.named, "--apply").status == 0
        assert ctl("stage", "other", *source, *self.named, "--apply").status == 0
        self.source = {"uri": source[1]}
        self.file = file

    def asked(
        self,
        name: str,
        question: dict[str, Any] | None = None,
        *,
        left_out: dict[str, Problem] | None = None,
        hanging: tuple[Hanging, ...] = (),
        most_bytes: int = MUCH,
    ) -> Answered:
        return answer_into(
            name,
            json.dumps(question or {}),
            self.broker,
            left_out or {},
            hanging,
            most_bytes,
            Descriptor(self.file),
        )

    def answer(self, name: str, question: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        start = os.fstat(self.file).st_size
        found = self.asked(name, question, **more)
        assert (found.error, found.hanging) == (None, ())
        data = os.pread(self.file, MUCH, start)
        assert (len(data), data[-1:]) == (found.size, b"\n")
        value: dict[str, Any] = json.loads(data)
        return value


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    file = os.memfd_create("answer", os.MFD_CLOEXEC)
    yield Rig(tmp_path, file)
    os.close(file)


def timeless(value: object) -> object:
    """Instants, ages and free space follow the moment of each call, and a digest follows them."""
    text = re.sub(r'"(\w+_ms|free_\w+)": [0-9]+', r'"\1": 0', json.dumps(value, sort_keys=True))
    text = re.sub(r"20[0-9-]{8}T[0-9:]{8}Z", "WHEN", text)
    return json.loads(re.sub(r'"sha256": "[0-9a-f]+"', '"sha256": ""', text))


@pytest.mark.parametrize(
    ("name", "question", "words"),
    [
        ("staged ls", {}, ()),
        ("staged ls", {"selector": "other"}, ("other",)),
        ("staged ls", {"selector": "nope"}, ("nope",)),
        ("strays", {}, ()),
        ("strays", {"selector": "pay-1"}, ("pay-1",)),
        ("strays", {"protected": ["pay*"]}, ("--internal", "--protect", "pay*")),
        ("describe", {}, ()),
        ("describe", {"selector": "pay-0"}, ("pay-0",)),
        ("inventory", {"are_entries_wanted": True}, ()),
        ("inventory", {"is_exact": True, "are_entries_wanted": True}, ("--exact",)),
        ("layout status", {}, ()),
    ],
)
@pytest.mark.parametrize("is_named", [False, True], ids=["own log", "named source"])
def test_an_answer_is_that_of_the_command_and_nothing_changes(
    rig: Rig, name: str, question: dict[str, Any], words: tuple[str, ...], is_named: bool
) -> None:
    # One needs a source here, and two have none.
    is_named = name == "strays" or (is_named and name not in ("inventory", "layout status"))
    if is_named:
        question, words = {**question, "source": rig.source}, (*words, "--from", rig.source["uri"])
    before = tree(*map(Path, rig.disks), *(Path(f"{disk}.logdird") for disk in rig.disks))
    found = rig.answer(name, question)
    assert tree(*map(Path, rig.disks), *(Path(f"{disk}.logdird") for disk in rig.disks)) == before
    said = ctl(*name.split(), *words, *rig.named, "--json")
    more = {key: found.pop(key) for key in MORE_KEYS}
    assert timeless(found) == timeless(json.loads(said.out))
    assert more["is_waiting"] is False
    assert (more["lines"], more["next"]) == ([], "")
    title = TITLES.get(name, name.capitalize())
    assert faults(f"{title}Answer", found | more) == []


def test_an_inventory_lists_its_entries_only_where_they_are_wanted(rig: Rig) -> None:
    (counted, _), (listed, _) = (
        rig.answer("inventory", {"are_entries_wanted": wanted})["result"]["items"] for wanted in (False, True)
    )
    assert "entries" not in counted
    assert len(listed["entries"]) == listed["rows"] == counted["rows"] > 0
    assert timeless(counted["kinds"]) == timeless(listed["kinds"])


def test_ends_are_read_only_where_they_are_wanted(rig: Rig) -> None:
    ends = [rig.answer("staged ls", {"are_ends_wanted": one})["result"]["items"][0]["log_end"] for one in (False, True)]
    assert ends[0] is None
    assert isinstance(ends[1], int)


@pytest.mark.parametrize(
    ("name", "question", "slug"),
    [
        ("staged ls", {"selector": ""}, "config-error"),
        ("staged ls", {"source": {"uri": "nowhere:"}}, "config-error"),
        ("strays", {}, "config-error"),
        ("strays", {"source": {"uri": "metadata:/nowhere"}}, None),
        ("describe", {"disks": ["/another"]}, "config-error"),
        ("describe", {"source": {"uri": "cluster:/etc/x"}}, "config-error"),
    ],
)
def test_an_error_of_the_use_case_is_passed_on_and_nothing_is_written(
    rig: Rig, name: str, question: dict[str, Any], slug: str | None
) -> None:
    found = rig.asked(name, question)
    assert found.error is not None
    assert slug in (None, found.error.slug)
    assert (slug != "config-error") or isinstance(found.error, ConfigError)
    assert os.fstat(rig.file).st_size == 0


def test_an_answer_that_is_too_long_is_none(rig: Rig) -> None:
    error = rig.asked("describe", most_bytes=100).error
    assert error is not None
    assert (error.slug, error.expected) == ("result-too-large", "an answer of at most 0 MiB")


def test_a_log_dir_that_is_left_out_is_not_opened_and_the_others_are_answered_for(rig: Rig) -> None:
    why = Problem("log-dir-released", rig.disks[1], "a log dir that logdird has open", "none", "reload")
    Path(rig.disks[1]).rename(f"{rig.disks[1]}.away")  # Were it opened, it would be missed.
    for name in READINGS:
        source = {"source": rig.source} if name == "strays" else {}
        found = rig.answer(name, source, left_out={rig.disks[1]: why})
        slugs = {problem["slug"] for problem in found["problems"]}
        assert (name, found["exit"], "log-dir-released" in slugs) == (name, 1, True), found["problems"]
        assert "log-dir-offline" not in slugs
    items = rig.answer("describe", left_out={rig.disks[1]: why})["result"]["items"]
    assert {item["log_dir"] for item in items} == {rig.disks[0]}


def test_a_log_dir_whose_process_still_hangs_is_left_out_and_that_process_is_not_named_again(rig: Rig) -> None:
    found = rig.answer("layout status", hanging=(Hanging(rig.disks[0], os.getpid()),))
    (problem,) = found["problems"]
    assert (problem["slug"], problem["path"]) == ("log-dir-suspect", rig.disks[0])
    assert problem["found"] == f"pid {os.getpid()}, which hangs in the kernel"
    assert [item["layout"] for item in found["result"]["items"]] == [None, "topic-name"]


def test_what_hangs_after_the_answer_is_named(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hung:
        log_dir, pid = rig.disks[0], os.getpid()

        def is_reaped(self) -> bool:
            return False

    def hang(name: str, question: object, request: Any) -> Iterator[str]:
        request.left_out.unreaped.keep([Hung()])
        raise LogDirSuspectError(rig.disks[0], expected="an answer", found="none")

    monkeypatch.setattr(answering, "answer_of", hang)
    found = rig.asked("describe")
    assert found.hanging == (Hanging(rig.disks[0], os.getpid()),)
    assert isinstance(found.error, LogDirSuspectError)


@pytest.mark.parametrize(
    ("source", "is_own"),
    [
        (SourceRequest(), True),
        (SourceRequest(high_watermark=7, leader_epoch=1), True),
        (SourceRequest("metadata:/var/lib/kafka"), False),
        (SourceRequest("request:/etc/shadow"), False),
        (SourceRequest("znodes:/etc/shadow"), False),
        (SourceRequest("cluster:/tmp/client.properties"), False),
        (SourceRequest("metadata"), False),
        (SourceRequest(""), False),
        (SourceRequest("METADATA:"), False),
        (SourceRequest("metadata:\0"), False),
        (SourceRequest("metadata:."), False),
    ],
)
def test_only_the_own_log_is_read_for_everybody(source: SourceRequest, is_own: bool) -> None:
    for question in (StagedLsQuestion(source=source), StraysQuestion(source=source), DescribeQuestion(source=source)):
        assert is_of_own_log(question) is is_own


def test_what_has_no_source_reads_the_own_log_at_most() -> None:
    assert is_of_own_log(DescribeQuestion())
    assert all(is_of_own_log(reading.request()) for reading in READINGS.values())
