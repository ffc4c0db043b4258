"""Caps on waves: which brokers may not be in one wave together, and the independent parts they fall into.

A cap is a set of brokers, of which a wave may have at most a given number. Caps of one are edges of a graph (a bit mask
of neighbours per broker). Wider caps stay sets of brokers, without those that other caps imply. Brokers are indices
from 0, in the order of their keys; in a part they are numbered again, from 0.

This module searches nothing and does not know partitions, floors or topics.

Spec: design §7.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

Members = tuple[int, ...]
"""The brokers of a cap, ascending."""

_SUBSETS = 64  # of one set that are looked up; more would cost more than the caps they might drop


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """All caps of a part that allow the same number of brokers, from 2."""

    most: int
    """How many brokers of each set may be in one wave, from 2."""
    sets: tuple[Members, ...]
    sets_of: tuple[int, ...]
    """For each broker of the part a bit mask over ``sets``: those that contain it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Brokers connected by caps; no cap reaches out of a part."""

    brokers: tuple[int, ...]
    """Original numbers of the part's brokers 0, 1, …, ascending."""
    neighbours: tuple[int, ...]
    """For each broker of the part a bit mask over its brokers: those never in the same wave."""
    limits: tuple[Limit, ...]
    bound: int
    """Minimum number of waves of the part, from 1."""


def bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the set bits of ``mask``, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def binding_caps(rack_of: Sequence[int], caps: Mapping[Members, int]) -> tuple[list[int], dict[Members, int]]:
    """Return the caps that can bind when each wave stays in one rack.

    Args:
        rack_of: Number of the rack of each broker; all equal if racks do not matter.
        caps: Brokers of a set that may be in one wave, from 1, by set.

    Returns:
        For each broker the bit mask of its neighbours (caps of one); and the wider caps, by set.
    """
    neighbours = [0] * len(rack_of)
    wider: dict[Members, int] = {}
    for members, most in caps.items():
        for same in _by_rack(members, rack_of):
            if len(same) <= most:
                continue
            if most > 1:
                wider[same] = min(most, wider.get(same, most))
                continue
            mask = 0
            for i in same:
                mask |= 1 << i
            for i in same:
                neighbours[i] |= mask
    for i, mask in enumerate(neighbours):
        neighbours[i] = mask & ~(1 << i)
    wider = {members: most for members, most in wider.items() if not _in_cliques(members, most, neighbours)}
    return neighbours, _without_subsets(wider)


def parts(neighbours: Sequence[int], wider: Mapping[Members, int]) -> list[Part]:
    """Return the parts that the brokers fall into, by their smallest brokers; each broker is in one part."""
    root = list(range(len(neighbours)))
    apart = len(root)  # Parts found so far.

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    seen = 0
    for i in range(len(root)):
        found = 0 if seen >> i & 1 else neighbours[i]
        while fresh := found & ~seen & ~(1 << i):
            seen |= fresh
            for j in bits(fresh):
                root[j] = i
                apart -= 1
                found |= neighbours[j]
    for members in wider:
        if apart == 1:
            break
        first = find(members[0])
        for j in members[1:]:
            other = find(j)
            if other != first:
                first, other = min(first, other), max(first, other)
                root[other] = first
                apart -= 1
    brokers: dict[int, list[int]] = {}
    for i in range(len(neighbours)):
        brokers.setdefault(find(i), []).append(i)
    sets: dict[int, list[Members]] = {}
    for members in sorted(wider):
        sets.setdefault(find(members[0]), []).append(members)
    return [_part(mine, neighbours, sets.get(first, ()), wider) for first, mine in brokers.items()]


def _part(
    brokers: Sequence[int], neighbours: Sequence[int], sets: Iterable[Members], wider: Mapping[Members, int]
) -> Part:
    number = {broker: i for i, broker in enumerate(brokers)}
    if len(brokers) == len(neighbours):
        near = tuple(neighbours)
    else:
        near = tuple(sum(1 << number[j] for j in bits(neighbours[broker])) for broker in brokers)
    by_width: dict[int, list[Members]] = {}
    bound = _clique(near)
    for members in sets:
        most = wider[members]
        bound = max(bound, -(-len(members) // most))
        by_width.setdefault(most, []).append(tuple(number[i] for i in members))
    return Part(
        brokers=tuple(brokers),
        neighbours=near,
        limits=tuple(_limit(most, by_width[most], len(brokers)) for most in sorted(by_width)),
        bound=bound,
    )


def _limit(most: int, sets: Sequence[Members], brokers: int) -> Limit:
    holders: list[list[int]] = [[] for _ in range(brokers)]
    for n, members in enumerate(sets):
        for i in members:
            holders[i].append(n)
    sets_of = []
    for mine in holders:
        # Setting a bit of an int copies it; with a million sets a bytearray is needed.
        mask = bytearray((len(sets) + 7) // 8)
        for n in mine:
            mask[n >> 3] |= 1 << (n & 7)
        sets_of.append(int.from_bytes(mask, "little"))
    return Limit(most=most, sets=tuple(sets), sets_of=tuple(sets_of))


def _clique(neighbours: Sequence[int]) -> int:
    """Return the size of a large set of brokers that all exclude each other (greedily, from every broker)."""
    largest = 0
    degree = [mask.bit_count() for mask in neighbours]
    order = sorted(range(len(neighbours)), key=lambda i: (-degree[i], i))
    for start in order:
        if degree[start] < largest:
            break
        size, common = 1, neighbours[start]
        for i in order:
            if size + common.bit_count() <= largest:
                break
            if common >> i & 1:
                size += 1
                common &= neighbours[i]
        largest = max(largest, size)
    return largest


def _by_rack(members: Members, rack_of: Sequence[int]) -> Iterable[Members]:
    first = rack_of[members[0]]
    if all(rack_of[i] == first for i in members):
        return (members,)
    racks: dict[int, list[int]] = {}
    for i in members:
        racks.setdefault(rack_of[i], []).append(i)
    return [tuple(same) for same in racks.values()]


def _in_cliques(members: Members, most: int, neighbours: Sequence[int]) -> bool:
    """Return whether ``most`` cliques cover the members: a wave takes at most one broker of each."""
    cliques: list[int] = []  # for each, the brokers that exclude all of its members
    for i in members:
        for n, common in enumerate(cliques):
            if common >> i & 1:
                cliques[n] = common & neighbours[i]
                break
        else:
            if len(cliques) == most:
                return False
            cliques.append(neighbours[i])
    return True


def _without_subsets(wider: dict[Members, int]) -> dict[Members, int]:
    """Return the sets without those that are contained in a set whose cap is the same or smaller."""
    widths_of: dict[int, int] = {}  # size of a set -> the largest cap of a set of that size
    for members, most in wider.items():
        widths_of[len(members)] = max(most, widths_of.get(len(members), 0))
    implied: set[Members] = set()
    for members, most in wider.items():
        sizes = [t for t, widest in widths_of.items() if t < len(members) and widest >= most]
        if sum(comb(len(members), t) for t in sizes) > _SUBSETS:
            continue
        for size in sizes:
            implied.update(sub for sub in combinations(members, size) if wider.get(sub, 0) >= most)
    return {members: most for members, most in wider.items() if members not in implied}
