"""What a worker does next: one of the operations there are, drawn from what may be done in this state.

What may be done to what is kept as the product keeps it (``logdir.decide``): nothing is restored onto a name that
lives, nothing purged before it is due.

Not here: drawing each (``tests.operations``), the process (``worker``), what must hold (``oracle``).

Spec: design §3.3, §3.1, §8; reliability §7 row 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.crash.soak.hands import Hands
from tests.operations.operation import Draw, When
from tests.operations.registry import draws

_HOW_OFTEN_SAME = 0.2


def _possible(hands: Hands) -> Mapping[str, Draw]:
    """Return what may be drawn in the state the broker is in, by its kind."""
    now = When.IDS if hands.is_by_id else When.BLOCKED if hands.is_blocked else When.NAMES
    return {kind: draw for kind, draw in draws().items() if draw.when in (When.ALWAYS, now)}


def one(hands: Hands, prefer: Sequence[str]) -> None:
    """Do one operation: a rare one where it can be done, or else often one that is preferred."""
    if hands.draw.random() < _HOW_OFTEN_SAME:
        for root in hands.roots:
            root.require_same(hands.disk)
    seen = hands.look()
    kinds = [
        kind
        for kind, draw in _possible(hands).items()
        if draw.share >= 1 or hands.draw.random() < draw.share or kind in prefer
    ]
    order = hands.draw.sample(kinds, len(kinds))
    if hands.draw.random() < 0.5:
        order.sort(key=lambda kind: kind not in prefer)
    order.sort(key=lambda kind: not draws()[kind].is_rare)
    for kind in order:
        if draws()[kind].do(hands, seen):
            return


def go_home(hands: Hands) -> None:
    """Take back everything that can be taken back, and finish what was begun."""
    while any(draw.home(hands, hands.look()) for draw in _possible(hands).values() if draw.home):
        pass
