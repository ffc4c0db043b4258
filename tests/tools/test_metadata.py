"""``logdirctl metadata ls | cat | find | dump``: what they print, how the log is found, what is said of others."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.builders import log_dir
from tests.logdir.cluster.log_dir import A, LogDir, partition, record, topic
from tests.logdir.wire.golden_metadata import METADATA
from tests.tools.ctl import HOME, Said, ctl, ctl_json, held
from tools.logdirctl.main import main

LOG = METADATA / "4.3.1-dynamic"
SEGMENT = LOG / "00000000000000000000.log"
SNAPSHOT = LOG / "00000000000000000191-0000000001.checkpoint"
PARTITION = "/image/topics/byName/plain/0"
is_root = os.geteuid() == 0


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """Return the folder of a broker with two log dirs; the metadata log is in the second."""
    for name in ("d1", "d2"):
        log_dir(tmp_path / name)
    shutil.copytree(LOG, tmp_path / "d2" / "__cluster_metadata-0")
    d1, d2 = tmp_path / "d1", tmp_path / "d2"
    (tmp_path / "server.properties").write_text(f"node.id=1\nlog.dirs={d1},{d2}\nmetadata.log.dir={d2}\n")
    return tmp_path


def lines(said: Said) -> list[str]:
    assert said.status == 0, said.err
    return said.out.splitlines()


def test_ls(broker: Path) -> None:
    said = ctl("metadata", "ls", "--server-properties", broker / "server.properties")
    assert lines(said) == ["image", "local"]
    assert said.err.splitlines() == [
        f"{broker}/d2/__cluster_metadata-0: up to offset 193; known to be committed up to 191",
        f"next: logdirctl metadata cat PATH --server-properties {broker}/server.properties",
    ]
    several = lines(ctl("metadata", "ls", "--directory", LOG, "/image/topics/byName/{empty,plain}", f"{PARTITION}"))
    assert several == [
        "0",
        "",
        "/image/topics/byName/empty:",
        "0",
        "id",
        "name",
        "",
        "/image/topics/byName/plain:",
        *("0", "1", "2", "id", "name"),
    ]


def test_cat() -> None:
    (value, name) = lines(ctl("metadata", "cat", "--directory", LOG, PARTITION, "/image/topics/byName/plain/name"))
    assert json.loads(value)["replicas"] == [1]
    assert name == "plain"
    said = ctl("metadata", "cat", "--directory", LOG, "/image", "/x*", "/image/features/metadataVersion")
    assert said.status == 1
    assert said.out == "30\n"
    head, tail = "logdirctl metadata cat: nothing-selected", "logdirctl metadata find lists all nodes"
    assert said.err.splitlines()[1:3] == [
        f"{head}: /image: expected a node of the tree that this command can show, found is a directory; {tail}",
        f"{head}: /x*: expected a node of the tree that this command can show, found no such file or directory; {tail}",
    ]


def test_find() -> None:
    found = lines(ctl("metadata", "find", "--directory", LOG))
    assert len(found) > 150
    assert found[:2] == ["/", "/image"]
    assert PARTITION in found
    assert lines(ctl("metadata", "find", "--directory", LOG, "/image/cluster//brokers/./")) == [
        "/image/cluster/brokers",
        "/image/cluster/brokers/1",
    ]


def test_json() -> None:
    status, listed = ctl_json("metadata", "ls", "--directory", LOG, "/image/cluster")
    assert (status, listed["items"]) == (
        0,
        [{"path": "/image/cluster", "names": ["image", "cluster"], "children": ["brokers", "controllers"]}],
    )
    assert listed["log"] == {
        "origin": str(LOG),
        "snapshot": SNAPSHOT.name,
        "committed_offset": 191,
        "end_offset": 193,
        "epoch": 1,
        "as_of_ms": 1795259645850,
        "open_transaction": None,
        "is_log_behind": False,
    }
    status, shown = ctl_json("metadata", "cat", "--directory", LOG, PARTITION, "/nope")
    assert status == 1
    assert [one["path"] for one in shown["items"]] == [PARTITION]
    assert shown["items"][0]["value"]["leaderRecoveryState"] == "RECOVERED"
    status, found = ctl_json("metadata", "find", "--directory", LOG)
    assert [one["path"] for one in found["items"]] == lines(ctl("metadata", "find", "--directory", LOG))
    status, dumped = ctl_json("metadata", "dump", SEGMENT)
    (file,) = dumped["items"]
    assert (status, file["path"], file["trailing_bytes"]) == (0, str(SEGMENT), 0)
    assert sum(len(batch["records"]) for batch in file["batches"]) == 193


def test_the_ways_to_name_a_log(broker: Path) -> None:
    whole = lines(ctl("metadata", "find", "--server-properties", broker / "server.properties", "/image"))
    d1, d2 = broker / "d1", broker / "d2"
    named: list[list[object]] = [
        ["--log-dirs", f"{d1},{d2}"],
        ["--directory", d2 / "__cluster_metadata-0"],
        ["--snapshot", d2 / "__cluster_metadata-0" / SEGMENT.name],
    ]
    for words in named:
        assert lines(ctl("metadata", "find", *words, "/image")) == whole
    # metadata.log.dir counts, and without it the first of log.dirs.
    (broker / "server.properties").write_text(f"node.id=1\nlog.dirs={d1},{d2}\n")
    said = ctl("metadata", "ls", "--server-properties", broker / "server.properties")
    assert said.status == 1
    assert f"{d1}/__cluster_metadata-0" in said.err
    local = lines(ctl("metadata", "ls", *named[1], "/local"))
    assert {"clusterId", "nodeId", "version", "snapshot"} <= set(local)
    shutil.copytree(d2 / "__cluster_metadata-0", d1 / "__cluster_metadata-0")
    said = ctl("metadata", "ls", "--log-dirs", f"{d1},{d2}")
    assert said.status == 2
    assert said.err.count("\n") == 1
    assert "--directory" in said.err


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["ls", "--directory", "{}/none"], 1, "No such file or directory"),
        (["ls", "--directory", "{}/file"], 1, "Not a directory"),
        (["ls", "--directory", "{}/empty"], 1, "no segment and no snapshot"),
        (["ls", "--directory", ""], 2, "a valid path"),
        (["ls", "--log-dirs", "{}/empty"], 1, "a __cluster_metadata-0"),
        (["ls", "--log-dirs", "{}/none"], 1, "No such file or directory"),
        (["ls", "--snapshot", "{}/file"], 1, "a snapshot, or the segment of offset 0"),
        (["ls", "--snapshot", "{}/none.checkpoint"], 1, "a snapshot, or the segment of offset 0"),
        (["ls"], 2, "one of these"),
        (["cat", "--directory", "{}/empty"], 2, "a value"),
        (["shell", "--directory", "{}/empty"], 1, "no segment and no snapshot"),
        (["dump"], 2, "files, or a broker"),
        (["dump", "{}/x.log", "--directory", "{}"], 2, "files, or a broker"),
        (["dump", "{}/file"], 2, "a file whose name ends with .log or .checkpoint"),
        (["dump", "{}/none.log"], 1, "No such file or directory"),
        (["dump", "{}/dir.log"], 1, "a regular file"),
        (["dump", "--directory", "{}/none"], 1, "No such file or directory"),
        (["dump", "--directory", "{}/empty"], 1, "no segment and no snapshot"),
        (["dump", "--stock", "1.0", "{}/x.log"], 2, "3.3 to 4.3"),
        ([], 2, "none"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_what_is_no_metadata_is_one_line(
    words: list[str], status: int, says: str, tmp_path: Path, *, as_json: bool
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "dir.log").mkdir()
    (tmp_path / "file").write_text("nonsense")
    argv = [word.replace("{}", str(tmp_path)) for word in words]
    said = ctl("metadata", *argv, *(["--json"] if as_json else []))
    assert said.status == status
    told = said.err
    if as_json and said.out:
        value = json.loads(said.out)
        assert value["exit"] == status
        (problem,) = value["problems"]
        told = f"{problem['expected']} {problem['found']}\n"
    assert told.count("\n") == 1
    assert says in told


@pytest.mark.skipif(is_root, reason="root may read everything: run as another user")
def test_no_right_to_read(broker: Path) -> None:
    _no_right(broker)


@pytest.mark.skipif(not is_root, reason="needs root to give up its rights for a moment")
def test_no_right_to_read_as_nobody() -> None:
    """In a process that gives up its rights."""
    code = (
        "import io, os, sys\nfrom tools.logdirctl.main import main\n"
        # What is imported late is imported before the rights are given up.
        f"assert main([*sys.argv[1:-1], {str(LOG)!r}], io.StringIO(), io.StringIO()) == 0\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\nsys.exit(main(sys.argv[1:], sys.stdout, sys.stderr))"
    )
    with tempfile.TemporaryDirectory() as folder:  # not below a folder that nobody may enter
        Path(folder).chmod(0o755)
        directory = Path(folder) / "__cluster_metadata-0"
        shutil.copytree(LOG, directory)
        directory.chmod(0o700)
        for words in (["ls"], ["dump"]):
            argv = [sys.executable, "-c", code, "metadata", *words, "--directory", str(directory)]
            done = subprocess.run(argv, cwd=HOME, capture_output=True, text=True, timeout=120)
            assert (done.returncode, done.stdout) == (4, ""), done.stderr
            assert done.stderr.count("\n") == 1
            assert "Permission denied" in done.stderr


def _no_right(broker: Path) -> None:
    directory = broker / "d2" / "__cluster_metadata-0"
    directory.chmod(0)
    try:
        for words in (["ls"], ["dump"]):
            said = ctl("metadata", *words, "--directory", directory)
            assert (said.status, said.out, said.err.count("\n")) == (4, "", 1)
    finally:
        directory.chmod(0o700)


class Terminal(io.StringIO):
    """What is written to it is looked at by a person."""

    def isatty(self) -> bool:
        return True


def test_nothing_from_the_cluster_steers_a_terminal(tmp_path: Path) -> None:
    evil = "\x1b[2J\x9b31m\u202e\n"
    log = LogDir(tmp_path)
    log.append(topic(evil, A), partition(A, 0, (1,)))
    log.append(record(4, resourceType=32, resourceName=evil, name=evil, value=evil))
    log.append(record(18, id=A, resourceType=2, resourceName=evil, patternType=3, principal="u", host="*",
                      operation=3, permissionType=3))  # fmt: skip
    for words in (
        ["ls", "/image/topics/byName"],
        ["find"],
        ["cat", "/image/configs/*/*", "/image/acls/byId/*"],
        ["dump"],
    ):
        out, err = Terminal(), Terminal()
        assert main(["metadata", *words, "--directory", str(tmp_path)], out, err) == 0
        assert all(line.isprintable() for text in (out, err) for line in text.getvalue().split("\n"))
        assert "x1b[2J" in out.getvalue().replace("\\[", "[") or "\\u001B[2J" in out.getvalue()
    # A pipe gets what the stock tool writes.
    assert "\x9b31m\u202e" in ctl("metadata", "dump", "--directory", tmp_path).out


@pytest.mark.parametrize("kind", ["unknown", "cut"])
def test_where_the_image_stops(kind: str, tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    log.append(topic("a", A), partition(A, 0, (1,)))
    if kind == "unknown":
        log.raw(b"\x01\x63\x00\x00")
        log.append(topic("b", b"b" * 16))
    else:
        log.append(topic("b", b"b" * 16))
        log.segment.write_bytes(log.segment.read_bytes()[:-1])
    said = ctl("metadata", "ls", "--directory", tmp_path, "/image/topics/byName")
    assert (said.status, said.out) == (1, "a\n")
    (line,) = [line for line in said.err.splitlines() if line.startswith("logdirctl metadata ls: ")]
    assert ("unknown-record-type" in line) == (kind == "unknown")
    assert lines_of_local(tmp_path)["ended"] in line


def lines_of_local(directory: Path) -> dict[str, Any]:
    _, result = ctl_json("metadata", "cat", "--directory", directory, "/local/*")
    return {one["names"][-1]: one["value"] for one in result["items"]}


def test_an_open_transaction_and_a_log_behind_are_told(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    log.append(topic("a", A), record(23, name=None))
    said = ctl("metadata", "ls", "--directory", tmp_path)
    assert said.status == 0
    assert "a transaction is open since offset 1" in said.err
    log.snapshot(topic("a", A), offset=9, epoch=9)
    assert "the log is behind the snapshot" in ctl("metadata", "ls", "--directory", tmp_path).err


def test_beside_a_running_broker(broker: Path) -> None:
    """It holds Kafka's locks; none is asked for."""
    whole = lines(ctl("metadata", "find", "--log-dirs", broker / "d2"))
    for name in ("d1", "d2"):
        (broker / name / ".lock").touch()
    with held(broker / "d1" / ".lock"), held(broker / "d2" / ".lock"):
        assert lines(ctl("metadata", "find", "--server-properties", broker / "server.properties")) == whole
        assert ctl("metadata", "dump", "--server-properties", broker / "server.properties").status == 0


