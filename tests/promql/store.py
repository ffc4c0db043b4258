"""Series over time, and what a selector finds of them at an instant."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from tests.promql.syntax import Selector
from tests.promql.values import NAME, Labels, PromqlError, Sample, Vector, shown, value_of

LOOKBACK_MS = 5 * 60 * 1000
"""How long a sample counts, unless its series ends before."""


class Point(NamedTuple):
    """A sample of a series; without a value it says that the series has ended (Prometheus's *stale marker*)."""

    at_ms: int
    value: float | None


class Window(NamedTuple):
    """What a range selector finds of one series: the samples after ``from_ms``, up to and with ``to_ms``."""

    labels: Labels
    points: tuple[tuple[int, float], ...]
    """Instant and value, the oldest first; at least one."""
    from_ms: int
    to_ms: int
    at_ms: int
    """The instant of the evaluation: later than ``to_ms`` by the offset of the selector."""


class Store:
    """Series by name. Points of one series are added in the order of time."""

    def __init__(self) -> None:
        self._series: dict[str, dict[Labels, list[Point]]] = {}

    def add(self, labels: Labels, at_ms: int, value: float | None) -> None:
        """Add a point.

        Raises:
            PromqlError: it is not later than the newest of its series.
        """
        points = self._series.setdefault(value_of(labels, NAME), {}).setdefault(labels, [])
        if points and points[-1].at_ms >= at_ms:
            raise PromqlError(f"out of order sample: {shown(labels)}")
        points.append(Point(at_ms, value))

    def labels(self) -> tuple[Labels, ...]:
        """Return the labels of every series."""
        return tuple(labels for series in self._series.values() for labels in series)

    def instant(self, selector: Selector, at_ms: int) -> Vector:
        """Return the newest sample of each series, not older than five minutes, of series that have not ended."""
        to_ms = at_ms - selector.offset_ms
        found = []
        for labels, points in self._selected(selector):
            newest = _before(points, to_ms)
            point = points[newest - 1] if newest else None
            if point is not None and point.value is not None and point.at_ms > to_ms - LOOKBACK_MS:
                found.append(Sample(labels, point.value, point.at_ms))
        return tuple(found)

    def windows(self, selector: Selector, at_ms: int) -> tuple[Window, ...]:
        """Return the samples of each series in the range of the selector; a series without any is left out."""
        assert selector.range_ms is not None
        to_ms = at_ms - selector.offset_ms
        from_ms = to_ms - selector.range_ms
        found = []
        for labels, points in self._selected(selector):
            within = points[_before(points, from_ms) : _before(points, to_ms)]
            valued = tuple((one.at_ms, one.value) for one in within if one.value is not None)
            if valued:
                found.append(Window(labels, valued, from_ms, to_ms, at_ms))
        return tuple(found)

    def _selected(self, selector: Selector) -> Iterable[tuple[Labels, list[Point]]]:
        name = selector.name
        names = self._series if name is None else [name]
        for one in names:
            for labels, points in self._series.get(one, {}).items():
                if selector.fits(labels):
                    yield labels, points


def _before(points: list[Point], at_ms: int) -> int:
    """Return how many points are not later than an instant."""
    return bisect_right(points, at_ms, key=lambda point: point.at_ms)
