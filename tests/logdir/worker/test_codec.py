"""What goes to a worker comes back the same: every argument and result of every call, and every error."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import logdir
from logdir.errors import ConfigError, LogDirError, Problem
from logdir.ids import Uuid
from logdir.refusal_slug import Why
from logdir.wire.errors import CorruptBatchError
from logdir.worker.calls import Signature, called
from logdir.worker.channel import Inbox, frame
from logdir.worker.codec import decoded, decoded_error, encoded, encoded_error
from tests.logdir.worker.every_call import names

NAMES = st.binary(max_size=8).map(os.fsdecode)
"""File names: bytes that are no UTF-8 among them."""
_PROBLEMS = st.builds(Problem, *[NAMES] * 5)
_LEAVES: dict[object, st.SearchStrategy[Any]] = {
    str: NAMES,
    int: st.integers(-(1 << 63), 1 << 64),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=40),
    None: st.none(),
    NoneType: st.none(),
}
_MANY = {tuple: tuple, list: list, frozenset: frozenset, set: set, Sequence: tuple, Collection: tuple, Iterable: tuple}


def kinds_of(call: Any) -> dict[str, object]:
    """Return the types of what is sent and what is answered."""
    hints = get_type_hints(call)
    if get_origin(hints["return"]) is Iterator:
        hints["return"] = list[get_args(hints["return"])[0]]  # type: ignore[misc]  # a part of what it yields
    return {name: hints[name] for name in (*Signature.of(call).parameters, "return")}


KINDS = [
    pytest.param(kind, id=f"{call.rpartition(':')[2]}-{name}")
    for call in names()
    for name, kind in kinds_of(called(call)).items()
]


@cache
def values(kind: Any) -> st.SearchStrategy[Any]:
    """Return values of a type: nothing of it is asked of the codec."""
    return st.deferred(lambda: _values(kind))


def _values(kind: Any) -> st.SearchStrategy[Any]:
    if kind in _LEAVES:
        return _LEAVES[kind]
    if (supertype := getattr(kind, "__supertype__", None)) is not None:
        return values(supertype)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, sorted(arguments, key=lambda one: one is not NoneType)))
    if origin is tuple and arguments[-1] is not Ellipsis:
        return st.tuples(*map(values, arguments))
    if origin in _MANY:
        return st.lists(values(arguments[0]), max_size=2).map(_MANY[origin])
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=2)
    if issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    if issubclass(kind, Uuid):
        return st.binary(min_size=16, max_size=16).map(kind)
    if issubclass(kind, LogDirError):
        return st.builds(kind, NAMES, expected=NAMES, found=NAMES, fix=NAMES)
    return _records(kind)


def _records(kind: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    if dataclasses.is_dataclass(kind):
        fields = [field.name for field in dataclasses.fields(kind) if field.init]
    else:
        fields = list(kind._fields)

    def made(found: dict[str, Any]) -> Any:
        try:
            return kind(**found)
        except (LogDirError, ValueError):
            return None  # a class that judges its fields

    filled = st.fixed_dictionaries({name: values(hints[name]) for name in fields})
    return filled.map(made).filter(lambda one: one is not None)


def alike(one: Any, other: Any) -> bool:
    """Whether two values are of the same types throughout, and equal; errors by their words."""
    if type(one) is not type(other):
        return False
    if isinstance(one, LogDirError):
        return (one.args, one.path, one.expected, one.found, one.fix) == (
            *(other.args, other.path, other.expected, other.found, other.fix),
        )
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return all(alike(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


def over_the_wire(value: object) -> Any:
    """Return what comes out at the other end of a socket."""
    (found,) = Inbox().add(frame(value))
    return found


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_every_argument_and_result_of_every_call_comes_out_as_it_went_in(kind: Any, data: st.DataObject) -> None:
    value = data.draw(values(kind))
    found = decoded(kind, over_the_wire(encoded(kind, value)))
    assert alike(found, value), (found, value)


@given(st.binary(min_size=1, max_size=255))
def test_a_name_that_is_no_utf_8_keeps_its_bytes(name: bytes) -> None:
    found = decoded(list[str], over_the_wire(encoded(list[str], [os.fsdecode(name)])))
    assert isinstance(found, list)
    assert os.fsencode(found[0]) == name


def every_error() -> list[type[LogDirError]]:
    """Return the errors of ours that there are, in all packages a worker may run."""
    for module in walk_packages(logdir.__path__, "logdir."):
        import_module(module.name)
    found: list[type[LogDirError]] = [LogDirError]
    for kind in found:
        found += kind.__subclasses__()
    return [kind for kind in found if kind.__module__.startswith("logdir.")]


_PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "str": NAMES,
    "Why": st.sampled_from(Why),
    "object": NAMES.map(lambda text: text * 60),  # shortened in its words
    "int": st.integers(),
    "int | None": st.none() | st.integers(),
    "tuple[Problem, ...]": st.lists(_PROBLEMS, min_size=1, max_size=4).map(tuple),
}


def errors_of(kind: type[LogDirError]) -> st.SearchStrategy[LogDirError]:
    """Return errors of a class, made as it is made: a parameter of another type needs a line above."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    filled = {one.name: _PLAIN[str(one.annotation)] for one in parameters}
    return st.fixed_dictionaries(filled).map(lambda values: kind(**values))