def test_a_log_dir_that_is_away_hides_no_other(broker: Path) -> None:
    assert lines(ctl("metadata", "ls", "--log-dirs", f"{broker}/gone,{broker}/d2"))[:2] == ["image", "local"]
    said = ctl("metadata", "ls", "--log-dirs", f"{broker}/gone,{broker}/d1")
    assert (said.status, said.err.count("\n")) == (1, 1)
    assert f"{broker}/gone: expected metadata to read, found No such file or directory" in said.err


def test_nothing_is_changed(broker: Path) -> None:
    def seen() -> list[tuple[str, int, int]]:
        return [(str(one), one.lstat().st_mtime_ns, one.lstat().st_size) for one in sorted(broker.rglob("*"))]

    before = seen()
    for words in (["ls"], ["cat", "/local/*"], ["find"], ["dump"]):
        assert ctl("metadata", *words, "--server-properties", broker / "server.properties").status == 0
    assert seen() == before


class _Closed(io.StringIO):
    """Nobody reads it any more."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("words", [["dump", SEGMENT], ["dump", SEGMENT, "--json"], ["find", "--directory", LOG]])
def test_a_reader_that_goes_away_is_no_fault_of_the_disk(words: list[object]) -> None:
    err = io.StringIO()
    assert main(["metadata", *map(str, words)], _Closed(), err) == 1
    assert err.getvalue() == ""


def test_a_disk_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", failing)
    for words in (["dump", SEGMENT], ["ls", "--directory", LOG]):
        said = ctl("metadata", *words)
        assert (said.status, said.err.count("\n")) == (1, 1)
        assert "log-dir-offline" in said.err
        assert "Input/output error" in said.err


def test_a_long_list(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    for start in range(0, 4000, 400):
        log.append(*(topic(f"t{at:05}", at.to_bytes(16, "big")) for at in range(start + 1, start + 401)))
    assert lines(ctl("metadata", "ls", "--directory", tmp_path, "/image/topics/byName")) == [
        f"t{at:05}" for at in range(1, 4001)
    ]
    assert lines(ctl("metadata", "ls", "--directory", tmp_path, "/image/topics/byName/*3999"))[0] == "id"
