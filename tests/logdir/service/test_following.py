"""Which command is proposed after a use case."""

from __future__ import annotations

import pytest

from logdir.service.report.following import Next, after_change, after_stage, after_uninstall
from logdir.service.report.result import ItemResult, ItemState


def rows(*states: ItemState) -> list[ItemResult]:
    return [ItemResult(log_dir="/d", path="pay-0", state=state) for state in states]


PLANNED, DONE, WAITING, REFUSED, UNDONE = (
    ItemState.PLANNED,
    ItemState.DONE,
    ItemState.WAITING,
    ItemState.REFUSED,
    ItemState.UNDONE,
)


@pytest.mark.parametrize(
    ("states", "is_applied", "has_override", "following"),
    [
        ((PLANNED, REFUSED), False, False, "SAME"),
        ((PLANNED,), False, True, "STAGED_LS"),  # never with its override
        ((REFUSED,), False, False, "STAGED_LS"),
        ((DONE,), True, False, "STAGED_LS"),
    ],
)
def test_after_a_plan_the_same_is_proposed_unless_it_rests_on_an_override(
    states: tuple[ItemState, ...], is_applied: bool, has_override: bool, following: str
) -> None:
    assert after_change(rows(*states), is_applied=is_applied, has_override=has_override) is Next[following]


@pytest.mark.parametrize(
    ("states", "is_applied", "has_override", "following"),
    [
        ((), False, False, "DESCRIBE"),
        ((PLANNED,), False, False, "SAME"),
        ((PLANNED,), False, True, "STAGED_LS"),
        ((PLANNED, WAITING), False, False, "STAGED_LS"),
        ((DONE, UNDONE), True, False, "STAGED_LS"),
        ((UNDONE,), True, False, "INVENTORY"),
        ((REFUSED,), False, False, "INVENTORY"),
    ],
)
def test_after_a_staging_what_counts_to_the_limit_is_listed(
    states: tuple[ItemState, ...], is_applied: bool, has_override: bool, following: str
) -> None:
    assert after_stage(rows(*states), is_applied=is_applied, has_override=has_override) is Next[following]


@pytest.mark.parametrize(
    ("states", "is_applied", "has_override", "following"),
    [
        ((PLANNED,), False, False, "SAME"),
        ((PLANNED,), False, True, "STAGED_LS"),
        ((REFUSED,), False, False, "UNINSTALL"),
        ((WAITING,), False, False, "STAGED_LS"),
        ((DONE,), True, True, "INVENTORY"),
    ],
)
def test_after_an_uninstall_what_keeps_a_work_root_is_looked_at(
    states: tuple[ItemState, ...], is_applied: bool, has_override: bool, following: str
) -> None:
    assert after_uninstall(rows(*states), (), is_applied=is_applied, has_override=has_override) is Next[following]
