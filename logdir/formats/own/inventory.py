"""The inventory file: all entries of one log dir, as JSON lines with a digest at the end.

Line 1 is the log dir itself, then comes one line per entry, sorted by (root, name as bytes), then a line with the
number of entries and the SHA-256 over all bytes before it. A reader accepts a whole file, or refuses it with the number
of the wrong line; it never uses a part.

Rows are named tuples and rendered by hand, because a scan makes one per partition directory and must not be slower
than ``find``. Not here: looking at a disk (``observe.scan``), or what several inventories mean together (``migrate``).

Spec: design §7.1.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from logdir.errors import MalformedFileError, UnsupportedVersionError

VERSION = 1
MAX_INT = 2**63 - 1


class Kind(Enum):
    """The kind of an entry; every entry has exactly one."""

    LIVE = "live"
    FUTURE = "future"
    DELETE = "delete"
    STRAY = "stray"
    STAGED = "staged"
    PURGING = "purging"
    INCOMING = "incoming"
    METADATA = "metadata"
    FILE = "file"
    UNKNOWN = "unknown"


class Root(Enum):
    """The directory that an entry's name is relative to."""

    LOG_DIR = "log-dir"
    WORK_ROOT = "work-root"


class Disk(NamedTuple):
    """Line 1: one log dir. Sizes are bytes, instants epoch milliseconds; ``None``: not known."""

    log_dir: str
    """Its absolute path."""
    taken_at_ms: int
    exact: bool
    """Whether every file was sized (``--exact``), not only segments."""
    status: str
    """``ok`` or ``unreadable``."""
    problems: tuple[str, ...] = ()
    cluster_id: str | None = None
    node_id: int | None = None
    rack: str | None = None
    log_dirs: tuple[str, ...] | None = None
    """All log dirs configured for this broker."""
    directory_id: str | None = None
    device: str | None = None
    """``major:minor``."""
    fs_type: str | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    total_inodes: int | None = None
    free_inodes: int | None = None
    layout: str | None = None
    """``topic-name``, ``topic-id``, ``mixed`` or ``empty``, by the names of live entries."""


class Entry(NamedTuple):
    """One entry of a log dir or work root. Numbers are ``None`` if they could not be read."""

    kind: str
    root: str
    name: str
    """Relative to the root; bytes that are not UTF-8 are U+FFFD here and complete in ``name_hex``."""
    name_hex: str | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    log_bytes: int | None = None
    """Sizes of the segments: Kafka's own measure."""
    bytes: int | None = None
    """Sizes of all regular files, or ``log_bytes`` again without ``exact``."""
    files: int | None = None
    segments: int | None = None
    first_offset: int | None = None
    last_base_offset: int | None = None
    oldest_ms: int | None = None
    newest_ms: int | None = None
    """Earliest and latest modification time of the segments."""
    problems: tuple[str, ...] = ()

    @property
    def raw_name(self) -> builtins.bytes:
        """The name as bytes on disk, the sort key of entries."""
        return raw_name(self.name, self.name_hex)


class Inventory(NamedTuple):
    """The content of an inventory file."""

    disk: Disk
    entries: tuple[Entry, ...]
    sha256: str
    """The digest in the last line, over all bytes before it; hex."""


DISK_KEYS = (
    "inventory", "cluster_id", "node_id", "rack", "log_dir", "log_dirs", "directory_id", "device", "fs_type",
    "total_bytes", "free_bytes", "total_inodes", "free_inodes", "layout", "taken_at_ms", "exact", "status",
    "problems",
)  # fmt: skip
"""Keys of line 1, in the order of design §7.1."""
ENTRY_KEYS = Entry._fields
"""Keys of an entry, in the order of design §7.1."""


def raw_name(name: str, name_hex: str | None) -> bytes:
    """Return the bytes of a name on disk, by which entries of one root are sorted."""
    return name.encode() if name_hex is None else bytes.fromhex(name_hex)


def sort_key(entry: Entry) -> tuple[str, bytes]:
    """Return the key that entries are sorted by: root, then name as bytes."""
    return entry.root, entry.raw_name


def _text(value: str | None) -> str:
    return "null" if value is None else encode_basestring(value)


def _number(value: int | None) -> str:
    return "null" if value is None else str(value)


def _list(values: tuple[str, ...]) -> str:
    return "[" + ",".join(map(encode_basestring, values)) + "]" if values else "[]"


