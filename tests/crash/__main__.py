"""``python -m tests.crash``: every operation, crashed at every call under every model.

One line for each operation says how many states it has under each model; then a table says so of each family, and the
last line says it all. ``make crash`` is that, and exits 0 only if no state is a violation, no rename was left unsynced
and no operation is worthless (``summary``). Operations run side by side, on as many processes as there are cores.

An operation in which something is wrong is shown by its matrix, a row for each call, and by the shortest schedule of
each violation, with a text for ``--replay``. ``docs/architecture.md`` says how to read them.

Spec: reliability §4.4.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from logdir.disk.kernel.host import Call
from tests.crash.enumerate import ERRNOS, explore, explore_failures, replay
from tests.crash.recording import MODELS, Recording, record, shown
from tests.crash.result import Result
from tests.crash.summary import Summary, heading, line, worthless
from tests.operations.case import Case, loud
from tests.operations.operation import Trait
from tests.operations.registry import case, cases, family_of, having


def results(
    picked: Sequence[str], models: Sequence[str] = MODELS, depth: int = 1, *, failures: Sequence[int] = ()
) -> Iterator[Result]:
    """Yield what came of each operation.

    Args:
        picked: Names of cases; none for all.
        models: Of ``recording.MODELS``.
        depth: 1, or 2 to crash the recovery too.
        failures: The errnos with which to fail every call instead.
    """
    for one in _picked(picked):
        yield _result(one, models, depth, failures)


def _result(one: Case, models: Sequence[str], depth: int, failures: Sequence[int]) -> Result:
    about = (one.start, one.do, one.recovery, one.holds)
    if failures:
        return explore_failures(*about, failures, operation=one.name, quiet=one.quiet)
    return explore(*about, models, depth, operation=one.name, quiet=one.quiet)


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
    yield from map(case, names or tuple(cases()))


class _Asked(NamedTuple):
    """What is asked of every operation."""

    models: tuple[str, ...]
    depth: int
    failures: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether so much is asked that an operation which shows nothing is worthless."""
        return not self.failures and set(MODELS) <= set(self.models)


class _Found(NamedTuple):
    """What came of one operation."""

    result: Result
    order: tuple[str, ...]
    worthless: tuple[str, ...]

    @property
    def wrong(self) -> int:
        return self.result.violating + len(self.order) + len(self.worthless)


def _explored(asked: _Asked, name: str) -> _Found:
    (one,) = _picked([name])
    result = _result(one, asked.models, asked.depth, asked.failures)
    order = unsynced_renames(record(one.start.world(), one.do), one.quiet)
    return _Found(result, tuple(order), tuple(worthless(one, result)) if asked.is_whole else ())


def _all(names: Sequence[str], asked: _Asked, jobs: int) -> Iterator[_Found]:
    """Yield what came of each, in the order of their names."""
    explored = functools.partial(_explored, asked)
    if jobs < 2 or len(names) < 2:
        yield from map(explored, names)
        return
    with multiprocessing.get_context("fork").Pool(min(jobs, len(names))) as pool:
        # So that nothing long is left over at the end for one process alone.
        first = sorted(names, key=lambda name: name not in having(Trait.FIRST))
        begun = {name: pool.apply_async(explored, [name]) for name in first}
        for name in names:
            yield begun[name].get()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__.partition("\n")[0])
    parser.add_argument("operation", nargs="*", help="its name, to see its matrix; all by default")
    parser.add_argument("--models", default="".join(MODELS), help="letters; %(default)s by default")
    parser.add_argument("--depth", type=int, default=1, choices=(1, 2), help="2: crash the recovery too")
    parser.add_argument("--failures", action="store_true", help="fail every call with every errno instead")
    parser.add_argument("--first", action="store_true", help="stop at the first operation with a violation")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; %(default)s by default")
    parser.add_argument("--replay", metavar="SCHEDULE", help="of one operation, as a violation printed it")
    parser.add_argument("--list", action="store_true", help="print the names of the operations")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore; return the exit status."""
    asked = _parser().parse_args(arguments)
    if asked.list:
        print("\n".join(cases()))
        return 0
    if asked.replay:
        (one,) = _picked(asked.operation)
        messages = replay(one.start, one.do, one.recovery, one.holds, asked.replay)
        print("\n".join(messages) or "nothing is wrong")
        return bool(messages)
    began = time.monotonic()
    names = tuple(asked.operation) or tuple(cases())
    about = _Asked(tuple(asked.models), asked.depth, ERRNOS if asked.failures else ())
    summary = Summary(about.models)
    violations = 0
    if not asked.operation:
        print(heading(about.models))
    for found in _all(names, about, 1 if asked.first else asked.jobs):
        summary.add(family_of(found.result.operation), found.result)
        violations += found.wrong
        if found.wrong or asked.operation:
            print(found.result, *found.order, *found.worthless, "", sep="\n", flush=True)
        else:
            print(line(found.result, about.models), flush=True)
        if violations and asked.first:
            break
    if not about.failures:
        print("", *summary.lines(), "", sep="\n")
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    print(f"{summary.operations} operations in {minutes} min {seconds} s")
    print(f"{summary.states:,} states, {violations:,} violations")
    return bool(violations)


if __name__ == "__main__":
    sys.exit(main())
