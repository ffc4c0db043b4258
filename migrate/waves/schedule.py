"""Plan the waves of one cluster: which brokers may stop together.

A wave is a set of clean brokers that are offline at the same time. Every partition caps it: of the r
brokers that have a live replica of it, at most r - floor may be in one wave. Few waves mean a short migration, so the
number is kept small; it is the least possible for small fleets and close to it for large ones.

Method: caps that cannot bind are dropped. The rest splits into independent parts (by rack if racks are respected, then
by brokers that no cap connects), and each part is searched separately (``search``). Everything is sorted before the
search and no clock is read, so equal input gives equal waves, in any order of arrival.

Not here: the floor (``floor``), when a wave starts, whether a broker is clean (``readiness``).

Spec: design §7.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from migrate.waves.caps import Members, Part, binding_caps, parts
from migrate.waves.search import fewest_waves


@dataclass(frozen=True, slots=True, kw_only=True)
class WavePlan:
    """The waves of one cluster."""

    waves: tuple[tuple[int, ...], ...]
    """Broker keys: ascending within a wave; racks one after the other; no wave is empty."""
    lower_bound: int
    """Fewer waves than this are impossible, and perhaps this number is, too; printed in the plan."""


def plan_waves(
    *, clean: Mapping[int, str | None], groups: Iterable[tuple[frozenset[int], int]], respect_racks: bool
) -> WavePlan:
    """Put every clean broker of a cluster in one wave, with as few waves as we can find.

    Args:
        clean: Rack (None is a rack) of each clean broker, by broker key.
        groups: Of each partition all brokers with a live replica, clean or not, and its floor in replicas;
            equal groups may be given once. Iterated once.
        respect_racks: All brokers of a wave are of one rack.

    Returns:
        The waves and their lower bound; no wave without clean brokers. The order of ``clean`` and of
        ``groups`` changes nothing.

    Raises:
        ValueError: A group with a clean broker has a floor that its brokers cannot keep in any wave.

    Spec: design §7.5.
    """
    order = sorted(clean)
    index = {broker: i for i, broker in enumerate(order)}
    caps, bound = _indexed(index, groups)
    return _planned(clean, order, caps, bound, respect_racks)


def plan_waves_from_pairs(
    *,
    clean: Mapping[int, str | None],
    pairs: Iterable[tuple[int, int]],
    groups_bound: int,
    respect_racks: bool,
) -> WavePlan:
    """Put every clean broker in one wave; brokers that share a partition are never in one.

    Stricter than `plan_waves`, so every floor is kept; at most half the square of the number of brokers is read.

    Args:
        clean: Rack (None is a rack) of each clean broker, by broker key.
        pairs: Brokers that share a partition, in any order and direction, repeated or not; a pair with a
            broker that is not clean, or of a broker with itself, is ignored. Iterated once.
        groups_bound: The largest ceil(c / (r - floor)) of the partitions, from 0; see `group_bound`.
        respect_racks: All brokers of a wave are of one rack.

    Returns:
        The waves, and the lower bound of `plan_waves` (the true one, not that of the stricter rule).

    Spec: design §7.5, last sentence.
    """
    order = sorted(clean)
    index = {broker: i for i, broker in enumerate(order)}
    caps: dict[Members, int] = {}
    for left, right in pairs:
        i, j = index.get(left), index.get(right)
        if i is not None and j is not None and i != j:
            caps[(i, j) if i < j else (j, i)] = 1
    return _planned(clean, order, caps, groups_bound, respect_racks)


def group_bound(*, c: int, r: int, floor: int) -> int:
    """Return how many waves one partition asks for at least.

    Args:
        c: Clean brokers among those with a live replica, from 0.
        r: Brokers with a live replica.
        floor: Replicas that stay up.

    Returns:
        0 without clean brokers, else ceil(c / (r - floor)).

    Raises:
        ValueError: With a clean broker, ``floor`` is not below ``r``.
    """
    if not c:
        return 0
    if floor >= r:
        raise ValueError(f"a floor below {r} replicas is needed to stop a broker, found {floor}")
    return -(-c // (r - floor))


def _indexed(index: Mapping[int, int], groups: Iterable[tuple[frozenset[int], int]]) -> tuple[dict[Members, int], int]:
    """Return the caps that can bind, by the indices of their clean brokers, and the largest ``group_bound``."""
    caps: dict[Members, int] = {}
    bound = 0
    lookup = index.get
    for brokers, floor in groups:
        members = sorted(i for i in map(lookup, brokers) if i is not None)
        if not members:
            continue
        most = len(brokers) - floor
        bound = max(bound, group_bound(c=len(members), r=len(brokers), floor=floor))
        if most < len(members):
            key = tuple(members)
            if caps.get(key, most) >= most:
                caps[key] = most
    return caps, bound


def _planned(
    clean: Mapping[int, str | None],
    order: Sequence[int],
    caps: dict[Members, int],
    bound: int,
    respect_racks: bool,
) -> WavePlan:
    if not order:
        return WavePlan(waves=(), lower_bound=0)
    # None sorts before every name, and is not the rack named "".
    racks = sorted({(rack is not None, rack or "") for rack in clean.values()}) if respect_racks else []
    numbers = {rack: n for n, rack in enumerate(racks)}
    rack_of = [numbers[clean[broker] is not None, clean[broker] or ""] if respect_racks else 0 for broker in order]
    neighbours, wider = binding_caps(rack_of, caps)
    by_rack: list[list[Part]] = [[] for _ in range(max(1, len(racks)))]
    for part in parts(neighbours, wider):
        by_rack[rack_of[part.brokers[0]]].append(part)
    waves: list[tuple[int, ...]] = []
    for rack_parts in by_rack:
        waves.extend(_merged(rack_parts, order))
    return WavePlan(waves=tuple(waves), lower_bound=max(bound, len(racks), 1))


def _merged(rack_parts: list[Part], order: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the waves of one rack: no cap joins its parts, so their waves run side by side."""
    merged: list[list[int]] = []
    # The hardest part first: the others need not be better.
    for part in sorted(rack_parts, key=lambda part: (-part.bound, -len(part.brokers), part.brokers)):
        for n, wave in enumerate(fewest_waves(part, enough=len(merged), share=len(part.brokers) / len(order))):
            if n == len(merged):
                merged.append([])
            merged[n].extend(order[i] for i in wave)
    return sorted(tuple(sorted(wave)) for wave in merged)
