"""Rules at one instant after the other: what is recorded, and the state of each alert.

An alert is pending from the first evaluation that finds it, and fires once it has been found for the time of its
``for``. One evaluation that does not find it ends it, unless ``keep_firing_for`` holds it.

Spec: Prometheus, "Alerting rules".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.promql.evaluate import evaluate
from tests.promql.notation import MINUTE_MS
from tests.promql.rule_file import Group, Rule
from tests.promql.store import Store
from tests.promql.templates import rendered
from tests.promql.values import NAME, Labels, PromqlError, Sample, Vector, labels_of, nameless, replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alert that is pending or fires."""

    name: str
    labels: Labels
    """Those of its element and of its rule."""
    annotations: tuple[tuple[str, str], ...]
    value: float
    is_firing: bool


class Rules:
    """Rules with what they remember between two evaluations."""

    def __init__(self, groups: Sequence[Group], store: Store) -> None:
        self._rules = tuple(rule for group in groups for rule in group.rules)
        self._store = store
        self._recorded: dict[int, frozenset[Labels]] = {}
        """By the number of the rule: the series that it recorded last."""
        self._since_ms: dict[tuple[int, Labels], int] = {}
        self._fired: dict[tuple[int, Labels], Sample] = {}
        """The last element of each alert that fires."""
        self._missing_ms: dict[tuple[int, Labels], int] = {}
        """Since when an alert that fires is not found."""

    def step(self, at_ms: int) -> tuple[Alert, ...]:
        """Evaluate every rule in order; return the alerts."""
        found: list[Alert] = []
        for number, rule in enumerate(self._rules):
            value = evaluate(rule.expr, self._store, at_ms)
            assert not isinstance(value, str)
            vector = value if isinstance(value, tuple) else (Sample(frozenset(), value, at_ms),)
            if rule.is_alert:
                found += self._alerts(number, rule, vector, at_ms)
            else:
                self._record(number, rule, vector, at_ms)
        return tuple(found)

    def _record(self, number: int, rule: Rule, vector: Vector, at_ms: int) -> None:
        now = set()
        for one in vector:
            labels = replaced(_with(rule, one.labels), NAME, rule.name)
            self._store.add(labels, at_ms, one.value)
            now.add(labels)
        for gone in self._recorded.get(number, frozenset()) - now:
            self._store.add(gone, at_ms, None)
        self._recorded[number] = frozenset(now)

    def _alerts(self, number: int, rule: Rule, vector: Vector, at_ms: int) -> Iterator[Alert]:
        elements = {nameless(one.labels): one for one in vector}
        if len(elements) < len(vector):
            raise PromqlError(f"{rule.name}: vector contains metrics with the same labelset")
        for labels, one in elements.items():
            since_ms = self._since_ms.setdefault((number, labels), at_ms)
            is_firing = at_ms - since_ms >= rule.for_ms
            if is_firing:
                self._fired[number, labels] = one
            self._missing_ms.pop((number, labels), None)
            yield _alert(rule, labels, one.value, is_firing=is_firing)
        for key in [key for key in self._since_ms if key[0] == number and key[1] not in elements]:
            last = self._fired.get(key)
            if last is not None and at_ms - self._missing_ms.setdefault(key, at_ms) < rule.keep_firing_for_ms:
                yield _alert(rule, key[1], last.value, is_firing=True)
            else:
                self._fired.pop(key, None)
                self._missing_ms.pop(key, None)
                del self._since_ms[key]


def _with(rule: Rule, labels: Labels) -> Labels:
    """Return the labels of an element with those of its rule, which replace others of the same name."""
    for name, value in rule.labels.items():
        labels = replaced(labels, name, value)
    return labels


def _alert(rule: Rule, labels: Labels, value: float, *, is_firing: bool) -> Alert:
    # Templates know the labels of the element alone.
    words = tuple((name, rendered(text, labels, value)) for name, text in rule.annotations.items())
    own = labels_of((name, rendered(text, labels, value)) for name, text in rule.labels.items())
    merged = frozenset(pair for pair in labels if pair[0] not in rule.labels) | own
    return Alert(
        name=rule.name,
        labels=replaced(merged, "alertname", rule.name),
        annotations=words,
        value=value,
        is_firing=is_firing,
    )


def alerts_over(
    groups: Sequence[Group], store: Store, *, from_ms: int, to_ms: int, step_ms: int = MINUTE_MS
) -> Iterator[tuple[int, tuple[Alert, ...]]]:
    """Yield each instant with the alerts that are pending or fire then."""
    rules = Rules(groups, store)
    for at_ms in range(from_ms, to_ms + 1, step_ms):
        yield at_ms, rules.step(at_ms)
