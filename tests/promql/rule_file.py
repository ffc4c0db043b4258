"""Rule files of Prometheus: read, with every key and name checked.

Spec: Prometheus, "Recording rules", "Alerting rules".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from logdir.formats.strict_yaml import load_document
from tests.promql.grammar import parse
from tests.promql.kinds import Shape, shape_of
from tests.promql.syntax import Expr
from tests.promql.tokens import duration_ms
from tests.promql.values import NAME, PromqlError

_METRIC = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GROUP_KEYS = frozenset({"name", "interval", "query_offset", "limit", "labels", "rules"})
_ALERT_KEYS = frozenset({"alert", "expr", "for", "keep_firing_for", "labels", "annotations"})
_RECORD_KEYS = frozenset({"record", "expr", "labels"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A recording rule, or an alerting one."""

    name: str
    is_alert: bool
    text: str
    """Its expression as it is written."""
    expr: Expr
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    for_ms: int
    keep_firing_for_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rules that are evaluated one after the other, at the same instant."""

    name: str
    interval_ms: int | None
    """``None``: as the configuration of Prometheus says."""
    rules: tuple[Rule, ...]


def read_rules(data: bytes, file: str) -> tuple[Group, ...]:
    """Return the groups of a rule file.

    Raises:
        PromqlError: Prometheus would refuse it.
        ConfigError: it is no YAML, or repeats a key.
    """
    document = _mapping(load_document(data, file, slug="rules"), file)
    _require_keys(document, {"groups"}, file)
    groups = tuple(_group(one) for one in _list(document["groups"], "groups"))
    if len({one.name for one in groups}) < len(groups):
        raise PromqlError("a group is repeated")
    return groups


def _group(document: object) -> Group:
    group = _mapping(document, "group")
    name = _text(group.get("name"), "name of a group")
    _require_keys(group, _GROUP_KEYS, name)
    rules = tuple(_rule(one) for one in _list(group.get("rules"), name))
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for one in rules:
        key = (one.name, tuple(sorted(one.labels.items())))
        if key in seen:
            raise PromqlError(f"rule repeated: {one.name}")
        seen.add(key)
    interval = group.get("interval")
    return Group(name=name, interval_ms=None if interval is None else duration_ms(_text(interval, name)), rules=rules)


def _rule(document: object) -> Rule:
    rule = _mapping(document, "rule")
    is_alert = "alert" in rule
    name = _text(rule.get("alert" if is_alert else "record"), "name of a rule")
    _require_keys(rule, _ALERT_KEYS if is_alert else _RECORD_KEYS, name)
    if not is_alert and not _METRIC.fullmatch(name):
        raise PromqlError(f"invalid recording rule name: {name}")
    labels, annotations = (_texts(rule.get(key), name) for key in ("labels", "annotations"))
    for one in (*labels, *annotations):
        if not _LABEL.fullmatch(one) or one == NAME:
            raise PromqlError(f"invalid label name: {one}")
    text = _text(rule.get("expr"), name)
    expr = parse(text)
    shape = shape_of(expr)
    if shape not in (Shape.INSTANT, Shape.SCALAR):
        raise PromqlError(f"{name}: expected an instant vector, got {shape.value}")
    times = [rule.get(key) for key in ("for", "keep_firing_for")]
    for_ms, keep_ms = (0 if one is None else duration_ms(_text(one, name)) for one in times)
    return Rule(
        name=name,
        is_alert=is_alert,
        text=text,
        expr=expr,
        labels=labels,
        annotations=annotations,
        for_ms=for_ms,
        keep_firing_for_ms=keep_ms,
    )


def _require_keys(found: Mapping[str, object], known: frozenset[str] | set[str], where: str) -> None:
    unknown = sorted(found.keys() - known)
    if unknown:
        raise PromqlError(f"{where}: fields {unknown} not found in a rule file")


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise PromqlError(f"{where}: expected a mapping")
    return value


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list) or not value:
        raise PromqlError(f"{where}: expected a list")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise PromqlError(f"{where}: expected a text, found {value!r}")
    return value


def _texts(value: object, where: str) -> Mapping[str, str]:
    return {} if value is None else {key: _text(one, where) for key, one in _mapping(value, where).items()}
