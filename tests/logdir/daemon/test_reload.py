"""A configuration that is refused when it is read again: the former one stays in use, and everything wrong is shown."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from logdir.daemon import process
from logdir.daemon.config import read_config
from logdir.daemon.process import DaemonProcess
from logdir.daemon.timer import Timer
from logdir.daemon.watches import Watches
from tests.logdir.daemon.rig import Daemon, daemon, until


class NoTimer:
    """A timer that notes how often it is to sweep."""

    def __init__(self) -> None:
        self.sweeps: list[int] = []

    def set_sweep(self, configured_ms: int, delete_delay_ms: int | None) -> None:
        self.sweeps.append(configured_ms)


class Reloading:
    """The parts of a daemon that is not started, and its files."""

    def __init__(self, folder: Path) -> None:
        self.rig = Daemon(folder)
        self.timer = NoTimer()
        self.parts = DaemonProcess(
            read_config(str(self.rig.config)), version="0", make_timer=lambda *_: cast(Timer, self.timer)
        )
        self.former = self.parts.supervisor.config
        log_dirs = tuple(map(str, self.rig.log_dirs))
        # None is started: what is watched is not asked here.
        self.parts.watches = cast(Watches, SimpleNamespace(log_dirs=log_dirs, leave=lambda left: None))

    def reload(self) -> list[str]:
        """Read the file again; return what the status shows of it."""
        self.parts._reload()
        return [problem.line() for problem in self.parts.supervisor.reload_problems]

    def events(self) -> list[object]:
        return [event["event"] for event in self.parts.supervisor.history.last()]


@pytest.fixture
def one(tmp_path: Path) -> Reloading:
    return Reloading(tmp_path)


def written(text: str | bytes) -> Callable[[Daemon], None]:
    data = text if isinstance(text, bytes) else text.encode()
    return lambda rig: cast(None, rig.config.write_bytes(data))


def _no_permission(rig: Daemon) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    rig.config.chmod(0)


def _a_directory(rig: Daemon) -> None:
    rig.config.unlink()
    rig.config.mkdir()


NAMED = "server.properties: server.properties\nstate.dir: state\nsocket: s.sock\n"
REFUSED: dict[str, tuple[Callable[[Daemon], object], list[str]]] = {
    "two keys": (
        written(f"{NAMED}sokcet: x\nsweep.interval.ms: no\n"),
        ["did you mean socket?", "expected a whole number from 500 to 60000, found the text 'no'"],
    ),
    "no YAML": (written(f"{NAMED}topics: {{"), ["expected a YAML document"]),
    "no UTF-8": (written(b"server.properties: \xff\xfe\n"), ["expected a YAML document"]),
    "empty": (written(""), ["expected the path of the broker's configuration, found no such key"]),
    "gone": (lambda rig: rig.config.unlink(), ["found No such file or directory"]),
    "too big": (written(b"#" * ((1 << 20) + 1)), ["found more than 1048576 bytes"]),
    "no permission": (_no_permission, ["found Permission denied"]),
    "a directory": (_a_directory, ["found a directory"]),
    "another socket": (written(NAMED.replace("s.sock", "t.sock")), ["found another socket; restart logdird"]),
    "no broker": (lambda rig: rig.server_properties.unlink(), ["found No such file or directory"]),
    "a broker without log dirs": (
        lambda rig: rig.server_properties.write_text("broker.id=1\nlog.dirs=\n"),
        ["config-error: "],
    ),
    "a broker's file that is malformed": (
        lambda rig: rig.server_properties.write_text("log.dirs=/a\nx=\\u12\n"),
        ["config-error: "],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_keeps_the_former_configuration_and_is_shown_whole(one: Reloading, name: str) -> None:
    spoil, expected = REFUSED[name]
    spoil(one.rig)
    found = one.reload()
    assert len(found) == len(expected), found
    for text, line in zip(expected, found, strict=True):
        assert text in line
    assert (one.parts.supervisor.config, one.timer.sweeps) == (one.former, [])
    assert one.events() == ["reload-refused"]
    shown = {problem.line() for problem in one.parts.supervisor.status().waiting}
    assert set(found) <= shown


@pytest.mark.parametrize(
    "error",
    [RuntimeError("nobody foresaw it"), MemoryError(), OSError(errno.EMFILE, "Too many open files"), KeyError("x")],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_no_rule_foresees_ends_no_daemon_that_works(
    one: Reloading, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: str) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(process, "read_config", fails)
        (line,) = one.reload()
    assert line.startswith(f"internal-error: {one.rig.config}: expected an answer, found {type(error).__name__}: ")
    assert (one.parts.supervisor.config, one.timer.sweeps) == (one.former, [])
    # The next one that fits is taken, and nothing is shown any more.
    one.rig.configure("sweep.interval.ms: 700\n")
    assert one.reload() == []
    assert (one.parts.supervisor.config.sweep_ms, one.timer.sweeps) == (700, [700])
    assert one.events() == ["reload-refused", "reloaded"]


@pytest.mark.slow
def test_a_daemon_goes_on_by_the_former_configuration(tmp_path: Path) -> None:
    with daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        one.config.rename(tmp_path / "away.yaml")
        assert one.process is not None
        one.process.send_signal(1)
        until("the status shows it", lambda: "config-error" in [problem.slug for problem in one.status().waiting])
        one.delete(one.make())
        until("it captures", lambda: one.status().captured == 1)
        (tmp_path / "away.yaml").rename(one.config)
        one.process.send_signal(1)
        until("nothing is wrong any more", lambda: one.status().waiting == ())
        assert [event["event"] for event in one.events()].count("reload-refused") == 1
