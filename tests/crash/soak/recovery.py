"""What a worker does first: everything an interruption may have left is finished or undone, by scanning alone.

A change of layout, or of the bar, that was cut off is taken up again or taken back, whichever is drawn: both must end.

Spec: design §2 laws 2 and 3; ``logdir.disk.recovery``, ``bar``, ``logdir.service.layout_phases``.
"""

from __future__ import annotations

from typing import Any

from logdir.disk.bar import BarState, bar, state, unbar
from logdir.disk.recovery import recover_broker
from logdir.errors import RefusedError
from logdir.names import is_prefix
from logdir.service.layout_phases import look_all
from tests.crash.soak.hands import Hands


def recover(hands: Hands) -> dict[str, Any]:
    """Recover all log dirs; return what was found and done, for people."""
    with hands.locked():
        done = recover_broker(hands.sites, is_whole=True)
    assert not done.troubled, done
    found = [one for _, one in done.sites]
    said = _layout(hands)
    hands.is_by_id = any(is_prefix(name) for site in hands.sites for name in site.top.names())
    hands.is_barred = state(hands.sites) is BarState.BARRED
    return {
        "finished": len(done.adoptions.finished),
        "withdrawn": len(done.adoptions.withdrawn),
        "unmarked": sum(len(one.unmarked) for one in found),
        "dropped": sum(len(one.dropped) for one in found),
        "layout": said,
    }


def _layout(hands: Hands) -> str:
    seen = look_all(hands.sites)
    files = [one.file for one in seen if one.file is not None]
    if files or any(one.is_under_ids for one in seen):
        states = {file.state.value for file in files}
        if len(files) == len(seen) and states == {"applied"}:
            return "as it was"
        if hands.draw.random() < 0.5:
            try:
                hands.relayout_on()
                return "went on"
            except RefusedError:
                # A way back that was begun is gone to its end.
                assert "rolling-back" in states, states
        hands.relayout_back()
        return "went back"
    match state(hands.sites):
        case BarState.HALF:
            with hands.locked():
                (bar if hands.draw.random() < 0.5 else unbar)(hands.sites)
            return "half a bar"
        case _:
            return ""
