"""docs/json.md lists every request of the control socket: its keys as the dataclasses have them, and an example.

What stands below the first heading of its section comes from the fields and their docstrings;
``python -m tests.tools.test_requests_documented`` writes it again, to be read before it is committed.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import textwrap
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, NewType, Union, get_args, get_origin, get_type_hints

import pytest

from logdir.daemon.release import RELEASE
from logdir.daemon.socket.server import MOST_BYTES, path_of
from logdir.decide.staged.deadline import DelayPolicy
from logdir.errors import MalformedMessageError
from logdir.ids import Uuid
from logdir.service.batch.purge_recheck import PurgeOverrides
from logdir.service.batch.use_cases import NAMES, NEED_CLOSED, spec_of
from logdir.service.cluster.source import SourceRequest
from logdir.service.reconcile import Policy
from logdir.service.report.json_form import from_json, keys_of, to_json
from logdir.service.report.staged import Selection
from tests.logdir.daemon.rig import Daemon, ask, daemon, until

PAGE: Final = Path(__file__).parents[2] / "docs" / "json.md"
TITLE: Final = "Requests over the control socket"
FIRST: Final = "\n### "
REQUESTS: Final = {
    name: (RELEASE if name == RELEASE.name else spec_of(name)).request for name in (*NAMES, RELEASE.name)
}
OBJECTS: Final = {
    SourceRequest: "source",
    Selection: "selection",
    DelayPolicy: "delays",
    PurgeOverrides: "overrides",
    Policy: "policy",
}
"""How the page calls the objects in requests, in its order; a request has no other."""
PLAIN: Final[dict[object, str]] = {str: "text", int: "number", bool: "flag"}
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "stage": {
        "source": {"uri": "metadata:"},
        "selector": "payments-0",
        "delays": {"default_ms": 14_400_000},
        "is_held": False,
        "protected": ["__*"],
        "is_even_over_limit": False,
        "is_even_if_last": False,
        "is_even_if_unknown": False,
    },
    "capture": {"selector": None, "delays": {"patterns": [["payments-*", 86_400_000]]}, "is_held": False},
    "staged restore": {
        "source": {"uri": "metadata:", "high_watermark": 4711, "leader_epoch": 3},
        "selection": {"selector": "payments-0", "disk": "/data/1"},
        "is_even_if_unknown": False,
    },
    "staged adopt": {
        "source": {"uri": "cluster:/etc/kafka/client.properties"},
        "selection": {"selector": "MkU3OEVBNTcwNTJENDM2Qg"},
        "as_topic": "payments",
        "listings": ["/root/broker-2.json"],
    },
    "staged hold": {"selector": "payments", "names": []},
    "staged export": {"selection": {"selector": "payments-0"}, "output": "/mnt/copies"},
    "staged purge": {
        "source": {},
        "selection": {"selector": "payments-0"},
        "overrides": {"is_even_if_early": True},
        "bytes_per_second": 16_777_216,
    },
    "reconcile": {"source": {"uri": "metadata:"}, "policy": {"percent": 5}},
    "handover": {"skipped": ["/data/2"]},
    "layout": {"verb": "rollback"},
    "disk release": {"log_dir": "/data/1"},
}
ABSENT: Final = object()


class Row(NamedTuple):
    """One key of a request, or of an object in one."""

    key: str
    type: str
    default: str
    meaning: str

    def __str__(self) -> str:
        return f"| `{self.key}` | {self.type} | {self.default} | {self.meaning} |"


def meanings(kind: type) -> dict[str, str]:
    """Return the docstring of every field of a class, as the page has it."""
    (found,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(found, ast.ClassDef)
    texts = {}
    for before, after in zip(found.body, found.body[1:], strict=False):
        match before, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                text = " ".join(text.split()).removesuffix(".").replace("``", "`")
                text = text.replace("`None`", "`null`")
                texts[name] = text[0].lower() + text[1:] if text[1].islower() else text
    return texts


def type_of(hint: Any) -> str:
    """Return the words of the page for an annotation."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (one,) = (one for one in inner if one is not NoneType)
        return f"{type_of(one)} (or `null`)"
    if isinstance(hint, NewType):
        return type_of(hint.__supertype__)
    if origin is tuple and inner[-1] is Ellipsis:
        return f"list of {type_of(inner[0])}"
    if origin is tuple:
        return f"[{', '.join(map(type_of, inner))}]"
    if hint in PLAIN:
        return PLAIN[hint]
    if issubclass(hint, Enum):
        return f"code: {', '.join(f'`{one.value}`' for one in hint)}"
    return "id" if issubclass(hint, Uuid) else f"object: {OBJECTS[hint]}"


def default_of(kind: Any, name: str) -> object:
    """Return the default of a field in JSON; ``ABSENT``: it has none."""
    if not dataclasses.is_dataclass(kind):
        defaults: dict[str, object] = kind._field_defaults
        return to_json(defaults[name]) if name in defaults else ABSENT
    (field,) = (one for one in dataclasses.fields(kind) if one.name == name)
    if field.default is not dataclasses.MISSING:
        return to_json(field.default)
    return ABSENT if field.default_factory is dataclasses.MISSING else to_json(field.default_factory())


def rows_of(kind: type) -> list[Row]:
    """Return what the page says of each key that a request, or an object in it, may have."""
    hints, texts = get_type_hints(kind), meanings(kind)
    rows = []
    for name, key in keys_of(kind).items():
        default = default_of(kind, name)
        shown = "required" if default is ABSENT else f"`{json.dumps(default, separators=(',', ':'))}`"
        rows.append(Row(key, type_of(hints[name]), shown, texts[name]))
    return rows


