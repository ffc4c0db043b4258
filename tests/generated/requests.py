"""The part of docs/json.md about requests: the keys of each, as the dataclasses have them, and an example."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, NewType, Union, get_args, get_origin, get_type_hints

from logdir.daemon.socket.routes import CHANGES, path_of, spec_named
from logdir.decide.staged.deadline import DelayPolicy
from logdir.ids import Uuid
from logdir.service.batch.purge_recheck import PurgeOverrides
from logdir.service.cluster.source import SourceRequest
from logdir.service.reading.questions import READINGS
from logdir.service.reconcile import Policy
from logdir.service.report.json_form import keys_of
from logdir.service.report.staged import Selection
from tests.generated.fields import ABSENT, default_of, meanings

PAGE: Final = Path(__file__).parents[2] / "docs" / "json.md"
TITLE: Final = "Requests over the control socket"
FIRST: Final = "\n### "
REQUESTS: Final[dict[str, type]] = {
    **{name: spec_named(name).request for name in CHANGES},
    **{name: reading.request for name, reading in READINGS.items()},
}
"""The type of the request of each use case."""
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
    "staged ls": {"selector": "payments"},
    "strays": {"protected": ["__*", "payments"]},
    "describe": {"selector": "payments-0", "disks": ["/data/1"]},
    "inventory": {"is_exact": True},
    "layout status": {},
}


class Row(NamedTuple):
    """One key of a request, or of an object in one."""

    key: str
    type: str
    default: str
    meaning: str

    def __str__(self) -> str:
        return f"| `{self.key}` | {self.type} | {self.default} | {self.meaning} |"


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
    rows = rows_of(kind)
    if not rows:
        return "It has no key."
    return "\n".join(["| key | type | default | meaning |\n|---|---|---|---|", *map(str, rows)])


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


def write() -> Path:
    """Write the part of the page that comes from the code; return the path of the page."""
    before, _, after = split_page()
    PAGE.write_text(before + generated() + after, "utf-8")
    return PAGE
