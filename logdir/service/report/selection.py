"""The problem of a selector that matched nothing, with the nearest known name."""

from __future__ import annotations

from collections.abc import Iterable

from logdir.decide.selector import Selectable
from logdir.errors import Problem
from logdir.suggestion import did_you_mean


def nothing_selected(selector: str, command: str, known: Iterable[Selectable] = ()) -> Problem:
    """Return the problem of a selector that matched nothing.

    Args:
        selector: The selector, as typed.
        command: The command that lists the possible names.
        known: The known partitions, for *did you mean*.
    """
    number = selector.rpartition("-")[2]
    names = {name for one in known if one.ref.topic for name in (one.ref.topic, str(one.ref))}
    fits = sorted(name for name in names if not number.isdecimal() or name.endswith(f"-{number}"))
    fix = f"{did_you_mean(selector, fits)} logdirctl {command} lists what there is".lstrip()
    return Problem("nothing-selected", selector, "a selector that matches a partition", "no such partition", fix)
