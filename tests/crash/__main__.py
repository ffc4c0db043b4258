"""``python -m tests.crash``: every operation, crashed at every call under every model; as a matrix, and a last line.

A call or model in which a zero fails names the operation, the shortest schedule and a text for ``--replay``.

Spec: reliability §4.4.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence

from logdir.disk.io import Call
from tests.crash.enumerate import ERRNOS, Result, explore, explore_failures, replay
from tests.crash.families import CASES, case
from tests.crash.families.case import Case, loud
from tests.crash.operations import FACTORIES, operation
from tests.crash.recording import MODELS, Recording, record, shown
from tests.crash.steps import recover_all


def results(
    picked: Sequence[str], models: Sequence[str] = MODELS, depth: int = 1, *, failures: Sequence[int] = ()
) -> Iterator[Result]:
    """Yield what came of each operation.

    Args:
        picked: Names of operations and of families' cases; none for all.
        models: Of ``recording.MODELS``.
        depth: 1, or 2 to crash the recovery too.
        failures: The errnos with which to fail every call instead.
    """
    for one in _picked(picked):
        about = (one.start, one.run, one.recover, one.judge)
        if failures:
            yield explore_failures(*about, failures, operation=one.name, quiet=one.quiet)
        else:
            yield explore(*about, models, depth, operation=one.name, quiet=one.quiet)


def unsynced_renames(recording: Recording, quiet: Callable[[Call], bool] = loud) -> list[str]:
    """Return each rename of which a parent was not made durable before something was acknowledged, or the end.

    Where a rename is atomic one parent would do; that it is, is what cannot be tested away (reliability §4.2).
    """
    wrong = []
    calls = [made.call for made in recording.records]
    for at, made in enumerate(recording.records):
        if made.call.name not in ("rename", "replace") or made.errno or quiet(made.call):
            continue
        until = min([said for said in recording.acks.after if said > at], default=len(calls))
        later = calls[at + 1 : until]
        for parent in dict.fromkeys((os.path.dirname(made.call.to), os.path.dirname(made.call.path))):
            same_disk = f"/{parent.split('/')[1]}/"
            if not any(
                (call.name == "fsync-dir" and call.path == parent)
                or (call.name == "syncfs" and call.path.startswith(same_disk))
                for call in later
            ):
                wrong.append(f"order: {parent} is not synced after {shown(made.call)}")
    return wrong


def _picked(names: Sequence[str]) -> Iterator[Case]:
    for name in names or (*FACTORIES, *CASES):
        if name in CASES:
            yield case(name)
        else:
            one = operation(name)
            yield Case(name, one.start, one.run, recover_all, one.judge)


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__.partition("\n")[0])
    parser.add_argument("operation", nargs="*", help="its name; all by default")
    parser.add_argument("--models", default="".join(MODELS), help="letters; %(default)s by default")
    parser.add_argument("--depth", type=int, default=1, choices=(1, 2), help="2: crash the recovery too")
    parser.add_argument("--failures", action="store_true", help="fail every call with every errno instead")
    parser.add_argument("--first", action="store_true", help="stop at the first operation with a violation")
    parser.add_argument("--replay", metavar="SCHEDULE", help="of one operation, as a violation printed it")
    parser.add_argument("--list", action="store_true", help="print the names of the operations")
    asked = parser.parse_args(arguments)
    if asked.list:
        print("\n".join((*FACTORIES, *CASES)))
        return 0
    if asked.replay:
        (one,) = _picked(asked.operation)
        messages = replay(one.start, one.run, one.recover, one.judge, asked.replay)
        print("\n".join(messages) or "nothing is wrong")
        return bool(messages)
    states = violations = 0
    for result in results(asked.operation, asked.models, asked.depth, failures=ERRNOS if asked.failures else ()):
        print(result, end="\n\n", flush=True)
        (one,) = _picked([result.operation])
        order = unsynced_renames(record(one.start.world(), one.run), one.quiet)
        print("\n".join([*order, ""]), end="")
        states += result.states
        violations += result.violating + len(order)
        if violations and asked.first:
            break
    print(f"{states:,} states, {violations:,} violations")
    return bool(violations)


if __name__ == "__main__":
    sys.exit(main())