def test_errors_with_fields_of_their_own_are_among_them() -> None:
    """What follows shows nothing of a field that no class has."""
    more = {name for kind in every_error() for name in inspect.signature(kind.__init__).parameters}
    assert {"record_type", "version", "position", "problems"} <= more


@pytest.mark.parametrize("kind", every_error())
@settings(deadline=None)
@given(data=st.data())
def test_an_error_keeps_its_class_its_line_and_all_its_fields(kind: type[LogDirError], data: st.DataObject) -> None:
    error = data.draw(errors_of(kind))
    back = decoded_error(over_the_wire(encoded_error(error)))
    assert type(back) is kind
    assert str(back) == str(error)
    assert back.problem() == error.problem()
    assert vars(back) == vars(error)


def test_an_error_of_a_module_that_the_asker_has_not_read_keeps_its_class() -> None:
    """A command that never read a batch itself gets the exit status of the error of its worker."""
    sent = encoded_error(CorruptBatchError("/d1/a.log", expected="a length", found=0, position=8))
    code = (
        "import json, sys; from logdir.worker.codec import decoded_error; "
        "assert 'logdir.wire.errors' not in sys.modules; "
        "error = decoded_error(json.loads(sys.argv[1])); print(error.code, error.position)"
    )
    done = subprocess.run([sys.executable, "-c", code, json.dumps(sent)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["corrupt-batch", "8"]


@given(st.lists(_PROBLEMS, min_size=1, max_size=4))
def test_a_configuration_error_keeps_all_its_problems(problems: list[Problem]) -> None:
    error = ConfigError(tuple(problems))
    back = decoded_error(over_the_wire(encoded_error(error)))
    assert isinstance(back, ConfigError)
    assert back.problems == error.problems
    assert str(back) == str(error)


def test_an_error_of_a_class_that_is_not_known_here_is_one_of_ours_all_the_same() -> None:
    for name in ("logdir.errors:NeverHeardOfError", "logdir.nowhere:LogDirError", "os:path", "elsewhere:Error"):
        require_root(decoded_error([name, [["slug", "/d1", "this", "that", "do it"]], {}]))


def require_root(back: LogDirError) -> None:
    """Assert that an error is of the root of ours, in its words."""
    assert type(back) is LogDirError
    assert "/d1: expected this, found that; do it" in str(back)


@pytest.mark.parametrize("kind", [object, complex, type, dict[str, object], tuple[object, ...], st.SearchStrategy[int]])
def test_what_cannot_be_sent_is_refused_before_it_is_and_each_time(kind: Any) -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match="cannot be sent"):
            encoded(kind, None)
