"""What a worker does first: everything an interruption may have left is finished or undone, by scanning alone.

A change of layout, or of the bar, that was cut off is taken up again or taken back, whichever is drawn: both must end.

Spec: design §2 laws 2 and 3; ``logdir.disk.recover_broker``, ``bar``, ``logdir.service.batch.layout_phases``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdir.disk.record.start_block import BarState, bar, state, unbar
from logdir.disk.recover_broker import recover_broker
from logdir.errors import RefusedError
from logdir.names import is_prefix
from logdir.service.batch.layout_phases import look_all

if TYPE_CHECKING:
    from tests.crash.soak.tasks import Tasks


def recover(tasks: Tasks) -> dict[str, Any]:
    """Recover all log dirs; return what was found and done, for people."""
    with tasks.locked():
        done = recover_broker(tasks.sites, is_whole=True)
    assert not done.troubled, done
    found = [one for _, one in done.sites]
    said = _layout(tasks)
    tasks.is_by_id = any(is_prefix(name) for site in tasks.sites for name in site.top.names())
    tasks.is_barred = state(tasks.sites) is BarState.BARRED
    return {
        "finished": len(done.adoptions.finished),
        "withdrawn": len(done.adoptions.withdrawn),
        "unmarked": sum(len(one.unmarked) for one in found),
        "dropped": sum(len(one.dropped) for one in found),
        "layout": said,
    }


def _layout(tasks: Tasks) -> str:
    seen = look_all(tasks.sites)
    files = [one.file for one in seen if one.file is not None]
    if files or any(one.is_under_ids for one in seen):
        states = {file.state.value for file in files}
        if len(files) == len(seen) and states == {"applied"}:
            return "as it was"
        if tasks.draw.random() < 0.5:
            try:
                tasks.relayout_on()
                return "went on"
            except RefusedError:
                # A way back that was begun is gone to its end.
                assert "rolling-back" in states, states
        tasks.relayout_back()
        return "went back"
    match state(tasks.sites):
        case BarState.HALF:
            with tasks.locked():
                (bar if tasks.draw.random() < 0.5 else unbar)(tasks.sites)
            return "half a bar"
        case _:
            return ""
