"""What is left of a layout change before a broker starts: finished, taken back, or the reason why no broker may start.

What an operator asked for last is finished: a rollback, or a *finalize* for the broker it named. A change that moved no
replica yet is taken back. One that lies half way is the operator's to decide.

Not here: the actions (``transitions``), carrying them out (``service.batch.layout_phases``).

Spec: design §6 ``handover``, §8; attacks A21, A37.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from logdir.decide.layout.action import Decision, LayoutView
from logdir.decide.layout.precondition import files_of, require_known, require_one_broker
from logdir.decide.layout.transitions import finalize, rollback
from logdir.errors import RefusedError
from logdir.formats.own.layout_file import LayoutState
from logdir.refusal_slug import Why

_FINISHING = {LayoutState.VERIFIED, LayoutState.FINALIZING, LayoutState.FINAL}


def hand_over(broker: Sequence[LayoutView], *, is_begun: bool) -> Decision:
    """Decide what finishes or undoes a layout change, so that a broker can start.

    Args:
        broker: All its log dirs.
        is_begun: Whether a log dir has a start block, or a part of one.

    Raises:
        RefusedError: replicas lie under topic ids, and no operator has named the broker for them; there are topic-id
            directories without a ``layout.json``; or the log dirs belong to two brokers.
    """
    require_one_broker(broker)
    require_known(broker, confirmed=False)
    files = files_of(broker)
    states = {None if seen.file is None else seen.file.state for seen in broker}
    if states - {None} == {LayoutState.FINAL} and all(seen.file or not seen.is_under_ids for seen in broker):
        return Decision()  # A log dir that came later has nothing under topic ids yet.
    if LayoutState.FINALIZING in states and states <= _FINISHING:
        named = {file.for_broker for file in files.values() if file.for_broker is not None}
        if len(named) == 1:
            return finalize(broker, named.pop())
    if LayoutState.ROLLING_BACK in states or not any(seen.is_under_ids for seen in broker):
        decision = rollback(broker)
        return decision if files or is_begun else replace(decision, phases=())
    log_dir, file = next(iter(files.items()))
    raise RefusedError(
        log_dir,
        why=Why.LAYOUT_CHANGE_UNDER_WAY,
        expected="no unfinished change of layout before a broker starts",
        found=f"replicas under topic ids, and {file.state.words}",
        fix="logdirctl layout rollback takes them back to their names",
    )
