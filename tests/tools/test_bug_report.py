"""``logdirctl bug-report``: everything that helps, nothing that is secret, and nothing on a disk is changed."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from logdir.formats.own import own_json
from logdir.service.bug_report import host, settings
from tests.tools.ctl import ctl, ctl_json, tree, two_disks
from tools.cli.arguments import Exit
from tools.version import VERSION

SECRETS = {
    "password": "hunter2-of-the-store",
    "jaas": 'org.x.Login required username="svc-admin-7" password="correct horse";',
    "joined": "battery-staple-9",
    "unknown": "tr0ub4dor-and-3",
    "client": "wr0ng-client-pass",
    "record": "a-record-of-a-customer",
    "meta": "in-meta-properties",
    "marker": "in-a-marker",
    "text": "in-a-partition-file",
    "environment": "in-the-environment",
}


class Host:
    """A stopped broker with a daemon's configuration, with secrets in every place where they may be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disks = two_disks(folder)
        log = self.disks[0] / "pay-0" / f"{0:020}.log"
        log.write_bytes(SECRETS["record"].encode() + log.read_bytes())
        (self.disks[0] / "pay-0" / "notes.txt").write_text(SECRETS["text"])
        with (self.disks[0] / "meta.properties").open("a") as file:
            file.write(f"operator.note={SECRETS['meta']}\n")
        self.properties = folder / "server.properties"
        self.properties.write_text(
            f"broker.id=1\nlog.dirs={','.join(map(str, self.disks))}\nlog.segment.delete.delay.ms=60000\n"
            f"ssl.keystore.password={SECRETS['password']}\n"
            f"listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config={SECRETS['jaas']}\n"
            f"broker.rack=east\\\nssl.key.password={SECRETS['joined']}\n"
            f"my.own.plugin={SECRETS['unknown']}\n{SECRETS['unknown']}\n"
        )
        self.client = folder / "client.properties"
        self.client.write_text(
            f"bootstrap.servers=127.0.0.1:9\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config=x.PlainLoginModule required username="u" password="{SECRETS["client"]}";\n'
        )
        self.config = folder / "b1.yaml"
        self.config.write_text(
            "server.properties: server.properties\nstate.dir: state\nsocket: s.sock\n"
            f"client.properties: client.properties\n# {SECRETS['unknown']}\n"
        )
        assert ctl("init", *self.named, "--apply").status == Exit.DONE
        assert ctl("handover", *self.named).status == Exit.DONE
        said = ctl("stage", "other", *self.named, "--even-if-unknown", "--even-over-limit", "--apply")
        assert said.status == Exit.DONE, said
        (marker,) = Path(f"{self.disks[0]}.logdird").glob("deleting/*/replica.json")
        values = json.loads(marker.read_text())
        del values["sha256"], values["replica"]
        marker.write_bytes(own_json.render("replica", 1, {**values, "note": SECRETS["marker"]}))
        state = folder / "state"
        state.mkdir()
        lines = [{"at_ms": number, "event": "failed", "problem": "x"} for number in range(1500)]
        lines.append({"at_ms": 1500, "event": "failed", "problem": f"found {SECRETS['password']}"})
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (state / "history.jsonl").write_text(f"{text}no JSON {SECRETS['unknown']}\n")

    @property
    def named(self) -> tuple[object, ...]:
        return "--server-properties", self.properties


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setenv("KAFKA_OPTS", SECRETS["environment"])
    return Host(tmp_path)


def packed(path: Path) -> Mapping[str, bytes]:
    """Return what is in a report: content by path."""
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        assert all(member.isreg() and member.mode == 0o600 for member in members)
        files = {member.name: archive.extractfile(member) for member in members}
        return {name.removeprefix("logdird-report/"): file.read() for name, file in files.items() if file is not None}


