"""Bugs that once nobody missed: each is sown again by function and intent, and the test that forbids it must fail.

A bug names a function and what becomes of one expression or statement in it, compared as code, not as text: lines may
move, and be wrapped in another way.

Not here: changes drawn from all there are (``sown``), bugs that only a model disk can miss (``tests.crash.seeded``).
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from tests.operations.source import ROOT, NoTargetError, Tree, file_of

_DECIDE, _DISK, _SERVICE, _TOOLS = "logdir.decide", "logdir.disk", "logdir.service", "tools.logdirctl"
_FIGURES = "tests/logdir/decide/test_figures.py"


class Bug(NamedTuple):
    """One bug."""

    name: str
    function: str
    """As it is imported, ``package.module:function``; a module alone for what stands at its top."""
    old: str
    new: str
    test: str
    """Which must fail, without parameters."""

    @property
    def file(self) -> str:
        """Return the path of its module, relative to the repository."""
        return file_of(self.function)


class _Change(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = ast.dump(old), new
        self.count = 0

    def visit(self, node: ast.AST) -> ast.AST:
        """Change a node that is meant."""
        if ast.dump(node) == self._old:
            self.count += 1
            return ast.copy_location(self._new, node)
        return self.generic_visit(node)


def _parsed(text: str) -> ast.AST:
    (statement,) = ast.parse(text).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def text(bug: Bug) -> str:
    """Return the file with the bug in it.

    Raises:
        NoTargetError: What is changed is not there exactly once.
    """
    tree = Tree((ROOT / bug.file).read_text("utf-8"))
    change = _Change(_parsed(bug.old), _parsed(bug.new))
    change.visit(tree.find(bug.function))
    if change.count != 1:
        raise NoTargetError(f"{bug.name}: {bug.function} holds {change.count} times: {bug.old}")
    return tree.text()


BUGS: tuple[Bug, ...] = (
    Bug(
        "the window of the staging limit is 12 hours",
        f"{_DECIDE}.staging_limit",
        "WINDOW_MS = 24 * 60 * 60 * 1000", "WINDOW_MS = 12 * 60 * 60 * 1000",
        f"{_FIGURES}::test_no_staging_of_the_last_24_hours_is_forgotten",
    ),
    Bug(
        "the window of the staging limit is 23 hours",
        f"{_DECIDE}.staging_limit",
        "WINDOW_MS = 24 * 60 * 60 * 1000", "WINDOW_MS = 23 * 60 * 60 * 1000",
        f"{_FIGURES}::test_no_staging_of_the_last_24_hours_is_forgotten",
    ),
    Bug(
        "a clock is wrong by 16 s at most, at both ends together",
        f"{_DECIDE}.staged.deadline",
        "CLOCK_ERROR_MS = 2 * 16 * 1000", "CLOCK_ERROR_MS = 16 * 1000",
        f"{_FIGURES}::test_a_gap_is_never_credited_without_32_seconds_of_doubt",
    ),
    Bug(
        "a clock is steady after a second",
        f"{_DECIDE}.staged.deadline",
        "STEADY_MS = 5 * 60 * 1000", "STEADY_MS = 1000",
        f"{_FIGURES}::test_no_gap_is_credited_whose_clock_was_steady_for_less_than_5_minutes_before_it",
    ),
    Bug(
        "metadata may be 100 minutes old beside a running broker",
        f"{_DECIDE}.image.trust",
        "DEFAULT_MAX_AGE_MS = 10 * 60 * 1000", "DEFAULT_MAX_AGE_MS = 100 * 60 * 1000",
        f"{_FIGURES}::test_metadata_older_than_10_minutes_is_not_used_beside_a_running_broker",
    ),
    Bug(
        "an overfull record forgets early",
        f"{_DECIDE}.staging_limit:_fitting",
        "max(count.instant_ms for count in old)", "min(count.instant_ms for count in old)",
        f"{_FIGURES}::test_an_overfull_record_forgets_nothing_before_its_24_hours",
    ),
    Bug(
        "an overfull record drops the oldest",
        f"{_DECIDE}.staging_limit:_fitting",
        "return (one, *counts[excess + 1:])", "return tuple(counts[excess:])",
        f"{_FIGURES}::test_an_overfull_record_forgets_nothing_before_its_24_hours",
    ),
    Bug(
        "a whole topic goes on weak evidence behind one on strong",
        f"{_DECIDE}.reconcile:_what_goes",
        "Absent(as_of_ms=0) if weak - staying or not stages else stages[0].evidence", "stages[0].evidence",
        "tests/reconcile/test_weak_evidence.py::test_a38_a_whole_topic_on_weak_evidence_does_not_go_behind_one_on_strong",
    ),
    Bug(
        "a purge is confirmed by an image that says nothing",
        f"{_DECIDE}.staged.purge_recheck:_against_old_evidence",
        "isinstance(assignment.evidence, Unknown)", "False",
        "tests/reconcile/test_weak_evidence.py::test_a02_an_image_that_says_nothing_of_it_confirms_no_purge",
    ),
    Bug(
        "a protected glob is compared without its capitals",
        f"{_DECIDE}.refusal:is_protected",
        "fnmatchcase(topic, pattern)", "fnmatchcase(topic.lower(), pattern.lower())",
        f"{_FIGURES}::test_a_glob_with_capitals_does_not_protect_another_topic_nor_fail_its_own",
    ),
    Bug(
        "a protected glob with capitals protects nothing",
        f"{_DECIDE}.refusal:is_protected",
        "fnmatchcase(topic, pattern)", "fnmatchcase(topic.lower(), pattern)",
        f"{_FIGURES}::test_a_glob_with_capitals_does_not_protect_another_topic_nor_fail_its_own",
    ),
    Bug(
        "two staged copies of one id under two names are both restored",
        f"{_DECIDE}.staged.restore:_claimed",
        "(marker.topic,) if marker.topic_id is None else (marker.topic, marker.topic_id)", "(marker.topic,)",
        f"{_FIGURES}::test_two_staged_copies_of_one_id_under_two_names_are_not_both_restored",
    ),
    Bug(
        "the record of the staging limit is not written by stage",
        f"{_SERVICE}.stage:_Work.decide",
        "self.broker.write_all(partial(staging_limit.write_record, record=plan.record))", "None",
        "tests/tools/test_stage_limit.py::test_a38_no_staging_goes_uncounted_in_any_work_root",
    ),
    Bug(
        "the record of the staging limit is read as empty by stage",
        f"{_SERVICE}.stage:plan",
        "limit_rule.highest(broker.on_all(staging_limit.read_records))", "()",
        "tests/tools/test_stage_limit.py::test_a38_no_staging_is_forgotten_by_the_next",
    ),
    Bug(
        "a record of the staging limit that is missing is read as empty",
        f"{_DISK}.record.staging_limit:_read",
        "return None", "return ()",
        "tests/tools/test_stage_limit.py::test_a38_no_record_that_is_missing_or_torn_counts_as_empty",
    ),
    Bug(
        "a purge is not asked again right before its claim",
        f"{_SERVICE}.batch.purge_batches:purge_all",
        "against(action)", "None",
        "tests/tools/test_purge_asked_again.py::test_a43_nothing_goes_that_is_wanted_again_since_the_plan_was_made",
    ),
    Bug(
        "a purge is never asked again, however long it takes",
        f"{_SERVICE}.batch.purge_recheck:Rechecking.against",
        "self._has_source and boottime_ms() - self._at_ms > _FRESH_MS", "False",
        "tests/tools/test_purge_asked_again.py::test_a43_nothing_of_a_later_batch_goes_that_is_wanted_again_since_the_first",
    ),
    Bug(
        "a purge is asked again after 100 seconds",
        f"{_SERVICE}.batch.purge_recheck",
        "_FRESH_MS = 10 * 1000", "_FRESH_MS = 100 * 1000",
        "tests/tools/test_purge_asked_again.py::test_a43_nothing_goes_that_is_wanted_again_since_the_plan_was_made",
    ),
    Bug(
        "a hard link made between claim and truncation is not seen",
        f"{_DISK}.replica.purge:_shortened",
        "found = directory.stat(name)", "pass",
        "tests/logdir/disk/test_purge_linked.py::test_a17_a_hard_link_made_between_claim_and_truncation_loses_no_byte",
    ),
    Bug(
        "an interrupted adoption is finished while its name is live on another disk",
        f"{_DISK}.replica.adopt_recovery:_finish",
        "any(is_there(other.top, live) for other in open_dirs)", "is_there(open_dir.top, live)",
        "tests/logdir/disk/test_adopt_refused.py"
        "::test_a16_no_start_finishes_an_adoption_while_its_name_is_live_on_any_disk",
    ),
    Bug(
        "an interrupted adoption is finished while a log dir is left out",
        f"{_DISK}.recover_broker:recover_broker",
        "is_whole and open_dirs", "open_dirs",
        "tests/logdir/disk/test_adopt_refused.py"
        "::test_a16_no_start_finishes_or_withdraws_an_adoption_while_a_log_dir_is_left_out",
    ),
    Bug(
        "an adoption is done for another id than the topic has by now",
        f"{_DISK}.replica.adopt:_require_possible",
        "(found_id := _id_in(directory)) != item.topic_id", "(found_id := _id_in(directory)) is None",
        "tests/logdir/disk/test_adopt_refused.py"
        "::test_a16_no_adoption_is_done_for_another_id_than_the_topic_has_by_now",
    ),
    Bug(
        "a live log of another id counts as adopted",
        f"{_DISK}.replica.adopt:_is_adopted",
        "_id_in(live) != item.topic_id or not wanted", "not wanted",
        "tests/logdir/disk/test_adopt_refused.py"
        "::test_a16_no_live_log_of_another_id_counts_as_adopted_though_it_has_the_files",
    ),
    Bug(
        "an adoption is finished for what was staged with another id",
        f"{_DISK}.replica.adopt_recovery:_staged_of",
        "marker.reason is Reason.DUPLICATE and marker.topic_id == parts.topic_id", "marker.reason is Reason.DUPLICATE",
        "tests/logdir/disk/test_adopt_refused.py"
        "::test_a16_no_start_finishes_an_adoption_for_what_was_staged_with_another_id",
    ),
    Bug(
        "a capture is called made if any file is shared",
        f"{_DISK}.replica.earlier_capture:EarlierCaptures.find",
        "all(held.get(file, (0, 0))[0] == inode for file, (inode, _) in seen.items())",
        "any(held.get(file, (0, 0))[0] == inode for file, (inode, _) in seen.items())",
        "tests/logdir/disk/test_capture_shared.py"
        "::test_a17_no_capture_is_called_made_because_another_shares_some_of_its_files",
    ),
    Bug(
        "the log start that was seen before is dropped where a capture is committed",
        f"{_DISK}.replica.capture:_commit",
        "points = replace(points, log_start=seen)", "pass",
        "tests/logdir/disk/test_capture.py"
        "::test_a_log_start_that_the_broker_took_out_of_its_file_is_the_one_that_was_seen_before",
    ),
    Bug(
        "the internal topics are not protected, but for the offsets of consumers",
        "tools.cli.protection:protected_of",
        "(INTERNAL,)", "('__consumer_offsets',)",
        "tests/tools/test_protected_topics.py::test_a38_no_internal_topic_is_staged_unless_it_is_said",
    ),
    Bug(
        "a lock that is replaced between two batches goes unnoticed",
        f"{_DISK}.batch_loop:run",
        "held.require_held()", "None",
        "tests/tools/test_batch_loop.py::test_no_lock_that_was_replaced_between_batches_goes_unnoticed",
    ),
    Bug(
        "the batch loop goes on over an item about which nothing is decided",
        f"{_DISK}.batch_loop:run",
        "len(left) == count", "False",
        "tests/logdir/disk/test_batch_loop.py::test_no_turn_that_takes_nothing_out_is_followed_by_another",
    ),
    Bug(
        "a request is marked applied though a row failed",
        f"{_SERVICE}.batch.reconcile_apply:_Work.finished",
        "all(row.state == ItemState.DONE for row in self.rows)", "True",
        "tests/tools/test_reconcile_records.py::test_no_request_is_marked_applied_though_a_row_failed",
    ),
    Bug(
        "a request is marked applied though a disk took no changes",
        f"{_SERVICE}.batch.reconcile_apply:_Work.finished",
        "not self.sick and all(row.state == ItemState.DONE for row in self.rows)",
        "not any(row.problem for row in self.rows)",
        "tests/tools/test_reconcile_records.py::test_no_request_is_marked_applied_though_a_disk_took_no_changes",
    ),
    Bug(
        "a request is marked applied though something of it is refused",
        f"{_SERVICE}.batch.reconcile_apply:_Work.finished",
        "last.is_whole", "True",
        "tests/tools/test_reconcile_records.py::test_no_request_is_marked_applied_though_a_replica_of_it_is_held",
    ),
    Bug(
        "a removal in the broker's own log is forgotten for a source that is named",
        f"{_DECIDE}.image.still_assigned:assignment_of",
        "cluster.beside", "()",
        "tests/tools/test_known_gone.py::test_a47_what_its_own_log_shows_removed_is_not_renamed_back_with_another_source",
    ),
    Bug(
        "controller.json of another cluster is believed",
        f"{_DISK}.record.controller:_read",
        "record.cluster_id in (None, open_dir.cluster_id)", "True",
        "tests/tools/test_reconcile_records.py::test_no_controller_json_of_another_cluster_or_node_is_believed",
    ),
    Bug(
        "final is durable before another disk's finalizing",
        f"{_SERVICE}.batch.layout_phases:_Work.run",
        "is_finalized and any(isinstance(action, LiftStartBlock) for action in phase)", "False",
        "tests/logdir/disk/test_layout_crash.py"
        "::test_a51_no_log_dir_is_durably_final_before_another_is_durably_finalizing",
    ),
    Bug(
        "final is written although another disk's finalizing failed",
        f"{_SERVICE}.batch.layout_phases:_Work.run",
        "not is_well", "False",
        "tests/logdir/disk/test_layout_crash.py::test_a51_no_log_dir_is_final_though_a_call_for_another_failed",
    ),
)  # fmt: skip
