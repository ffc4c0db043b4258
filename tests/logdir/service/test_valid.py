"""What is not named right is told before a log dir is opened, and what cannot be read is an error of ours."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logdir.decide.staged.deadline import DelayPolicy
from logdir.disk.record import staging_limit
from logdir.errors import ConfigError, Problem
from logdir.formats.own.replica_marker import BY_HAND
from logdir.service import export
from logdir.service import stage as staging
from logdir.service.batch.purge_recheck import look_again
from logdir.service.batch.reconcile_case import ReconcileRequest
from logdir.service.cluster import live_source
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs import open_broker
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.reconcile import Policy
from logdir.service.report.json_form import from_json
from logdir.service.staged_listing import StagedListingRequest, list_staged
from tests.generated.requests import EXAMPLES, REQUESTS
from tests.logdir.decide.builders import staged_replicas
from tests.reconcile.universe import document, listed
from tests.tools.ctl import ctl, two_disks
from tests.tools.reconcile_rig import PAY, Rig
from tools.cli.arguments import Exit

NO_SELECTOR = "topic:pay"


@pytest.fixture
def named(tmp_path: Path) -> tuple[str, str]:
    one, two = two_disks(tmp_path)
    found = ("--log-dirs", f"{one},{two}")
    assert ctl("init", *found, "--apply").status == Exit.DONE
    return found


@pytest.mark.parametrize(
    "argv",
    [
        ("stage", NO_SELECTOR),
        ("staged", "restore", NO_SELECTOR),
        ("staged", "adopt", NO_SELECTOR, "--as", "pay"),
        ("staged", "hold", NO_SELECTOR),
        ("staged", "export", NO_SELECTOR, "-o", "/tmp"),
        ("staged", "purge", NO_SELECTOR),
    ],
    ids=lambda argv: " ".join(argv[:2]),
)
def test_no_log_dir_is_opened_for_a_selector_that_is_none(argv: tuple[str, ...]) -> None:
    said = ctl(*argv, "--log-dirs", "/nowhere/d1", "--apply")
    assert (said.status, NO_SELECTOR in said.err, "/nowhere" in said.err) == (Exit.USAGE, True, False), said


def denied(*_: Any, **__: Any) -> Any:
    raise PermissionError(13, "Permission denied")


def test_a_heartbeat_that_may_not_be_read_by_a_purge_is_no_fault_of_ours(
    named: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_broker, "heartbeat", SimpleNamespace(read=denied))
    assert ctl("staged", "purge", *named).status == Exit.REFUSED


def test_a_staging_limit_that_may_not_be_written_by_stage_is_no_fault_of_ours(
    named: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        staging, "staging_limit", SimpleNamespace(write_record=denied, read_records=staging_limit.read_records)
    )
    said = ctl("stage", "pay-0", "--even-if-unknown", *named, "--apply")
    assert (said.status, "staging-limit.json" in said.err) == (Exit.REFUSED, True), said


def test_nothing_is_staged_by_a_document_that_describes_a_change() -> None:
    request: Any = from_json(REQUESTS["stage"], {**EXAMPLES["stage"], "source": {"uri": "request:/d/1.json"}})
    with pytest.raises(ConfigError, match="a state, not a change"):
        request.require_valid()
    replace(request, source=SourceRequest()).require_valid()


def test_no_purge_is_checked_against_a_request_document(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    source = rig.document(document(listed(pay=(PAY, tuple(range(12)))), type=2, sequence=9))
    config = BrokerConfig(tuple(map(str, rig.disks)), None)
    with pytest.raises(ConfigError, match="metadata:"):
        look_again(SourceRequest(str(source)), config, (), None, is_broker_running=False)


@pytest.mark.parametrize(
    ("problem", "fix"),
    [
        (None, BY_HAND),
        (Problem("format-error", "/d1/x", "a marker", "none"), BY_HAND),
        (Problem("format-error", "/d1/x", "a marker", "none", "mount its disk"), "mount its disk"),
    ],
    ids=["no marker", "no fix of its own", "its own fix"],
)
def test_an_export_that_is_refused_says_what_to_do(problem: Problem | None, fix: str) -> None:
    good, refused = export._sorted_out([replace(staged_replicas(), marker=None, problem=problem)])
    assert not good
    assert [None if item.problem is None else item.problem.fix for item in refused] == [fix]


@pytest.mark.parametrize(("percent", "fits"), [(-1, False), (0, True), (50, True), (100, True), (101, False)])
def test_no_percent_is_refused_that_is_one_and_none_taken_that_is_not(percent: int, fits: bool) -> None:
    policy = Policy(
        delays=DelayPolicy(),
        protected=(),
        percent=percent,
        max_age_ms=0,
        is_confirmed=False,
        is_image_confirmed=False,
    )
    assert [problem.path for problem in policy.problems()] == ([] if fits else ["--max-staged-percent"])


def test_a_reconcile_whose_policy_does_not_fit_is_refused_before_a_log_dir_is_opened() -> None:
    request = ReconcileRequest(source=SourceRequest("metadata:"), policy=Policy(percent=101))
    with pytest.raises(ConfigError):
        request.require_valid()
    ReconcileRequest(source=SourceRequest("metadata:")).require_valid()


@pytest.mark.parametrize("name", ["stage", "capture", "staged adopt", "reconcile"])
@pytest.mark.parametrize(("delay_ms", "fits"), [(-1, False), (0, True), (2**63 - 1, True), (2**63, False)])
def test_a_delay_that_no_marker_can_hold_is_refused_before_a_log_dir_is_opened(
    name: str, delay_ms: int, fits: bool
) -> None:
    """The control socket takes any number; a marker with another one could not be read again."""
    for delays in ({"default_ms": delay_ms}, {"patterns": [["pay", delay_ms]]}):
        example = EXAMPLES[name]
        changed = {"policy": {"delays": delays}} if name == "reconcile" else {"delays": delays}
        request: Any = from_json(REQUESTS[name], {**example, **changed})
        with nullcontext() if fits else pytest.raises(ConfigError, match=r"delete\.topic\.delay\.ms"):
            request.require_valid()


@pytest.mark.parametrize("is_something_staged", [True, False])
def test_the_quorum_is_asked_only_where_it_can_be_and_something_is_staged(
    named: tuple[str, str], is_something_staged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_something_staged:
        words = ("stage", "pay-0", "--even-if-unknown", "--even-over-limit", *named, "--apply")
        assert ctl(*words).status == Exit.DONE
    asked = []

    def committed_source(source: SourceRequest, path: str, cluster_id: str | None) -> SourceRequest:
        asked.append(path)
        return source

    monkeypatch.setattr(live_source, "committed_source", committed_source)
    for client in (None, "/etc/client.properties"):
        broker = BrokerRequest(log_dirs=named[1], client_properties=client)
        found = list_staged(StagedListingRequest(broker=broker, source=SourceRequest()))
        assert len(found.items) == is_something_staged
    assert asked == (["/etc/client.properties"] if is_something_staged else [])