def test_no_secret_is_in_it_and_all_else_is(one: Host) -> None:
    before = tree(*one.disks, *(Path(f"{disk}.logdird") for disk in one.disks))
    said = ctl("bug-report", "--config", one.config, "--output", one.folder / "report.tar.gz")
    assert said.status == Exit.DONE, said
    assert tree(*one.disks, *(Path(f"{disk}.logdird") for disk in one.disks)) == before
    first = said.err.splitlines()[0]
    assert first.startswith(
        "logdirctl bug-report: the report holds names of topics, paths and ids of this host, and no "
    )
    path = one.folder / "report.tar.gz"
    assert path.stat().st_mode & 0o777 == 0o600
    files = packed(path)
    assert sorted(files) == [
        "client.properties.txt", "history.jsonl", "log-dirs/1-inventory.jsonl", "log-dirs/1-own-files.jsonl",
        "log-dirs/2-inventory.jsonl", "log-dirs/2-own-files.jsonl", "log-dirs/numbers.txt", "logdird-config.json",
        "mounts.json", "problems.txt", "server.properties.txt", "versions.json",
    ]  # fmt: skip
    everything = b"\n".join(files.values()) + said.out.encode() + said.err.encode()
    for what, secret in SECRETS.items():
        assert secret.encode() not in everything, what
    for part in ("correct horse", "battery-staple", "svc-admin-7"):
        assert part.encode() not in everything
    # What helps is there.
    assert b"log.segment.delete.delay.ms=60000\n" in files["server.properties.txt"]
    assert b"ssl.keystore.password: set, not shown\n" in files["server.properties.txt"]
    assert b"broker.rack: set, not shown\n" in files["server.properties.txt"], "its value is not of the form"
    assert b"security.protocol=SASL_PLAINTEXT\n" in files["client.properties.txt"]
    assert json.loads(files["versions.json"])["logdird"] == VERSION
    assert json.loads(files["logdird-config.json"])["sweep_ms"] == 10_000
    assert f"1 {one.disks[0]}\n2 {one.disks[1]}\n".encode() == files["log-dirs/numbers.txt"]
    assert b'"name":"pay-0"' in files["log-dirs/1-inventory.jsonl"]
    assert json.loads(files["mounts.json"])[str(one.disks[0])]["fs_type"]
    own = [json.loads(line) for line in files["log-dirs/1-own-files.jsonl"].splitlines()]
    by_name = {Path(line["path"]).name: line for line in own}
    assert by_name.keys() == {
        "meta.properties", "work-root.json", "heartbeat.json", "staging-limit.json", "controller.json", "handover.json",
        "replica.json",
    }  # fmt: skip
    assert not [line["problem"] for line in own if line["problem"]]
    assert by_name["replica.json"]["content"]["topic"] == "other"
    assert by_name["work-root.json"]["content"]["version"] == 2
    assert by_name["meta.properties"]["content"]["unknown_keys"] == 1
    assert by_name["handover.json"]["content"]["copies"][0]["entries"]["recovery-point-offset-checkpoint"] == 3
    lines = files["history.jsonl"].splitlines()
    assert (len(lines), json.loads(lines[-1])) == (
        999,
        {"at_ms": 1500, "event": "failed", "problem": "found (removed)"},
    )


def test_its_name_is_given_in_a_directory_and_nothing_is_replaced(one: Host) -> None:
    out = one.folder / "out"
    out.mkdir()
    status, result = ctl_json("bug-report", *one.named, "-o", out)
    assert status == Exit.DONE
    (path,) = out.iterdir()
    assert (result["output"], path.name[:15]) == (str(path), "logdird-report-")
    assert {one["path"]: one["size_bytes"] for one in result["items"]} == {
        name: len(data) for name, data in packed(path).items()
    }
    data = path.read_bytes()
    said = ctl("bug-report", *one.named, "-o", path)
    assert (said.status, f"output-exists: {path}: " in said.err) == (Exit.REFUSED, True), said
    assert path.read_bytes() == data


@pytest.mark.parametrize("place", ["d1", "d2.logdird", "d1/pay-0"])
def test_it_is_not_written_into_a_log_dir(one: Host, place: str) -> None:
    before = tree(one.folder)
    said = ctl("bug-report", *one.named, "-o", one.folder / place)
    assert (said.status, "inside-log-dir: " in said.err) == (Exit.REFUSED, True), said
    assert tree(one.folder) == before


def test_a_place_that_cannot_be_written_is_one_line(one: Host) -> None:
    said = ctl("bug-report", *one.named, "-o", one.folder / "nowhere" / "report.tar.gz")
    assert (said.status, "output-failed: " in said.err) == (Exit.PROBLEMS, True), said


