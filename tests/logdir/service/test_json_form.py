"""The one JSON form of requests and results: there and back, and strict on the way back."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pkgutil
from dataclasses import dataclass, field
from enum import Enum
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

import logdir.service
from logdir.errors import MalformedMessageError, Problem
from logdir.evidence import Absent, Evidence, Present, Proof, Removed, Unknown
from logdir.ids import TopicId
from logdir.reasons import Reason
from logdir.replica_ref import ReplicaRef
from logdir.service.cluster.source import SourceRequest
from logdir.service.report.json_form import from_json, keys_of, to_json
from logdir.service.report.result import ItemResult, ItemState
from logdir.service.report.staged import Selection

TEXT = st.text(max_size=8) | st.binary(max_size=8).map(lambda data: data.decode("utf-8", "surrogateescape"))
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(),
    bool: st.booleans(),
    type(None): st.none(),
    TopicId: st.binary(min_size=16, max_size=16).map(TopicId),
    object: st.none() | st.integers() | TEXT | st.lists(st.integers(), max_size=2),
    Evidence: st.sampled_from([
        Unknown(), Absent(as_of_ms=1), Present(as_of_ms=2), Removed(proof=Proof.METADATA_LOG, as_of_ms=3),
    ]),
}  # fmt: skip


def of(hint: Any) -> st.SearchStrategy[Any]:
    """Return values of an annotation, every field drawn."""
    if hint in PLAIN:
        return PLAIN[hint]
    inner = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return st.one_of(*map(of, inner))
    if get_origin(hint) is frozenset:
        return st.frozensets(of(inner[0]), max_size=3)
    if get_origin(hint) is tuple:
        if inner[-1] is Ellipsis:
            return st.lists(of(inner[0]), max_size=3).map(tuple)
        return st.tuples(*map(of, inner))
    if issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    hints = get_type_hints(hint)
    return st.builds(hint, **{name: of(hints[name]) for name in {key.partition(".")[0] for key in keys_of(hint)}})


def is_one(kind: type) -> bool:
    """Whether a type is a request of its own, and not what all of them have in common."""
    return not getattr(kind, "_is_protocol", False)


def requests() -> dict[str, type]:
    """Return every type that a module of ``service`` calls a request."""
    found = {}
    for one in pkgutil.walk_packages(logdir.service.__path__, "logdir.service."):
        module = importlib.import_module(one.name)
        for name, kind in vars(module).items():
            if (
                name.endswith("Request")
                and isinstance(kind, type)
                and kind.__module__ == module.__name__
                and is_one(kind)
            ):
                found[name] = kind
    return found


REQUESTS = requests()


def test_the_requests_are_found() -> None:
    assert REQUESTS.keys() >= {"StageRequest", "PurgeRequest", "SourceRequest", "InitRequest", "MetadataDumpRequest"}
    assert len(REQUESTS) >= 13


@pytest.mark.parametrize("kind", [*REQUESTS.values(), ItemResult], ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_there_and_back(kind: type, data: st.DataObject) -> None:
    value = data.draw(of(kind))
    text = json.dumps(to_json(value))
    assert from_json(kind, json.loads(text)) == value


class Color(Enum):
    RED = "red"
    ONE = 1


class Pair(NamedTuple):
    left: int
    right: str = "r"


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """One field of each form."""

    text: str
    number: int
    flag: bool
    maybe: int | None
    color: Color
    topic_id: TopicId
    evidence: Evidence
    many: tuple[Pair, ...]
    two: tuple[str, int]
    names: frozenset[str]
    class_name: str = field(default="c", metadata={"json": "class"})
    hidden: object = field(default=None, metadata={"json": None})


VALUE = Everything(
    text="t",
    number=7,
    flag=True,
    maybe=None,
    color=Color.RED,
    topic_id=TopicId(bytes(15) + b"\x07"),
    evidence=Removed(proof=Proof.METADATA_LOG, as_of_ms=9),
    many=(Pair(1), Pair(2, "s")),
    two=("a", 1),
    names=frozenset({"b", "a"}),
    hidden=7,
)
FORM: dict[str, object] = {
    "text": "t",
    "number": 7,
    "flag": True,
    "maybe": None,
    "color": "red",
    "topic_id": "AAAAAAAAAAAAAAAAAAAABw",
    "evidence": {"kind": "removed", "proof": "metadata-log", "as_of_ms": 9},
    "many": [{"left": 1, "right": "r"}, {"left": 2, "right": "s"}],
    "two": ["a", 1],
    "names": ["a", "b"],
    "class": "c",
}


def test_the_form_of_each_type() -> None:
    assert to_json(VALUE) == FORM
    assert from_json(Everything, FORM) == dataclasses.replace(VALUE, hidden=None)


@pytest.mark.parametrize(
    ("evidence", "form"),
    [
        (Unknown(), {"kind": "unknown", "proof": None, "as_of_ms": None}),
        (Absent(as_of_ms=1), {"kind": "absent", "proof": None, "as_of_ms": 1}),
        (Present(as_of_ms=1), {"kind": "present", "proof": None, "as_of_ms": 1}),
    ],
)
def test_evidence_is_as_in_a_marker(evidence: Evidence, form: dict[str, object]) -> None:
    assert to_json(evidence) == form


def test_a_default_need_not_be_named() -> None:
    assert from_json(Pair, {"left": 1}) == Pair(1)
    assert from_json(Selection, {"selector": None}) == Selection(None)
    assert from_json(SourceRequest, {}) == SourceRequest()


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"text": 7}, "Everything.text: expected a text, found 7;"),
        ({"text": None}, "Everything.text: expected a text, found null;"),
        ({"text": ""}, None),
        ({"number": True}, "Everything.number: expected a whole number, found true;"),
        ({"number": 1.0}, "Everything.number: expected a whole number, found 1.0;"),
        ({"flag": 1}, "Everything.flag: expected true or false, found 1;"),
        ({"maybe": "1"}, "Everything.maybe: expected a whole number, found 1;"),
        ({"color": "blue"}, "Everything.color: expected one of red, 1, found blue;"),
        ({"color": True}, "Everything.color: expected one of red, 1, found true;"),
        ({"color": ["red"]}, "Everything.color: expected one of red, 1, found a list;"),
        ({"topic_id": 7}, "Everything.topic_id: expected an id, found 7;"),
        ({"many": {}}, "Everything.many: expected a list, found an object;"),
        ({"many": [{"left": 1}, {}]}, "Everything.many[1].left: expected a value, found none;"),
        ({"many": [{"left": 1, "up": 1}]}, "Everything.many[0]: expected only the keys left, right, found up;"),
        ({"many": [[1, "r"]]}, "Everything.many[0]: expected an object, found a list;"),
        ({"two": ["a"]}, "Everything.two: expected a list of 2, found a list of 1;"),
        ({"two": ["a", "b"]}, "Everything.two[1]: expected a whole number, found b;"),
        ({"names": "ab"}, "Everything.names: expected a list, found ab;"),
        ({"evidence": {"kind": "removed", "proof": None, "as_of_ms": 1}}, "Everything.evidence: expected evidence"),
        ({"evidence": {"kind": "absent", "proof": "operator", "as_of_ms": 1}}, "Everything.evidence: expected evide"),
        ({"evidence": {"kind": "absent", "proof": None, "as_of_ms": None}}, "Everything.evidence: expected evidence"),
        ({"evidence": {"kind": "unknown", "proof": None, "as_of_ms": 1}}, "Everything.evidence: expected evidence"),
        ({"evidence": {"kind": "gone", "proof": None, "as_of_ms": 1}}, "Everything.evidence: expected evidence as"),
        ({"hidden": 1}, "Everything: expected only the keys text, number, flag,"),
        ({"class_name": "c"}, "Everything: expected only the keys text, number, flag,"),
        ({"a\nb": 1}, "found a\\nb; docs/json.md lists the keys"),
    ],
)
def test_what_does_not_fit_is_one_line(changed: dict[str, object], line: str | None) -> None:
    if line is None:
        assert from_json(Everything, FORM | changed).text == ""
        return
    with pytest.raises(MalformedMessageError) as caught:
        from_json(Everything, FORM | changed)
    text = caught.value.problem().line()
    assert line in text
    assert "\n" not in text


def test_a_key_that_is_missing_is_one_line() -> None:
    with pytest.raises(MalformedMessageError, match=r"ItemResult\.state: expected a value, found none"):
        from_json(ItemResult, {"log_dir": "/d", "path": "p"})


def test_an_id_that_is_none_names_where_it_stands() -> None:
    form = {"log_dir": "/d", "path": "p", "state": "done", "topic_id": "x"}
    with pytest.raises(Exception, match=r"ItemResult\.topic_id"):
        from_json(ItemResult, form)


def test_what_has_no_form_is_a_fault_of_ours() -> None:
    @dataclass(frozen=True)
    class Hidden:
        kept: int = field(metadata={"json": None})

    with pytest.raises(TypeError, match="set"):
        to_json({1})
    with pytest.raises(TypeError, match="Hidden"):
        from_json(Hidden, {})
    with pytest.raises(TypeError, match="complex"):
        from_json(complex, 1)


def test_a_problem_and_an_item() -> None:
    problem = Problem("s", "/d", "e", "f")
    assert to_json(problem) == {"slug": "s", "path": "/d", "expected": "e", "found": "f", "fix": ""}
    item = ItemResult(log_dir="/d", path="p", state=ItemState.DONE)
    assert to_json((item,))[0]["state"] == "done"  # type: ignore[index]  # a list of objects
    assert to_json(Reason.STRAY) == "stray"
    assert to_json({"a": [1.5, frozenset({2})]}) == {"a": [1.5, [2]]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Of:
    """Something that is said of a replica, or of none."""

    path: str
    ref: ReplicaRef | None
    count: int


def test_the_keys_of_a_ref_stand_in_the_object_that_holds_it() -> None:
    ref = ReplicaRef(topic="pay", topic_id=TopicId.parse("eXOy6xj-Q8ivrWAlsZGnkw"), partition=3)
    known = to_json(Of(path="a", ref=ref, count=2))
    assert known == {
        "path": "a", "topic": "pay", "topic_id": "eXOy6xj-Q8ivrWAlsZGnkw", "partition": 3, "count": 2
    }  # fmt: skip
    assert list(known) == ["path", "topic", "topic_id", "partition", "count"]
    assert to_json(Of(path="a", ref=None, count=2)) == {
        "path": "a", "topic": None, "topic_id": None, "partition": None, "count": 2
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sure:
    """Something that is said of a replica."""

    ref: ReplicaRef


@given(of(Of))
def test_a_ref_comes_back_as_it_was(value: Of) -> None:
    assert from_json(Of, to_json(value)) == value


@pytest.mark.parametrize("kind", [Of, Sure])
@pytest.mark.parametrize("partition", ["3", None])
def test_a_ref_without_a_partition_is_refused(kind: type, partition: object) -> None:
    form = {"path": "a", "count": 2} if kind is Of else {}
    with pytest.raises(MalformedMessageError, match=r"partition: expected a whole number"):
        from_json(kind, form | {"topic": "pay", "topic_id": None, "partition": partition})


def test_a_ref_may_be_left_out_only_where_there_may_be_none() -> None:
    assert from_json(Of, {"path": "a", "count": 2}) == Of(path="a", ref=None, count=2)
    with pytest.raises(MalformedMessageError, match=r"Sure\.partition"):
        from_json(Sure, {})