def render_entry(e: Entry) -> str:
    """Return the line of one entry, with sorted keys and its LF."""
    return (
        f'{{"bytes":{_number(e.bytes)},"files":{_number(e.files)},"first_offset":{_number(e.first_offset)},'
        f'"kind":"{e.kind}","last_base_offset":{_number(e.last_base_offset)},"log_bytes":{_number(e.log_bytes)},'
        f'"name":{encode_basestring(e.name)},"name_hex":{_text(e.name_hex)},"newest_ms":{_number(e.newest_ms)},'
        f'"oldest_ms":{_number(e.oldest_ms)},"partition":{_number(e.partition)},"problems":{_list(e.problems)},'
        f'"root":"{e.root}","segments":{_number(e.segments)},"topic":{_text(e.topic)},'
        f'"topic_id":{_text(e.topic_id)}}}\n'
    )


def _compact(value: Mapping[str, object]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


def render_disk(disk: Disk) -> str:
    """Return line 1 with its LF."""
    return _compact({"inventory": VERSION, **disk._asdict()})


def render(disk: Disk, entries: Iterable[Entry]) -> Iterator[bytes]:
    """Yield the bytes of an inventory file.

    Args:
        disk: Line 1.
        entries: Sorted by ``sort_key``; this is not checked.

    Yields:
        The file's bytes in pieces of many lines; the last piece is the last line alone.
    """
    from hashlib import sha256  # Loads OpenSSL: imported only if a file is read or written.

    digest = sha256()
    rows = 0
    piece = render_disk(disk).encode()
    digest.update(piece)
    yield piece
    lines: list[str] = []
    for entry in entries:
        rows += 1
        lines.append(render_entry(entry))
        if len(lines) == 4096:
            piece = "".join(lines).encode()
            digest.update(piece)
            yield piece
            lines.clear()
    if lines:
        piece = "".join(lines).encode()
        digest.update(piece)
        yield piece
    yield _compact({"rows": rows, "sha256": digest.hexdigest()}).encode()


def digest_of(disk: Disk, entries: Iterable[Entry]) -> str:
    """Return the ``sha256`` in the last line of the file with these rows."""
    last = b""
    for piece in render(disk, entries):
        last = piece
    found: str = json.loads(last)["sha256"]
    return found


_Check = Callable[[object], bool]


def _is_text(value: object) -> bool:
    # JSON can contain half of a surrogate pair; our files do not, and UTF-8 cannot represent it.
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value))


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_INT