def test_what_is_broken_is_a_part_of_the_report(one: Host) -> None:
    """It is made when something is wrong: a malformed file, a log dir that is gone, a configuration that is refused."""
    (Path(f"{one.disks[0]}.logdird") / "heartbeat.json").write_text(SECRETS["text"])
    one.disks[1].rename(one.folder / "away")
    with one.config.open("a") as file:
        file.write(f"sokcet: {SECRETS['unknown']}\n")
    said = ctl("bug-report", *one.named, "-o", one.folder / "first.tar.gz", "--json")
    assert (said.status, json.loads(said.out)["exit"]) == (Exit.PROBLEMS, Exit.PROBLEMS)
    files = packed(one.folder / "first.tar.gz")
    own = [json.loads(line) for line in files["log-dirs/1-own-files.jsonl"].splitlines()]
    (broken,) = (line for line in own if line["path"].endswith("heartbeat.json"))
    assert (broken["content"], broken["problem"], broken["size_bytes"]) == (
        None,
        "malformed-file",
        len(SECRETS["text"]),
    )
    assert str(one.disks[1]).encode() in files["problems.txt"]
    said = ctl("bug-report", "--config", one.config, "-o", one.folder / "second.tar.gz")
    files = packed(one.folder / "second.tar.gz")
    assert "did you mean socket?" in files["logdird-config.json"].decode()
    assert SECRETS["unknown"].encode() not in b"".join(files.values()) + said.err.encode()
    one.properties.unlink()
    assert ctl("bug-report", *one.named, "-o", one.folder / "third.tar.gz").status == Exit.PROBLEMS
    assert b"No such file or directory" in packed(one.folder / "third.tar.gz")["problems.txt"]


NO_KEY = "a line without a key of Kafka's form, or without a value: not shown"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"node.id=7", "node.id=7"),
        (b"log.dirs=/a, /b", "log.dirs=/a, /b"),
        (
            b"listeners=SASL_SSL://h.example:9093,CONTROLLER://:9094",
            "listeners=SASL_SSL://h.example:9093,CONTROLLER://:9094",
        ),
        (b"controller.quorum.voters=1@a:9,2@b:9", "controller.quorum.voters=1@a:9,2@b:9"),
        (b"log.dirs=/a,\\\n password=x", "log.dirs: set, not shown"),
        (b"log.dirs=/a,\\\n password:x", "log.dirs: set, not shown"),
        (b"log.dirs=/a,\\\n password x", "log.dirs: set, not shown"),
        (b"node.id=${file:/etc/x:y}", "node.id: set, not shown"),
        (b"node.id=7\\\n8 secret", "node.id: set, not shown"),
        (b"sasl.enabled.mechanisms=PLAIN", "sasl.enabled.mechanisms: set, not shown"),
        (b"PASSWORD", NO_KEY),
        (b"=only a value", NO_KEY),
        (b"pass.word", NO_KEY),
    ],
)
def test_a_setting_is_shown_only_in_the_form_that_it_has(line: bytes, shown: str) -> None:
    assert settings.shown(line, settings.BROKER) == [shown]


def test_a_value_that_is_in_every_file_is_not_taken_out() -> None:
    data = b'a.password=true\nb.password=12345\nc.secret=abc\nd.token=\\u00e9t\\u00e9-1\ne.password=q"uote\n'
    found = settings.secrets_of(data)
    assert not {b"true", b"12345", b"abc"} & found
    assert settings.without(b'{"a":"q\\"uote","b":true}', found) == b'{"a":"(removed)","b":true}'


def test_the_mount_of_a_path_is_the_last_of_the_longest(tmp_path: Path) -> None:
    table = (
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /d1 rw - xfs /dev/sdb rw,secret=x\n"
        "3 1 8:3 / /d1 ro,noatime - xfs /dev/sdc rw,logbsize=256k\n4 1 8:4 / /d\\0402 rw - cifs //h/x rw,pass=y\n"
        "short\n"
    )
    found = host.mounts(("/d1/kafka", "/d10/kafka", "/d 2/k"), table)
    assert found["/d1/kafka"] == {
        "point": "/d1", "fs_type": "xfs", "device": "8:3", "options": ["ro", "noatime", "rw", "logbsize=256k"],
    }  # fmt: skip
    assert [found[path]["point"] for path in ("/d10/kafka", "/d 2/k")] == ["/", "/d 2"]  # type: ignore[index]
    assert found["/d 2/k"]["options"] == ["rw", "rw", "pass=…"]  # type: ignore[index]
    assert host.mounts(("/d1",), "") == {"/d1": None}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_left_out(one: Host) -> None:
    (Path(f"{one.disks[0]}.logdird") / "deleting").chmod(0)
    status, result = ctl_json("bug-report", *one.named, "-o", one.folder)
    (Path(f"{one.disks[0]}.logdird") / "deleting").chmod(0o755)
    assert status in (Exit.DONE, Exit.PROBLEMS)
    assert b"replica.json" not in packed(Path(result["output"]))["log-dirs/1-own-files.jsonl"]
