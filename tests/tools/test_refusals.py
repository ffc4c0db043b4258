"""Every kind of refusal, as a command prints it: slug, path, expected, found and fix, in JSON and in text.

No text for people carries a slug, or another code, in any of these answers.

What is printed in each situation of ``refusals`` stands in ``refusals.json``; ``python -m tests.tools.test_refusals``
writes it again, to be read before it is committed.
"""

from __future__ import annotations

import ast
import errno
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from logdir.disk.kernel.host import Call, HostDisk
from logdir.errors import Problem
from logdir.refusal_slug import Why
from logdir.worker import state
from tests.tools.ctl import ctl, ctl_json, two_disks
from tests.tools.free_text import VALUES, codes_in, values_in
from tests.tools.refusals import SITUATIONS
from tools.cli.arguments import Exit

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "refusals.json"
SHOWN: dict[str, dict[str, str]] = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
ELSEWHERE: dict[Why, tuple[str, str]] = {
    Why.NOT_FOUND: ("tests/logdir/decide/test_restore.py", "test_what_is_held_or_not_there_or_being_purged_is_refused"),
    Why.NOT_LIVE: (
        "tests/logdir/decide/test_stage.py",
        "test_what_is_not_live_is_refused_with_the_command_that_takes_it",
    ),
    Why.REPLICA_UNREADABLE: (
        "tests/logdir/decide/test_stage.py",
        "test_a_replica_that_cannot_be_read_is_refused_with_whose_rights_are_needed",
    ),
    Why.LOG_AHEAD: (
        "tests/reconcile/test_attacks_requests.py",
        "test_a04_a_log_beyond_the_other_replicas_is_a_conflict",
    ),
    Why.METADATA_TOO_OLD: ("tests/tools/test_strays.py", "test_a29_an_old_word_beside_a_running_broker_proves_nothing"),
    Why.METADATA_LOG_CHANGED: ("tests/tools/test_staged_adopt.py", "test_the_metadata_log_written_meanwhile_stops_it"),
    Why.CONFIGURATION_CHANGED: (
        "tests/tools/test_broker.py",
        "test_a45_a_server_properties_that_is_edited_stops_the_next_batch",
    ),
    Why.LOW_SPACE: (
        "tests/logdir/decide/test_capture.py",
        "test_a17_a_disk_with_too_little_free_is_refused_in_figures",
    ),
    Why.LOG_DIR_SUSPECT: ("tests/tools/test_inventory.py", "test_log_dir_that_does_not_answer_is_written_down"),
    Why.LOG_DIRS_INCOMPLETE: (
        "tests/logdir/service/test_layout.py",
        "test_no_verb_but_a_way_back_is_planned_without_one_of_the_log_dirs",
    ),
    Why.DUPLICATE_LOG_DIR: (
        "tests/logdir/service/test_kafka_locks.py",
        "test_two_paths_to_one_log_dir_are_refused_by_name_where_both_locks_are_granted",
    ),
    Why.NO_PERMISSION: (
        "tests/logdir/disk/test_refusal_slug.py",
        "test_a_probe_that_may_not_be_renamed_says_as_whom_to_run",
    ),
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
        "test_a_root_that_may_not_be_finished_is_refused_with_whom_to_run_as",
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
        "test_what_needs_a_lock_is_refused_with_how_long_it_waits",
    ),
    Why.OWNERS_DIFFER: (
        "tests/logdir/service/test_owner.py",
        "test_a09_log_dirs_of_different_owners_are_refused_by_name",
    ),
    Why.LINK_NOT_PERMITTED: (
        "tests/logdir/disk/test_refusal_slug.py",
        "test_a_file_that_may_not_be_linked_is_refused_with_whom_to_run_as",
    ),
    Why.LEASE_NOT_PERMITTED: (
        "tests/logdir/disk/test_refusal_slug.py",
        "test_a_file_that_may_not_be_leased_is_refused_with_whom_to_run_as",
    ),
    Why.FILE_NOT_PROTECTED: (
        "tests/logdir/daemon/test_inbox_users.py",
        "test_a_document_that_others_can_write_is_refused_also_in_the_place_where_it_is_followed",
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
    assert list(codes_in(value)) == []
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


@pytest.mark.parametrize(
    ("answer", "is_found"),
    [
        ({"items": [{"detail": "no-evidence"}]}, True),
        ({"problems": [{"slug": "no-evidence", "found": "no-evidence: no metadata that may be used"}]}, True),
        ({"warnings": ["no-evidence"]}, True),
        ({"problems": [{"slug": "log-dirs-incomplete", "found": "no answer (log-dir-suspect)"}]}, True),
        ({"items": [{"detail": "what it was: no-evidence."}]}, True),
        ({"problems": [{"fix": "add --even-if-unknown; as no-evidence, see logdirctl explain no-evidence"}]}, True),
        ({"items": [{"detail": "purging"}]}, True),
        ({"items": [{"detail": "no evidence", "path": "incoming/x_0", "problem": {"slug": "no-evidence"}}]}, False),
        ({"problems": [{"fix": "see logdirctl explain no-evidence"}]}, False),
        ({"problems": [{"fix": "add --even-if-found layout-file-missing"}]}, False),
        ({"problems": [{"found": "/d/no-evidence/x, no-evidence-2 and no-evidence.json"}]}, False),
        ({"items": [{"detail": "its purging has begun"}]}, False),
        ({"problems": [{"found": "applying"}]}, True),
        ({"problems": [{"expected": "applied or verified or final, plan SHA"}]}, True),
        ({"problems": [{"found": "a work root of kind beside"}]}, True),
        ({"problems": [{"found": "replicas under topic ids, and the state applying"}]}, True),
        ({"items": [{"detail": "it was staged as replica-moved-away"}]}, True),
        ({"items": [{"detail": "its removal was known (metadata-log)"}]}, True),
        ({"items": [{"state": "applying", "reason": "moved", "kind": "in-place"}]}, False),
        ({"problems": [{"found": "topic-id"}]}, True),
        ({"problems": [{"found": "the topic-id layout"}]}, False),
        ({"problems": [{"found": "it is applied beside the log dir"}]}, False),
        ({"problems": [{"found": "a read-only disk", "fix": "init --work-root in-place"}]}, False),
    ],
    ids=[
        "detail", "found", "warnings", "in parentheses", "at the end", "beside a command", "one word",
        "slug and path", "asked for", "confirmed", "part of a name", "one word amid others",
        "a state", "states", "whose value it is", "which state", "a reason", "a proof",
        "a key of its own", "a layout", "its words", "words of a sentence", "typed",
    ],
)  # fmt: skip
def test_a_code_in_a_text_for_people_is_seen(answer: dict[str, Any], is_found: bool) -> None:
    assert bool(list(codes_in(answer))) is is_found


MODULE = """
class First(Enum):
    '''A docstring.'''

    ONE = "one-two"
    NUMBER = 7
    TEXT = "two words"

OUTSIDE = "outside"

class Second(StrEnum):
    THREE = "three"

class Plain:
    FIELD = "field"
"""


def test_the_values_of_every_enum_are_seen() -> None:
    assert values_in(MODULE) == {"one-two", "three"}
    assert {"applying", "rolling-back", "in-place", "topic-id-mismatch", "metadata-log", "purge-captured"} <= VALUES


def found_of(slug: str, *words: object) -> list[str]:
    """Return what the problems of a slug say was found; no text of the answer carries a slug."""
    said = json.loads(ctl(*words, "--json").out)
    assert list(codes_in(said)) == []
    texts = [problem["found"] for problem in said["problems"] if problem["slug"] == slug]
    assert texts
    return texts


def test_a_log_dir_that_is_gone_is_told_in_words(tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    named = "--log-dirs", ",".join(map(str, disks))
    assert ctl("init", *named, "--apply").status == Exit.DONE
    disks[1].rename(tmp_path / "away")
    texts = found_of("log-dir-offline", "strays", *named)
    assert all(text.endswith("no directory there") for text in texts), texts


def test_why_a_copy_was_not_kept_is_told_in_words(tmp_path: Path) -> None:
    named = "--log-dirs", ",".join(map(str, two_disks(tmp_path)))
    assert ctl("init", *named, "--apply").status == Exit.DONE

    def fail(call: Call) -> None:
        if "handover.json" in f"{call.path} {call.to}":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with mock.patch.object(state, "HostDisk", return_value=HostDisk(fail)):
        texts = found_of("checkpoints-not-kept", "handover", *named)
    assert all(text.endswith("handover.json: No space left on device") for text in texts), texts


@pytest.mark.parametrize("why", ELSEWHERE, ids=lambda why: str(why.value))
def test_the_test_of_a_kind_that_no_command_meets_compares_the_whole_of_it(why: Why) -> None:
    path, name = ELSEWHERE[why]
    assert why.name in compared((ROOT / path).read_text(), name)


def compared(source: str, name: str) -> set[str]:
    """Return the members of ``Why`` that a test of a file gives to ``require_whole``, each with all four texts.

    A call in a branch does not count: it may never be reached.
    """
    (test,) = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == name)
    return {
        why.attr
        for call in always_called(test)
        if isinstance(call.func, ast.Name) and call.func.id == "require_whole"
        for why in call.args[1:]
        if isinstance(why, ast.Attribute) and ast.unparse(why.value) == "Why"
        if {one.arg for one in call.keywords} == {"path", "expected", "found", "fix"}
    }


def always_called(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls in a test that stand in no branch, no handler of an error and no function inside it."""
    for below in ast.iter_child_nodes(node):
        if not isinstance(below, ast.If | ast.IfExp | ast.BoolOp | ast.ExceptHandler | ast.FunctionDef | ast.Lambda):
            if isinstance(below, ast.Call):
                yield below
            yield from always_called(below)


@pytest.mark.parametrize(
    ("body", "is_compared"),
    [
        ('require_whole(error, Why.NOT_FOUND, path="/d1", expected="a", found="b", fix="c")', True),
        ("assert error.slug == Why.NOT_FOUND.value", False),
        ('assert "not-found" in said.err  # require_whole(error, Why.NOT_FOUND, path="/d1", fix="c")', False),
        ('require_whole(error, Why.NOT_LIVE, path="/d1", expected="a", found="b", fix="c")', False),
        ('require_whole(error, Why.NOT_FOUND, path="/d1", expected="a", found="b")', False),
        ('if error: require_whole(error, Why.NOT_FOUND, path="/d1", expected="a", found="b", fix="c")', False),
    ],
)
def test_a_slug_alone_is_no_comparison_of_the_whole(body: str, is_compared: bool) -> None:
    source = f"class TestA:\n    def test_it(self) -> None:\n        {body}\n"
    assert ("NOT_FOUND" in compared(source, "test_it")) is is_compared


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
