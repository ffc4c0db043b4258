"""Every kind of refusal, as a command prints it: slug, path, expected, found and fix, in JSON and in text.

What is printed in each situation of ``refusals`` stands in ``refusals.json``; ``python -m tests.tools.test_refusals``
writes it again, to be read before it is committed.
"""

from __future__ import annotations

import ast
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from logdir.errors import Problem
from logdir.refusal_slug import Why
from tests.tools.ctl import ctl, ctl_json
from tests.tools.refusals import SITUATIONS
from tools.cli.arguments import Exit

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "refusals.json"
SHOWN: dict[str, dict[str, str]] = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
ELSEWHERE: dict[Why, tuple[str, str]] = {
    Why.NOT_FOUND: ("tests/logdir/decide/test_restore.py", "test_what_is_held_or_not_there_or_being_purged_is_refused"),
    Why.NOT_LIVE: ("tests/logdir/decide/test_stage.py", "test_refused"),
    Why.REPLICA_UNREADABLE: ("tests/logdir/decide/test_stage.py", "test_refused"),
    Why.LOG_AHEAD: (
        "tests/reconcile/test_attacks_requests.py",
        "test_a04_a_log_beyond_the_other_replicas_is_a_conflict",
    ),
    Why.NOT_STAGED: ("tests/logdir/disk/test_export.py", "test_no_copy_on_its_way_in_is_exported"),
    Why.METADATA_TOO_OLD: ("tests/tools/test_strays.py", "test_a29_an_old_word_beside_a_running_broker_proves_nothing"),
    Why.METADATA_DIVERGED: (
        "tests/logdir/cluster/test_metadata_log.py",
        "test_of_another_log_nothing_is_taken_for_removed",
    ),
    Why.METADATA_LOG_CHANGED: ("tests/tools/test_staged_adopt.py", "test_the_metadata_log_written_meanwhile_stops_it"),
    Why.CONFIGURATION_CHANGED: (
        "tests/tools/test_broker.py",
        "test_a45_a_server_properties_that_is_edited_stops_the_next_batch",
    ),
    Why.LOW_SPACE: (
        "tests/logdir/decide/test_capture.py",
        "test_a17_nothing_is_captured_on_a_disk_with_less_than_a_tenth_free",
    ),
    Why.LOG_DIR_SUSPECT: ("tests/tools/test_inventory.py", "test_log_dir_that_does_not_answer_is_written_down"),
    Why.LOG_DIRS_INCOMPLETE: (
        "tests/logdir/service/test_layout.py",
        "test_no_verb_but_a_way_back_is_planned_without_one_of_the_log_dirs",
    ),
    Why.DUPLICATE_LOG_DIR: ("tests/logdir/service/test_kafka_locks.py", "test_two_paths_to_one_log_dir_are_refused"),
    Why.NO_PERMISSION: ("tests/tools/test_no_permission.py", "test_no_missing_right_is_called_a_dead_disk"),
    Why.UNSUPPORTED_FILE_SYSTEM: (
        "tests/logdir/disk/test_work_root.py",
        "test_a07_other_file_systems_are_read_only_to_us",
    ),
    Why.MOUNTS_DIFFER: (
        "tests/logdir/disk/test_work_root_places.py",
        "test_a06_a_root_to_which_no_rename_goes_any_more_is_refused_and_says_where",
    ),
    Why.WORK_ROOT_FAILED: (
        "tests/logdir/disk/test_work_root_crash.py",
        "test_what_keeps_a_root_from_being_finished_is_told_in_the_words_of_the_kernel",
    ),
    Why.READ_BACK_DIFFERS: ("tests/logdir/disk/test_small_file.py", "test_what_does_not_read_back_never_gets_the_name"),
    Why.RECORD_EXISTS: (
        "tests/logdir/disk/test_staging_limit.py",
        "test_a_new_work_root_has_an_empty_record_and_begins_only_once",
    ),
    Why.NAME_TAKEN: (
        "tests/logdir/disk/test_staging.py",
        "test_restore_refuses_a_name_that_is_taken_and_changes_nothing",
    ),
    Why.LOCK_FILE_REPLACED: ("tests/logdir/disk/test_locks.py", "test_a_lock_replaced_again_and_again_is_refused"),
    Why.RENAME_FAILED: (
        "tests/logdir/disk/test_refusal_slug.py",
        "test_a_probe_that_fails_for_no_known_reason_says_what_the_kernel_does",
    ),
    Why.HANDED_OVER: (
        "tests/logdir/daemon/test_handover.py",
        "test_a_daemon_that_hands_over_does_nothing_that_needs_locks_until_the_broker_runs",
    ),
    Why.OWNERS_DIFFER: (
        "tests/logdir/service/test_owner.py",
        "test_a09_log_dirs_of_different_owners_are_refused_by_name",
    ),
    Why.LINK_NOT_PERMITTED: (
        "tests/logdir/disk/test_refusal_slug.py",
        "test_a_file_of_the_broker_that_cannot_be_linked_is_refused_by_name",
    ),
    Why.LEASE_NOT_PERMITTED: (
        "tests/logdir/disk/test_refusal_slug.py",
        "test_a_file_of_the_broker_that_cannot_be_leased_is_refused_by_name",
    ),
    Why.NO_FREE_NAME: ("tests/logdir/disk/test_refusal_slug.py", "test_a_name_is_refused_once_thousands_are_taken"),
}
"""Kinds that no command meets on a quiet disk (races, failing calls, hung disks): the test that shows each."""


