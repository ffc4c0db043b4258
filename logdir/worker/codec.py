"""Encoding of values as JSON by their types, for messages between a process and its workers.

Dataclasses and named tuples become lists of their fields, so both ends must be of the same release: a worker runs the
code of the process that started it. Errors of this package keep their class, text and fields; an ``OSError`` keeps its
errno.

Not here: frames and deadlines (``channel``); JSON for people and other programs (``service.report``).

Spec: design §5 "A port per log dir".
"""

from __future__ import annotations

import base64
import dataclasses
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints, is_typeddict

from logdir.errors import ConfigError, LogDirError, Problem
from logdir.ids import Uuid

_Map = Callable[[Any], Any]
"""A function that encodes or decodes one value; its types are known only at run time."""


_MOST_IDS = 4096
"""How many ids are kept that were decoded: the partitions of a topic share its id."""


class Codec(NamedTuple):
    """The encoder and decoder for the values of one type; ``None`` if JSON represents them as they are."""

    encode: _Map | None
    decode: _Map | None


_AS_IS = Codec(None, None)
_COLLECTIONS: Mapping[object, _Map] = {
    tuple: tuple,
    list: list,
    frozenset: frozenset,
    set: set,
    Sequence: tuple,
    Collection: tuple,
    Iterable: tuple,
}


def encoded(kind: object, value: object) -> object:
    """Encode a value of the type ``kind`` as a JSON value: lists, texts and numbers.

    Raises:
        TypeError: values of this type cannot be sent.
    """
    encode = codec_of(kind).encode
    return value if encode is None else encode(value)


def decoded(kind: object, value: object) -> object:
    """Decode a value of the type ``kind`` that ``encoded`` encoded."""
    decode = codec_of(kind).decode
    return value if decode is None else decode(value)


_known: dict[object, Codec] = {}


def codec_of(kind: object) -> Codec:
    """Return the codec of a type.

    Raises:
        TypeError: values of this type cannot be sent.
    """
    found = _known.get(kind)
    if found is None:
        # A class may contain values of its own type: look its codec up only when needed.
        _known[kind] = Codec(lambda value: _both(kind).encode(value), lambda value: _both(kind).decode(value))
        try:
            found = _known[kind] = _codec_of(kind)
        except TypeError:
            del _known[kind]
            raise
    return found


class _Both(NamedTuple):
    encode: _Map
    decode: _Map


def _both(kind: object) -> _Both:
    encode, decode = _known[kind]
    return _Both(encode or _same, decode or _same)


def _same(value: Any) -> Any:
    return value


def _codec_of(kind: object) -> Codec:
    if kind in (str, int, float, bool, NoneType, None):
        return _AS_IS
    if kind is bytes:
        return Codec(lambda data: base64.b64encode(data).decode("ascii"), base64.b64decode)
    if (supertype := getattr(kind, "__supertype__", None)) is not None:
        return codec_of(supertype)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _union(get_args(kind))
    if origin is not None:
        return _collection(origin, get_args(kind))
    if isinstance(kind, type):
        return _class(kind)
    raise TypeError(f"values of {kind} cannot be sent to another process")


def _class(kind: type) -> Codec:
    if issubclass(kind, Enum):
        return Codec(lambda member: member.value, kind)
    if issubclass(kind, Uuid):
        return Codec(str, lru_cache(_MOST_IDS)(kind.parse))
    if issubclass(kind, LogDirError):
        return Codec(encoded_error, decoded_error)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        names = tuple(field.name for field in dataclasses.fields(kind) if field.init)
        return _record(tuple((name, codec_of(hints[name])) for name in names), lambda values: kind(**values))
    if issubclass(kind, tuple) and hasattr(kind, "_fields") and not is_typeddict(kind):
        hints = get_type_hints(kind)
        fields = tuple((name, codec_of(hints[name])) for name in kind._fields)
        return _record(fields, lambda values: kind(**values))
    raise TypeError(f"values of {kind.__qualname__} cannot be sent to another process")


def _record(fields: tuple[tuple[str, Codec], ...], make: Callable[[dict[str, Any]], object]) -> Codec:
    names = tuple(name for name, _ in fields)
    encoders = tuple((number, codec.encode) for number, (_, codec) in enumerate(fields) if codec.encode is not None)
    decoders = tuple((number, codec.decode) for number, (_, codec) in enumerate(fields) if codec.decode is not None)

    def encode(value: object) -> list[object]:
        found = [getattr(value, name) for name in names]
        for number, one in encoders:
            found[number] = one(found[number])
        return found

    def decode(found: list[Any]) -> object:
        for number, one in decoders:
            found[number] = one(found[number])
        return make(dict(zip(names, found, strict=True)))

    return Codec(encode, decode)


