"""What a dump prints is what the stock decoder of the same release printed, line for line; damage is told."""

from __future__ import annotations

import gzip
import random
import re
from pathlib import Path

import pytest

from logdir.cluster.metadata_file import opened
from logdir.errors import LogDirError
from logdir.metadata.dump import RELEASES, Dump, StockForm, form_of
from logdir.service.report.json_form import to_json
from logdir.wire.json_text import text
from tests.logdir.cluster import odd_log
from tests.logdir.wire.golden_metadata import DUMPED, FILES, label
from tests.proof.metadata_claims import GOLDEN_DUMPS
from tests.proof.plugin import Recorder

ODD = Path(__file__).parents[2] / "golden" / "metadata-odd"
SEGMENT_NAME = "00000000000000000000.log"


def form_at(path: Path) -> StockForm:
    found = form_of(path.parent.name.partition("-")[0])
    assert found is not None
    return found


def dumped(path: Path, form: StockForm = StockForm.OF_4_3, *, skip: bool = False) -> tuple[list[str], Dump]:
    with opened(str(path)) as file:
        dump = Dump(file, form=form)
        return [f"Dumping {path.name}", *dump.lines(skip_record_metadata=skip)], dump


def recorded(path: Path, kind: str) -> list[str]:
    return gzip.decompress(path.with_name(f"{path.name}.{kind}.txt.gz").read_bytes()).decode().split("\n")[:-1]


@pytest.mark.parametrize("path", DUMPED, ids=label)
def test_a_dump_is_the_stock_decoders(path: Path, record_proof: Recorder) -> None:
    lines, dump = dumped(path, form_at(path))
    assert lines == recorded(path, "dump")
    assert (dump.problems, dump.gaps, dump.trailing_bytes) == ([], [], 0)
    record_proof(GOLDEN_DUMPS, {"files dumped to the same lines": 1})


@pytest.mark.parametrize("path", FILES, ids=label)
def test_a_dump_without_record_metadata_is_the_stock_decoders(path: Path) -> None:
    assert dumped(path, form_at(path), skip=True)[0] == recorded(path, "skip")


@pytest.mark.parametrize("kind", ["dump", "skip"])
@pytest.mark.parametrize(
    ("release", "form"), [("3.9.2", StockForm.OF_3_9), ("4.1.2", StockForm.OF_4_1), ("4.3.1", StockForm.OF_4_3)]
)
def test_everything_a_line_can_show(release: str, form: StockForm, kind: str, tmp_path: Path) -> None:
    lines, dump = dumped(odd_log.write(tmp_path), form, skip=kind == "skip")
    assert lines == recorded(ODD / f"odd-{release}", kind)
    assert [one.slug for one in dump.problems] == ["unknown-record-type"]
    assert dump.gaps == [(22, 25), (25, 28)]


@pytest.mark.parametrize("kind", ["dump", "skip"])
def test_a_cut_tail(kind: str, tmp_path: Path) -> None:
    lines, dump = dumped(odd_log.write(tmp_path, cut=5), skip=kind == "skip")
    assert lines == recorded(ODD / "cut-4.3.1", kind)
    assert lines[-1] == f"Found {dump.trailing_bytes} invalid bytes at the end of 00000000000000000000.log"
    assert [one.slug for one in dump.problems] == ["unknown-record-type", "malformed-file"]


@pytest.mark.parametrize("kind", ["dump", "skip"])
def test_a_checksum_that_fails(kind: str, tmp_path: Path) -> None:
    lines, dump = dumped(odd_log.write(tmp_path, flip=True), skip=kind == "skip")
    assert lines == recorded(ODD / "flip-4.3.1", kind)
    assert sum("isvalid: false" in line for line in lines) == 1
    assert [one.slug for one in dump.problems] == ["unknown-record-type", "corrupt-batch"]


def test_items_say_what_the_lines_say(tmp_path: Path) -> None:
    for path in (*FILES, odd_log.write(tmp_path)):
        with opened(str(path)) as file:
            items = list(Dump(file).batches())
        lines, _ = dumped(path)
        batches = [line for line in lines if line.startswith("baseOffset: ")]
        for one, line in zip(items, batches, strict=True):
            assert f"baseOffset: {one.base_offset} lastOffset: {one.last_offset} count: {one.count} " in line
            assert f" {one.timestamp_type}: {one.timestamp} size: {one.size} " in line
            flags = one.is_transactional, one.is_control, one.is_valid
            assert re.findall(r"(?:isTransactional|isControl|isvalid): (\w+)", line) == [str(f).lower() for f in flags]
        records = [line for line in lines if line.startswith("| offset: ")]
        told = [record for one in items for record in one.records]
        assert len(told) == len(records) > 0
        for record, line in zip(told, records, strict=True):
            assert line.startswith(f"| offset: {record.offset} ")
            assert (record.control is None) == (" payload: " in line)
            if record.control is None and record.error is None:
                assert line.endswith(f" payload: {text(record.payload)}")


