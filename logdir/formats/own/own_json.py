r"""Common frame of our own small files: one line of JSON with sorted keys, a version, and a digest.

The key named after the file's kind holds its version: ``{"layout": 1, …, "sha256": …}``. The digest is taken over the
line without the key ``sha256``. Unknown keys are returned with the others, so that a later writer can keep them.
Another version is refused (``UnsupportedVersionError``), never guessed.

Not here: the meaning of the keys (``replica_marker``, ``start_block_file``, …), and the place of the files (``disk``).

Spec: design §3.3 (marker); style §5.5.

>>> render("layout", 1, {"node_id": 3})
b'{"layout":1,"node_id":3,"sha256":"b76d819f16c958625cb72ae4856ca7697889e3c5303ed03fb6ccfb1820280860"}\n'
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NoReturn, TypeVar

from logdir.errors import MalformedFileError, UnsupportedVersionError

MAX_BYTES = 4096
"""Limit of a marker (``replica.json``): it fits in one block, so it can be written on a full disk (attacks A10)."""
DIGEST = "sha256"
_MAX = 2**63 - 1
_Member = TypeVar("_Member", bound=Enum)


_line = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def _digest(line: str) -> str:
    return hashlib.sha256(line.encode("utf-8", "surrogatepass")).hexdigest()


def render(kind: str, version: int, values: Mapping[str, object]) -> bytes:
    """Return the bytes of a file: one line of JSON with its version and digest.

    Args:
        kind: The key that holds the version; messages name the file by it.
        version: The version of the file.
        values: All other keys and their values; neither ``kind`` nor ``sha256``.

    Raises:
        ValueError: ``values`` contain a key of the frame, or a value without a JSON or UTF-8 form.
    """
    if kind in values or DIGEST in values:
        raise ValueError(f"{kind} and {DIGEST} belong to the frame of the file")
    framed = {kind: version, **values}
    # Rendered in two parts, so that the digest can be inserted at its sorted place.
    before = _line({key: framed[key] for key in framed if key < DIGEST})[1:-1]
    after = _line({key: framed[key] for key in framed if key > DIGEST})[1:-1]
    digest = _digest(_joined(before, after))
    return (_joined(before, f'"{DIGEST}":"{digest}"', after) + "\n").encode("utf-8")


def _joined(*parts: str) -> str:
    return "{" + ",".join(filter(None, parts)) + "}"


def parse(data: bytes, path: str, kind: str, version: int, *, most_bytes: int | None = None) -> Values:
    """Parse a file, and check its version and digest.

    Args:
        data: The whole file.
        path: Where it lies, for the error.
        kind: The key that holds the version.
        version: The supported version.
        most_bytes: Maximum size of the file; ``None``: any.

    Returns:
        All keys except the version and the digest.

    Raises:
        UnsupportedVersionError: the file has a different version.
        MalformedFileError: too large, not one line of JSON with the key ``kind``, or a wrong digest.
    """
    return parse_versions(data, path, kind, (version,), most_bytes=most_bytes)[1]


def parse_versions(
    data: bytes, path: str, kind: str, versions: Sequence[int], *, most_bytes: int | None = None
) -> tuple[int, Values]:
    """Parse a file of which several versions are read, and check its digest.

    Args:
        data: The whole file.
        path: Where it lies, for the error.
        kind: The key that holds the version.
        versions: The supported versions, lowest first.
        most_bytes: Maximum size of the file; ``None``: any.

    Returns:
        The version of the file, and all keys except the version and the digest.

    Raises:
        UnsupportedVersionError, MalformedFileError: as ``parse``.
    """
    if most_bytes is not None and len(data) > most_bytes:
        raise MalformedFileError(path, expected=f"at most {most_bytes} bytes", found=len(data))
    if not data.endswith(b"\n") or data.count(b"\n") != 1:
        raise MalformedFileError(path, expected="one line that ends with LF", found=f"{len(data)} bytes that are not")
    try:
        values = parse_json(data)
    except (ValueError, RecursionError) as error:
        raise MalformedFileError(path, expected="one line of JSON", found=str(error)) from None
    if not isinstance(values, dict) or kind not in values:
        raise MalformedFileError(path, expected=f"an object with the key {kind}", found=repr(data[:60]))
    found = values.pop(kind)
    if type(found) is not int:
        raise MalformedFileError(path, expected=f"a version number in {kind}", found=found)
    if found not in versions:
        raise UnsupportedVersionError(
            path,
            expected=f"{kind} version {' or '.join(map(str, versions))}",
            found=found,
            fix="use the logdird release that wrote this file; nothing was touched",
        )
    stored = values.pop(DIGEST, None)
    digest = _digest(_line({kind: found, **values}))
    if stored != digest:
        raise MalformedFileError(path, expected=f"{DIGEST} {digest} of the other keys", found=stored)
    return found, Values(values, path)


def parse_json(data: bytes) -> Any:
    """Parse one JSON value; refuse a repeated key and ``NaN``, which Python's own reader accepts.

    Raises:
        ValueError: the bytes are no JSON; ``RecursionError`` if it is nested too deeply.
    """
    return json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key stands twice")
    return values


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


class Values:
    """The keys and values of a parsed file; each method reads a key with the type that its value must have.

    A method that reads a value raises ``MalformedFileError`` if the key is missing or has another type.
    """

    def __init__(self, values: Any, path: str, within: str = "") -> None:
        if not isinstance(values, dict):
            raise MalformedFileError(path, expected=f"an object in {within.rstrip('.') or 'the file'}", found=values)
        self._values, self._path, self._within = values, path, within

    def has(self, key: str) -> bool:
        """Whether the file has the key; a file of an older release lacks newer keys."""
        return key in self._values

    def refused(self, key: str, expected: str) -> MalformedFileError:
        """Return, for the caller to raise, the error that ``key`` does not hold what is ``expected``."""
        found = self._values.get(key, "no such key")
        return MalformedFileError(self._path, expected=f"{expected} in {self._within}{key}", found=found)

    def text(self, key: str) -> str:
        """Return the text under a key."""
        value = self._values.get(key)
        if not isinstance(value, str):
            raise self.refused(key, "a text")
        return value

    def text_or_none(self, key: str) -> str | None:
        """Return the text under a key, or ``None`` if it is null."""
        return None if self._is_null(key) else self.text(key)

    def number(self, key: str, highest: int = _MAX) -> int:
        """Return the whole number under a key, from 0 to ``highest``."""
        value = self._values.get(key)
        if type(value) is not int or not 0 <= value <= highest:
            raise self.refused(key, f"a whole number of 0 to {highest}")
        return value

    def number_or_none(self, key: str) -> int | None:
        """Return the whole number under a key, from 0, or ``None`` if it is null."""
        return None if self._is_null(key) else self.number(key)

    def flag(self, key: str) -> bool:
        """Return the ``true`` or ``false`` under a key."""
        value = self._values.get(key)
        if not isinstance(value, bool):
            raise self.refused(key, "true or false")
        return value

    def inner(self, key: str) -> Values:
        """Return the object under a key."""
        return Values(self._values.get(key), self._path, f"{key}.")

    def one_of(self, key: str, kind: type[_Member]) -> _Member:
        """Return the member of ``kind`` whose value is the text under a key."""
        try:
            return kind(self.text(key))
        except ValueError:
            raise self.refused(key, " or ".join(str(member.value) for member in kind)) from None

    def _is_null(self, key: str) -> bool:
        return key in self._values and self._values[key] is None
