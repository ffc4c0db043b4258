"""What each use case asks of a broker: its locks, all of its log dirs, none of them blocked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdir.errors import ConfigError
from logdir.formats.own.inventory import Kind
from logdir.service.batch.use_cases import NAMES, spec_of
from logdir.service.cluster.source import SourceRequest
from logdir.service.purge import PurgeRequest
from logdir.service.reconcile import Decided
from logdir.service.report.json_form import keys_of
from logdir.service.report.staged import Selection, selected
from tests.logdir.decide.builders import MARKER, facts, staged_replicas

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


def test_a_request_selects_in_one_place_alone_so_that_no_partition_gets_two_instructions() -> None:
    """KIP-4: two instructions for one item in a batch are an error for both; a selection has no two."""
    for name in NAMES:
        places = keys_of(spec_of(name).request).keys() & {"selector", "selection", "names", "document"}
        assert len(places - {"names"}) <= 1, name


@pytest.mark.parametrize("selector", ["orders", "orders-3", "o*", f"id:{MARKER.topic_id}_3", None])
def test_a_partition_that_several_words_of_a_selection_name_is_selected_once(selector: str | None) -> None:
    one = staged_replicas()
    disks = (facts(staged=(one,)),)
    assert selected(disks, Selection(selector, "/d1", (one.name, one.name)), Kind.STAGED) == (one,)


def test_a_selection_of_two_meanings_is_refused_as_a_whole() -> None:
    """A topic that is called as another one with its partition: neither is meant surely."""
    both = staged_replicas(), staged_replicas(replace(MARKER, topic="orders-3", topic_id=None), counter=2)
    with pytest.raises(ConfigError, match="put name:, part: or id: before the selector"):
        selected((facts(staged=both),), Selection("orders-3"), Kind.STAGED)
