"""The layout use case below the command line: what is asked wrongly, how long locks are held, what a plan is of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from logdir.decide.layout import transitions
from logdir.disk.batch_loop import Held
from logdir.disk.kernel.host import HostDisk
from logdir.errors import ConfigError, LockHeldError, MalformedFileError, MalformedMessageError, Problem, RefusedError
from logdir.refusal_slug import Why
from logdir.service import layout
from logdir.service.batch.layout_phases import carry_out, look_all
from logdir.service.layout import LayoutRequest, read_plan
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.opening import opened
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.layout_result import LayoutNext, LayoutVerb
from logdir.service.report.reporter import SILENT, Silent
from logdir.service.report.result import ItemState
from tests.builders import log_dir, partition
from tests.logdir.disk import layout_rig
from tests.logdir.disk.layout_rig import add_work
from tests.tools.ctl import held, tree
from tests.tools.layout_fleet import Planned, big
from tests.whole_refusal import require_whole


class Reporter(Silent):
    """Remembers the progress, and whether a lock was held then."""

    def __init__(self) -> None:
        self.is_held = False
        self.begun: list[int] = []
        self.counts: list[int] = []
        self.under_lock: list[int] = []
        self.is_over = False

    def begin(self, what: str, total: int) -> None:
        self.begun.append(total)

    def advance(self, count: int) -> None:
        self.counts.append(count)
        if self.is_held:
            self.under_lock.append(count)

    def end(self) -> None:
        self.is_over = True


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    return big(tmp_path_factory.mktemp("big"), 80)


@contextmanager
def open_of(broker: Planned, *, changes: bool = False) -> Iterator[OpenBroker]:
    request = BrokerRequest(log_dirs=",".join(map(str, broker.log_dirs)))
    with opened(request, changes=changes, is_start_block_allowed=True) as found:
        yield found


@pytest.mark.parametrize("verb", [LayoutVerb.CHECK, LayoutVerb.APPLY, LayoutVerb.VERIFY])
def test_no_verb_goes_without_the_plan_it_takes(verb: LayoutVerb, broker: Planned) -> None:
    with pytest.raises(MalformedMessageError, match=f"expected a plan document for the verb {verb.value}, found none"):
        LayoutRequest(verb=verb).require_valid()
    with open_of(broker) as found, pytest.raises(ValueError, match="without a plan"):
        layout.plan(found, LayoutRequest(verb=verb))


@pytest.mark.parametrize("verb", [LayoutVerb.ROLLBACK, LayoutVerb.FINALIZE])
def test_no_plan_is_given_to_a_verb_that_takes_none(verb: LayoutVerb, broker: Planned) -> None:
    with pytest.raises(MalformedMessageError, match=f"expected no plan document for the verb {verb.value}, found one"):
        LayoutRequest(verb=verb, document=read_plan(str(broker.plan))).require_valid()


def test_a_use_case_takes_a_broker_there_and_back_and_says_what_follows(broker: Planned) -> None:
    before = tree(*broker.log_dirs)
    document = read_plan(str(broker.plan))
    for verb, following in (
        (LayoutVerb.APPLY, LayoutNext.VERIFY),
        (LayoutVerb.VERIFY, LayoutNext.STATUS),
        (LayoutVerb.ROLLBACK, LayoutNext.STATUS),
    ):
        asked = LayoutRequest(verb=verb, document=document if verb.has_plan else None)
        with open_of(broker, changes=True) as found:
            shown = layout.plan(found, asked)
            assert (shown.result.next, shown.result.is_applied) == (LayoutNext.SAME, False)
            assert shown.is_beginning == (verb is LayoutVerb.APPLY)
            layout.prepare(found)
            reporter = Reporter()
            done = layout.apply(found, shown, reporter)
        moved = 0 if verb is LayoutVerb.VERIFY else 80
        assert {item.state for item in shown.result.items} <= {ItemState.PLANNED}
        assert [item.state for item in done.items] == [ItemState.DONE] * moved
        assert (done.next, done.is_finished, done.problems) == (following, True, ())
        assert (sum(reporter.counts), reporter.begun, reporter.is_over) == (moved, [moved], True)
    assert tree(*broker.log_dirs) == before


@pytest.mark.parametrize("verb", [verb for verb in LayoutVerb if verb is not LayoutVerb.ROLLBACK])
def test_no_verb_but_a_way_back_is_planned_without_one_of_the_log_dirs(
    verb: LayoutVerb, broker: Planned, tmp_path: Path
) -> None:
    document = read_plan(str(broker.plan)) if verb.has_plan else None
    away = broker.log_dirs[1]
    away.rename(tmp_path / "away")
    request = BrokerRequest(log_dirs=",".join(map(str, broker.log_dirs)), skipped=(str(away),))
    try:
        with opened(request, changes=False, is_start_block_allowed=True) as found:
            with pytest.raises(RefusedError) as raised:
                layout.plan(found, LayoutRequest(verb=verb, document=document, for_broker="kafka 9"))
            require_whole(
                raised.value,
                Why.LOG_DIRS_INCOMPLETE,
                path=str(away),
                expected="every log dir, to change them all or none",
                found="no answer",
                fix="repair that log dir, or take the others back with logdirctl layout rollback --skip-log-dir "
                f"{away}",
            )
            assert layout.plan(found, LayoutRequest(verb=LayoutVerb.ROLLBACK)).result.left_out == (str(away),)
    finally:
        (tmp_path / "away").rename(away)


@pytest.fixture
def verified(tmp_path: Path) -> Planned:
    """Return a broker of which every replica lies under its topic id, and is verified."""
    broker = big(tmp_path, 40)
    document = read_plan(str(broker.plan))
    for verb in (LayoutVerb.APPLY, LayoutVerb.VERIFY):
        with open_of(broker, changes=True) as found:
            shown = layout.plan(found, LayoutRequest(verb=verb, document=document))
            assert layout.apply(found, shown, SILENT).is_finished
    return broker


@contextmanager
def open_as_a_daemon(broker: Planned) -> Iterator[OpenBroker]:
    request = BrokerRequest(log_dirs=",".join(map(str, broker.log_dirs)))
    with opened(request, changes=True, needs_all=False, is_start_block_allowed=True) as found:
        yield found


def let_go(found: OpenBroker, log_dir: Path) -> None:
    """Let go a log dir of an open broker, as ``logdirctl disk release`` does."""
    found.ports.let_go(str(log_dir), Problem("log-dir-released", str(log_dir), "one that is open", "one let go"))


FINALIZE = LayoutRequest(verb=LayoutVerb.FINALIZE, for_broker="kafka 9")
ROLLBACK = LayoutRequest(verb=LayoutVerb.ROLLBACK)


@pytest.mark.parametrize("asked", [FINALIZE, ROLLBACK], ids=["finalize", "rollback"])
def test_a21_no_start_block_is_lifted_beside_a_log_dir_that_was_let_go(verified: Planned, asked: LayoutRequest) -> None:
    before = tree(*verified.log_dirs)
    away = verified.log_dirs[1]
    with open_as_a_daemon(verified) as found:
        shown = layout.plan(found, asked)
        let_go(found, away)
        with pytest.raises(RefusedError) as raised:
            layout.plan(found, asked)
        way_out = "repair that log dir, or take the others back with logdirctl layout rollback --skip-log-dir "
        require_whole(
            raised.value,
            Why.LOG_DIRS_INCOMPLETE,
            path=str(away),
            expected="every log dir, to change them all or none",
            found="no answer",
            fix=f"{way_out}{away}",
        )
        # It may be let go, or stop answering, only after the plan, too.
        with pytest.raises(RefusedError, match=r"^log-dirs-incomplete: "):
            layout.apply(found, shown, SILENT)
    assert tree(*verified.log_dirs) == before


@pytest.mark.parametrize(
    ("asked", "last"),
    # Two log dirs: a batch each for the state, for its prefixes, for the sync; one to set the block, one moves both.
    [(FINALIZE, 4), (ROLLBACK, 6)],
    ids=["finalize", "rollback"],
)
def test_a21_no_start_block_is_lifted_where_a_log_dir_falls_silent_before_the_last_batch(
    verified: Planned, asked: LayoutRequest, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_as_a_daemon(verified) as found:
        shown = layout.plan(found, asked)
        lifted: list[object] = []
        monkeypatch.setattr("logdir.disk.record.start_block.lift_block", lifted.append)
        batch, count = OpenBroker.batch, 0

        @contextmanager
        def silent_before_the_last(self: OpenBroker) -> Iterator[Held]:
            nonlocal count
            count += 1
            if count > last:
                let_go(found, verified.log_dirs[1])
            with batch(self) as held:
                yield held

        monkeypatch.setattr(OpenBroker, "batch", silent_before_the_last)
        done = layout.apply(found, shown, SILENT)
    assert (lifted, done.is_finished, done.left_out) == ([], False, (str(verified.log_dirs[1]),))
    assert [problem.slug for problem in done.problems].count("log-dirs-incomplete") == 1
    assert count == last + 1


@pytest.mark.parametrize("is_sick", [False, True], ids=["healthy", "sick"])
def test_a_rollback_that_names_the_log_dir_that_was_let_go_takes_the_others_back(
    verified: Planned, is_sick: bool
) -> None:
    away = verified.log_dirs[1]
    before = tree(away)
    named = replace(ROLLBACK, skipped=(str(away),))
    with open_as_a_daemon(verified) as found:
        if is_sick:
            found.quarantined[str(away)] = Problem("sync-failed", str(away), "a disk on which no sync failed", "EIO")
        let_go(found, away)
        layout.prepare(found)
        shown = layout.plan(found, named)
        assert shown.result.left_out == (str(away),)
        done = layout.apply(found, shown, SILENT)
        assert (done.is_finished, done.left_out) == (False, (str(away),))
        assert done.summary == "not finished, 1 log dir left out"
        with pytest.raises(RefusedError, match=r"^log-dirs-incomplete: "):
            layout.plan(found, replace(FINALIZE, skipped=(str(away),)))
        with pytest.raises(ConfigError, match="one of the broker's log dirs"):
            layout.plan(found, replace(ROLLBACK, skipped=("/elsewhere",)))
    assert (tree(away), (verified.log_dirs[0] / "layout.json").exists()) == (before, False)


def test_nothing_is_prepared_or_done_beside_a_log_dir_that_may_not_be_changed(broker: Planned) -> None:
    before = tree(*broker.log_dirs)
    asked = LayoutRequest(verb=LayoutVerb.APPLY, document=read_plan(str(broker.plan)))
    with open_of(broker, changes=True) as found:
        shown = layout.plan(found, asked)
        where = str(broker.log_dirs[0])
        found.quarantined[where] = Problem("sync-failed", where, "a disk on which no sync failed", "one that failed")
        with pytest.raises(RefusedError, match="no sync failed"):
            layout.prepare(found)
        assert tree(*broker.log_dirs) == before
        # It may be closed only after the command began, too.
        report = layout.apply(found, shown, SILENT)
        assert (report.is_finished, bool(report.problems)) == (False, True)
    assert tree(*broker.log_dirs) == before


@pytest.mark.parametrize("verb", [LayoutVerb.CHECK, LayoutVerb.APPLY, LayoutVerb.VERIFY])
@pytest.mark.parametrize(
    ("alter", "line"),
    [
        (lambda text: text.replace('"partition":1,', '"partition":2,'), "82: expected 80 steps, sha256 "),
        (lambda text: "".join(text.splitlines(keepends=True)[:-1]), "81: expected "),
        (lambda text: text.replace('"cluster":"', '"cluster":"\udc80'), "1: expected one object of JSON"),
        (lambda text: "", "1: expected a header, steps and a footer"),
    ],
    ids=["a step", "no footer", "a lone surrogate", "nothing"],
)
def test_a_document_that_was_altered_is_refused_whoever_sends_it(
    verb: LayoutVerb, alter: Callable[[str], str], line: str, broker: Planned
) -> None:
    text = read_plan(str(broker.plan))
    altered = alter(text)
    assert altered != text
    asked = LayoutRequest(verb=verb, document=altered)
    asked.require_valid()
    before = tree(*broker.log_dirs)
    with open_of(broker) as found, pytest.raises(MalformedFileError, match=f"LayoutRequest.document:{line}") as raised:
        layout.plan(found, asked)
    assert raised.value.slug == "malformed-file"
    assert tree(*broker.log_dirs) == before


def test_nothing_is_prepared_while_a_broker_runs(broker: Planned) -> None:
    with open_of(broker, changes=True) as found, held(broker.log_dirs[0] / ".lock"), pytest.raises(LockHeldError):
        layout.prepare(found)


def test_a21_nothing_is_planned_without_the_operators_word_where_a_layout_json_is_lost(tmp_path: Path) -> None:
    broker = big(tmp_path, 40)
    back = LayoutRequest(verb=LayoutVerb.ROLLBACK)
    with open_of(broker, changes=True) as found:
        asked = LayoutRequest(verb=LayoutVerb.APPLY, document=read_plan(str(broker.plan)))
        assert layout.apply(found, layout.plan(found, asked), SILENT).is_finished
        (broker.log_dirs[0] / "layout.json").unlink()
        with pytest.raises(RefusedError, match=r"^layout-file-missing: "):
            layout.plan(found, back)
        assert layout.plan(found, replace(back, is_even_if_file_missing=True)).result.is_waiting


def test_no_hold_of_the_locks_moves_more_than_one_batch_and_progress_waits_for_its_end(tmp_path: Path) -> None:
    """A batch grows to a second: two of them might outlast the two seconds of law 4."""
    top = log_dir(tmp_path / "d1")
    add_work(top)
    for number in range(7):
        partition(top / f"a-{number}")
    reporter = Reporter()
    holds = 0

    @contextmanager
    def hold() -> Iterator[Held]:
        nonlocal holds
        with layout_rig.unlocked() as held:
            holds, reporter.is_held = holds + 1, True
            yield held
            reporter.is_held = False

    with layout_rig.opened(HostDisk(), [str(top)]) as open_dirs:
        plan = layout_rig.plan_of(open_dirs)
        decision = transitions.apply(plan, look_all(open_dirs))
        assert carry_out(open_dirs, decision, hold, reporter=reporter, batch=3).is_finished
    assert (reporter.counts, reporter.under_lock) == ([3, 3, 1], [])
    # One for each of applying, start block, three batches, applied, and the last sync.
    assert holds == 7
