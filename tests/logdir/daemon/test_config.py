"""The configuration of the daemon: every key, every wrong value, all problems at once."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from logdir.daemon.config import (
    KEYS,
    DaemonConfig,
    broker_of,
    delete_delay_ms,
    needing_restart,
    parse,
    read_config,
    short_delete_delay,
)
from logdir.daemon.report.history import History
from logdir.daemon.supervisor import Supervisor
from logdir.decide.staged.pressure import Pressure
from logdir.decide.staged.removal_reason import RemovalReason
from logdir.errors import ConfigError
from logdir.service.log_dirs.request import BrokerRequest

FILE = "/etc/logdird/b1.yaml"
LEAST = b"server.properties: /etc/kafka/server.properties\n"


def refused(data: bytes, file: str = FILE) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(data, file)
    return [problem.line() for problem in caught.value.problems]


def test_only_the_broker_has_to_be_named() -> None:
    config = parse(LEAST, FILE)
    assert (config.name, config.server_properties) == ("b1", "/etc/kafka/server.properties")
    assert (config.state_dir, config.socket) == ("/var/lib/logdird/b1", "/run/logdird/b1.sock")
    assert (config.delays.default_ms, config.delays.patterns) == (14_400_000, ())
    assert (config.auto_while_stopped, config.capture_exclude) == (False, ())
    assert (config.disk_timeout_ms, config.sweep_ms) == (10_000, 10_000)
    assert (config.least_free_percent, config.pressure.value) == (10, "purge-captured")
    assert [reason.value for reason in config.capture_reasons] == ["topic-removed", "not-known-yet"]
    # No port is opened, and no file is written, unless somebody says so.
    assert (config.status_listen, config.metrics_listen, config.metrics_textfile) == (None, None, None)
    assert config.server_unit is None


@pytest.mark.parametrize("text", ["[]", "topic-removed", "[topic-removed, gone]", "[not-known-yet, not-known-yet]"])
def test_reasons_are_a_list_of_known_words(text: str) -> None:
    (line,) = refused(LEAST + f"capture.reasons: {text}".encode())
    assert "expected a list of reasons: topic-removed, replica-moved-away, not-known-yet" in line


def test_what_is_not_known_yet_cannot_be_left_out() -> None:
    (line,) = refused(LEAST + b"capture.reasons: [topic-removed]")
    assert "add not-known-yet: no reason is known at the moment of a capture" in line


@pytest.mark.parametrize("text", ["pressure: purge", "pressure: true", "staged.min.free: 100", "staged.min.free: 10%"])
def test_pressure_and_its_floor_are_checked(text: str) -> None:
    (line,) = refused(LEAST + text.encode())
    assert line.startswith(f"config-error: {FILE}: {text.split(':')[0]}: ")


def test_every_key_is_read() -> None:
    config = parse(
        b"""server.properties: kafka/server.properties
state.dir: /s
socket: run/x.sock
client.properties: client.properties
delete.topic.delay.ms: 90000000
topics:
  pay*: {delete.topic.delay.ms: 30d}
  tmp: {delete.stale.topic.delay.ms: 0}
