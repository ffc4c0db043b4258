"""Strays: how far it is proven of each directory that nobody claims it, and that silence never proves anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdir.cluster import requests
from logdir.cluster.assignment import AssignmentState
from logdir.cluster.image import Partition, Topic
from logdir.cluster.requests import Receipt
from logdir.decide.candidate import against_log_dir
from logdir.decide.reconcile_action import Rule
from logdir.decide.strays import State, StrayView, unclaimed, view_strays
from logdir.errors import Problem
from logdir.evidence import Proof, Removed, Unknown
from logdir.formats.own.controller_file import MetadataMark
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Checkpoints
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts
from logdir.refusal_slug import Why
from tests.logdir.cluster.log_dir import LogDir, change
from tests.logdir.decide.stray_scene import UNIQUE, a_log, full_of, gone, only, renamed, request_image, said, view
from tests.reconcile.disk import BORN_MS, CLUSTER, HOUR_MS, NODE, NOW, WALL_MS, disk, live
from tests.reconcile.scene import A0, OTHERS, A, B, later, pair, raw
from tests.reconcile.stories import FRESH, host_context, request, up_to


@pytest.fixture
def log(tmp_path: Path) -> LogDir:
    return a_log(tmp_path)


class TestLive:
    def test_what_is_wanted_is_not_listed(self, log: LogDir) -> None:
        found = view(up_to(log), *pair(live("a", A), live("b", B, 1)))
        assert found == StrayView()

    def test_a_removal_that_was_seen_is_proof(self, log: LogDir) -> None:
        found = only(gone(log, A), *pair(live("a", A), live("b", B)))
        assert said(found) == ("proven", "removed", "Removed", "topic-removed")
        assert (found.rule, found.log_bytes, found.missing) == (Rule.TOPIC_REMOVED, 1000, None)
        assert found.age_ms == WALL_MS - BORN_MS
        assert found.undo_until_ms is not None

    def test_a_replica_that_moved_away_is_proven_where_others_hold_it(self, log: LogDir) -> None:
        log.append(change(raw(A), 0, replicas=(2, 3), isr=(2, 3), leader=2))
        later(log)
        found = only(up_to(log), *pair(live("a", A)))
        assert said(found) == ("proven", "removed", "Removed", "replica-moved-away")

    def test_a46_the_last_copy_has_no_proof(self, log: LogDir) -> None:
        log.append(change(raw(A), 0, replicas=(2, 3), isr=(), leader=-1))
        later(log)
        found = only(up_to(log), *pair(live("a", A)))
        assert said(found) == ("unproven", "removed", "Absent", None)
        assert found.missing is not None
        assert "last copy" in found.missing.found

    def test_a46_what_is_in_the_isr_is_never_proven(self, log: LogDir) -> None:
        log.append(change(raw(A), 0, replicas=(2, 3), isr=(1, 2)))
        later(log)
        found = only(up_to(log), *pair(live("a", A)))
        assert said(found) == ("unproven", "in-sync", "Present", None)

    def test_a01_silence_is_not_a_deletion(self, log: LogDir) -> None:
        later(log)
        found = only(up_to(log), *pair(live("new", A0)))
        assert said(found) == ("unproven", "unlisted", "Absent", None)
        assert found.missing is not None
        assert found.missing.expected == "proof that it was removed"

    def test_a01_an_image_that_is_too_old_for_a_directory_is_no_proof(self, log: LogDir) -> None:
        image = gone(log, A)
        for births in ({}, {("/d1", "a-0"): image.as_of_ms - 1000}):
            found = only(image, *pair(live("a", A)), births=births)
            assert said(found) == ("unproven", "removed", "Unknown", None)
            assert found.missing is not None

    def test_a04_another_id_under_the_name_is_no_proof(self, log: LogDir) -> None:
        later(log)
        found = only(up_to(log), *pair(live("a", A0)))
        assert said(found) == ("unproven", "other-id", "Absent", None)

    def test_a_replica_without_id_is_no_stray_for_that_reason(self, log: LogDir) -> None:
        later(log)
        assert view(up_to(log), *pair(live("a", None))).strays == ()
        found = only(up_to(log), *pair(live("nobody", None)))
        assert said(found) == ("unproven", "unlisted", "Absent", None)

    def test_protected_topics_are_proven_and_refused(self, log: LogDir) -> None:
        found = only(gone(log, A), *pair(live("a", A)), protected=("a*",))
        assert said(found) == ("refused", "removed", "Removed", None)
        assert found.missing is not None
        assert found.missing.expected == "a topic that is not protected"

    def test_a_directory_with_a_stranger_in_it_is_proven_and_refused(self, log: LogDir) -> None:
        found = only(gone(log, A), *pair(replace(live("a", A), unexpected_entries=("sub",))))
        assert (found.state, found.missing and found.missing.path) == (State.REFUSED, "/d1/a-0/sub")

    def test_a13_a_future_keeps_the_current_one(self, log: LogDir) -> None:
        future = renamed(Kind.FUTURE, "a", A)
        first, second = view(gone(log, A), *pair(live("a", A), future)).strays
        assert said(first) == ("refused", "removed", "Removed", None)
        assert said(second) == ("unproven", "removed", "Absent", None)
        assert second.missing is not None
        assert "finish the move, or cancel it" in second.missing.fix
        assert view(up_to(log), *pair(live("b", B), renamed(Kind.FUTURE, "b", B))).strays == ()

    def test_a33_what_lies_elsewhere_too_is_marked(self, log: LogDir) -> None:
        one = replace(live("a", A), first_offset=500, checkpoints=Checkpoints(log_start=0))
        assert only(gone(log, A), *pair(one)).is_tiered
        assert not only(gone(log, A), *pair(live("a", A))).is_tiered

    def test_the_metadata_log_is_never_listed(self, log: LogDir) -> None:
        one = replace(live("__cluster_metadata", A0), kind=Kind.METADATA)
        assert view(up_to(log), *pair(one, replace(one, kind=Kind.LIVE))).strays == ()


class TestRequests:
    def test_a_full_request_proves_what_it_leaves_out(self) -> None:
        found = only(request_image(), disk(live("a", A)), births={("/d1", "a-0"): BORN_MS})
        assert said(found) == ("proven", "unlisted", "Removed", "absent")
        assert isinstance(found.evidence, Removed)
        assert found.evidence.proof is Proof.FULL_REQUEST

    def test_what_nothing_is_said_of_is_unknown_and_has_no_proof(self) -> None:
        found = only(request_image(silent=False), disk(live("a", A)))
        assert said(found) == ("unknown", "unspoken", "Unknown", None)
        assert found.missing is not None
        for kind in (Kind.STRAY, Kind.FUTURE):
            found = only(request_image(silent=False), disk(renamed(kind, "a", A)))
            assert said(found) == ("unknown", "unspoken", "Unknown", None)

    def test_another_id_is_staged_without_a_deadline(self) -> None:
        known = Topic("a", raw(A), {0: Partition((1,), (1,))})
        image = replace(
            request_image(silent=False),
            topics={raw(A): known},
            names={"a": raw(A)},
            listed=frozenset([("a", 0)]),
            stages_mismatch=True,
        )
        found = only(image, disk(live("a", A0)), births={("/d1", "a-0"): BORN_MS})
        assert said(found) == ("held", "other-id", "Absent", "topic-id-mismatch")
        assert found.undo_until_ms is None

    def test_a_receipt_that_only_listens_proves_nothing(self) -> None:
        receipt = Receipt(node_id=NODE, cluster_id=CLUSTER, written_ms=WALL_MS, acts=False)
        document = full_of("b", B)
        image = requests.fold(None, document, receipt)
        found = only(image, disk(live("a", A), live("b", B)))
        assert found.path == "a-0"
        assert found.state in (State.UNPROVEN, State.UNKNOWN)
        assert not isinstance(found.evidence, Removed)


class TestSetAsideByBrokers:
    def test_a_stray_whose_id_is_gone_is_proven(self, log: LogDir) -> None:
        found = only(gone(log, A), *pair(renamed(Kind.STRAY, "a", A), live("b", B)))
        assert said(found) == ("proven", "removed", "Removed", "stray")
        assert found.undo_until_ms is None

    def test_a_stray_that_is_merely_not_named_is_not(self, log: LogDir) -> None:
        later(log)
        found = only(up_to(log), *pair(renamed(Kind.STRAY, "new", A0)))
        assert said(found) == ("unproven", "unlisted", "Absent", None)

    def test_a01_a_stray_that_the_cluster_wants_and_nothing_else_holds_is_shouted(self, log: LogDir) -> None:
        found = only(up_to(log), *pair(renamed(Kind.STRAY, "a", A)))
        assert said(found) == ("wanted", "wanted", "Present", None)
        found = only(up_to(log), *pair(renamed(Kind.DELETE, "a", A)))
        assert said(found) == ("wanted", "wanted", "Present", None)
        assert found.missing is not None
        assert "keep the broker stopped" in found.missing.fix

    @pytest.mark.parametrize(("kind", "state"), [(Kind.DELETE, State.LEAVING), (Kind.STRAY, State.UNPROVEN)])
    def test_what_was_wanted_and_is_gone_at_the_end_of_the_local_log_is_neither_wanted_nor_proven(
        self, kind: Kind, state: State, log: LogDir
    ) -> None:
        then, disks = up_to(log), pair(renamed(kind, "a", A))
        (found,) = view_strays(request(then, disks), disks, gone(log, A)).strays
        assert (found.state, found.missing is not None and found.missing.slug) == (state, "not-committed")
        assert not isinstance(found.evidence, Removed)

    def test_a_stray_beside_a_live_copy_is_to_be_compared(self, log: LogDir) -> None:
        found = only(up_to(log), *pair(renamed(Kind.STRAY, "a", A), live("a", A)))
        assert said(found) == ("unproven", "wanted", "Present", None)
        assert found.missing is not None
        assert "its live replica is /d1/a-0" in found.missing.found

    def test_a_name_that_was_cut_is_judged_by_its_id(self, log: LogDir) -> None:
        one = renamed(Kind.STRAY, "b", A, problems=("name-truncated",))
        # ``b`` is wanted and live; the directory's id is that of ``a``.
        assert said(only(gone(log, A), *pair(one, live("b", B)))) == ("proven", "removed", "Removed", "stray")
        one = renamed(Kind.STRAY, "b", None, problems=("name-truncated",))
        found = only(up_to(log), *pair(one, live("b", B)))
        assert (found.state, found.evidence) == (State.UNKNOWN, Unknown())

    def test_an_id_that_cannot_be_read_is_not_called_silence_nor_silence_an_id(self, log: LogDir) -> None:
        one = live("a", None, problems=("partition-metadata-broken",))
        found = only(request_image(silent=False), disk(one))
        assert (found.state, found.missing is not None and "id cannot be read" in found.missing.found) == (
            State.UNKNOWN,
            True,
        )
        found = only(request_image(silent=False), disk(live("a", A)))
        assert found.missing is not None
        assert "id cannot be read" not in found.missing.found

    def test_a_stray_younger_than_the_image_allows_is_not_proven(self, log: LogDir) -> None:
        one = renamed(Kind.STRAY, "a", A)
        found = only(gone(log, A), *pair(one), births={})
        assert said(found) == ("unproven", "removed", "Unknown", None)

    def test_a_stray_of_a_protected_topic_is_refused(self, log: LogDir) -> None:
        found = only(gone(log, A), *pair(renamed(Kind.STRAY, "a", A)), protected=("a",))
        assert said(found) == ("refused", "removed", "Removed", None)

    def test_a46_a_stray_that_may_be_the_last_copy_is_not_proven(self, log: LogDir) -> None:
        log.append(change(raw(A), 0, replicas=(2, 3), isr=(), leader=-1))
        later(log)
        found = only(up_to(log), *pair(renamed(Kind.STRAY, "a", A)))
        assert said(found) == ("unproven", "removed", "Absent", None)

    def test_what_a_broker_deletes_is_leaving_and_carries_no_proof_of_ours(self, log: LogDir) -> None:
        found = only(gone(log, A), *pair(renamed(Kind.DELETE, "a", A)))
        assert said(found) == ("leaving", "removed", "Absent", None)
        found = only(up_to(log), *pair(renamed(Kind.DELETE, "b", B), live("b", B)))
        assert said(found) == ("leaving", "wanted", "Present", None)


class TestImagesThatMayNotBeUsed:
    @pytest.mark.parametrize(
        "last_applied",
        [None, replace(FRESH, metadata=MetadataMark(epoch=9, offset=9))],
        ids=["forgotten", "rolled-back"],
    )
    def test_a20_a43_nothing_is_proven_without_a_position(self, log: LogDir, last_applied: Any) -> None:
        image = gone(log, A)
        found = view(
            image,
            *pair(live("a", A), renamed(Kind.STRAY, "a", A, 1)),
            host_context=host_context(last_applied=last_applied),
        )
        assert [said(stray) for stray in found.strays] == [("unproven", "removed", "Absent", None)] * 2
        assert found.unplaced is not None
        assert {stray.missing for stray in found.strays} == {found.unplaced}
        assert {(stray.rule, stray.undo_until_ms) for stray in found.strays} == {(None, None)}
        confirmed = host_context(last_applied=last_applied, is_position_confirmed=True)
        assert view(image, *pair(live("a", A)), host_context=confirmed).strays[0].state is State.PROVEN

    def test_a_missing_position_is_told_only_where_it_matters(self, log: LogDir) -> None:
        found = view(up_to(log), *pair(live("new", A0)), host_context=host_context(last_applied=None))
        assert (found.unplaced, len(found.strays)) == (None, 1)

    def test_a_stale_image_beside_a_running_broker_proves_nothing(self, log: LogDir) -> None:
        image = gone(log, A)
        old = NOW._replace(wall_ms=image.as_of_ms + HOUR_MS)
        found = view(image, *pair(live("a", A)), host_context=host_context(is_broker_running=True), now=old)
        assert said(found.strays[0]) == ("unproven", "removed", "Absent", None)
        assert found.unplaced is not None

    @pytest.mark.parametrize("changed", [{"cluster_id": "x" * 22}, {"node_id": 9}], ids=["cluster", "node"])
    def test_a29_another_brokers_image_says_nothing(self, log: LogDir, changed: dict[str, Any]) -> None:
        found = view(replace(gone(log, A), **changed), *pair(live("a", A)))
        assert found.refused is not None
        assert found.strays == ()

    def test_a29_a_node_that_runs_elsewhere_is_left_alone(self, log: LogDir) -> None:
        found = view(gone(log, A), *pair(live("a", A)), host_context=host_context(is_own_log=False))
        assert found.refused is not None
        assert found.refused.slug == "node-runs-elsewhere"

    def test_a27_of_a_disk_that_cannot_be_read_nothing_is_said(self, log: LogDir) -> None:
        problem = Problem("log-dir-offline", "/d2", "a log dir that can be read", "io-error")
        dead = LogDirFacts(log_dir="/d2", problem=problem)
        found = view(gone(log, A), *pair(live("a", A)), dead)
        assert found.unseen == (problem,)
        assert [stray.log_dir for stray in found.strays] == ["/d1"]

    def test_no_closed_disk_is_passed_over_in_silence_but_one_of_which_nothing_was_read(self, log: LogDir) -> None:
        """It may be empty, or read in part: then both the disk and what is wrong with it are told."""
        unread = Problem("log-dir-offline", "/d1", "a log dir", "io-error")
        whole = replace(
            disk(live("a", A)), quarantined=Problem("sync-failed", "/d1", "a disk without a failed sync", "one")
        )
        for one, is_said in (
            (replace(whole, replicas=()), True),
            (replace(whole, problem=unread), True),
            (replace(whole, problem=unread, replicas=()), False),
        ):
            found = view(up_to(log), one, pair()[1])
            assert [refusal.log_dir for refusal in found.passed_over] == (["/d1"] if is_said else [])

    def test_a_foreign_or_closed_disk_is_passed_over(self, log: LogDir) -> None:
        image = gone(log, A)
        one, rest = pair(live("a", A))
        quarantined = Problem("sync-failed", "/d1", "a disk on which no sync failed", "one")
        for changed in ({"node_id": 7}, {"cluster_id": "y" * 22}, {"quarantined": quarantined}):
            found = view(image, replace(one, **changed), rest)
            if found.refused is None:
                assert [refusal.log_dir for refusal in found.passed_over] == ["/d1"]
            assert found.strays == ()

    def test_a29_the_broker_that_a_foreign_disk_names_is_shown(self, log: LogDir) -> None:
        one, _ = pair(live("a", A))
        refusal = against_log_dir(gone(log, A), replace(one, cluster_id="y" * 22))
        assert refusal is not None
        assert (refusal.why, refusal.problem.found) == (Why.FOREIGN, "y" * 22)
        refusal = against_log_dir(gone(log, A), replace(one, node_id=9))
        assert refusal is not None
        assert (refusal.why, refusal.problem.found) == (Why.FOREIGN, "9")

    def test_a38_the_staging_limit_is_told_and_takes_no_proof_away(self, log: LogDir) -> None:
        found = view(gone(log, A), *pair(live("a", A)), record=None, is_confirmed=False)
        assert found.over_limit is not None
        assert said(found.strays[0]) == ("proven", "removed", "Removed", "topic-removed")


def test_only_candidates_are_looked_at_closely(log: LogDir) -> None:
    image = gone(log, A)
    facts = pair(live("a", A), live("b", B), renamed(Kind.DELETE, "b", B), renamed(Kind.FUTURE, "b", B))
    assert [one.path for one in unclaimed(image, facts)] == ["a-0", f"b-0.{UNIQUE}-delete"]
    assert {stray.path for stray in view(image, *facts).strays} == {one.path for one in unclaimed(image, facts)}


def test_the_view_is_in_the_order_of_the_disks(log: LogDir) -> None:
    image = gone(log, A, B)
    first = disk(live("b", B), live("a", A))
    second = disk(live("a", A, 1, log_dir="/d2"), *OTHERS, log_dir="/d2")
    assert [stray.path for stray in view(image, first, second).strays] == ["b-0", "a-0", "a-1"]


def test_every_word_is_used() -> None:
    """The states of the listing and of docs/json.md are one list."""
    text = (Path(__file__).parents[3] / "docs" / "json.md").read_text(encoding="utf-8")
    section = text.split("## strays", 1)[1].split("\n## ", 1)[0]
    for state in State:
        assert f"`{state.value}`" in section
    for says in AssignmentState:
        assert f"`{says.value}`" in section


def test_ids_and_names_are_told_as_they_are(log: LogDir) -> None:
    found = only(up_to(log), *pair(renamed(Kind.STRAY, "a", A, 1)))
    assert (found.ref.topic, found.ref.topic_id, found.ref.partition) == ("a", TopicId.parse(A), 1)
    assert found.path == f"a-1.{UNIQUE}-stray"
