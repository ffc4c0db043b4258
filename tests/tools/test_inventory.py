"""``logdirctl inventory``: what it prints, what it writes, and what it leaves when it is stopped."""

from __future__ import annotations

import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from logdir.errors import RefusedError
from logdir.formats.own.inventory import Inventory, parse
from logdir.refusal_slug import Why
from logdir.service.inventory import InventoryRequest, InventoryResult, require_place, take
from logdir.service.log_dirs.ports import connected
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.reporter import SILENT
from logdir.worker.calls import Descriptor
from logdir.worker.inventory import Scan, write_inventory
from logdir.worker.remote import RemotePort
from logdir.worker.start import start
from tests.builders import CLUSTER, TOPIC_ID, log_dir, partition
from tests.tools.ctl import tree
from tests.whole_refusal import require_whole
from tools.cli.arguments import Exit
from tools.logdirctl.main import main

HOME = Path(__file__).parents[2]


def run(*argv: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    status = main(["inventory", *map(str, argv)], out, err)
    return status, out.getvalue(), err.getvalue()


def run_json(*argv: object) -> tuple[int, dict[str, Any], str]:
    status, out, err = run(*argv, "--json")
    assert out.count("\n") == 1
    value: dict[str, Any] = json.loads(out)
    assert out == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    assert sorted(value) == ["command", "exit", "format", "problems", "result"]
    assert (value["command"], value["format"], value["exit"]) == ("inventory", 1, status)
    for problem in value["problems"]:
        assert sorted(problem) == ["expected", "fix", "found", "path", "slug"]
    return status, value, err


def read(path: Path) -> Inventory:
    with path.open("rb") as file:
        return parse(file, str(path))


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    """Two log dirs of one broker: three replicas, one of them without id, and a stray file."""
    one, two = log_dir(tmp_path / "d1"), log_dir(tmp_path / "d2", directory="AAAAAAAAAAAAAAAAAAAABA")
    partition(one / "a-0", segments={0: 100, 7: 2000})
    partition(one / "b-1", topic_id=None)
    partition(two / "a-1")
    (two / "notes").write_text("x")
    return one, two


def launch(*argv: object, **kwargs: Any) -> subprocess.Popen[bytes]:
    """Start the command as a process of its own, by the way a console script takes."""
    code = "import sys; from tools.entry import logdirctl; sys.exit(logdirctl())"
    return subprocess.Popen(
        [sys.executable, "-c", code, "inventory", *map(str, argv)],
        cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs,
    )  # fmt: skip


def test_table_has_one_line_per_log_dir_and_the_next_command(disks: tuple[Path, Path]) -> None:
    status, out, err = run("--log-dirs", f"{disks[0]},{disks[1]}")
    assert (status, err) == (Exit.DONE, "")
    lines = out.splitlines()
    assert lines[0].split() == ["log", "dir", "status", "layout", "live", "unknown", "log", "bytes", "no", "id", "free"]
    assert lines[1].split()[:7] == [str(disks[0]), "ok", "topic-name", "2", "0", "2.1", "KiB"]
    assert lines[2].split()[:7] == [str(disks[1]), "ok", "topic-name", "1", "1", "10", "B"]
    assert lines[3:] == [f"next: logdirctl inventory --log-dirs {disks[0]},{disks[1]} -o inventories"]


def test_json_has_the_documented_keys_and_every_entry(disks: tuple[Path, Path]) -> None:
    status, value, err = run_json("--log-dirs", f"{disks[0]},{disks[1]}", "--exact")
    assert (status, err, value["problems"]) == (Exit.DONE, "", [])
    assert list(value["result"]) == ["items"]
    first, second = value["result"]["items"]
    assert sorted(first) == ["disk", "entries", "file", "kinds", "problem_counts", "rows", "sha256"]
    assert first["disk"]["log_dirs"] == [str(disks[0]), str(disks[1])]
    assert (first["disk"]["cluster_id"], first["disk"]["exact"], first["file"]) == (CLUSTER, True, None)
    assert [e["name"] for e in first["entries"]] == ["a-0", "b-1", "meta.properties"]
    assert first["entries"][0]["topic_id"] == TOPIC_ID
    assert first["kinds"]["live"] == {"entries": 2, "log_bytes": 2110, "bytes": 2110 + 12 + 43}
    assert first["problem_counts"] == {"partition-metadata-missing": 1}
    assert (second["rows"], second["problem_counts"]) == (3, {"plain-file": 1})


def test_one_disk_and_two_say_the_same_of_it(disks: tuple[Path, Path], tmp_path: Path) -> None:
    one = run_json("--log-dirs", disks[0])[1]["result"]["items"][0]
    both = run_json("--log-dirs", f"{disks[0]},{disks[1]}")[1]["result"]["items"][0]
    assert one["entries"] == both["entries"]
    assert one["kinds"] == both["kinds"]


def test_files_have_the_designs_names_and_read_back(disks: tuple[Path, Path], tmp_path: Path) -> None:
    out_dir = tmp_path / "made" / "here"
    status, value, _ = run_json("--log-dirs", f"{disks[0]},{disks[1]}", "-o", out_dir)
    assert status == Exit.DONE
    expected = [f"1-{sha256(str(disk).encode()).hexdigest()[:12]}.jsonl" for disk in disks]
    assert sorted(os.listdir(out_dir)) == sorted(expected)
    for name, said in zip(expected, value["result"]["items"], strict=True):
        assert said["file"] == str(out_dir / name)
        assert "entries" not in said
        found = read(out_dir / name)
        assert (len(found.entries), found.sha256) == (said["rows"], said["sha256"])
        assert list(found.disk.problems) == said["disk"]["problems"]
        assert found.disk.log_dirs == (str(disks[0]), str(disks[1]))
        assert (out_dir / name).stat().st_mode & 0o777 == 0o644 & ~_umask()
    assert [e.name for e in read(out_dir / expected[0]).entries] == ["a-0", "b-1", "meta.properties"]


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def test_a_former_inventory_is_replaced(disks: tuple[Path, Path], tmp_path: Path) -> None:
    run("--log-dirs", disks[0], "-o", tmp_path / "out")
    partition(disks[0] / "c-0")
    assert run("--log-dirs", disks[0], "-o", tmp_path / "out")[0] == Exit.DONE
    (made,) = (tmp_path / "out").iterdir()
    assert [e.name for e in read(made).entries] == ["a-0", "b-1", "c-0", "meta.properties"]


def test_server_properties_names_the_disks_and_the_rack(disks: tuple[Path, Path], tmp_path: Path) -> None:
    conf = tmp_path / "server.properties"
    conf.write_text(f"node.id=1\nlog.dirs={disks[0]} , {disks[1]}\nbroker.rack=eu\\u00e9\n")
    disk = run_json("--server-properties", conf)[1]["result"]["items"][1]["disk"]
    assert (disk["log_dir"], disk["rack"]) == (str(disks[1]), "eu\u00e9")


_SCANS = """
import json, os, sys, threading, time
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.inventory import InventoryRequest, take

def children():
    return [int(pid) for thread in os.listdir("/proc/self/task")
            for pid in open(f"/proc/self/task/{thread}/children").read().split()]

class Watching:
    def begin(self, what, total):
        self.pids = children()
        self.commands = [open(f"/proc/{pid}/cmdline").read() for pid in self.pids]
        self.total = 0
    def advance(self, count): self.total += count
    def end(self): pass

has_thread, *paths = json.loads(sys.argv[1])
if has_thread:
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
own, seen = open("/proc/self/cmdline").read(), Watching()
found = take(InventoryRequest(broker=BrokerRequest(log_dirs=",".join(paths))), seen)
texts = [[one.sha256, one.content.decode()] for one in found.disks]
assert not children()
said = {"pids": seen.pids, "copies": seen.commands.count(own), "total": seen.total, "found": texts}
print(json.dumps(said), flush=True)
os._exit(0)
"""


def _scans(has_thread: bool, *paths: str) -> Any:
    """Scan in a process of its own: a copy of this one has threads."""
    command = [sys.executable, "-c", _SCANS, json.dumps([has_thread, *paths])]
    return json.loads(subprocess.run(command, cwd=HOME, stdout=subprocess.PIPE, check=True).stdout)


@pytest.mark.parametrize("has_thread", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_each_log_dir_has_a_worker_process(disks: tuple[Path, Path], has_thread: bool, count: int) -> None:
    said = _scans(has_thread, *map(str, disks[:count]))
    assert len(set(said["pids"])) == count
    # A process with threads starts new interpreters: a copy of it may stand still for ever.
    assert said["copies"] == (0 if has_thread else count)
    assert said["total"] == 3 * count
    for digest, text in said["found"]:
        found = parse(io.BytesIO(text.encode()), "x")
        assert (found.sha256, len(found.entries)) == (digest, 3)


def test_fault_of_a_worker_is_the_commands(tmp_path: Path, workers: None) -> None:
    (port,) = start([str(tmp_path)], 10_000)
    try:
        with open(os.devnull, "wb") as nowhere, pytest.raises(RuntimeError, match="embedded null byte"):
            # No path at all: our own fault, whoever asks so.
            port.run_opened(write_inventory, Scan("\0"), Descriptor(nowhere.fileno()))
    finally:
        port.close()


def test_a_worker_keeps_no_file_that_it_was_sent(tmp_path: Path, workers: None) -> None:
    (port,) = start([str(log_dir(tmp_path / "d"))], 10_000)
    assert isinstance(port, RemotePort)
    try:
        with open(os.devnull, "wb") as nowhere:
            counts = set()
            for _ in range(3):
                port.run_opened(write_inventory, Scan(port.log_dir), Descriptor(nowhere.fileno()))
                counts.add(len(os.listdir(f"/proc/{port.pid}/fd")))
            assert len(counts) == 1
            nowhere.write(b"still open here")
    finally:
        port.close()


def _children() -> list[int]:
    """Return the children of this process, in the order in which each thread made its own."""
    return [int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]


class Stopping:
    """Stops some of the workers as their scans begin; what they might have written before stands in their files."""

    def __init__(self, log_dirs: int, *stopped: int, output: Path | None = None) -> None:
        self._log_dirs, self._stopped, self._output = log_dirs, stopped, output
        self._before = set(_children())  # among them Spark's JVM, where its tests ran in this process
        self.pids: list[int] = []

    def begin(self, what: str, total: int) -> None:
        self.pids = [pid for pid in _children() if pid not in self._before]
        assert len(self.pids) == self._log_dirs
        for number in self._stopped:
            os.kill(self.pids[number], signal.SIGSTOP)
            for partial in () if self._output is None else self._output.glob(f".{number}-*.partial"):
                partial.write_text("half a line")

    def advance(self, count: int) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""

    def warn(self, line: str) -> None:
        """Do nothing."""


def _taken(disks: Sequence[Path], stopping: Stopping, output: Path | None) -> InventoryResult:
    broker = BrokerRequest(log_dirs=",".join(map(str, disks)), disk_timeout_ms=700)
    began = time.monotonic()
    found = take(InventoryRequest(broker=broker, output=None if output is None else str(output)), stopping)
    assert time.monotonic() - began < 8
    assert not any(Path(f"/proc/{pid}").exists() for pid in stopping.pids)
    return found


@pytest.mark.parametrize("is_in_files", [True, False])
def test_log_dir_that_does_not_answer_is_written_down(
    disks: tuple[Path, Path], tmp_path: Path, workers: None, is_in_files: bool
) -> None:
    output = tmp_path / "out" if is_in_files else None
    found = _taken(disks, Stopping(2, 0, output=output), output)
    assert not found.is_sound
    (problem,) = found.problems
    require_whole(
        problem,
        Why.LOG_DIR_SUSPECT,
        path=str(disks[0]),
        expected="an answer within 0.7 s",
        found="none (while write_inventory was called)",
        fix="SUSPECT: check the kernel log; a broker cannot start on this disk until it answers",
    )
    texts = []
    for one in found.disks:
        texts.append(Path(str(one.file)).read_bytes() if one.content is None else one.content)
    silent, other = (parse(io.BytesIO(text), "x") for text in texts)
    assert (silent.disk.status, silent.disk.problems, silent.entries) == ("unreadable", ("io-error",), ())
    assert (silent.disk.log_dir, silent.disk.log_dirs) == (str(disks[0]), tuple(map(str, disks)))
    assert (other.disk.status, len(other.entries)) == ("ok", 3)
    assert output is None or len(os.listdir(output)) == 2


def test_the_only_log_dir_that_does_not_answer_is_written_down(
    disks: tuple[Path, Path], tmp_path: Path, workers: None
) -> None:
    found = _taken(disks[:1], Stopping(1, 0), tmp_path / "out")
    (file,) = (tmp_path / "out").iterdir()
    assert file.name.startswith("unknown-")
    assert (read(file).disk.status, found.disks[0].file, found.disks[0].rows) == ("unreadable", str(file), 0)


@pytest.mark.parametrize(("place", "is_refused"), [("d1/inv", True), ("d1.logdird/inv", True), ("out", False)])
def test_no_inventory_is_written_into_a_log_dir_that_does_not_answer(
    disks: tuple[Path, Path], tmp_path: Path, workers: None, place: str, is_refused: bool
) -> None:
    for one in disks:
        (one / "meta.properties").unlink()  # by which a log dir is known without its name
    broker = BrokerRequest(log_dirs=f"{disks[0]},{disks[1]}", disk_timeout_ms=700)
    with connected(broker) as ports:
        assert isinstance(ports.ports[0], RemotePort)
        os.kill(ports.ports[0].pid, signal.SIGSTOP)
        with pytest.raises(RefusedError) if is_refused else nullcontext():
            require_place(ports, str(tmp_path / place))
        assert [one.slug for one in ports.notes] == ["log-dir-suspect"]


@pytest.mark.parametrize("output", ["", "a\0b"])
def test_output_that_is_no_path_is_refused(disks: tuple[Path, Path], output: str) -> None:
    status, value, _ = run_json("--log-dirs", disks[0], "-o", output)
    assert status == Exit.USAGE
    assert [(p["slug"], p["path"]) for p in value["problems"]] == [("config-error", "--output")]


_HALF = """
import os, signal, sys, time
from logdir.observe import share
woken = []
signal.signal(signal.SIGALRM, lambda *_: woken.append(1))
signal.siginterrupt(signal.SIGALRM, False)
half = share.begin(lambda: time.sleep(1) or b"x")
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
assert half.result() == b"x"
print(len(woken) > 3)
"""


def test_a_worker_that_waits_for_its_half_still_gives_signs_of_life() -> None:
    done = subprocess.run([sys.executable, "-c", _HALF], cwd=HOME, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("others", [0, 1])
def test_unread_disk_is_written_down_and_exit_is_1(disks: tuple[Path, Path], tmp_path: Path, others: int) -> None:
    gone = tmp_path / "gone"
    listed = ",".join([str(gone), *map(str, disks[:others])])
    status, value, err = run_json("--log-dirs", listed, "-o", tmp_path / "out")
    assert status == Exit.PROBLEMS
    (problem,) = value["problems"]
    assert (problem["slug"], problem["path"]) == ("absent", str(gone))
    found = read(Path(value["result"]["items"][0]["file"]))
    assert (found.disk.status, found.disk.problems, found.entries) == ("unreadable", ("absent",), ())
    assert len(os.listdir(tmp_path / "out")) == 1 + others
    status, out, err = run("--log-dirs", listed)
    assert status == Exit.PROBLEMS
    assert err.startswith("logdirctl inventory: absent: ")
    assert err.count("\n") == 1
    assert out.splitlines()[1].split() == [str(gone), "unreadable", *"-----"]


def test_disk_without_identity_is_a_problem_but_was_read(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    status, value, _ = run_json("--log-dirs", tmp_path / "d", "-o", tmp_path / "out")
    assert status == Exit.PROBLEMS
    assert [p["slug"] for p in value["problems"]] == ["meta-properties-missing"]
    assert os.listdir(tmp_path / "out")[0].startswith("unknown-")


def test_all_problems_of_the_arguments_at_once(tmp_path: Path) -> None:
    status, value, err = run_json("--log-dirs", f"/a,,/b,/a/../a,/b/,{tmp_path}, ")
    assert status == Exit.USAGE
    found = [(p["slug"], p["path"], p["found"]) for p in value["problems"]]
    assert found == [
        ("config-error", "--log-dirs", "nothing"),
        ("config-error", "--log-dirs", "nothing"),
        ("config-error", "--log-dirs", "/a more than once"),
        ("config-error", "--log-dirs", "/b more than once"),
    ]
    assert err.count("\n") == 4
    assert value["result"] == {}


@pytest.mark.parametrize("text", [None, "log.dirs=\n", "log.dirs=/a\\ud800\n", "log.dirs=/a\\u0000b\n", "a=\\uZ\n"])
def test_configuration_that_names_nothing_is_refused(tmp_path: Path, text: str | None) -> None:
    conf = tmp_path / "server.properties"
    if text is not None:
        conf.write_text(text)
    status, value, err = run_json("--server-properties", conf)
    assert status == Exit.USAGE
    assert len(value["problems"]) == err.count("\n") == 1


def test_rack_that_no_text_holds_does_no_harm(disks: tuple[Path, Path], tmp_path: Path) -> None:
    conf = tmp_path / "server.properties"
    conf.write_text(f"log.dirs={disks[0]}\nbroker.rack=r\\ud800\n")
    status, value, _ = run_json("--server-properties", conf, "-o", tmp_path / "out")
    assert status == Exit.DONE
    assert read(Path(value["result"]["items"][0]["file"])).disk.rack == "r\ufffd\ufffd\ufffd"


def test_path_that_is_not_utf8_is_scanned_and_shown(tmp_path: Path) -> None:
    top = log_dir(Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff")))
    partition(top / "t-0")
    status, value, _ = run_json("--log-dirs", top, "-o", f"{top}.out")
    disk = value["result"]["items"][0]
    assert (status, disk["rows"], disk["disk"]["log_dir"]) == (0, 2, f"{tmp_path}/d\ufffd")
    status, out, _ = run("--log-dirs", f"{top},{tmp_path}/none")
    assert f"next: logdirctl inventory --log-dirs $'{tmp_path}/d\\377,{tmp_path}/none' -o inventories" in out
    assert status == Exit.PROBLEMS


@pytest.mark.parametrize("taken", ["file", "below"])
def test_output_that_cannot_be_is_refused_and_changes_nothing(
    disks: tuple[Path, Path], tmp_path: Path, taken: str
) -> None:
    (tmp_path / "file").write_text("x")
    target = tmp_path / "file" if taken == "file" else tmp_path / "file" / "below"
    status, _, err = run("--log-dirs", disks[0], "-o", target)
    assert (status, err.count("\n")) == (Exit.USAGE, 1)
    assert (tmp_path / "file").read_text() == "x"


def _many(tmp_path: Path, count: int) -> list[Path]:
    tops = [log_dir(tmp_path / f"d{n}") for n in (1, 2)]
    for top in tops:
        for index in range(count):
            (top / f"topic-{index:04}-{index}").mkdir()
    return tops


def test_a_kill_at_any_moment_leaves_whole_files_or_none(tmp_path: Path) -> None:
    tops = _many(tmp_path, 1500)
    out_dir = tmp_path / "out"
    draw = random.Random(7)
    began = time.monotonic()
    with launch("--log-dirs", f"{tops[0]},{tops[1]}", "-o", tmp_path / "once") as whole:
        assert whole.wait() == 0
    takes = time.monotonic() - began
    outcomes = set()
    for _ in range(14):
        with launch("--log-dirs", f"{tops[0]},{tops[1]}", "-o", out_dir) as child:
            time.sleep(draw.uniform(0.2, 1.05) * takes)
            child.kill()
            child.wait()
        made = [path for path in out_dir.iterdir() if path.suffix == ".jsonl"] if out_dir.exists() else []
        outcomes.add(len(made))
        for path in made:
            assert len(read(path).entries) == 1501
            path.unlink()
        left = list(out_dir.iterdir()) if out_dir.exists() else []
        assert all(path.name.startswith(".") and path.suffix == ".partial" for path in left)
    assert 0 in outcomes, "no kill came before the end"


@pytest.mark.parametrize("disk_count", [1, 2])
def test_full_disk_is_one_line_and_leaves_no_file(tmp_path: Path, disk_count: int) -> None:
    tops = _many(tmp_path, 300)[:disk_count]

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    with launch("--log-dirs", ",".join(map(str, tops)), "-o", tmp_path / "out", preexec_fn=little) as child:
        out, err = child.communicate()
    assert child.returncode == Exit.PROBLEMS
    assert (out, err.count(b"\n")) == (b"", 1)
    assert b"File too large" in err
    assert os.listdir(tmp_path / "out") == []


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small tmpfs")
@pytest.mark.parametrize("disk_count", [1, 2])
def test_full_tmpfs_is_one_line_and_leaves_no_file(tmp_path: Path, disk_count: int) -> None:
    tops = _many(tmp_path, 300)[:disk_count]
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", small], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount")
    try:
        status, out, err = run("--log-dirs", ",".join(map(str, tops)), "-o", small)
        assert (status, out, err.count("\n")) == (Exit.PROBLEMS, "", 1)
        assert "No space left" in err
        assert os.listdir(small) == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_reader_that_goes_away_is_nobodys_fault(tmp_path: Path) -> None:
    tops = _many(tmp_path, 1000)
    with launch("--log-dirs", tops[0], "--json") as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait() in (0, 1)


def test_second_process_sees_what_one_sees(tmp_path: Path) -> None:
    top = _many(tmp_path, 600)[0]
    (top / "eX").mkdir()
    partition(top / "eX" / f"{TOPIC_ID}_3", topic_name="t")
    (top / os.fsdecode(b"b\xff-0")).mkdir()
    code = (
        "import os, sys; from logdir.observe import share; from logdir.observe.scan import scan_log_dir as s\n"
        "one = s(sys.argv[1]).entries\n"
        "begin = share.begin; begun = []\n"
        "share.begin = lambda work: begun.append(begin(work)) or begun[-1]\n"
        "two = s(sys.argv[1], processes=2).entries\n"
        "share.begin = lambda work: begin(lambda: 1 / 0)\n"
        "three = s(sys.argv[1], processes=2).entries\n"
        "share.begin = lambda work: None\n"
        "four = s(sys.argv[1], processes=2).entries\n"
        "print(len(one), one == two, one == three, one == four, begun != [None], len(begun))"
    )
    done = subprocess.run([sys.executable, "-c", code, top], cwd=HOME, capture_output=True, text=True)
    assert done.stdout.split() == ["603", "True", "True", "True", "True", "1"]
    # The second process of the third scan failed on purpose, and said so.
    assert "ZeroDivisionError" in done.stderr or done.stderr == ""


def test_summary_has_no_digest_where_nothing_was_written(disks: tuple[Path, Path]) -> None:
    broker = BrokerRequest(log_dirs=str(disks[0]))
    (found,) = take(InventoryRequest(broker=broker, is_written=False), SILENT).disks
    assert (found.sha256, found.rows, found.content, found.file) == (None, 3, None, None)


@pytest.mark.parametrize(
    "place",
    [
        "d1/inv",
        "d1",
        "d1/a-0/inv",
        "d2/deep/er",
        "d1.logdird/deleting",
        "d1.logdird/inv",
        "link/inv",
        "d1/inv/../../out",
        "d3/inv",
    ],
)
def test_no_inventory_is_written_into_a_log_dir_or_work_root(
    disks: tuple[Path, Path], tmp_path: Path, place: str
) -> None:
    (tmp_path / "d1.logdird" / "deleting").mkdir(parents=True)
    (tmp_path / "link").symlink_to(disks[0])
    log_dir(tmp_path / "d3")  # of another broker: only its meta.properties says so
    before = tree(tmp_path)
    status, value, err = run_json("--log-dirs", f"{disks[0]},{disks[1]}", "-o", tmp_path / place)
    if place.endswith("out"):
        assert status == Exit.DONE
        assert len(os.listdir(tmp_path / "out")) == 2
        assert sorted(os.listdir(disks[0])) == ["a-0", "b-1", "meta.properties"]
        return
    assert (status, err.count("\n")) == (Exit.REFUSED, 1)
    assert [problem["slug"] for problem in value["problems"]] == ["inside-log-dir"]
    assert tree(tmp_path) == before


def test_an_inventory_beside_the_log_dirs_is_not_refused(disks: tuple[Path, Path], tmp_path: Path) -> None:
    listed = f"{disks[0]},{disks[1]}"
    assert run("--log-dirs", listed, "-o", tmp_path / "d1.logdird2")[0] == Exit.DONE
    assert run("--log-dirs", listed, "-o", tmp_path)[0] == Exit.DONE
