"""``logdirctl inventory``: what it prints, what it writes, and what it leaves when it is stopped."""

from __future__ import annotations

import io
import json
import os
import random
import resource
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from logdir.formats.inventory import Inventory, parse
from logdir.observe.process import Request, Summary
from logdir.observe.process import run as scan_one
from tests.builders import CLUSTER, TOPIC_ID, log_dir, partition
from tests.tools.ctl import tree
from tools.cli import Exit
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
    assert list(value["result"]) == ["disks"]
    first, second = value["result"]["disks"]
    assert sorted(first) == ["disk", "entries", "file", "kinds", "problems", "rows", "sha256"]
    assert first["disk"]["log_dirs"] == [str(disks[0]), str(disks[1])]
    assert (first["disk"]["cluster_id"], first["disk"]["exact"], first["file"]) == (CLUSTER, True, None)
    assert [e["name"] for e in first["entries"]] == ["a-0", "b-1", "meta.properties"]
    assert first["entries"][0]["topic_id"] == TOPIC_ID
    assert first["kinds"]["live"] == {"entries": 2, "log_bytes": 2110, "bytes": 2110 + 12 + 43}
    assert first["problems"] == {"partition-metadata-missing": 1}
    assert (second["rows"], second["problems"]) == (3, {"plain-file": 1})


def test_one_disk_and_two_say_the_same_of_it(disks: tuple[Path, Path], tmp_path: Path) -> None:
    one = run_json("--log-dirs", disks[0])[1]["result"]["disks"][0]
    both = run_json("--log-dirs", f"{disks[0]},{disks[1]}")[1]["result"]["disks"][0]
    assert one["entries"] == both["entries"]
    assert one["kinds"] == both["kinds"]


def test_files_have_the_designs_names_and_read_back(disks: tuple[Path, Path], tmp_path: Path) -> None:
    out_dir = tmp_path / "made" / "here"
    status, value, _ = run_json("--log-dirs", f"{disks[0]},{disks[1]}", "-o", out_dir)
    assert status == Exit.DONE
    expected = [f"1-{sha256(str(disk).encode()).hexdigest()[:12]}.jsonl" for disk in disks]
    assert sorted(os.listdir(out_dir)) == sorted(expected)
    for name, said in zip(expected, value["result"]["disks"], strict=True):
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
    disk = run_json("--server-properties", conf)[1]["result"]["disks"][1]["disk"]
    assert (disk["log_dir"], disk["rack"]) == (str(disks[1]), "eu\u00e9")


_SCANS = """
import io, json, os, sys
from logdir.observe.process import Request
from tools.cli import Streams
from tools.logdirctl import inventory_disks

is_alone, *paths = json.loads(sys.argv[1])
if not is_alone:
    inventory_disks.is_alone = lambda: False
start, started = inventory_disks._spawned, []
inventory_disks._spawned = lambda *given: (started.append(given), start(*given))[1]
def fresh():
    return [os.fdopen(os.memfd_create("x"), "w+b") for _ in paths]
with inventory_disks._started([Request(path) for path in paths], fresh()) as children:
    pids = [child.pid for child in children]
streams, files = Streams(io.StringIO(), io.StringIO()), fresh()
try:
    heard = inventory_disks.scan([Request(path) for path in paths], files, streams)
except RuntimeError as error:
    print(json.dumps({"error": str(error)}))
else:
    for file in files:
        file.seek(0)
    found = [[summary.sha256, file.read().decode()] for summary, file in zip(heard, files)]
    print(json.dumps({"pids": pids, "interpreters": len(started), "found": found}))
with open(f"/proc/self/task/{os.getpid()}/children") as file:
    assert not file.read()
"""


def _scans(is_alone: bool, *paths: str) -> Any:
    """Scan in a process without threads, which this one is not."""
    command = [sys.executable, "-c", _SCANS, json.dumps([is_alone, *paths])]
    return json.loads(subprocess.run(command, cwd=HOME, stdout=subprocess.PIPE, check=True).stdout)


@pytest.mark.parametrize("is_alone", [True, False])
def test_each_of_two_disks_has_a_process_of_its_own(disks: tuple[Path, Path], is_alone: bool) -> None:
    said = _scans(is_alone, *map(str, disks))
    assert len(set(said["pids"])) == 2
    assert said["interpreters"] == (0 if is_alone else 4)
    for digest, text in said["found"]:
        found = parse(io.BytesIO(text.encode()), "x")
        assert (found.sha256, len(found.entries)) == (digest, 3)


@pytest.mark.parametrize("is_alone", [True, False])
def test_child_that_dies_is_an_internal_error_of_one_line(disks: tuple[Path, Path], is_alone: bool) -> None:
    # No path at all: our own fault, whoever asks so.
    assert "ended with 1: ValueError: embedded null byte" in _scans(is_alone, str(disks[0]), "\0")["error"]


@pytest.mark.parametrize("others", [0, 1])
def test_unread_disk_is_written_down_and_exit_is_1(disks: tuple[Path, Path], tmp_path: Path, others: int) -> None:
    gone = tmp_path / "gone"
    listed = ",".join([str(gone), *map(str, disks[:others])])
    status, value, err = run_json("--log-dirs", listed, "-o", tmp_path / "out")
    assert status == Exit.PROBLEMS
    (problem,) = value["problems"]
    assert (problem["slug"], problem["path"]) == ("absent", str(gone))
    found = read(Path(value["result"]["disks"][0]["file"]))
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
    assert read(Path(value["result"]["disks"][0]["file"])).disk.rack == "r\ufffd\ufffd\ufffd"


def test_path_that_is_not_utf8_is_scanned_and_shown(tmp_path: Path) -> None:
    top = log_dir(Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff")))
    partition(top / "t-0")
    status, value, _ = run_json("--log-dirs", top, "-o", f"{top}.out")
    disk = value["result"]["disks"][0]
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
    with open(os.devnull, "wb") as nowhere:
        summary = scan_one(Request(str(disks[0]), is_written=False), nowhere, lambda _: None)
    assert isinstance(summary, Summary)
    assert (summary.sha256, summary.rows) == (None, 3)


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
    assert [problem["slug"] for problem in value["problems"]] == ["refused"]
    assert tree(tmp_path) == before


def test_an_inventory_beside_the_log_dirs_is_not_refused(disks: tuple[Path, Path], tmp_path: Path) -> None:
    listed = f"{disks[0]},{disks[1]}"
    assert run("--log-dirs", listed, "-o", tmp_path / "d1.logdird2")[0] == Exit.DONE
    assert run("--log-dirs", listed, "-o", tmp_path)[0] == Exit.DONE