def _collection(origin: object, arguments: tuple[object, ...]) -> Codec:
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        return _fixed(arguments)
    made = _COLLECTIONS.get(origin)
    if made is not None:
        inner = codec_of(arguments[0])
        encode, decode = inner
        return Codec(
            list if encode is None else lambda values: [encode(value) for value in values],
            made if decode is None else lambda values: made(decode(value) for value in values),
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        pair = _fixed(arguments)
        if pair.encode is None or pair.decode is None:
            raise TypeError(f"no pairs: {arguments}")
        encode_pair, decode_pair = pair.encode, pair.decode
        return Codec(
            lambda values: [encode_pair(one) for one in values.items()],
            lambda values: dict(decode_pair(one) for one in values),
        )
    raise TypeError(f"values of {origin} cannot be sent to another process")


def _fixed(arguments: tuple[object, ...]) -> Codec:
    parts = tuple(codec_of(argument) for argument in arguments)

    def encode(values: tuple[object, ...]) -> list[object]:
        return [v if p.encode is None else p.encode(v) for p, v in zip(parts, values, strict=True)]

    def decode(values: list[object]) -> tuple[object, ...]:
        return tuple(v if p.decode is None else p.decode(v) for p, v in zip(parts, values, strict=True))

    return Codec(encode, decode)


def _union(kinds: tuple[object, ...]) -> Codec:
    others = tuple(kind for kind in kinds if kind is not NoneType)
    codecs = tuple(codec_of(kind) for kind in others)
    if all(codec == _AS_IS for codec in codecs):
        return _AS_IS
    if len(others) == 1:
        ((encode, decode),) = codecs
        return Codec(
            None if encode is None else lambda value: None if value is None else encode(value),
            None if decode is None else lambda value: None if value is None else decode(value),
        )
    classes = tuple(kind if isinstance(kind, type) else get_origin(kind) for kind in others)

    def encode_one(value: object) -> object:
        if value is None:
            return None
        number = next(number for number, kind in enumerate(classes) if isinstance(value, kind))  # type: ignore[arg-type]  # origins of collections are classes
        encode = codecs[number].encode
        return [number, value if encode is None else encode(value)]

    def decode_one(value: Any) -> object:
        if value is None:
            return None
        decode = codecs[value[0]].decode
        return value[1] if decode is None else decode(value[1])

    return Codec(encode_one, decode_one)


_WORDS = frozenset(("path", "expected", "found", "fix", "problems"))
"""Attributes that every error of this package has; they are sent within its problems, not as further fields."""


def _error_class(name: str) -> type[LogDirError]:
    """Return the error class that is called ``module:class``; ``LogDirError`` if this release has no such class."""
    module, _, qualified = name.partition(":")
    if module.partition(".")[0] != LogDirError.__module__.partition(".")[0] and module not in sys.modules:
        return LogDirError
    try:
        found = getattr(import_module(module), qualified, None)  # The starter may not have imported its module yet.
    except ImportError:
        return LogDirError
    return found if isinstance(found, type) and issubclass(found, LogDirError) else LogDirError


def encoded_error(error: LogDirError) -> list[object]:
    """Encode an error of this package: its class, all its problems, and its further fields."""
    kind = type(error)
    problems = error.problems if isinstance(error, ConfigError) else (error.problem(),)
    known = {name: value for name, value in vars(error).items() if name not in _WORDS and _is_plain(value)}
    return [f"{kind.__module__}:{kind.__qualname__}", [list(problem) for problem in problems], known]


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def decoded_error(value: list[Any]) -> LogDirError:
    """Decode an error that ``encoded_error`` encoded, with the same text and fields."""
    name, found, known = value
    kind = _error_class(name)
    problems = tuple(Problem(*one) for one in found)
    if issubclass(kind, ConfigError):
        error: LogDirError = kind(problems)
    else:
        (problem,) = problems
        # Not by its own __init__: some classes build their text from other arguments.
        error = kind.__new__(kind)
        LogDirError.__init__(
            error, problem.path, expected=problem.expected, found="", fix=problem.fix, slug=problem.slug
        )
        error.found = problem.found  # The text is already shortened.
        error.args = (problem.line(),)
    vars(error).update(known)
    return error