def refused(folder: Path, why: Why) -> tuple[Exit, str, dict[str, Any]]:
    """Make a situation twice; return the exit status, what is said, and the problem of the slug in JSON."""
    one, two = folder / "text", folder / "json"
    one.mkdir()
    two.mkdir()
    said = ctl(*SITUATIONS[why](one))
    words = [*SITUATIONS[why](two), "--json"]
    value = json.loads(ctl(*words).out)
    assert value["exit"] == said.status
    items = [one["problem"] for one in value["result"].get("items", ()) if one.get("problem")]
    found = [one for one in (*value["problems"], *items) if one["slug"] == why.value]
    assert found, (said.err, value)
    return Exit(said.status), said.err.replace(str(one), "DIR"), normal(found[0], two)


def normal(problem: dict[str, str], folder: Path) -> dict[str, str]:
    """Return a problem without what differs from run to run."""
    texts = {key: text.replace(str(folder), "DIR") for key, text in problem.items()}
    return {key: re.sub(r"\b[0-9a-f]{64}\b", "SHA256", re.sub(r"\b\d{7,}\b", "N", text)) for key, text in texts.items()}


@pytest.mark.parametrize("why", SITUATIONS, ids=lambda why: str(why.value))
def test_a_refusal_is_printed_with_its_slug_and_all_of_it_in_json_and_in_text(why: Why) -> None:
    with tempfile.TemporaryDirectory() as folder:  # its name is short: a long text is cut off when it is shown
        status, text, problem = refused(Path(folder), why)
    assert status in (Exit.PROBLEMS, Exit.REFUSED)
    assert problem == SHOWN[why.value]
    line = Problem(**problem).line()
    flat = re.sub(r"\b[0-9a-f]{64}\b", "SHA256", re.sub(r"\b\d{7,}\b", "N", text))
    assert line in flat


def test_every_kind_of_refusal_is_shown() -> None:
    assert SITUATIONS.keys() | ELSEWHERE.keys() == set(Why)
    assert not SITUATIONS.keys() & ELSEWHERE.keys()
    assert SHOWN.keys() == {why.value for why in SITUATIONS}


@pytest.mark.parametrize("why", ELSEWHERE, ids=lambda why: str(why.value))
def test_the_test_of_a_kind_that_no_command_meets_names_its_slug(why: Why) -> None:
    path, name = ELSEWHERE[why]
    source = (ROOT / path).read_text()
    (test,) = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == name)
    first = min([test.lineno, *(one.lineno for one in test.decorator_list)])
    body = "\n".join(source.splitlines()[first - 1 : test.end_lineno])
    assert why.value in body or f"Why.{why.name}" in body


@pytest.mark.parametrize("slug", SHOWN)
def test_a_refusal_names_the_thing_and_a_way_out(slug: str) -> None:
    problem = SHOWN[slug]
    assert all(problem.values()), problem
    # "found none", "another" or "others" alone does not name what was found.
    assert problem["found"] not in ("none", "another", "others", "one", "something", "neither", "not", "its own")
    assert not re.search(r"\b(told|nobody)\b", " ".join(problem.values())), problem


def test_a_refused_item_carries_the_problem_that_is_listed(tmp_path: Path) -> None:
    status, result = ctl_json(*SITUATIONS[Why.ASSIGNMENT_UNKNOWN](tmp_path))
    assert (status, result["items"][0]["problem"]["slug"]) == (Exit.REFUSED, "assignment-unknown")


def main() -> None:
    """Write what is shown."""
    found = {}
    for why in SITUATIONS:
        with tempfile.TemporaryDirectory() as folder:
            found[why.value] = refused(Path(folder), why)[2]
    GOLDEN.write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
