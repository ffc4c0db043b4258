"""Requests and documents that can never be what they were: each damage takes what every one of them must have.

A random change alone will not do: it may leave a request that is still one, and then its change is right. So what was
changed at random ends as bytes that are no JSON whatever else they are (a byte that no JSON has, or an end that is cut
off), and what stays JSON loses a key, a type or a range that ``docs/json.md`` or design §4 says it must have.

Not here: sending them and what must hold (``test_damaged``).
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from tests.mutation import mutations

_NEVER: Final = (b"\x01", b"\xff")
"""Bytes that no JSON has, inside a text or outside: a control character, and one that UTF-8 does not have."""
_PIECES: Final = (b"{", b"}", b'"', b",", b"\r\n", b"\r\n\r\n", b" ", b"null", b"true", b"[[[[", b"\x00", b"\\u0000")
HOSTILE_TEXTS: Final = ("", "\0", "\ud800", "a" * 70_000, "../../..", "zz\n", "*", "[", "pay-", "\u202e", "/", "-1")
HOSTILE_NUMBERS: Final = (-1, 0, 2**31, 2**63, 10**400, -(10**400))


class Damage(Enum):
    """How a request is damaged; only ``CUT`` is not sent whole."""

    CUT = "cut off"
    BYTES = "a body that is no JSON"
    HEAD = "a damaged head"
    SHAPE = "another object"
    TWICE = "a key that stands twice"
    HOSTILE = "hostile values, planned"
    NOTHING = "about nothing that is there"
    STATUS = "a damaged question"


_WEIGHTS: Final = {
    Damage.CUT: 12, Damage.BYTES: 25, Damage.HEAD: 25, Damage.SHAPE: 20, Damage.TWICE: 2, Damage.HOSTILE: 8,
    Damage.NOTHING: 3, Damage.STATUS: 5,
}  # fmt: skip


class Whole(NamedTuple):
    """A request that would change something."""

    name: str
    """Of the use case, as in its path."""
    request: dict[str, Any]
    needed: str | None
    """A key without which it is none; ``None``: it needs no key."""
    about: tuple[str, ...]
    """Keys down to the text that says what it is about."""

    def text(self, *, is_applied: bool = True) -> str:
        return json.dumps({"apply": is_applied, "request": self.request})

    def http(self, *, is_applied: bool = True) -> bytes:
        return http(self.name, self.text(is_applied=is_applied).encode())


class Damaged(NamedTuple):
    """What is sent."""

    data: bytes
    damage: Damage
    name: str


def head(name: str, size: int) -> bytes:
    return f"POST /v1/use-cases/{name} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode()


def http(name: str, body: bytes) -> bytes:
    return head(name, len(body)) + body


def damaged_requests(wholes: Sequence[Whole], count: int, seed: int) -> Iterator[Damaged]:
    """Yield damaged requests, of every kind in turn."""
    draw = random.Random(seed)
    for number in range(count):
        whole = wholes[number % len(wholes)]
        (damage,) = draw.choices(tuple(_WEIGHTS), tuple(_WEIGHTS.values()))
        if damage is Damage.NOTHING and not whole.about:
            damage = Damage.SHAPE
        yield Damaged(_request(draw, damage, whole), damage, whole.name)


def _request(draw: random.Random, damage: Damage, whole: Whole) -> bytes:
    data = whole.http()
    match damage:
        case Damage.CUT:
            return data[: draw.randrange(len(data))]
        case Damage.BYTES:
            return http(whole.name, no_json(draw, whole.text().encode()))
        case Damage.HEAD:
            body = no_json(draw, whole.text().encode())
            return _mutated(draw, head(whole.name, len(body))) + body
        case Damage.SHAPE:
            return http(whole.name, json.dumps(_misshapen(draw, whole)).encode())
        case Damage.TWICE:
            return http(whole.name, twice(draw, whole.text()).encode())
        case Damage.HOSTILE:
            asked = copy.deepcopy(whole.request)
            for _ in range(draw.randint(1, 3)):
                _poison(draw, asked)
            return http(whole.name, json.dumps({"apply": False, "request": asked}).encode())
        case Damage.NOTHING:
            value = {"apply": True, "request": copy.deepcopy(whole.request)}
            *above, last = whole.about
            place: Any = value["request"]
            for key in above:
                place = place[key]
            place[last] = _nothing(draw, place[last])
            return http(whole.name, json.dumps(value).encode())
        case Damage.STATUS:
            return _mutated(draw, b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n")


def _nothing(draw: random.Random, text: str) -> str:
    """Return a name like another one, of something that is nowhere."""
    word = "zz" + "".join(draw.choices("abcdef", k=8))
    return f"{text}.{word}" if "/" in text else word


def _mutated(draw: random.Random, data: bytes) -> bytes:
    """Return a damaged copy of which something is left to send."""
    while True:
        (found,) = mutations([data], _PIECES, 1, draw.randrange(1 << 30))
        if found:
            return found


def no_json(draw: random.Random, text: bytes) -> bytes:
    """Return a text changed at random that is no JSON; ``text``: of one object, without space around it."""
    if draw.random() < 0.3:
        return text[: draw.randrange(len(text))]
    data = bytearray(_mutated(draw, text))
    at = draw.randint(0, len(data))
    data[at:at] = draw.choice(_NEVER)
    return bytes(data)


def twice(draw: random.Random, text: str) -> str:
    """Return the text of an object in which a key of the outermost one stands twice, with the same value or another."""
    key = draw.choice(tuple(json.loads(text)))
    value = draw.choice(("true", "false", "{}", "1", json.dumps(json.loads(text)[key])))
    return f'{{"{key}": {value}, {text[1:]}'


_Place = tuple[Any, Any]
"""An object or list, and the key or index of a value in it."""


def places(value: Any) -> list[_Place]:
    """Return the place of every value inside a value."""
    items: Sequence[tuple[Any, Any]] = (
        tuple(value.items()) if isinstance(value, dict) else tuple(enumerate(value)) if isinstance(value, list) else ()
    )
    return [place for key, one in items for place in ((value, key), *places(one))]


def _misshapen(draw: random.Random, whole: Whole) -> object:
    value: dict[str, Any] = {"apply": True, "request": copy.deepcopy(whole.request)}
    match draw.randrange(7):
        case 0:
            value["apply"] = draw.choice((1, 0, "true", None, [], {}, 1.0))
        case 1:
            del value[draw.choice(("apply", "request"))]
        case 2:
            value["request"] = draw.choice((None, [], "stage", 7, True, [value["request"]]))
        case 3:
            value[draw.choice(("aply", "requests", "Apply", ""))] = draw.choice((True, None, {}))
        case 4:
            return draw.choice(([value], None, 7, "stage", True, [], {}, value["request"]))
        case 5 if whole.needed is not None:
            del value["request"][whole.needed]
        case _:
            _other_type(draw, value["request"])
    return value


def _other_type(draw: random.Random, request: dict[str, Any]) -> None:
    """Give one value a type that no value at its place may have, or an object a key that it has not."""
    objects = [request, *(one for place, key in places(request) if isinstance(one := place[key], dict))]
    found = places(request)
    if not found or draw.random() < 0.3:
        draw.choice(objects)[f"x{draw.randrange(100)}"] = draw.choice((None, True, "a", 1, [], {}))
        return
    place, key = draw.choice(found)
    wrong: Mapping[type, tuple[Any, ...]] = {
        str: (7, True, 1.5, {"x": 1}, ["a"]),
        bool: (1, 0, "true", {"x": 1}, []),
        int: ("1", 1.5, True, {"x": 1}, [1]),
        list: ("a", 7, True, {"x": 1}, [{"x": 1}]),
        dict: ("a", 7, True, [1]),
        type(None): ({"x": 1}, 1.5, [{"x": 1}]),
    }
    place[key] = draw.choice(wrong[type(place[key])])


def _poison(draw: random.Random, request: dict[str, Any]) -> None:
    """Give one text or number of a request a value that fits its type and makes no sense."""
    found = [(place, key) for place, key in places(request) if type(place[key]) in (str, int, type(None))]
    if not found:
        return
    place, key = draw.choice(found)
    is_number = type(place[key]) is int or (place[key] is None and draw.random() < 0.3)
    place[key] = draw.choice(HOSTILE_NUMBERS if is_number else HOSTILE_TEXTS)


def damaged_documents(
    wholes: Sequence[dict[str, Any]], frames: Sequence[dict[str, Any]], count: int, seed: int
) -> Iterator[bytes]:
    """Yield damaged request documents.

    Args:
        wholes: Documents with ``body``, each of which would be followed and would stage something.
        frames: Documents with ``hex``.
        count: How many.
        seed: What they are drawn with.
    """
    draw = random.Random(seed)
    for number in range(count):
        whole = copy.deepcopy(wholes[number % len(wholes)])
        match draw.randrange(20):
            case 0 | 1 | 2 | 3:
                text = json.dumps(whole).encode()
                data = text[: draw.randrange(len(text))]
            case 4 | 5 | 6 | 7 | 8 | 9:
                data = no_json(draw, json.dumps(whole).encode())
            case 10:
                data = twice(draw, json.dumps(whole)).encode()
            case 11 | 12 | 13 | 14 if frames:
                framed = dict(draw.choice(frames))
                text_of = framed["hex"]
                at = draw.randrange(0, len(text_of), 2)
                framed["hex"] = draw.choice((text_of[:at], f"{text_of}00", text_of[:-1], f"{text_of[:at]}g0", "", 7))
                data = json.dumps(framed).encode()
            case _:
                draw.choice(_LOSSES)(draw, whole)
                data = json.dumps(whole).encode()
        if number % 100 == 99:  # Too large to be read before its turn: it is refused when it would be followed.
            data += b" " * (1 << 20)
        yield data


def _without(draw: random.Random, whole: dict[str, Any]) -> None:
    del whole[draw.choice(("document", "api", "version", "form", "sequence", "partitions", "body"))]


def _envelope(draw: random.Random, whole: dict[str, Any]) -> None:
    key, values = draw.choice(tuple(_WRONG.items()))
    whole[key] = draw.choice(values)


def _count(draw: random.Random, whole: dict[str, Any]) -> None:
    whole["partitions"] += draw.choice((-1, 1, 100))


def _both(draw: random.Random, whole: dict[str, Any]) -> None:
    whole["hex"] = draw.choice(("", "00"))


def _body(draw: random.Random, whole: dict[str, Any]) -> None:
    body = whole["body"]
    if draw.random() < 0.5:
        del body[draw.choice(("controllerEpoch", "topicStates"))]
    else:
        body["controllerEpoch"] = draw.choice((-1, 2**31, "5", None, True, 5.0))


def _topic(draw: random.Random, whole: dict[str, Any]) -> None:
    topic = draw.choice(whole["body"]["topicStates"])
    # The KIP's StopReplica names ids alone.
    key = draw.choice([key for key in ("topicName", "topicId", "partitionStates") if key in topic])
    if draw.random() < 0.4:
        del topic[key]
        return
    wrong = {
        "topicName": ("", "a/b", "..", "a" * 250, 5, None, "p\u0000y"),
        "topicId": ("", "x", 5, None, topic.get("topicId", "")[:-1], f"{topic.get('topicId', '')}==", "!" * 22),
        "partitionStates": (None, 5, {}, "", [None], [5]),
    }
    topic[key] = draw.choice(wrong[key])


def _partition(draw: random.Random, whole: dict[str, Any]) -> None:
    state = draw.choice(draw.choice(whole["body"]["topicStates"])["partitionStates"])
    keys = ("partitionIndex", "leaderEpoch", "leader", "isr", "replicas", "deletePartition")
    key = draw.choice([key for key in keys if key in state])
    if draw.random() < 0.4:
        del state[key]
        return
    wrong: dict[type, tuple[Any, ...]] = {
        bool: (1, 0, "true", None),
        int: (-3, 2**31, "0", None, True, 1.5),
        list: (None, 5, "1", [-1], [1, 1], [1.5], ["1"], [2**31], {}),
    }
    state[key] = draw.choice(wrong[type(state[key])])


_WRONG: Final[dict[str, tuple[Any, ...]]] = {
    "document": (0, 2, "1", None, True, 1.0),
    "api": ("Fetch", "", None, 4, "leaderAndIsr"),
    "version": (-1, 8, 99, "7", None, 7.0, 2**40),
    "form": ("", "shiped", None, 1),
    "sequence": (0, -3, "1", None, 1.5, True, 2**63),
    "partitions": ("1", None, True, -1, 1.0),
    "body": ([], None, "", 5, [{}], {}),
}
_LOSSES: Final[tuple[Callable[[random.Random, dict[str, Any]], None], ...]] = (
    _without, _envelope, _count, _both, _body, _topic, _partition,
)  # fmt: skip
