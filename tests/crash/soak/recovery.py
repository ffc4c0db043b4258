"""What a worker does first: everything an interruption may have left is finished or undone, by scanning alone.

A change of layout, or of the start block, that was cut off is taken up again or taken back, as is
drawn: both must end.

Spec: design §2 laws 2 and 3; ``logdir.disk.recover_broker``, ``start_block``, ``logdir.service.batch.layout_phases``.
"""

from __future__ import annotations

from typing import Any

from logdir.disk.record.start_block import StartBlockState, lift_block, set_block, state
from logdir.disk.recover_broker import recover_broker
from logdir.errors import RefusedError
from logdir.names import is_prefix
from logdir.service.batch.layout_phases import look_all
from tests.crash.soak.hands import Hands


def recover(hands: Hands) -> dict[str, Any]:
    """Recover all log dirs; return what was found and done, for people."""
    with hands.locked():
        done = recover_broker(hands.open_dirs, is_whole=True)
    assert not done.troubled, done
    found = [one for _, one in done.open_dirs]
    said = _layout(hands)
    hands.is_by_id = any(is_prefix(name) for open_dir in hands.open_dirs for name in open_dir.top.names())
    hands.is_blocked = state(hands.open_dirs) is StartBlockState.SET
    return {
        "finished": len(done.adoptions.finished),
        "withdrawn": len(done.adoptions.withdrawn),
        "unmarked": sum(len(one.unmarked) for one in found),
        "dropped": sum(len(one.dropped) for one in found),
        "layout": said,
    }


def _layout(hands: Hands) -> str:
    seen = look_all(hands.open_dirs)
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
    match state(hands.open_dirs):
        case StartBlockState.PARTIAL:
            with hands.locked():
                (set_block if hands.draw.random() < 0.5 else lift_block)(hands.open_dirs)
            return "half a start block"
        case _:
            return ""
