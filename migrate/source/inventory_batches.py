"""Inventory files as Arrow batches: verified completely before the first row is yielded, in bounded memory.

A file is read once, in blocks of whole lines. Each block is hashed, parsed by Arrow's JSON reader, and checked. Parsed
rows are kept (on disk if they are many) until the last line has confirmed count and digest. Only then the first row is
yielded, so a truncated or altered file yields nothing.

Arrow is fast, but more lenient than ``logdir.formats.own.inventory``, the reference parser. So Arrow's result is used
only if the block's bytes show that both must agree; on any doubt the reference parser reads the block line by line.

Not here: the list of files (``fleet``), the frame's columns (``data_source``).

Spec: design §7.1, §7.2 ("What a file that is not whole says is not used"), §10 "fleet plan".
"""

from __future__ import annotations

import errno
import gzip
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from logdir.errors import FormatError, MalformedFileError, OutputError
from logdir.formats.own.inventory import (
    ENTRY_KEYS,
    Disk,
    Entry,
    Kind,
    Root,
    parse_disk,
    parse_entry,
    parse_footer,
    render_disk,
)
from migrate.source.fleet_values import is_uri

_BLOCK_BYTES = 4 * 1024 * 1024
"""About 12,000 entries."""
_MAX_LINE_BYTES = 16 * 1024 * 1024
"""Size limit of a line; a longer one is refused before it fills the memory."""
_HELD_BYTES = 64 * 1024 * 1024
"""Limit of one file's parsed rows in memory; more rows go to a temporary file."""
_TEXTS = ("kind", "root", "name", "name_hex", "topic", "topic_id")
_COUNTS = ("partition", "log_bytes", "bytes", "files", "segments", "first_offset", "last_base_offset")
_REQUIRED = ("kind", "root", "name", "problems")
_KINDS = pa.array([kind.value for kind in Kind])
_ROOTS = pa.array([root.value for root in Root])
LIST_TYPE = pa.list_(pa.field("element", pa.string()))
"""Arrow type of a list of texts, exactly as Spark derives it."""


def _entry_type(key: str) -> pa.DataType:
    if key in _TEXTS:
        return pa.string()
    return LIST_TYPE if key == "problems" else pa.int64()


