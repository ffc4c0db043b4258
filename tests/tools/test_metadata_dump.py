"""``logdirctl metadata dump``: byte for byte what the stock decoder printed, in little memory; damage is told."""

from __future__ import annotations

import gzip
import io
import shutil
import tracemalloc
from pathlib import Path

import pytest

from tests.builders import log_dir
from tests.logdir.cluster import odd_log
from tests.logdir.cluster.log_dir import LogDir, record
from tests.logdir.wire.golden_metadata import DUMPED, METADATA, label
from tests.tools.ctl import ctl, ctl_json
from tools.logdirctl.main import main

LOG = METADATA / "4.3.1-dynamic"
SEGMENT = LOG / "00000000000000000000.log"
SNAPSHOT = LOG / "00000000000000000191-0000000001.checkpoint"


def recorded(path: Path, kind: str) -> str:
    return gzip.decompress(path.with_name(f"{path.name}.{kind}.txt.gz").read_bytes()).decode()


@pytest.mark.parametrize("path", DUMPED, ids=label)
@pytest.mark.parametrize(("kind", "words"), [("dump", []), ("skip", ["--skip-record-metadata"])])
def test_dump_is_the_stock_decoders_byte_for_byte(
    path: Path, kind: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    stock = "4.3" if path.parent.name.startswith("4.") else "3.9"
    said = ctl("metadata", "dump", path.name, "--stock", stock, *words)
    assert (said.status, said.err) == (0, "")
    assert said.out == recorded(path, kind)


def test_dump_of_a_broker_is_its_newest_snapshot_and_its_log(tmp_path: Path) -> None:
    directory = log_dir(tmp_path / "d1") / "__cluster_metadata-0"
    shutil.copytree(LOG, directory, ignore=shutil.ignore_patterns("*.txt.gz"))
    said = ctl("metadata", "dump", "--log-dirs", tmp_path / "d1")
    assert (said.status, said.err) == (0, "")
    titles = [line for line in said.out.splitlines() if line.startswith("Dumping ")]
    assert titles == [f"Dumping {directory}/{SNAPSHOT.name}", f"Dumping {directory}/{SEGMENT.name}"]
    # A broker's "Dumping" line names the file as the stock tool does when it is given that path.
    assert said.out.count("\n") == recorded(SNAPSHOT, "dump").count("\n") + recorded(SEGMENT, "dump").count("\n")


def test_dump_goes_on_behind_what_it_cannot_read(tmp_path: Path) -> None:
    odd_log.write(tmp_path, cut=5, flip=True)
    said = ctl("metadata", "dump", tmp_path / "00000000000000000000.log", "/none.log", SNAPSHOT)
    assert said.status == 1
    assert "Error at 19, skipping." in said.out
    assert "invalid bytes at the end of 00000000000000000000.log" in said.out
    assert said.out.endswith(recorded(SNAPSHOT, "dump").partition("\n")[2])
    told = [line for line in said.err.splitlines() if line.startswith("logdirctl metadata dump: ")]
    slugs = [line.split(": ")[1] for line in told]
    assert slugs == ["unknown-record-type", "corrupt-batch", "malformed-file", "malformed-file"]
    assert "Non-consecutive offsets in" in said.err
    status, result = ctl_json("metadata", "dump", tmp_path / "00000000000000000000.log")
    assert status == 1
    (bad,) = [one for batch in result["items"][0]["batches"] for one in batch["records"] if one.get("error")]
    assert bad["payload"] is None
    assert result["items"][0]["trailing_bytes"] > 0


class _Discarding(io.StringIO):
    def write(self, text: str) -> int:
        return len(text)


def test_a_dump_does_not_hold_the_log(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    configs = [record(4, resourceType=2, resourceName="a", name="k", value="v" * 5000)] * 20
    for _ in range(120):
        log.append(*configs)
    assert log.segment.stat().st_size > 12_000_000
    argv = ["metadata", "dump", "--directory", str(tmp_path)]
    for more in ([], ["--json"]):
        tracemalloc.start()
        try:
            assert main([*argv, *more], _Discarding(), io.StringIO()) == 0
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert most < 6_000_000, most