def table(kind: type) -> str:
    head = "| key | type | default | meaning |\n|---|---|---|---|"
    return "\n".join([head, *map(str, rows_of(kind))])


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def generated() -> str:
    """Return the part of the section that comes from the dataclasses and the examples."""
    parts = []
    for name, kind in REQUESTS.items():
        body = compact({"apply": False, "request": EXAMPLES[name]})
        parts.append(f"### {path_of(name)}\n\n`{kind.__name__}`:\n\n{table(kind)}\n\n```json\n{body}\n```\n")
    parts.append("### Objects in requests\n")
    parts += [f"{OBJECTS[kind].capitalize()} (`{kind.__name__}`):\n\n{table(kind)}\n" for kind in OBJECTS]
    return "\n".join(parts)


def split_page() -> tuple[str, str, str]:
    """Return the page up to the generated part, that part, and what follows it."""
    before, _, rest = PAGE.read_text("utf-8").partition(f"\n## {TITLE}\n")
    words, heading, _ = rest.partition(FIRST)
    found, end, after = rest.removeprefix(words).removeprefix("\n").partition("\n## ")
    assert heading
    return f"{before}\n## {TITLE}\n{words}\n", found, end + after


def code_blocks(language: str) -> list[str]:
    """Return the code in the prose of the section."""
    return re.findall(rf"```{language}\n(.*?)\n```", split_page()[0].partition(f"\n## {TITLE}\n")[2], re.DOTALL)


def test_every_request_stands_on_the_page_as_the_dataclasses_have_it() -> None:
    assert split_page()[1] == generated(), "python -m tests.tools.test_requests_documented writes it again"


def test_types_that_differ_are_told_apart_on_the_page() -> None:
    hints = (tuple[str, ...], str, int, bool, str | None, tuple[tuple[str, int], ...], Policy, Policy | None)
    assert len(set(map(type_of, hints))) == len(hints)
    with pytest.raises(KeyError):  # An object that the page does not have.
        type_of(Row)


def test_every_object_of_a_request_is_on_the_page_and_no_other() -> None:
    def inside(hint: Any) -> set[type]:
        found = set().union(*map(inside, get_args(hint)))
        if hint in OBJECTS or hint in REQUESTS.values():
            found |= {hint} & OBJECTS.keys()
            found |= set().union(*(inside(get_type_hints(hint)[name]) for name in keys_of(hint)))
        return found

    assert set().union(*map(inside, REQUESTS.values())) == OBJECTS.keys()


@pytest.mark.parametrize("name", REQUESTS)
def test_an_example_is_a_valid_request(name: str) -> None:
    request: Any = from_json(REQUESTS[name], EXAMPLES[name])
    if hasattr(request, "require_valid"):
        request.require_valid()


def required(name: str) -> list[str]:
    return [row.key for row in rows_of(REQUESTS[name]) if row.default == "required"]


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        *((name, "selektor", "payments") for name in REQUESTS),
        *((name, next(iter(EXAMPLES[name])), 1.5) for name in REQUESTS),
        *((name, key, ABSENT) for name in REQUESTS for key in required(name)),
    ],
)
def test_a_key_that_does_not_fit_is_refused(name: str, key: str, value: object) -> None:
    body = {one: there for one, there in (EXAMPLES[name] | {key: value}).items() if there is not ABSENT}
    with pytest.raises(MalformedMessageError, match=f"{key}.*; docs/json.md lists the keys"):
        from_json(REQUESTS[name], body)


def test_the_prose_has_the_figures_and_the_names_of_the_code() -> None:
    words = split_page()[0].partition(f"\n## {TITLE}\n")[2]
    assert MOST_BYTES == 64 << 20
    assert "at most 64 MiB" in words
    assert all(f"`{name}`" in words for name in NEED_CLOSED)


def body_of(line: str) -> tuple[str, bytes]:
    """Return the path and the body of a line with ``curl`` on the page."""
    match = re.fullmatch(r"curl --unix-socket \S+ http://localhost(\S+) \\\n  -d '(.*)'", line)
    assert match is not None, line
    return match[1], match[2].encode()


def answer_of(one: Daemon, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    found, _, answer = ask(one.socket, head.encode() + body).partition(b"\r\n\r\n")
    value: dict[str, Any] = json.loads(answer)
    return int(found.split(b" ")[1]), value


def test_a_daemon_answers_the_examples_as_the_page_says(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        one.delete(one.make("payments"))
        until("it is captured", lambda: one.status().captured == 1)
        said, refused = (answer_of(one, *body_of(line)) for line in code_blocks("sh"))
        shown = [json.loads(text.replace("/data/1", str(one.log_dirs[0]))) for text in code_blocks("json")]
        assert [said[0], refused[0]] == [200, 400]
        assert [said[1], refused[1]] == shown
        for name, request in EXAMPLES.items():
            body = compact({"apply": False, "request": request}).replace("/data/", f"{tmp_path}/d")
            status, answer = answer_of(one, path_of(name), body.encode())
            assert (status, answer["command"]) == (200, name), answer
            assert not {"malformed-message", "internal-error"} & {problem["slug"] for problem in answer["problems"]}
        assert len(one.staged()) == 1


def main() -> None:
    """Write the part of the page that comes from the code."""
    before, _, after = split_page()
    PAGE.write_text(before + generated() + after, "utf-8")


if __name__ == "__main__":
    main()
