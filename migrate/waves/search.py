"""Search for the fewest waves of one part of the brokers: greedy in several orders, exact if small, then repair.

A wave takes a broker if no neighbour of it is in the wave and no cap it is in is full. Four ways, each only
while the best so far is above the least possible, and each with a budget of steps, never of time, so that
equal input gives equal waves on any machine:

1. *First fit* in orders that do well: by key, by pressure, and always the broker with the fewest waves left.
2. *Exact*: branch and bound. It finishes for any part of a dozen brokers, and proves many larger ones.
3. *Regrouping*: first fit again, wave by wave in another order of waves; it never needs more waves.
4. *Squeezing*: dissolve one wave and fit its brokers into the others, throwing out what is in their way,
   with a memory of what was just thrown out.

Spec: design §7.5 (the number of waves is ours to keep small; the caps are not ours to break).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from migrate.waves.caps import Part, bits

# Steps: questions put to a wave, a fraction of a microsecond each.
_EXACT_STEPS = 3_000_000
_EXACT_BROKERS = 64  # Above this size such a short search proves nothing.
_SURE_BROKERS = 12  # Up to this size the search always finishes.
_TIGHTEST_STEPS = 80_000_000
_REGROUP_STEPS = 2_000_000
_SQUEEZE_STEPS = 6_000_000
_SQUEEZE_SETS = 100_000  # Above this size it takes too long to find the conflicting brokers.


_Masks = Sequence[Sequence[int]]
"""Per limit, a bit mask over the brokers for each of its sets."""


class _Wave:
    """One wave being filled: its brokers, and per limit the fill level of each set."""

    __slots__ = ("levels", "members")

    def __init__(self, part: Part) -> None:
        self.members = 0
        # levels[l][k]: bit mask of the sets of limit l with more than k brokers in the wave.
        self.levels = [[0] * limit.most for limit in part.limits]

    def takes(self, part: Part, i: int) -> bool:
        if part.neighbours[i] & self.members:
            return False
        return not any(limit.sets_of[i] & level[-1] for limit, level in zip(part.limits, self.levels, strict=True))

    def add(self, part: Part, i: int) -> None:
        self.members |= 1 << i
        for limit, level in zip(part.limits, self.levels, strict=True):
            mine = limit.sets_of[i]
            for k in range(limit.most - 1, 0, -1):
                level[k] |= level[k - 1] & mine
            level[0] |= mine

    def in_the_way(self, part: Part, masks: _Masks, i: int, age: Sequence[int], most: int) -> int | None:
        """Return a bit mask of the members to remove so that broker ``i`` fits into the wave; ``None``: these are more
        than ``most``.
        """
        out = part.neighbours[i] & self.members
        if out.bit_count() > most:
            return None
        for limit, brokers, level in zip(part.limits, masks, self.levels, strict=True):
            for n in bits(limit.sets_of[i] & level[-1]):
                if brokers[n] & out:
                    continue
                # The brokers that have been in the wave longest are removed.
                out |= 1 << min(bits(brokers[n] & self.members), key=age.__getitem__)
                if out.bit_count() > most:
                    return None
        return out

    def without(self, part: Part, out: int) -> _Wave:
        return _filled(part, bits(self.members & ~out))


def fewest_waves(part: Part, *, enough: int = 0, share: float = 1.0) -> tuple[tuple[int, ...], ...]:
    """Return waves that hold each broker of the part once and keep every cap, as few as we find.

    Args:
        part: Brokers and the caps that connect them.
        enough: Number of waves that other parts need anyway; the search stops at this number too.
        share: Share of the step budgets to use, above 0 and up to 1; up to a dozen brokers are always searched
            completely.

    Returns:
        Waves in the numbers the brokers had outside the part, ascending, none empty; sorted by their brokers.
    """
    found = _search(part, max(part.bound, enough), share)
    return tuple(sorted(tuple(part.brokers[i] for i in bits(wave.members)) for wave in found))


def _search(part: Part, goal: int, share: float) -> list[_Wave]:
    size = len(part.brokers)
    weight = _weight(part)
    pressure = [
        mask.bit_count() * 12 + sum(12 * limit.sets_of[i].bit_count() // limit.most for limit in part.limits)
        for i, mask in enumerate(part.neighbours)
    ]
    by_pressure = sorted(range(size), key=lambda i: (-pressure[i], i))
    best = _first_fit(part, range(size))
    if len(best) > goal:
        best = min(best, _first_fit(part, by_pressure), key=len)
    if len(best) > goal and size * size * weight <= _TIGHTEST_STEPS:
        best = min(best, _tightest_first(part, pressure), key=len)
    if len(best) > goal and size <= _EXACT_BROKERS:
        held = sum(mask.bit_count() for limit in part.limits for mask in limit.sets_of) // size
        steps = _EXACT_STEPS if size <= _SURE_BROKERS else int(_EXACT_STEPS * share) // (1 + held // 4)
        best, proven = _exact(part, by_pressure, best, goal, steps)
        if proven:
            return best
    if len(best) > goal:
        best = _regrouped(part, best, goal, int(_REGROUP_STEPS * share) // weight)
    if len(best) <= goal or sum(len(limit.sets) for limit in part.limits) > _SQUEEZE_SETS:
        return best
    masks = [[sum(1 << i for i in members) for members in limit.sets] for limit in part.limits]
    budget = int(_SQUEEZE_STEPS * share) // (weight + 24 * len(masks))
    while len(best) > goal and budget > 0:
        fewer, budget = _squeezed(part, masks, best, budget)
        if fewer is None:
            break
        best = fewer
    return best


def _weight(part: Part) -> int:
    """Return the cost of one wave check, in steps: bit masks of a million sets are slow to combine."""
    return 1 + sum(len(limit.sets) for limit in part.limits) // 8_000


def _filled(part: Part, brokers: Iterable[int]) -> _Wave:
    wave = _Wave(part)
    for i in brokers:
        wave.add(part, i)
    return wave


def _first_fit(part: Part, order: Iterable[int]) -> list[_Wave]:
    waves: list[_Wave] = []
    for i in order:
        for wave in waves:
            if wave.takes(part, i):
                break
        else:
            wave = _Wave(part)
            waves.append(wave)
        wave.add(part, i)
    return waves


def _tightest_first(part: Part, pressure: Sequence[int]) -> list[_Wave]:
    """Return waves by first fit, always of the broker that most waves refuse (of equal ones that in most caps)."""
    waves: list[_Wave] = []
    refused = [0] * len(pressure)  # per broker a bit mask over the waves
    left = set(range(len(pressure)))
    while left:
        i = max(left, key=lambda i: (refused[i].bit_count(), pressure[i], -i))
        left.remove(i)
        n = next(k for k in range(len(waves) + 1) if not refused[i] >> k & 1)
        if n == len(waves):
            waves.append(_Wave(part))
        wave = waves[n]
        before = [level[-1] for level in wave.levels]
        wave.add(part, i)
        filled = [level[-1] & ~was for level, was in zip(wave.levels, before, strict=True)]
        near = part.neighbours[i]
        for j in left:
            if near >> j & 1 or any(
                now and now & limit.sets_of[j] for now, limit in zip(filled, part.limits, strict=True)
            ):
                refused[j] |= 1 << n
    return waves


def _regrouped(part: Part, best: list[_Wave], goal: int, budget: int) -> list[_Wave]:
    """Return waves by first fit again, with brokers ordered wave by wave, each time in another order of waves.

    A wave's brokers fit together, so the k-th group never reaches past the k-th wave: the number cannot grow.
    """
    waves, turn, seed = best, 0, 1
    while len(waves) > goal and budget > 0:
        order = sorted(range(len(waves)), key=lambda k: (-waves[k].members.bit_count(), k))
        if turn % 3 == 0:
            order = list(range(len(waves) - 1, -1, -1))
        elif turn % 3 == 1:
            for k in range(len(order) - 1, 0, -1):
                seed = _next(seed)
                swap = (seed >> 8) % (k + 1)
                order[k], order[swap] = order[swap], order[k]
        waves = _first_fit(part, [i for k in order for i in bits(waves[k].members)])
        turn += 1
        budget -= len(part.brokers) * len(waves) // 2 + 1
    return waves


def _squeezed(part: Part, masks: _Masks, best: list[_Wave], budget: int) -> tuple[list[_Wave] | None, int]:
    """Search for one wave less than ``best``; return the waves, ``None`` if none were found, and the budget left."""
    ordered = sorted(best, key=lambda wave: (-wave.members.bit_count(), wave.members))
    homeless = set(bits(ordered.pop().members))
    waves = [wave.without(part, 0) for wave in ordered]  # Copies, so that ``best`` is unchanged on failure.
    barred = [[0] * len(waves) for _ in part.brokers]  # The turn until which a broker may not return to a wave.
    age = [0] * len(part.brokers)  # The turn in which a broker entered its wave.
    turn, seed, fewest = 0, 1, len(homeless)
    while homeless:
        turn += 1
        options: list[tuple[int, int, int, int]] = []
        least = len(part.brokers) + 1
        for i in sorted(homeless):
            for n, wave in enumerate(waves):
                out = wave.in_the_way(part, masks, i, age, least)
                if out is None:
                    continue
                cost = out.bit_count()
                if barred[i][n] >= turn and len(homeless) - 1 + cost >= fewest:
                    continue
                if cost < least:
                    least, options = cost, []
                options.append((cost, i, n, out))
        budget -= len(homeless) * len(waves) + len(part.brokers)
        if budget <= 0:
            return None, 0
        if not options:
            continue  # All moves are forbidden for now; the turn counter continues.
        seed = _next(seed)
        _, i, n, out = options[(seed >> 8) % len(options)]
        thrown = list(bits(out))
        waves[n] = waves[n].without(part, out) if thrown else waves[n]
        waves[n].add(part, i)
        age[i] = turn
        homeless.remove(i)
        homeless.update(thrown)
        for j in thrown:
            barred[j][n] = turn + 2 + (seed >> 16) % 5 + len(homeless) * 3 // 5
        fewest = min(fewest, len(homeless))
    return waves, budget


def _exact(part: Part, order: Sequence[int], best: list[_Wave], goal: int, steps: int) -> tuple[list[_Wave], bool]:
    """Branch and bound; return the best waves, and whether they are proven the fewest or as few as ``goal``."""
    sets_of: list[list[tuple[int, int]]] = [[] for _ in part.brokers]
    for limit in part.limits:
        for members in limit.sets:
            mask = sum(1 << i for i in members)
            for i in members:
                sets_of[i].append((mask, limit.most))
    rank = {i: n for n, i in enumerate(order)}
    most = len(best) - 1  # Number of waves of the next solution.
    answer: list[int] | None = None

    def fits(i: int, wave: int) -> bool:
        if part.neighbours[i] & wave:
            return False
        return all((wave & mask).bit_count() < cap for mask, cap in sets_of[i])

    def descend(waves: list[int], left: int) -> bool:
        """Fill ``waves`` with the brokers in ``left``; return whether to stop."""
        nonlocal steps, most, answer
        steps -= left.bit_count() * len(waves) + 1
        if steps < 0:
            return True
        if not left:
            answer, most = list(waves), len(waves) - 1
            return most < goal
        room, pick, homes = len(waves) + 2, -1, [0]
        for i in bits(left):
            mine = [n for n, wave in enumerate(waves) if fits(i, wave)]
            if len(mine) < room or (len(mine) == room and rank[i] < rank[pick]):
                room, pick, homes = len(mine), i, mine
        bit = 1 << pick
        for n in homes:
            waves[n] |= bit
            stop = descend(waves, left ^ bit)
            waves[n] ^= bit
            if stop or len(waves) > most:
                return stop
        # All empty waves are alike: one new wave is tried, not each.
        if len(waves) < most:
            waves.append(bit)
            stop = descend(waves, left ^ bit)
            waves.pop()
            return stop
        return False

    descend([], (1 << len(part.brokers)) - 1)
    found = best if answer is None else [_filled(part, bits(wave)) for wave in answer]
    return found, steps >= 0


def _next(seed: int) -> int:
    """Return the number after ``seed``: a fixed sequence, the same on every machine and version."""
    return (seed * 1_103_515_245 + 12_345) & 0x7FFFFFFF