def test_the_form_of_a_record_keeps_the_json_of_the_stock_tool() -> None:
    """The form of a result does not sort or reword what a record holds."""
    for path in FILES:
        with opened(str(path)) as file:
            records = [record for one in Dump(file).batches() for record in one.records]
        for record in records:
            form = to_json(record)
            assert isinstance(form, dict)
            assert (text(form["payload"]), text(form["value"])) == (text(record.payload), text(record.value))


def test_zeros_behind_the_end(tmp_path: Path) -> None:
    path = odd_log.write(tmp_path)
    whole, _ = dumped(path)
    with path.open("ab") as file:
        file.write(bytes(4096))
    lines, dump = dumped(path)
    assert lines == whole
    assert [one.slug for one in dump.problems] == ["unknown-record-type", "corrupt-batch"]


@pytest.mark.parametrize(("zeros", "slug"), [(1, "malformed-file"), (17, "malformed-file"), (18, "corrupt-batch")])
def test_a_few_bytes_more_are_no_batch_yet(zeros: int, slug: str, tmp_path: Path) -> None:
    """As in the stock reader: below 18 nothing is looked at (kafka-formats §7.3)."""
    path = tmp_path / SEGMENT_NAME
    path.write_bytes(FILES[0].read_bytes() + bytes(zeros))
    lines, dump = dumped(path)
    assert [one.slug for one in dump.problems] == [slug]
    assert lines[-1].startswith(f"Found {zeros} invalid bytes") == (slug == "malformed-file")


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000007.log"
    path.touch()
    assert dumped(path)[0] == ["Dumping 00000000000000000007.log", "Log starting offset: 7"]


def test_names_that_say_nothing(tmp_path: Path) -> None:
    data = FILES[0].read_bytes()
    for name, title in (
        ("copy.log", None),
        ("bootstrap.checkpoint", "KRaft bootstrap snapshot"),
        ("00000000000000000012-0000000003.checkpoint", "Snapshot end offset: 12, epoch: 3"),
    ):
        (tmp_path / name).write_bytes(data)
        lines, _ = dumped(tmp_path / name)
        assert (lines[1] == title) if title else lines[1].startswith("baseOffset")


def test_a_link_a_pipe_and_a_directory_are_no_segments(tmp_path: Path) -> None:
    import os

    path = odd_log.write(tmp_path)
    link = tmp_path / "link.log"
    link.symlink_to(path)
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "dir.log").mkdir()
    for name in ("link.log", "pipe.log", "dir.log"):
        with pytest.raises(LogDirError, match="a regular file"), opened(str(tmp_path / name)):
            pass
    with opened(str(link), is_followed=True) as file:
        assert file.size == path.stat().st_size


def test_damage_is_told_and_never_more_than_an_error_of_ours(tmp_path: Path) -> None:
    rng = random.Random(20_261_121)
    whole = b"".join(odd_log.batches())
    path = tmp_path / "00000000000000000000.log"
    told = 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        del data[rng.randrange(len(data) // 2, len(data) + 1) :]
        path.write_bytes(data)
        lines, dump = dumped(path)
        assert all("\n" not in line for line in lines)
        told += len(dump.problems) > 1
    assert told > 250


@pytest.mark.parametrize("kind", ["dump", "skip"])
@pytest.mark.parametrize("what", ["odd", "elr"])
@pytest.mark.parametrize("release", ["3.6.2", "3.7.2", "4.0.2", "4.2.1"])
def test_no_release_between_is_dumped_in_the_words_of_another(
    release: str, what: str, kind: str, tmp_path: Path
) -> None:
    if (what, release) == ("elr", "3.6.2"):
        pytest.skip("it knows no such records")
    form = form_of(release)
    assert form is not None
    path = odd_log.write(tmp_path) if what == "odd" else odd_log.write_elr(tmp_path)
    assert dumped(path, form, skip=kind == "skip")[0] == recorded(ODD / f"{what}-{release}", kind)


def test_every_release_from_3_3_to_4_3_is_taken_with_and_without_its_patch_number() -> None:
    assert RELEASES == ("3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3")
    for release in RELEASES:
        assert form_of(release) is form_of(f"{release}.0") is form_of(f"{release}.12") is not None
    for name in ("3.2", "4.4", "4", "", "4.3.", "4.3.1.2", "v4.3", "4.30", " 4.3", "٤.3"):
        assert form_of(name) is None
