"""Waves: every floor is kept in every wave, whatever the fleet, and there are few of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.waves.schedule import WavePlan, group_bound, plan_waves, plan_waves_from_pairs
from tests.proof.claims import FEWEST_WAVES, FLOORS, WAVES_IN_ANY_ORDER
from tests.proof.plugin import Recorder

Groups = list[tuple[frozenset[int], int]]
Racks = Mapping[int, str | None]


def require_kept(plan: WavePlan, clean: Racks, groups: Groups, respect_racks: bool) -> None:
    """Fail unless every rule of design §7.5 holds, as the rule is written there."""
    assert sorted(broker for wave in plan.waves for broker in wave) == sorted(clean)
    for wave in plan.waves:
        assert wave
        assert list(wave) == sorted(wave)
        if respect_racks:
            assert len({clean[broker] for broker in wave}) == 1
        for brokers, floor in groups:
            assert len(brokers - set(wave)) >= floor
    assert len(plan.waves) >= plan.lower_bound


def stated_bound(clean: Racks, groups: Groups, respect_racks: bool) -> int:
    """Return the lower bound in the words of design §7.5."""
    if not clean:
        return 0
    bounds = [1, len(set(clean.values())) if respect_racks else 1]
    for brokers, floor in groups:
        c = len(brokers & clean.keys())
        if c >= 1:
            whole, rest = divmod(c, len(brokers) - floor)
            bounds.append(whole + bool(rest))
    return max(bounds)


def optimum(clean: Racks, groups: Groups, respect_racks: bool) -> int:
    """Return the fewest waves there can be, over all ways to cut the fleet, by dynamic programming."""
    brokers = sorted(clean)

    def allowed(wave: frozenset[int]) -> bool:
        if respect_racks and len({clean[broker] for broker in wave}) > 1:
            return False
        return all(len(holders - wave) >= floor for holders, floor in groups if holders & wave)

    waves = {
        sum(1 << i for i in chosen)
        for size in range(1, len(brokers) + 1)
        for chosen in combinations(range(len(brokers)), size)
        if allowed(frozenset(brokers[i] for i in chosen))
    }

    @cache
    def fewest(left: int) -> int:
        if not left:
            return 0
        first = left & -left
        # Some wave holds the first broker left; any subset of an allowed wave is allowed.
        return 1 + min(fewest(left & ~wave) for wave in waves if wave & first and not wave & ~left)

    return fewest((1 << len(brokers)) - 1)


def first_fit_waves(clean: Racks, groups: Groups) -> int:
    """Return the waves of plain greedy colouring: brokers by key, each into the first wave that takes it."""
    waves: list[set[int]] = []
    for broker in sorted(clean):
        mine = [(holders, floor) for holders, floor in groups if broker in holders]
        for wave in waves:
            if all(len(holders - wave - {broker}) >= floor for holders, floor in mine):
                wave.add(broker)
                break
        else:
            waves.append({broker})
    return len(waves)


def random_fleet(seed: int, *, most: int) -> tuple[dict[int, str | None], Groups]:
    random = Random(seed)
    fleet = random.sample(range(1, 10_000), random.randint(1, most))
    clean: dict[int, str | None] = {
        broker: random.choice([None, "", "a", "b"]) for broker in fleet if random.random() < 0.9
    }
    groups: Groups = []
    for _ in range(random.randint(0, 14)):
        r = random.randint(1, min(len(fleet), 5))
        floor = floor_in(r, random.choice([None, 0, 1, 1, 2, 2, 3]))
        groups.append((frozenset(random.sample(fleet, r)), floor))
    return clean, groups


def floor_in(r: int, min_insync: int | None) -> int:
    """Return how many of ``r`` replicas stay up, as design §7.5 words it."""
    return max(0, r - 1 if min_insync is None else min(min_insync, r - 1))


def replicas(seed: int, *, brokers: int, partitions: int, r: int, min_insync: int | None) -> Groups:
    random = Random(seed)
    floor = floor_in(r, min_insync)
    return [(frozenset(random.sample(range(brokers), r)), floor) for _ in range(partitions)]


def shuffled(seed: int, clean: Racks, groups: Groups) -> tuple[dict[int, str | None], Groups]:
    random = Random(seed)
    keys = list(clean)
    random.shuffle(keys)
    turned = groups + groups[: len(groups) // 2]
    random.shuffle(turned)
    return {key: clean[key] for key in keys}, turned


@pytest.mark.parametrize(
    ("c", "r", "floor", "bound"), [(0, 3, 2, 0), (0, 2, 2, 0), (1, 3, 2, 1), (3, 3, 2, 3), (5, 5, 3, 3)]
)
def test_bound_of_one_partition(c: int, r: int, floor: int, bound: int) -> None:
    assert group_bound(c=c, r=r, floor=floor) == bound


@pytest.mark.parametrize("respect_racks", [False, True])
def test_no_clean_broker_means_no_wave_and_bound_zero(respect_racks: bool) -> None:
    groups: Groups = [(frozenset({1, 2, 3}), 2)]
    assert plan_waves(clean={}, groups=groups, respect_racks=respect_racks) == WavePlan(waves=(), lower_bound=0)
    assert plan_waves_from_pairs(clean={}, pairs=[(1, 2)], groups_bound=3, respect_racks=respect_racks) == WavePlan(
        waves=(), lower_bound=0
    )


def test_brokers_without_partitions_are_one_wave() -> None:
    plan = plan_waves(clean={3: None, 1: "a", 2: "b"}, groups=[], respect_racks=False)
    assert plan == WavePlan(waves=((1, 2, 3),), lower_bound=1)


def test_null_is_a_rack_and_not_the_one_without_a_name() -> None:
    plan = plan_waves(clean={1: "", 2: None, 3: "", 4: None}, groups=[], respect_racks=True)
    assert plan == WavePlan(waves=((2, 4), (1, 3)), lower_bound=2)


def test_a_floor_that_no_wave_keeps_is_refused() -> None:
    with pytest.raises(ValueError, match="below 2"):
        plan_waves(clean={1: None}, groups=[(frozenset({1, 2}), 2)], respect_racks=False)


def test_brokers_that_are_not_clean_stay_up_and_count_for_the_floor() -> None:
    groups: Groups = [(frozenset({1, 2, 3}), 1)]
    plan = plan_waves(clean={1: None, 2: None}, groups=groups, respect_racks=False)
    assert plan == WavePlan(waves=((1, 2),), lower_bound=1)


def test_a_group_of_brokers_none_of_which_is_clean_says_nothing() -> None:
    plan = plan_waves(clean={1: None}, groups=[(frozenset({7, 8}), 1)], respect_racks=False)
    assert plan == WavePlan(waves=((1,),), lower_bound=1)


def test_a_set_inside_another_keeps_its_narrower_cap() -> None:
    # {6, 7, 8, 9} makes sets of its size candidates for being implied; {1, 2, 3, 4} is not.
    groups: Groups = [
        (frozenset({1, 2, 3, 4, 5}), 2),
        (frozenset({1, 2, 3, 4}), 2),
        (frozenset({6, 7, 8, 9}), 1),
    ]
    clean: dict[int, str | None] = dict.fromkeys(range(1, 10))
    plan = plan_waves(clean=clean, groups=groups, respect_racks=False)
    require_kept(plan, clean, groups, False)
    assert len(plan.waves) == 2


@pytest.mark.parametrize("turn", [1, -1])
def test_sets_that_are_one_within_a_rack_keep_the_narrowest_cap(turn: int) -> None:
    clean: dict[int, str | None] = {1: "a", 2: "a", 3: "a", 4: "a", 5: "b", 6: "c"}
    groups: Groups = [(frozenset({1, 2, 3, 4, 5}), 3), (frozenset({1, 2, 3, 4, 6}), 2)]
    plan = plan_waves(clean=clean, groups=groups[::turn], respect_racks=True)
    require_kept(plan, clean, groups, True)
    assert len(plan.waves) == 4


@pytest.mark.parametrize("respect_racks", [False, True], ids=["racks-ignored", "racks-respected"])
def test_two_hundred_small_fleets_have_the_fewest_waves_possible(respect_racks: bool, record_proof: Recorder) -> None:
    seen = []
    label = f"fleets {'respecting' if respect_racks else 'ignoring'} racks"
    seeds = range(FEWEST_WAVES.count(label))
    for seed in seeds:
        clean, groups = random_fleet(seed, most=8)
        plan = plan_waves(clean=clean, groups=groups, respect_racks=respect_racks)
        require_kept(plan, clean, groups, respect_racks)
        assert plan.lower_bound == stated_bound(clean, groups, respect_racks), seed
        assert len(plan.waves) == optimum(clean, groups, respect_racks), seed
        seen.append(len(plan.waves))
    assert len(set(seen)) >= 5  # the fleets are not all easy
    record_proof(FEWEST_WAVES, {label: len(seen), "at the optimum": len(seen)}, seeds=seeds)


def test_fleets_of_a_dozen_have_the_fewest_waves_possible() -> None:
    above_first_fit = 0
    for seed in range(12):
        clean = dict.fromkeys(range(12))
        groups = replicas(seed, brokers=12, partitions=10 + seed, r=3 + seed % 2, min_insync=2)
        plan = plan_waves(clean=clean, groups=groups, respect_racks=False)
        require_kept(plan, clean, groups, False)
        assert len(plan.waves) == optimum(clean, groups, False), seed
        above_first_fit += first_fit_waves(clean, groups) > len(plan.waves)
    assert above_first_fit >= 3  # greedy alone would not do


@pytest.mark.parametrize("min_insync", [None, 2, 1])
def test_a_hundred_brokers_in_three_racks_with_rack_aware_replicas_are_three_waves(
    min_insync: int | None,
) -> None:
    random = Random(7)
    clean: dict[int, str | None] = {broker: f"rack-{broker % 3}" for broker in range(100)}
    racks = [[broker for broker in clean if broker % 3 == rack] for rack in range(3)]
    floor = floor_in(3, min_insync)
    groups = [(frozenset(random.choice(rack) for rack in racks), floor) for _ in range(5_000)]
    plan = plan_waves(clean=clean, groups=groups, respect_racks=True)
    require_kept(plan, clean, groups, True)
    assert [{clean[broker] for broker in wave} for wave in plan.waves] == [{"rack-0"}, {"rack-1"}, {"rack-2"}]
    assert plan.lower_bound == 3


@pytest.mark.parametrize(
    ("partitions", "r", "min_insync"),
    [
        (120, 3, None), (1_000, 3, 2), (5_000, 3, 2), (40, 9, 2),
        pytest.param(1_000, 3, 1, marks=pytest.mark.slow), pytest.param(600, 5, 3, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_a_hundred_brokers_without_racks_stay_near_greedy_colouring(
    partitions: int, r: int, min_insync: int | None
) -> None:
    clean: dict[int, str | None] = dict.fromkeys(range(100))
    groups = replicas(partitions, brokers=100, partitions=partitions, r=r, min_insync=min_insync)
    plan = plan_waves(clean=clean, groups=groups, respect_racks=False)
    require_kept(plan, clean, groups, False)
    # The contract is 1.5 times greedy; the first order tried is greedy's, so we are never above it.
    assert len(plan.waves) <= first_fit_waves(clean, groups)
    assert plan.lower_bound == stated_bound(clean, groups, False)


def test_a_fleet_laid_out_in_shifts_is_found_again() -> None:
    """Replicas never on two brokers of one shift: as many waves as shifts will do, greedy needs more."""
    random = Random(11)
    shifts = [list(range(n, 72, 6)) for n in range(6)]
    groups: Groups = [(frozenset(random.choice(shift) for shift in random.sample(shifts, 3)), 2) for _ in range(500)]
    order = list(range(72))
    random.shuffle(order)
    groups = [(frozenset(order[broker] for broker in brokers), floor) for brokers, floor in groups]
    clean: dict[int, str | None] = dict.fromkeys(range(72))
    plan = plan_waves(clean=clean, groups=groups, respect_racks=False)
    require_kept(plan, clean, groups, False)
    assert len(plan.waves) == 6 < first_fit_waves(clean, groups)


def test_a_dozen_separate_cells_run_side_by_side() -> None:
    clean: dict[int, str | None] = dict.fromkeys(range(36))
    groups: Groups = [(frozenset(range(cell, cell + 3)), 2) for cell in range(0, 36, 3)]
    plan = plan_waves(clean=clean, groups=groups, respect_racks=False)
    require_kept(plan, clean, groups, False)
    assert [len(wave) for wave in plan.waves] == [12, 12, 12]


@pytest.mark.parametrize("respect_racks", [False, True], ids=["racks-ignored", "racks-respected"])
def test_order_and_repetition_change_nothing(respect_racks: bool, record_proof: Recorder) -> None:
    seeds = range(40)
    for seed in seeds:
        clean, groups = random_fleet(seed, most=8)
        turned = shuffled(seed, clean, groups)
        plan = plan_waves(clean=clean, groups=groups, respect_racks=respect_racks)
        assert plan == plan_waves(clean=turned[0], groups=turned[1], respect_racks=respect_racks)
    record_proof(WAVES_IN_ANY_ORDER, {"shuffled fleets": len(seeds)}, seeds=seeds)


@pytest.mark.parametrize(("r", "min_insync"), [(3, 2), (3, 1), pytest.param(5, 3, marks=pytest.mark.slow)])
def test_order_changes_nothing_where_the_search_is_long(r: int, min_insync: int) -> None:
    clean: dict[int, str | None] = dict.fromkeys(range(50))
    groups = replicas(3, brokers=50, partitions=200, r=r, min_insync=min_insync)
    plan = plan_waves(clean=clean, groups=groups, respect_racks=False)
    turned = shuffled(5, clean, groups)
    assert plan == plan_waves(clean=turned[0], groups=iter(turned[1]), respect_racks=False)


@st.composite
def fleets(draw: st.DrawFn) -> tuple[dict[int, str | None], Groups, bool]:
    fleet = draw(st.lists(st.integers(0, 40), min_size=1, max_size=16, unique=True))
    clean = draw(st.dictionaries(st.sampled_from(fleet), st.sampled_from([None, "", "a", "b"])))
    holders = draw(st.lists(st.frozensets(st.sampled_from(fleet), max_size=9), max_size=20))
    groups = [(brokers, floor_in(len(brokers), draw(st.none() | st.integers(0, 5)))) for brokers in holders]
    return clean, groups, draw(st.booleans())


@given(fleets())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_fleet_keeps_every_rule(fleet: tuple[dict[int, str | None], Groups, bool]) -> None:
    clean, groups, respect_racks = fleet
    plan = plan_waves(clean=clean, groups=groups, respect_racks=respect_racks)
    require_kept(plan, clean, groups, respect_racks)
    assert plan.lower_bound == stated_bound(clean, groups, respect_racks)


def pairs_of(groups: Groups) -> Iterable[tuple[int, int]]:
    for brokers, _ in groups:
        yield from combinations(sorted(brokers, reverse=True), 2)


@given(fleets())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_pairs_keep_every_rule_and_put_no_two_holders_of_a_partition_together(
    fleet: tuple[dict[int, str | None], Groups, bool],
) -> None:
    clean, groups, respect_racks = fleet
    bound = max((group_bound(c=len(b & clean.keys()), r=len(b), floor=floor) for b, floor in groups), default=0)
    plan = plan_waves_from_pairs(clean=clean, pairs=pairs_of(groups), groups_bound=bound, respect_racks=respect_racks)
    require_kept(plan, clean, groups, respect_racks)
    require_kept(plan, clean, [(brokers, len(brokers) - 1) for brokers, _ in groups], respect_racks)
    assert plan.lower_bound == stated_bound(clean, groups, respect_racks)


def test_pairs_are_the_sets_themselves_where_one_replica_stops_at_a_time() -> None:
    clean: dict[int, str | None] = dict.fromkeys(range(40))
    groups = replicas(2, brokers=40, partitions=90, r=3, min_insync=None)
    pairs = [*pairs_of(groups), (5, 5), (5, 99)]
    from_pairs = plan_waves_from_pairs(clean=clean, pairs=pairs, groups_bound=3, respect_racks=False)
    assert from_pairs == plan_waves(clean=clean, groups=groups, respect_racks=False)


@pytest.mark.parametrize(("r", "min_insync"), [(3, 2), (3, 1)])
def test_a_million_groups_over_a_thousand_brokers(r: int, min_insync: int, record_proof: Recorder) -> None:
    clean: dict[int, str | None] = dict.fromkeys(range(1_000))
    label, seed = f"partitions at min.insync.replicas {min_insync}", 1
    groups = replicas(seed, brokers=1_000, partitions=FLOORS.count(label), r=r, min_insync=min_insync)
    plan = plan_waves(clean=clean, groups=groups, respect_racks=False)
    wave_of = {broker: n for n, wave in enumerate(plan.waves) for broker in wave}
    assert sorted(wave_of) == list(range(1_000))
    for brokers, floor in groups:
        numbers = [wave_of[broker] for broker in brokers]
        assert max(map(numbers.count, numbers)) <= r - floor
    record_proof(FLOORS, {label: len(groups)}, seeds=seed)
