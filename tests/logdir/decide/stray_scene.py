"""What strays are judged with: a log that names two topics, directories that brokers renamed, and the view of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from logdir.cluster import request_document
from logdir.cluster.image import AbsenceMeaning, Image, Source
from logdir.cluster.request_document import RequestDocument
from logdir.decide.strays import Stray, StrayView, view_strays
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts, Replica
from tests.logdir.cluster.log_dir import LogDir, partition, register, remove, topic
from tests.reconcile.disk import CLUSTER, HOUR_MS, NODE, WALL_MS, live
from tests.reconcile.scene import A, B, Z, later, raw
from tests.reconcile.stories import request, up_to
from tests.reconcile.universe import BOTH, document, listed

UNIQUE = "620e1db281fd429bb71e0c5e2c72578c"


def a_log(folder: Path) -> LogDir:
    """Return a log in which topics ``a`` and ``b`` are this node's, up to an hour before now."""
    made = LogDir(folder / "__cluster_metadata-0")
    made.time_ms = WALL_MS - HOUR_MS
    made.lead(1)
    made.append(register(1), register(2), register(3), topic("z", raw(Z)))
    made.append(*(partition(raw(Z), number, (1, 2)) for number in range(20)))
    for name, topic_id in (("a", A), ("b", B)):
        made.append(topic(name, raw(topic_id)), *(partition(raw(topic_id), number, (1, 2)) for number in BOTH))
    return made


def renamed(kind: Kind, name: str, topic_id: str | None, number: int = 0, **changed: Any) -> Replica:
    """A directory that a broker gave a suffix."""
    one = live(name, topic_id, number)
    return replace(one, kind=kind, path=f"{name}-{number}.{UNIQUE}-{kind.value}", **changed)


def view(image: Image, *facts: LogDirFacts, **changed: Any) -> StrayView:
    return view_strays(request(image, facts, **changed), facts)


def only(image: Image, *facts: LogDirFacts, **changed: Any) -> Stray:
    (stray,) = view(image, *facts, **changed).strays
    return stray


def said(stray: Stray) -> tuple[str, str, str, str | None]:
    """State, what is said, the kind of evidence, and the reason."""
    reason = None if stray.reason is None else stray.reason.value
    return stray.state.value, stray.assignment.value, type(stray.evidence).__name__, reason


def gone(log: LogDir, *topic_ids: str) -> Image:
    """The removals of topics are seen, and time goes by."""
    log.append(*(remove(raw(one)) for one in topic_ids))
    later(log)
    return up_to(log)


def request_image(*, silent: bool = True) -> Image:
    """What a FULL request says that lists nothing; of an INCREMENTAL one silence says nothing."""
    base = Image(source=Source.REQUESTS, origin="r", node_id=NODE, cluster_id=CLUSTER, as_of_ms=WALL_MS)
    return replace(base, absence_meaning=AbsenceMeaning.REMOVED if silent else AbsenceMeaning.NOTHING)


def full_of(name: str, topic_id: str) -> RequestDocument:
    """A FULL request that lists one partition."""
    return request_document.parse(json.dumps(document(listed(**{name: (topic_id, (0,))}), sequence=1, type=2)).encode())
