"""``logdirctl init --systemd``: what it writes and where, what it leaves alone, and that it changes no log dir."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.builders import log_dir
from tests.tools.ctl import ctl, ctl_json, tree
from tools.cli.arguments import Exit
from tools.cli.broker import as_owner
from tools.logdirctl.main import build_parser


class Host:
    """A host of its own below a directory: log dirs, the broker's configuration, and that of logdird.

    It lies outside /tmp, which the units do not see.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.units = self.root / "etc" / "systemd" / "system"
        self.log_dirs = [log_dir(folder / "d1" / "kafka"), log_dir(folder / "d2" / "kafka")]
        self.properties = folder / "server.properties"
        self.properties.write_text(f"node.id=1\nlog.dirs={','.join(map(str, self.log_dirs))}\n")
        self.config = folder / "b1.yaml"
        self.configure()

    def configure(self, more: str = "") -> None:
        self.config.write_text(f"server.properties: server.properties\n{more}")

    def words(self, *more: object) -> list[object]:
        return ["init", "--systemd", "--config", self.config, "--root", self.root, "--unit", "kafka", *more]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Make a host; where it lies counts as a place that units see."""
    monkeypatch.setattr("logdir.service.systemd.writable._EMPTIED", ("/nowhere",))
    return Host(tmp_path)


def test_the_plan_shows_every_text_and_writes_nothing(host: Host) -> None:
    said = ctl(*host.words())
    assert said.status == Exit.DONE
    assert not host.root.exists()
    assert f"{host.units}/kafka.service.d/50-logdird-b1.conf:" in said.out
    assert "    ExecStartPre=/bin/sh" in said.out
    options = f"--config {host.config} --unit kafka --root {host.root}"
    assert said.out.splitlines()[-1] == f"next: logdirctl init --systemd {options} --apply"


def test_what_is_written_is_what_was_planned_and_no_log_dir_is_changed(host: Host) -> None:
    before = tree(*host.log_dirs)
    _, planned = ctl_json(*host.words())
    status, done = ctl_json(*host.words("--apply"))
    assert (status, done["applied"], done["unit"]) == (Exit.DONE, True, "kafka.service")
    assert [one["content"] for one in done["items"]] == [one["content"] for one in planned["items"]]
    assert {one["state"] for one in done["items"]} == {"done"}
    for one in done["items"]:
        path = Path(one["path"])
        assert path.read_text("utf-8") == one["content"]
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o644, 0o755)
    assert tree(*host.log_dirs) == before
    assert sorted(os.listdir(host.units)) == [
        "kafka.service.d", "logdird-recover@b1.service.d", "logdird@b1.service.d",
    ]  # fmt: skip


def test_a_repetition_changes_nothing(host: Host) -> None:
    assert ctl(*host.words("--apply")).status == Exit.DONE
    before = tree(host.root)
    status, again = ctl_json(*host.words("--apply"))
    assert (status, {one["detail"] for one in again["items"]}) == (Exit.DONE, {"is there"})
    assert tree(host.root) == before


def test_what_the_configuration_asks_for_no_more_is_taken_away(host: Host) -> None:
    client = host.config.with_name("client.properties")
    client.write_text("bootstrap.servers=127.0.0.1:9092\n")
    host.configure("client.properties: client.properties\n")
    assert ctl(*host.words("--apply")).status == Exit.DONE
    place = host.units / "logdird@b1.service.d" / "60-client.conf"
    assert "AF_INET" in place.read_text("utf-8")
    host.configure()
    said = ctl(*host.words("--unit", "cp-kafka.service", "--apply"))
    assert said.status == Exit.DONE
    assert not place.exists()
    # The broker has another unit now: that of the former one is no longer its gate.
    assert os.listdir(host.units / "kafka.service.d") == []
    assert os.listdir(host.units / "cp-kafka.service.d") == ["50-logdird-b1.conf"]


@pytest.mark.parametrize("change", ["# mine\n", None])
def test_a_file_of_somebody_else_is_left_alone_and_no_other_is_written(host: Host, change: str | None) -> None:
    place = host.units / "logdird@b1.service.d" / "50-logdirctl.conf"
    if change is None:
        place.parent.mkdir(parents=True)
        place.write_text("[Service]\nNice=5\n")
    else:
        assert ctl(*host.words("--apply")).status == Exit.DONE
        place.write_text(place.read_text("utf-8") + change)
        (host.units / "kafka.service.d" / "50-logdird-b1.conf").unlink()
    before = tree(host.root)
    for more in ((), ("--apply",)):
        said = ctl(*host.words(*more))
        assert (said.status, f"drop-in-changed: {place}: " in said.err) == (Exit.REFUSED, True)
        assert tree(host.root) == before
    _, found = ctl_json(*host.words("--apply"))
    states = {Path(one["path"]).name: one["state"] for one in found["items"] if "recover" not in one["path"]}
    assert states == {"50-logdirctl.conf": "refused", "50-logdird-b1.conf": "undone"}
    place.unlink()
    assert ctl(*host.words("--apply")).status == Exit.DONE


def test_the_sockets_of_two_users_lie_in_two_directories(host: Host) -> None:
    """systemd gives the directory of the sockets, with all in it, to the user of the unit that starts."""
    assert ctl(*host.words("--apply")).status == Exit.DONE
    ours = host.units / "logdird@b1.service.d" / "50-logdirctl.conf"
    assert "RuntimeDirectory" not in ours.read_text("utf-8")
    other = host.units / "logdird@b2.service.d" / "50-logdirctl.conf"
    other.parent.mkdir()
    for owner, runtime, status in (("", "", Exit.DONE), ("2", "", Exit.USAGE), ("2", "RuntimeDirectory=\n", Exit.DONE)):
        found = ours.read_text("utf-8").replace("\nGroup=", f"{owner}\nGroup=")
        other.write_text(f"{found}{runtime}")
        said = ctl(*host.words("--apply"))
        assert said.status == status, said.err
    other.write_text("[Service]\nUser=another\nGroup=another\n")
    before = tree(host.root)
    said = ctl(*host.words("--apply"))
    assert (said.status, "logdird@b2 runs as another:another" in said.err) == (Exit.USAGE, True), said.err
    assert "; socket: /run/logdird-b1/b1.sock in the configuration" in said.err
    assert tree(host.root) == before
    host.configure("socket: /run/logdird-b1/b1.sock\n")
    assert ctl(*host.words("--apply")).status == Exit.DONE
    text = ours.read_text("utf-8")
    assert text.endswith("\nRuntimeDirectory=\nRuntimeDirectory=logdird-b1\n")
    assert "/run/" not in "".join(line for line in text.splitlines() if line.startswith("ReadWritePaths="))


def test_a_socket_elsewhere_takes_no_directory_of_systemd(host: Host) -> None:
    host.configure("socket: /run/mine/b1.sock\n")
    assert ctl(*host.words("--apply")).status == Exit.DONE
    text = (host.units / "logdird@b1.service.d" / "50-logdirctl.conf").read_text("utf-8")
    assert text.endswith("\nReadWritePaths=-/run/mine\nRuntimeDirectory=\n")


def test_without_a_unit_there_is_no_gate_and_that_is_said(host: Host) -> None:
    words = [word for word in host.words() if word not in ("--unit", "kafka")]
    said = ctl(*words)
    assert (said.status, "no start gate: name the unit of the broker" in said.out) == (Exit.DONE, True)
    assert "ExecStartPre" not in said.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["init", "--systemd", "--log-dirs", "/d1"], "--config /etc/logdird/NAME.yaml"),
        (["init", "--log-dirs", "/d1", "--unit", "kafka"], "add --systemd"),
        (["init", "--log-dirs", "/d1", "--root", "/x", "--apply"], "add --systemd"),
    ],
)
def test_what_does_not_fit_together_is_refused(words: list[str], said: str) -> None:
    refused = ctl(*words)
    assert (refused.status, said in refused.err) == (Exit.USAGE, True)


@pytest.mark.parametrize("unit", ["kafka.socket", "a/b", "kafka\n", "k afka", "", "%i"])
def test_a_unit_that_is_none_is_refused(host: Host, unit: str) -> None:
    said = ctl(*host.words("--unit", unit))
    if not unit:
        assert "no start gate" in said.out
        return
    assert (said.status, "the name of a service unit" in said.err) == (Exit.USAGE, True)


def test_a_log_dir_that_is_not_there_is_named_and_can_be_left_out(host: Host) -> None:
    host.log_dirs[1].rename(f"{host.log_dirs[1]}.away")
    said = ctl(*host.words("--apply"))
    assert (said.status, f"log-dir-offline: {host.log_dirs[1]}: " in said.err) == (Exit.PROBLEMS, True)
    assert not host.root.exists()
    assert ctl(*host.words("--skip-log-dir", host.log_dirs[1], "--apply")).status == Exit.DONE


def test_a_place_that_the_units_do_not_see_is_refused(tmp_path: Path) -> None:
    if not str(tmp_path).startswith("/tmp/"):
        pytest.skip("needs a temporary directory below /tmp")
    said = ctl(*Host(tmp_path).words())
    assert (said.status, said.err.count("outside /tmp and /var/tmp")) == (Exit.USAGE, 3)


def test_nothing_is_written_into_a_log_dir(host: Host) -> None:
    host.root = host.log_dirs[0]
    said = ctl(*host.words("--apply"))
    assert (said.status, "inside-log-dir" in said.err) == (Exit.REFUSED, True)


def test_a_directory_that_cannot_be_written_is_one_line(host: Host) -> None:
    host.root.write_text("a file")
    said = ctl(*host.words("--apply"))
    assert (said.status, "output-failed" in said.err, "run it as root" in said.err) == (Exit.PROBLEMS, True, True)


def test_root_stays_root_for_units(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr("logdir.service.log_dirs.owner.become_owner", asked.append)
    parser = build_parser(("init",))
    as_owner(parser.parse_args(list(map(str, host.words()))))
    assert asked == []
    as_owner(parser.parse_args(["init", "--log-dirs", str(host.log_dirs[0])]))
    assert len(asked) == 1
