"""The question to the metadata quorum: on a thread of its own, with an answer that has a time (attack A2)."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from logdir import clock
from logdir.daemon.config import broker_of, read_config
from logdir.daemon.quorum import Quorum
from logdir.errors import ConfigError, RefusedError
from logdir.service.cluster.live_source import ask_quorum, committed_source, read_settings
from logdir.service.cluster.source import QuorumWord, SourceRequest
from tests.builders import CLUSTER
from tests.logdir.daemon.rig import daemon, until
from tests.logdir.wire.client.fake_broker import Talk
from tests.logdir.wire.client.fake_cluster import fake_cluster
from tests.tools.ctl import ctl

UNREACHABLE = "bootstrap.servers=127.0.0.1:1\nrequest.timeout.ms=2000\n"
PATH = "/client.properties"


class Told:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.may_answer, self.has_answered = threading.Event(), threading.Event()
        self.asked = 0
        self.quorum = Quorum(self.has_answered.set, self.ask)

    def ask(self, path: str, cluster_id: str | None) -> QuorumWord | None:
        self.asked += 1
        assert (path, cluster_id) == (PATH, CLUSTER)
        assert self.may_answer.wait(30)
        return QuorumWord(90, 4)


def test_nobody_waits_for_an_answer_and_it_is_used_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ms = 1_000_000
    monkeypatch.setattr(clock, "boottime_ms", lambda: now_ms)
    told = Told()
    for _ in range(3):
        assert not told.quorum.is_known(PATH, CLUSTER)
        assert told.quorum.source(PATH) == SourceRequest()
    told.may_answer.set()
    assert told.has_answered.wait(30)
    assert told.quorum.is_known(PATH, CLUSTER)
    assert told.quorum.source(PATH) == SourceRequest(high_watermark=90, leader_epoch=4)
    assert told.asked == 1
    now_ms += 60_000
    assert told.quorum.is_known(PATH, CLUSTER)
    now_ms += 1
    assert told.quorum.source(PATH) == SourceRequest()
    until("the thread has ended", lambda: not any(one.name == "quorum" for one in threading.enumerate()))
    assert not told.quorum.is_known(PATH, CLUSTER)
    assert told.asked == 2


def test_without_a_client_nobody_is_asked() -> None:
    told = Told()
    assert told.quorum.is_known(None, CLUSTER)
    assert told.quorum.source(None) == SourceRequest()
    assert (told.asked, told.quorum.problem(None)) == (0, ())


def test_another_file_has_no_answer_yet() -> None:
    told = Told()
    told.may_answer.set()
    told.quorum.is_known(PATH, CLUSTER)
    assert told.has_answered.wait(30)
    assert told.quorum.source("/other") == SourceRequest()


def test_the_quorum_of_the_cluster_of_the_log_dirs(tmp_path: Path) -> None:
    with fake_cluster(tmp_path, CLUSTER) as cluster:
        settings = read_settings(str(cluster.properties))
        cluster.quorum = (4711, 7)
        assert ask_quorum(settings, CLUSTER) == QuorumWord(4711, 7)
        cluster.quorum = (-1, 7)  # A new leader does not know it yet.
        assert ask_quorum(settings, CLUSTER) is None
        for other in ("AAAAAAAAAAAAAAAAAAAAZw", None):
            with pytest.raises(RefusedError, match="source-foreign"):
                ask_quorum(settings, other)
        cluster.quorum = (4711, 7)
        path = str(cluster.properties)
        known = SourceRequest(high_watermark=4711, leader_epoch=7)
        assert committed_source(SourceRequest(), path, CLUSTER) == known
        named = SourceRequest(uri="metadata:/m")
        assert committed_source(named, path, CLUSTER) == named
        assert committed_source(SourceRequest(), None, CLUSTER) == SourceRequest()
        assert committed_source(SourceRequest(), path, "AAAAAAAAAAAAAAAAAAAAZw") == SourceRequest()


def test_the_client_is_checked_with_the_configuration(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False, more="client.properties: c.properties\n") as one:
        with pytest.raises(ConfigError, match=r"client\.properties"):
            broker_of(read_config(str(one.config)))
        (tmp_path / "c.properties").write_text("security.protocol=SASL_SSL\n")
        with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
            broker_of(read_config(str(one.config)))
        (tmp_path / "c.properties").write_text(UNREACHABLE)
        broker_of(read_config(str(one.config)))  # Nobody is asked.
        assert read_config(str(one.config)).client_properties == str(tmp_path / "c.properties")


@pytest.mark.slow
def test_an_unreachable_cluster_changes_nothing_and_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "c.properties").write_text(UNREACHABLE)
    more = "client.properties: c.properties\ndelete.topic.delay.ms: 0s\ntopics: {'pay*': {delete.topic.delay.ms: 3s}}\n"
    with daemon(tmp_path, more=more) as one:
        one.delete(one.make())
        until("it is captured", lambda: bool(one.staged()))
        until("it is purged", lambda: not one.staged())
        until("the line", lambda: any(found.slug == "cluster-unreachable" for found in one.status().waiting))
        assert [found.slug for found in one.status().waiting].count("cluster-unreachable") == 1
        assert one.status().state == "RUNNING"


def test_no_capture_waits_for_a_broker_that_says_nothing(tmp_path: Path) -> None:
    silent = threading.Event()
    with fake_cluster(tmp_path, CLUSTER, (1,)) as cluster:

        def stall(talk: Talk) -> None:
            silent.wait(60)

        cluster.brokers[1].replies["DescribeCluster"] = stall
        with daemon(tmp_path, is_started=False, more="client.properties: client.properties\n") as one:
            cluster.properties.write_text(
                cluster.properties.read_text().replace("request.timeout.ms=5000", "request.timeout.ms=60000")
            )
            one.delete(one.make("pay", 0))
            one.start()
            until("the first is captured", lambda: len(one.staged()) == 1)
            one.delete(one.make("pay", 1))
            until("the second, too", lambda: len(one.staged()) == 2)
            assert ctl("status", "--config", one.config).status in (0, 1)
        silent.set()


@pytest.mark.parametrize("error", [MemoryError(), OSError(24, "Too many open files"), RuntimeError("no more threads")])
def test_whatever_ends_the_question_it_is_a_problem_and_no_purge_waits_for_ever(error: Exception) -> None:
    """An error that no rule foresees, as of TLS without a free descriptor, also ends in an answer."""
    has_answered = threading.Event()

    def ask(path: str, cluster_id: str | None) -> QuorumWord | None:
        raise error

    quorum = Quorum(has_answered.set, ask)
    assert not quorum.is_known(PATH, CLUSTER)
    assert has_answered.wait(30)
    assert quorum.is_known(PATH, CLUSTER)
    assert [(one.slug, one.path) for one in quorum.problem(PATH)] == [("internal-error", PATH)]
    assert quorum.source(PATH) == SourceRequest()


def test_a_thread_that_cannot_be_started_is_a_problem_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    told = Told()
    monkeypatch.setattr(threading.Thread, "start", fail)
    assert told.quorum.is_known(PATH, CLUSTER)
    assert [one.slug for one in told.quorum.problem(PATH)] == ["internal-error"]
    assert told.asked == 0
