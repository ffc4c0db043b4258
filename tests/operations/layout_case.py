"""What cases of the start block and of a change of layout have in common: going there and back, and how that is judged.

Starts and judges are those of ``tests.logdir.disk.layout_crash``.

Spec: design §3.1, §8; attacks A21, A37.
"""

from __future__ import annotations

from collections.abc import Mapping

from logdir.disk.recover_broker import recover_broker
from logdir.formats.own import start_block_file
from tests.crash.enumerate import Judge, State
from tests.crash.model import ModelHost
from tests.crash.recording import Acks
from tests.crash.tree import World
from tests.logdir.disk import layout_crash as rig
from tests.logdir.disk.layout_rig import opened
from tests.operations import functions
from tests.operations.case import DONE, Case, Do, acknowledged, below, resumed, unchanged, with_missing


def recovered(do: Do, back: Do | None = None) -> Do:
    """Return what is done after a crash: recovery, as each command begins with, and the verb again.

    With a disk missing a change of layout is refused as a whole; its refusal says to take the others back. One that is
    read-only is no such disk: nothing goes on beside it.

    Args:
        do: The verb.
        back: With a disk that does not answer; nothing where that is refused.
    """

    def recovering(host: ModelHost) -> None:
        if any(system.status == "read-only" for system in host.systems):
            return
        is_whole = len(rig.log_dirs(host)) == len(host.systems)
        verb = do if is_whole else back
        if verb is None or not rig.log_dirs(host):
            return
        with opened(host, rig.log_dirs(host)) as open_dirs:
            assert not recover_broker(open_dirs, is_whole=is_whole).troubled
        verb(host)

    return recovering


def judged_by(
    judge: Judge, first: World, *, end: World | None = None, goes_back: bool = False, has_bar: bool = True
) -> Judge:
    """Return the judge of every model: with a disk missing, the others are judged by themselves.

    Args:
        judge: With all disks.
        first: In the topic-name layout, without a start block.
        end: What was acknowledged.
        goes_back: Whether the others are taken back where one does not answer.
        has_bar: Whether the start block is set before a replica moves: not where a batch is tried by itself.
    """

    def partly(before: World, state: State, acks: Acks, there: frozenset[str]) -> list[str]:
        wrong = [
            f"{word}, {line}"
            for word, world in (("when crashed", state.crashed), ("when recovered", state.recovered))
            for mount in sorted(there)
            for line in undamaged(first, world, mount, has_bar=has_bar)
        ]
        if end is not None and DONE in acks:
            found = below(there, rig.untimed(state.crashed))
            wrong += [f"lost: {line}" for line in rig.differences(below(there, rig.untimed(end)), found)]
        if goes_back and "read-only" not in state.statuses:
            return wrong + rig.differences(below(there, rig.seen(first)), below(there, rig.seen(state.recovered)))
        return wrong + unchanged(state)

    def whole(before: World, state: State, acks: Acks) -> list[str]:
        # What was done was taken back on the others by whoever went on without the disk that is back now.
        return judge(before, state, Acks() if state.returned and goes_back and end is not first else acks)

    return with_missing(whole, partly)


def undamaged(first: World, world: World, mount: str, *, has_bar: bool = True) -> list[str]:
    """Return what is wrong with one log dir, wherever a change of layout stands on it and on the others."""
    files = world.files()
    name = f"{mount}/k/"
    wrong = []
    for path, data in below(frozenset({mount}), first.files()).items():
        found = [at for at, other in files.items() if at.startswith(name) and at.endswith(".log") and other == data]
        if path.endswith(".log") and len(found) != 1:
            wrong.append(f"lost: {path} is {found}")
    meta = files.get(f"{name}meta.properties")
    kept = files.get(f"{name}start-block.json")
    if meta != rig.META_TEXT and (kept is None or start_block_file.parse(kept).original != rig.META_TEXT):
        wrong.append(f"lost: {name}meta.properties is blocked, and what is true is kept nowhere")
    under_ids = [at for at in files if at.startswith(name) and at.endswith(".log") and at.count("/") == 5]
    if has_bar and under_ids and meta == rig.META_TEXT:
        wrong.append(f"half: {under_ids[0]} lies under an id, and its log dir is not blocked")
    return wrong


def back_to(first: World, *, has_bar: bool = True) -> Judge:
    """All is as at first, times too; also before any recovery, once it was acknowledged."""

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = rig.differences(rig.seen(first), rig.seen(state.recovered))
        return wrong + (rig.differences(rig.seen(first), rig.seen(state.crashed)) if DONE in acks else [])

    return judged_by(judge, first, end=first, goes_back=True, has_bar=has_bar)


def way_there(broker: str, *, is_bar: bool = False) -> tuple[ModelHost, Do, ModelHost, Do]:
    """Return a start, the way there, the end, and the way back."""
    if is_bar:
        first = rig.start(disks=2)
        return first, rig.blocked, rig.ended(first, rig.blocked), rig.unbarred
    first = rig.broker(broker)
    plan = rig.planned(first)

    def apply(host: ModelHost) -> None:
        rig.apply(host, plan)

    return first, apply, rig.ended(first, apply), rig.rollback


def ends(name: str, broker: str = "", *, is_bar: bool = False, at: int = -1) -> Case:
    """Go there; where it is cut off, go on."""
    first, there, last, back = way_there(broker, is_bar=is_bar)
    run = acknowledged(there) if at < 0 else resumed(there, at)
    judge = judged_by(rig.judge_end(last.world()), first.world(), end=last.world(), goes_back=True)
    return Case(name, first, run, recovered(there, back), judge)


def undone(name: str, broker: str = "", *, is_bar: bool = False) -> Case:
    """Go there; where it is cut off, go back."""
    first, there, last, back = way_there(broker, is_bar=is_bar)
    judge = judged_by(rig.judge_back, first.world(), end=last.world(), goes_back=True)
    return Case(name, first, acknowledged(there), recovered(back, back), judge)


def returns(name: str, broker: str = "", *, is_bar: bool = False, at: int = -1) -> Case:
    """Go back; where it is cut off, go on back."""
    first, _, last, back = way_there(broker, is_bar=is_bar)
    run = acknowledged(back) if at < 0 else resumed(back, at)
    return Case(name, last, run, recovered(back, back), back_to(first.world()))


def barred_and_kept(files: Mapping[str, bytes]) -> tuple[list[bool], list[bool]]:
    """Return of each log dir whether it is blocked, and whether what is true is kept in it."""
    metas = [files.get(f"/d{number}/k/meta.properties") for number in (1, 2)]
    return [data != rig.META_TEXT for data in metas], [f"/d{number}/k/start-block.json" in files for number in (1, 2)]


# Where one of these is replaced the log dir is synced once more: after the text beside it, or at the end of each verb.
# Where one is removed it is not.
MISSES = frozenset({(functions.REPLACE_FILE, 1), (functions.REMOVE_FILE, 1)})