capture.exclude: [scratch*, "__*"]
capture.reasons: [not-known-yet, topic-removed, replica-moved-away]
staged.min.free: 5
pressure: hold
auto.while.stopped: true
disk.timeout.ms: 3000
sweep.interval.ms: 500
purge.bytes.per.second: 0
status.listen: 127.0.0.1:9470
metrics.listen: "[::]:9471"
metrics.textfile: ../node_exporter/logdird.prom
server.unit: kafka@1.service
""",
        FILE,
    )
    assert config == DaemonConfig(
        name="b1",
        file=FILE,
        server_properties="/etc/logdird/kafka/server.properties",
        state_dir="/s",
        socket="/etc/logdird/run/x.sock",
        client_properties="/etc/logdird/client.properties",
        delays=config.delays,
        capture_exclude=("scratch*", "__*"),
        capture_reasons=(RemovalReason.TOPIC_REMOVED, RemovalReason.MOVED_AWAY, RemovalReason.NOT_KNOWN_YET),
        least_free_percent=5,
        pressure=Pressure.HOLD,
        auto_while_stopped=True,
        disk_timeout_ms=3000,
        sweep_ms=500,
        purge_bytes_per_second=0,
        status_listen=("127.0.0.1", 9470),
        metrics_listen=("::", 9471),
        metrics_textfile="/etc/node_exporter/logdird.prom",
        server_unit="kafka@1.service",
    )
    assert config.delays.default_ms == 90_000_000
    assert config.delays.patterns == (("pay*", 30 * 24 * 60 * 60 * 1000), ("tmp", 0))
    assert config.broker_request(skipped=("/d1",)) == BrokerRequest(
        server_properties="/etc/logdird/kafka/server.properties",
        skipped=("/d1",),
        client_properties="/etc/logdird/client.properties",
        daemon_config="/etc/logdird/b1.yaml",
        disk_timeout_ms=3000,
        least_free_percent=5,
    )


@pytest.mark.parametrize(("text", "ms"), [("14400s", 14_400_000), ("4h", 14_400_000), ("500ms", 500), ("0", 0)])
def test_a_delay_with_a_unit_is_taken_as_written(text: str, ms: int) -> None:
    assert parse(LEAST + f"delete.topic.delay.ms: {text}".encode(), FILE).delays.default_ms == ms


def test_a_delay_that_looks_like_seconds_draws_the_question() -> None:
    (line,) = refused(LEAST + b"delete.topic.delay.ms: 14400")
    assert "milliseconds?" in line
    assert "14400ms, or 14400s" in line
    (line,) = refused(LEAST + b"topics: {pay: {delete.topic.delay.ms: 60}}")
    assert line.startswith(f"config-error: {FILE}: topics.pay.delete.topic.delay.ms: ")
    assert "milliseconds?" in line


WRONG = {
    "no mapping": (b"[]", "expected a mapping, found a list"),
    "no broker": (b"", "server.properties: expected the path of the broker's configuration, found no such key"),
    "unknown key": (
        LEAST + b"sokcet: /x",
        "sokcet: expected a key that docs/config.md lists, found an unknown key",
    ),
    "repeated key": (LEAST + LEAST, "expected each key once"),
    "no YAML": (LEAST + b"a: [", "expected a YAML document"),
    "no text": (b"server.properties: 3", "server.properties: expected a path, found 3"),
    "empty path": (b"server.properties: ''", "server.properties: expected a path"),
    "control character": (b'server.properties: "/a\\n"', "server.properties: expected a path"),
    "no flag": (LEAST + b"auto.while.stopped: on", "auto.while.stopped: expected true or false, found the text 'on'"),
    "no number": (LEAST + b"disk.timeout.ms: fast", "disk.timeout.ms: expected a whole number from 100 to"),
    "true is no number": (LEAST + b"disk.timeout.ms: true", "disk.timeout.ms: expected a whole number from 100 to"),
    "too small": (LEAST + b"sweep.interval.ms: 499", "sweep.interval.ms: expected a whole number from 500 to 60000"),
    "too large": (LEAST + b"sweep.interval.ms: 60001", "sweep.interval.ms: expected a whole number from 500 to 60000"),
    "negative delay": (LEAST + b"delete.topic.delay.ms: -1", "delete.topic.delay.ms: expected whole milliseconds"),
    "no delay": (LEAST + b"delete.topic.delay.ms: soon", "delete.topic.delay.ms: expected whole milliseconds"),
    "both names": (
        LEAST + b"delete.topic.delay.ms: 90000000\ndelete.stale.topic.delay.ms: 90000000",
        "delete.stale.topic.delay.ms: expected delete.topic.delay.ms or its alias, found both",
    ),
    "topic without a delay": (
        LEAST + b"topics: {pay: {}}",
        "topics.pay: expected delete.topic.delay.ms, found no such",
    ),
    "topic with another key": (
        LEAST + b"topics: {pay: {delete.topic.delay.ms: 4h, x: 1}}",
        "topics.pay.x: expected a key that docs/config.md lists",
    ),
    "topics no mapping": (LEAST + b"topics: [pay]", "topics: expected a mapping, found a list"),
    "globs no list": (LEAST + b"capture.exclude: pay", "capture.exclude: expected a list of topic globs"),
    "glob no text": (LEAST + b"capture.exclude: [1]", "capture.exclude: expected a list of topic globs"),
    "no port": (
        LEAST + b"metrics.listen: 10.0.0.1",
        "metrics.listen: expected an IP address and a port from 1 to 65535",
    ),
    "port 0": (
        LEAST + b"metrics.listen: 10.0.0.1:0",
        "metrics.listen: expected an IP address and a port from 1 to 65535",
    ),
    "large port": (LEAST + b"metrics.listen: 10.0.0.1:65536", "metrics.listen: expected an IP address and a port"),
    "a name": (LEAST + b"metrics.listen: localhost:9471", "metrics.listen: expected an IP address and a port"),
    "no address": (LEAST + b"metrics.listen: 10.0.0.256:9471", "metrics.listen: expected an IP address and a port"),
    "brackets without a colon": (
        LEAST + b"metrics.listen: '[10.0.0.1]:9471'",
        "metrics.listen: expected an IP address",
    ),
    "no brackets": (LEAST + b"metrics.listen: '::1:9471'", "metrics.listen: expected an IP address and a port"),
    "a number": (LEAST + b"status.listen: 9470", "status.listen: expected an IP address and a port"),
    "the same port": (
        LEAST + b"status.listen: 127.0.0.1:9470\nmetrics.listen: 127.0.0.1:9470",
        "metrics.listen: expected another address or port than that of status.listen, found 127.0.0.1 and 9470",
    ),
    "no textfile": (LEAST + b"metrics.textfile: true", "metrics.textfile: expected a path, found true"),
    "no service": (LEAST + b"server.unit: kafka", "server.unit: expected the name of a systemd service"),
    "a path as unit": (
        LEAST + b"server.unit: /etc/kafka.service",
        "server.unit: expected the name of a systemd service",
    ),
    "a template": (LEAST + b"server.unit: kafka@.service", "server.unit: expected the name of a systemd service"),
    "a long unit": (LEAST + b"server.unit: " + b"k" * 248 + b".service", "server.unit: expected the name of a systemd"),
    "long socket": (LEAST + b"socket: /" + b"s" * 107, "socket: expected a path of at most 107 bytes, found 108 bytes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_line_with_its_place(name: str) -> None:
    data, expected = WRONG[name]
    lines = refused(data)
    assert any(expected in line for line in lines), lines
    assert all(line.startswith(f"config-error: {FILE}") for line in lines)


def test_all_problems_are_reported_at_once() -> None:
    lines = refused(b"x: 1\ny: 2\nserver.properties: 3\ndisk.timeout.ms: x\ntopics: {a: {}, b: 5}\n")
    assert len(lines) == 7


@pytest.mark.parametrize("file", ["/etc/logdird/.yaml", "/etc/logdird/a b.yaml", f"/etc/logdird/{'n' * 65}.yaml"])
def test_a_name_that_no_socket_can_have_is_refused(file: str) -> None:
    assert any("a file named NAME.yaml" in line for line in refused(LEAST, file))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(ConfigError, match=re.escape(str(path))):
            read_config(str(path))


def test_relative_paths_start_at_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b1.yaml").write_bytes(b"server.properties: server.properties\n")
    monkeypatch.chdir(tmp_path)
    assert read_config("b1.yaml").server_properties == str(tmp_path / "server.properties")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", None),
        ("log.segment.delete.delay.ms=5000", 5000),
        ("log.segment.delete.delay.ms= 0 ", 0),
        ("log.segment.delete.delay.ms=x", None),
    ],
)
def test_the_delete_delay_is_the_brokers(tmp_path: Path, line: str, expected: int | None) -> None:
    (tmp_path / "server.properties").write_text(f"node.id=1\n{line}\n")
    assert delete_delay_ms(str(tmp_path / "server.properties")) == expected


@pytest.mark.parametrize(
    ("line", "is_short"),
    [("", False), ("log.segment.delete.delay.ms=19999", True), ("log.segment.delete.delay.ms=20000", False)],
)
def test_a_delete_delay_under_20_seconds_draws_a_warning(tmp_path: Path, line: str, is_short: bool) -> None:
    (tmp_path / "server.properties").write_text(f"node.id=1\n{line}\n")
    found = short_delete_delay(str(tmp_path / "server.properties"))
    assert (found is not None) == is_short
    if found is not None:
        assert (found.slug, found.path, found.found) == (
            "delete-delay-short",
            str(tmp_path / "server.properties"),
            "19999",
        )


ELSEWHERE = {"name", "file"}
"""Fields that the path of the file fills."""


def test_every_field_has_its_key_and_every_key_a_field_that_there_is() -> None:
    assert {key.field for key in KEYS} == {one.name for one in fields(DaemonConfig)} - ELSEWHERE
    assert len({key.name for key in KEYS}) == len(KEYS)
    assert all(key.text and key.type and key.default_text for key in KEYS)


@pytest.mark.parametrize("key", [key.name for key in KEYS])
def test_a_misspelled_key_is_answered_by_the_one_that_is_meant(key: str) -> None:
    (line,) = refused(LEAST + f"{key[:-1]}: x".encode())
    assert f"did you mean {key}?" in line


@pytest.mark.parametrize("address", ["0.0.0.0:9470", "10.1.2.3:9470", "'[::]:9470'", "'[::ffff:127.0.0.1]:9470'"])
def test_the_status_page_is_never_opened_to_the_network(address: str) -> None:
    (line,) = refused(LEAST + f"status.listen: {address}".encode())
    assert "status.listen: expected a loopback address, which only this host reaches" in line
    assert "write 127.0.0.1:9470; from another host the page is reached by ssh -L 9470:127.0.0.1:9470 HOST" in line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:1", ("127.0.0.1", 1)),
        ("127.8.9.1:65535", ("127.8.9.1", 65535)),
        ("'[::1]:9470'", ("::1", 9470)),
        ("'[0:0:0:0:0:0:0:1]:9470'", ("::1", 9470)),
    ],
)
def test_a_loopback_address_is_taken_in_its_short_form(text: str, expected: tuple[str, int]) -> None:
    assert parse(LEAST + f"status.listen: {text}".encode(), FILE).status_listen == expected


@pytest.mark.parametrize("key", ["state.dir", "socket", "metrics.textfile"])
@pytest.mark.parametrize("place", ["d1/x", "d1.logdird/x", "d1"])
def test_nothing_of_the_daemon_lies_in_a_log_dir_or_work_root(key: str, place: str, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(f"node.id=1\nlog.dirs={tmp_path}/d1\n")
    text = f"server.properties: server.properties\n{key}: {place}\n"
    with pytest.raises(ConfigError) as caught:
        broker_of(parse(text.encode(), str(tmp_path / "b1.yaml")))
    (problem,) = caught.value.problems
    assert problem.line().startswith(
        f"config-error: {tmp_path}/b1.yaml: {key}: expected a path outside every log dir and work root"
    )


def test_a_reload_with_another_port_is_refused_by_the_name_of_the_key(tmp_path: Path) -> None:
    before = replace(parse(LEAST, FILE), state_dir=str(tmp_path))
    supervisor = Supervisor(before, version="0", history=History(str(tmp_path)))
    with pytest.raises(ConfigError) as caught:
        supervisor.reload(replace(before, socket="/run/x.sock", status_listen=("127.0.0.1", 9470)))
    (problem,) = caught.value.problems
    found = "found another socket and another status.listen; restart logdird"
    assert problem.line() == f"config-error: {FILE}: expected the same as at the start, {found}"
    assert supervisor.config is before
    supervisor.reload(replace(before, sweep_ms=500))
    assert supervisor.config.sweep_ms == 500
    supervisor.history.close(1.0)


def test_a_restart_is_needed_for_the_keys_that_say_so_and_no_others() -> None:
    before = parse(LEAST, FILE)
    assert needing_restart(before, before) == ()
    other: dict[str, Any] = {
        "state_dir": "/s",
        "socket": "/s.sock",
        "status_listen": ("127.0.0.1", 1),
        "metrics_listen": ("::", 1),
    }
    named = ("state.dir", "socket", "status.listen", "metrics.listen")
    assert needing_restart(before, replace(before, **other)) == named
    at_once = replace(
        before,
        server_properties="/x",
        client_properties="/c",
        capture_exclude=("a",),
        sweep_ms=500,
        metrics_textfile="/t.prom",
        server_unit="kafka.service",
    )
    assert needing_restart(before, at_once) == ()
