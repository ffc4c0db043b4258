"""What each use case asks of a broker: its locks, all of its log dirs, none of them blocked."""

from __future__ import annotations

from logdir.service.batch.use_cases import NAMES, spec_of
from logdir.service.cluster.source import SourceRequest
from logdir.service.purge import PurgeRequest
from logdir.service.reconcile import Decided

BESIDE = {"capture", "staged hold", "staged export", "staged purge"}
NEEDS_ALL = {"staged restore", "staged adopt", "reconcile", "layout"}
NO_WAY_ON_WITHOUT = {"staged restore", "staged adopt"}


def test_beside_a_running_broker_goes_only_what_no_broker_sees() -> None:
    assert {name for name in NAMES if spec_of(name).is_beside_broker} == BESIDE


def test_a_change_that_another_log_dir_may_forbid_needs_all_of_them() -> None:
    options = {name: spec_of(name).options for name in NAMES}
    assert None not in options.values()
    assert {name for name, one in options.items() if one and one.needs_all} == NEEDS_ALL
    assert {name for name, one in options.items() if one and not one.is_skip_of_use} == NO_WAY_ON_WITHOUT


def test_behind_a_start_block_goes_only_what_ends_it() -> None:
    options = {name: spec_of(name).options for name in NAMES}
    assert {name for name, one in options.items() if one and one.is_start_block_allowed} == {"layout", "handover"}
    assert {name for name, one in options.items() if one and one.is_all_skippable} == {"handover"}
    assert {name for name, one in options.items() if one and one.is_copy} == {"staged export"}


def test_a_purge_is_of_what_is_due_unless_more_is_asked_for() -> None:
    asked = PurgeRequest(source=SourceRequest())
    assert (asked.is_topic_removed, asked.includes_held, asked.goes_on, asked.budget_ms) == (False, False, False, 0)


def test_a_source_that_is_refused_has_no_actions() -> None:
    assert not Decided(plan=None, document=None).has_actions