ENTRY_SCHEMA = pa.schema([pa.field(key, _entry_type(key)) for key in ENTRY_KEYS])
"""The columns of an entry batch, in the order of design §7.1."""
_PARSE = pj.ParseOptions(explicit_schema=ENTRY_SCHEMA, unexpected_field_behavior="error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """An inventory file that does not exist, cannot be read, or is not whole."""

    slug: str
    """``absent``, ``no-permission``, ``io-error`` or ``not-whole``."""
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A verified inventory. ``batches`` may be iterated once, inside the ``with`` of ``open_inventory``."""

    disk: Disk
    sha256: str
    batches: Iterator[pa.RecordBatch]


# -- opening ---------------------------------------------------------------------------------------------


def _open_local(path: str) -> BinaryIO:
    # Without O_NONBLOCK a FIFO of that name would block the task for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        return open(descriptor, "rb", buffering=0)
    except BaseException:
        os.close(descriptor)
        raise


def _open(path: str, stack: ExitStack) -> BinaryIO:
    if is_uri(path):
        from pyarrow import fs

        system, inner = fs.FileSystem.from_uri(path)
        # Compression is recognised by the name alone, as for local files.
        raw = cast(BinaryIO, stack.enter_context(system.open_input_stream(inner, compression=None)))
        name = inner
    else:
        raw = stack.enter_context(_open_local(path))
        name = path
    if name.endswith(".gz"):
        return cast(BinaryIO, stack.enter_context(gzip.GzipFile(fileobj=raw, mode="rb")))
    return raw


def _too_long(path: str) -> MalformedFileError:
    return MalformedFileError(path, expected=f"lines of at most {_MAX_LINE_BYTES} bytes", found="a longer line")


def _blocks(path: str, stack: ExitStack) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines; only the very last may lack its LF. The stack closes the file."""
    file = _open(path, stack)
    rest = b""
    while data := file.read(_BLOCK_BYTES):
        cut = data.rfind(b"\n") + 1
        if not cut:
            rest += data
            if len(rest) > _MAX_LINE_BYTES:
                raise MalformedFileError(
                    path, expected=f"lines of at most {_MAX_LINE_BYTES} bytes", found="a longer line"
                )
            continue
        yield rest + data[:cut]
        rest = data[cut:]
    if rest:
        yield rest


# -- entries ---------------------------------------------------------------------------------------------


def _has_colon_first(texts: Any) -> bool:
    return bool(pc.any(pc.starts_with(texts, ":")).as_py())


def _parse_fast(block: bytes) -> pa.Table | None:
    """Parse a block of entry lines with Arrow; return ``None`` if only the reference parser can decide.

    Both readers agree on a block in which every line is one object, no key is missing, unknown or repeated,
    all values have their types and nothing is escaped; any other block is left to the reference parser.
    """
    lines = block.count(b"\n")
    # One object a line: no blank lines, no two objects on one, none over several. No escapes: so lone
    # surrogates cannot occur, and `":` is the end of a key unless a text begins with a colon (looked at
    # below). With as many keys as there must be, and Arrow refusing unknown and repeated ones, no line
    # lacks any.
    if (
        not block.startswith(b"{")
        or not block.endswith(b"}\n")
        or block.count(b"}\n{") != lines - 1
        or block.count(b'":') != lines * len(ENTRY_KEYS)
        or b"\\" in block
    ):
        return None
    try:
        if not block.isascii():
            block.decode()  # Arrow does not look whether texts are UTF-8
        reading = pj.ReadOptions(use_threads=False, block_size=len(block) + 1)
        table = pj.read_json(pa.BufferReader(block), read_options=reading, parse_options=_PARSE)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None
    problems = pc.list_flatten(table["problems"])
    if table.num_rows != lines or table.schema != ENTRY_SCHEMA or problems.null_count:
        return None
    if any(table[key].null_count for key in _REQUIRED):
        return None
    if any(_has_colon_first(texts) for texts in (table["name"], table["topic"], table["topic_id"], problems)):
        return None
    if not pc.all(pc.is_in(table["kind"], _KINDS)).as_py() or not pc.all(pc.is_in(table["root"], _ROOTS)).as_py():
        return None
    for key in _COUNTS:
        least = pc.min(table[key]).as_py()
        if least is not None and least < 0:
            return None
    if table["name_hex"].null_count != lines:
        return None  # rare; the judge compares it with the name
    return table


def _parse_slowly(block: bytes, path: str, first_line: int) -> tuple[pa.Table, list[bytes]]:
    """Parse a block with the reference parser.

    Returns:
        Its entries and their raw names.

    Raises:
        MalformedFileError: a line is no entry; the error names the line.
        UnicodeEncodeError: a text holds half a character (JSON can escape one).
    """
    entries: list[Entry] = []
    names: list[bytes] = []
    for number, line in enumerate(block.split(b"\n")[:-1], first_line):
        entry = parse_entry(line + b"\n", f"{path}:{number}")
        names.append(entry.raw_name)
        entries.append(entry)
    return entry_table(entries), names


def entry_table(entries: list[Entry] | tuple[Entry, ...]) -> pa.Table:
    """Return entries as a table of ``ENTRY_SCHEMA``, one row each, in the same order."""
    columns: Any = zip(*entries, strict=True) if entries else [()] * len(ENTRY_KEYS)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, ENTRY_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=ENTRY_SCHEMA)


class _Order:
    """Checks that entries ascend by (root, name as bytes), over all blocks of a file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.last: tuple[str, bytes] | None = None

    def check(self, table: pa.Table, names: list[bytes] | None) -> None:
        """Check the next block; ``names`` are its raw names, ``None`` if these are the UTF-8 of the column ``name``.

        Raises:
            MalformedFileError: an entry is not in order.
        """
        roots = table["root"].combine_chunks()
        texts = pa.array(names, pa.binary()) if names is not None else table["name"].combine_chunks().cast(pa.binary())
        rows = len(texts)
        first = (roots[0].as_py(), texts[0].as_py())
        falls = self.last is not None and first < self.last
        if not falls and rows > 1:
            same = pc.equal(roots[1:], roots[:-1])
            lower = pc.less(texts[1:], texts[:-1])
            falls = pc.any(pc.or_(pc.less(roots[1:], roots[:-1]), pc.and_(same, lower))).as_py()
        if falls:
            raise MalformedFileError(
                self.path, expected="entries sorted by root and name", found="entries in another order"
            )
        self.last = (roots[-1].as_py(), texts[-1].as_py())


# -- holding ---------------------------------------------------------------------------------------------


class _Held:
    """Keeps batches until the last line is verified: in memory up to a limit, then in an unnamed temporary file."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.batches: list[pa.RecordBatch] = []
        self.size = 0
        self.file: Any = None
        self.writer: Any = None

    def add(self, table: pa.Table) -> None:
        """Keep the rows of a table.

        Raises:
            OutputError: the temporary file cannot be written; the inventory is not at fault.
        """
        batches = table.to_batches()
        self.size += sum(batch.nbytes for batch in batches)
        self.batches += batches
        if self.size > _HELD_BYTES:
            try:
                self._spill()
            except OSError as error:
                raise OutputError(
                    tempfile.gettempdir(),
                    expected="room for rows until the file is verified",
                    found=error.strerror or str(error),
                    fix="set TMPDIR to a directory with free space",
                ) from error

    def _spill(self) -> None:
        if self.writer is None:
            self.file = self.stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
            self.writer = pa.ipc.new_stream(self.file, ENTRY_SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4"))
        for batch in self.batches:
            self.writer.write_batch(batch)
        self.batches.clear()

    def all(self) -> Iterator[pa.RecordBatch]:
        if self.writer is None:
            yield from self.batches
            return
        self.writer.close()
        self.file.seek(0)
        with pa.ipc.open_stream(self.file) as reader:
            yield from reader


def _read(path: str, stack: ExitStack) -> Whole:
    digest = sha256()
    held = _Held(stack)
    order = _Order(path)
    disk: Disk | None = None
    rows = 0
    line = 2  # The number of the next entry.
    pending = b""  # The last line, unless another one follows.

    for block in _blocks(path, stack):
        block = pending + block
        # Cut off the last line of what is here: it is the footer if the file ends now.
        cut = block.rfind(b"\n", 0, len(block) - 1) + 1
        pending, block = block[cut:], block[:cut]
        if not block:
            if len(pending) > _MAX_LINE_BYTES:
                raise _too_long(path)
            continue
        digest.update(block)
        if disk is None:
            end = block.index(b"\n") + 1
            disk = parse_disk(block[:end], path)
            render_disk(disk).encode()  # No surrogate halves, which JSON can escape.
            block = block[end:]
            if not block:
                continue
        names: list[bytes] | None = None
        table = _parse_fast(block)
        if table is None:
            table, names = _parse_slowly(block, path, line)
        order.check(table, names)
        held.add(table)
        rows += table.num_rows
        line += table.num_rows
    if disk is None:
        raise MalformedFileError(path, expected="line 1 and a last line of an inventory", found=pending[:100])
    stored, hexed = parse_footer(pending, f"{path}:{line}")
    if stored != rows:
        raise MalformedFileError(path, expected=f"{stored} entries", found=f"{rows}")
    if hexed != digest.hexdigest():
        raise MalformedFileError(path, expected=f"sha256 {digest.hexdigest()}", found=hexed)
    return Whole(disk=disk, sha256=hexed, batches=held.all())


@contextmanager
def open_inventory(path: str) -> Iterator[Whole | Broken]:
    """Read and verify an inventory file. Reads all of it before it yields.

    Args:
        path: A local path, or a URI for ``pyarrow.fs``; ``.gz`` at the end means gzip.

    Yields:
        The inventory with its entries as batches of ``ENTRY_SCHEMA``, or the reason why it cannot be used. Never raises
        for the content of the file or for errors of opening it.
    """
    with ExitStack() as stack:
        yield _judged(path, stack)


def _judged(path: str, stack: ExitStack) -> Whole | Broken:
    try:
        return _read(path, stack)
    except (FormatError, UnicodeError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        return Broken(slug="not-whole", detail=str(error))
    except (FileNotFoundError, NotADirectoryError) as error:
        return Broken(slug="absent", detail=str(error))
    except PermissionError as error:
        return Broken(slug="no-permission", detail=str(error))
    except (OSError, pa.ArrowException, ValueError) as error:
        return Broken(slug="io-error", detail=str(error))


def sizes_of(paths: list[str]) -> list[int]:
    """Return the approximate unpacked size of each file, for distributing the work; 0 if not known."""
    return [_size_of(path) for path in paths]


def _size_of(path: str) -> int:
    size = 0
    if is_uri(path):
        from pyarrow import fs

        with suppress(OSError, pa.ArrowException, ValueError):
            system, inner = fs.FileSystem.from_uri(path)
            size = system.get_file_info(inner).size or 0
    else:
        with suppress(OSError, ValueError):
            size = os.stat(path).st_size  # noqa: PTH116 - a Path for each of thousands is waste
    return size * 8 if path.endswith(".gz") else size