def _is_integer(value: object) -> bool:
    return type(value) is int and -MAX_INT - 1 <= value <= MAX_INT


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _or_null(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _one_of(*allowed: str) -> _Check:
    return lambda value: value in allowed


_DISK: dict[str, tuple[str, _Check]] = {
    **{k: ("a text or null", _or_null(_is_text)) for k in ("cluster_id", "rack", "directory_id", "device", "fs_type")},
    **{
        k: ("a count or null", _or_null(_is_count))
        for k in ("total_bytes", "free_bytes", "total_inodes", "free_inodes")
    },
    "node_id": ("an integer or null", _or_null(_is_integer)),
    "log_dir": ("a text", _is_text),
    "log_dirs": ("a list of texts or null", _or_null(_is_list)),
    "layout": ("a layout or null", _or_null(_one_of("topic-name", "topic-id", "mixed", "empty"))),
    "taken_at_ms": ("an integer", _is_integer),
    "exact": ("true or false", lambda value: isinstance(value, bool)),
    "status": ("ok or unreadable", _one_of("ok", "unreadable")),
    "problems": ("a list of texts", _is_list),
}
_ENTRY: dict[str, tuple[str, _Check]] = {
    "kind": ("a kind of entry", _one_of(*(kind.value for kind in Kind))),
    "root": ("log-dir or work-root", _one_of(*(root.value for root in Root))),
    "name": ("a text", _is_text),
    **{k: ("a text or null", _or_null(_is_text)) for k in ("name_hex", "topic", "topic_id")},
    **{
        k: ("a count or null", _or_null(_is_count))
        for k in ("partition", "log_bytes", "bytes", "files", "segments", "first_offset", "last_base_offset")
    },
    **{k: ("an integer or null", _or_null(_is_integer)) for k in ("oldest_ms", "newest_ms")},
    "problems": ("a list of texts", _is_list),
}


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _object(line: bytes, where: str, expected: str) -> dict[str, Any]:
    """Read one line as a JSON object.

    Raises:
        MalformedFileError: cut off, not UTF-8, not an object.
    """
    if not line.endswith(b"\n"):
        raise MalformedFileError(where, expected="a line that ends with LF", found="a line cut off")
    try:
        value = _DECODER.decode(line[:-1].decode())
    except (ValueError, RecursionError) as error:
        raise MalformedFileError(where, expected=expected, found=line[:200].decode(errors="replace")) from error
    if not isinstance(value, dict):
        raise MalformedFileError(where, expected=expected, found=line[:200].decode(errors="replace"))
    return value


def _checked(value: dict[str, Any], table: dict[str, tuple[str, _Check]], where: str) -> dict[str, Any]:
    for key, (expected, check) in table.items():
        if key not in value:
            raise MalformedFileError(where, expected=f"the key {key}", found="no such key")
        if not check(value[key]):
            raise MalformedFileError(where, expected=f"{key}: {expected}", found=value[key])
    return {key: tuple(value[key]) if isinstance(value[key], list) else value[key] for key in table}


def parse_disk(line: bytes, path: str) -> Disk:
    """Read line 1.

    Raises:
        MalformedFileError: the line is not line 1 of an inventory.
        UnsupportedVersionError: the inventory has another version.
    """
    where = f"{path}:1"
    value = _object(line, where, "line 1 of an inventory")
    version = value.get("inventory")
    if type(version) is not int:
        raise MalformedFileError(where, expected=f'line 1 of an inventory ("inventory": {VERSION})', found=version)
    if version != VERSION:
        raise UnsupportedVersionError(
            where, expected=f"inventory version {VERSION}", found=version, fix="use the logdird release that wrote it"
        )
    return Disk(**_checked(value, _DISK, where))


def parse_entry(line: bytes, where: str) -> Entry:
    """Read one entry; ``where`` is ``path:line``, for the error.

    Raises:
        MalformedFileError: the line is no entry.
    """
    entry = Entry(**_checked(_object(line, where, "an entry"), _ENTRY, where))
    if entry.name_hex is not None:
        try:
            same = bytes.fromhex(entry.name_hex).decode(errors="replace") == entry.name
        except ValueError:
            same = False
        if not same:
            raise MalformedFileError(where, expected="name_hex to hold the bytes of name", found=entry.name_hex)
    return entry


def parse_footer(line: bytes, where: str) -> tuple[int, str]:
    """Return the number of entries and the digest in hex from the last line; ``where`` is ``path:line``, for the error.

    Raises:
        MalformedFileError: the line is no last line of an inventory.
    """
    expected = "a last line with rows and sha256 (a file without it is cut off)"
    value = _object(line, where, expected)
    rows, digest = value.get("rows"), value.get("sha256")
    if not _is_count(rows) or not isinstance(digest, str):
        raise MalformedFileError(where, expected=expected, found=line[:200].decode(errors="replace"))
    return int(value["rows"]), digest


def parse(lines: Iterable[bytes], path: str) -> Inventory:
    """Read a whole inventory.

    Args:
        lines: The file's lines, LFs included (an open binary file yields them).
        path: For errors, which name ``path:line``.

    Raises:
        MalformedFileError: cut off, altered, not sorted, or not an inventory.
        UnsupportedVersionError: the inventory has another version.
    """
    from hashlib import sha256

    digest = sha256()
    disk: Disk | None = None
    entries: list[Entry] = []
    before: tuple[str, bytes] | None = None
    held: bytes | None = None  # The line before this one; the last line is no entry.
    number = 0
    for line in lines:
        number += 1
        if held is not None:
            where = f"{path}:{number - 1}"
            digest.update(held)
            if disk is None:
                disk = parse_disk(held, path)
            else:
                entry = parse_entry(held, where)
                key = sort_key(entry)
                if before is not None and key < before:
                    raise MalformedFileError(where, expected="entries sorted by root and name", found=entry.name)
                before = key
                entries.append(entry)
        held = line
    if held is None:
        raise MalformedFileError(f"{path}:1", expected="line 1 of an inventory", found="an empty file")
    if disk is None:
        parse_disk(held, path)  # Raises first if the line is not even a disk line.
        raise MalformedFileError(f"{path}:2", expected="a last line with rows and sha256", found="the end of the file")
    where = f"{path}:{number}"
    rows, stored = parse_footer(held, where)
    if rows != len(entries):
        raise MalformedFileError(where, expected=f"{rows} entries", found=f"{len(entries)}")
    if stored != digest.hexdigest():
        raise MalformedFileError(where, expected=f"sha256 {digest.hexdigest()} over the lines before", found=stored)
    return Inventory(disk, tuple(entries), stored)
