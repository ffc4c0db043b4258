"""Capture, adoption, withdrawal and what a start makes of either: also beside a broker that removes what is captured.

Starts and judges are those of ``tests.logdir.disk.test_rescue_crash``.

Spec: design §2 law 4, §3.3; attacks A16, A17.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial

from logdir.disk.kernel.host import Call
from logdir.disk.replica.replica_dir import read_marker
from logdir.disk.replica.staging import StageItem, stage
from logdir.observe.classify import Type
from tests.crash.enumerate import Judge, State
from tests.crash.families.case import Case, Do, before_each, killed, no_more, readable, settled, with_missing
from tests.crash.model import Killed, ModelHost
from tests.crash.recording import Acks
from tests.crash.tree import World
from tests.logdir.disk import test_rescue_crash as rescue
from tests.logdir.disk.rescue import DELETED, NEW, present_marker

_INDEX = "00000000000000000007.index"


CAPTURED, PARTIAL, UNDONE, ADOPTED = (frozenset({said}) for said in ("captured", "partial", "undone", "adopted"))


def _captured(case: Case, reaches: frozenset[str] = CAPTURED) -> Case:
    """Return it judged with its only disk missing, too: nothing is done then, and what was said to be kept is there."""

    def partly(start: World, state: State, acks: Acks, there: frozenset[str]) -> list[str]:
        held = rescue._below(state.recovered, rescue.WHOLE)
        is_lost = "captured" in acks and there and held != rescue.SMALL
        return ["lost: acknowledged, but not whole in deleting/"] if is_lost else []

    return case._replace(judge=with_missing(case.judge, partly), reaches=reaches)


def _capture(name: str) -> Case:
    case = Case(name, rescue._deleted(), rescue._capture, rescue._recover_capture, rescue._judge_capture)
    return _captured(case)


def _captured_and_removed(name: str) -> Case:
    """Its broker wrote without a sync, and removes its own as soon as it is captured."""

    def judge(start: World, state: State, acks: Acks) -> list[str]:
        # What a power cut leaves of the broker's own unsynced files is another directory: that is captured, too.
        return [line for line in rescue._judge_capture(start, state, acks) if not line.startswith("doubled")]

    run = rescue._write_capture_and_remove
    return _captured(Case(name, rescue._deleted(), run, rescue._recover_capture, judge, _is_brokers))


def _captured_again_and_removed(name: str) -> Case:
    """It was renamed by a process that was killed before that was durable; its broker trusts what the next one says."""
    first = ModelHost(rescue._deleted().world())
    rescue._capture(first, Acks())
    at = next(
        number
        for number, made in enumerate(first.records)
        if made.call.name == "fsync-dir" and made.call.path.endswith("/deleting")
    )

    def run(host: ModelHost, acks: Acks) -> None:
        host.kill(len(host.records) + at)
        with suppress(Killed):
            rescue._capture(host, Acks())
        host.kill_at, host.is_dead = None, False
        rescue._capture(host, acks)
        rescue._remove(host)

    def judge(start: World, state: State, acks: Acks) -> list[str]:
        # What a power cut leaves of a removal is another directory: that is captured, too.
        return [line for line in rescue._judge_capture(start, state, acks) if not line.startswith("doubled")]

    return _captured(Case(name, rescue._deleted(), run, rescue._recover_capture, judge))


def _is_brokers(call: Call) -> bool:
    return f"/{DELETED}/" in call.path


def _partial(name: str) -> Case:
    """A part of a replica is kept, and its broker removes the rest."""
    host = rescue._host()
    rest = {name: data for name, data in rescue.SMALL.items() if name != "partition.metadata"}
    rescue._plant(host, f"/d0/kafka/{DELETED}", rest)

    def run(host: ModelHost, acks: Acks) -> None:
        rescue._capture(host, acks)
        rescue._remove(host)

    def judge(start: World, state: State, acks: Acks) -> list[str]:
        held = rescue._below(state.recovered, "/d0/kafka.logdird/incoming/no-id.t_0")
        wrong = ["lost: a part that was said to be kept"] if "partial" in acks and held != rest else []
        if any("/deleting/" in path for path in state.recovered.files()):
            wrong.append("half: in deleting/")
        return wrong

    def partly(start: World, state: State, acks: Acks, there: frozenset[str]) -> list[str]:
        return judge(start, state, acks) if there else []

    return Case(name, host, run, rescue._recover_capture, with_missing(judge, partly), reaches=PARTIAL)


def _given_up(name: str) -> Case:
    """Its broker removes everything while it is being linked; what was linked by then is the last there is of it."""

    def run(host: ModelHost, acks: Acks) -> None:
        def gone(path: str) -> bool:
            if not path.endswith(".log"):
                return False
            _remove_files(host)
            return True

        before_each(host, "link", gone)
        rescue._capture(host, acks)

    def judge(start: World, state: State, acks: Acks) -> list[str]:
        files = state.recovered.files()
        kept = [path for path, data in files.items() if path.endswith(f"/{_INDEX}") and data == rescue.SMALL[_INDEX]]
        return ["lost: the last that was left of it"] if "partial" in acks and not kept else []

    def partly(start: World, state: State, acks: Acks, there: frozenset[str]) -> list[str]:
        return judge(start, state, acks) if there else []

    return Case(name, rescue._deleted(), run, rescue._recover_capture, with_missing(judge, partly), reaches=PARTIAL)


def _remove_files(host: ModelHost) -> None:
    with host.open_top("/d0/kafka") as top, top.open(DELETED) as directory:
        for name in directory.names():
            directory.unlink(name)


def _not_at_all(name: str) -> Case:
    """Nothing of the log is left to be captured, and all the rest still has its broker's names: nothing is kept."""

    def run(host: ModelHost, acks: Acks) -> None:
        def gone(path: str) -> bool:
            with host.open_top("/d0/kafka") as top, top.open(DELETED) as directory:
                directory.unlink(next(name for name in directory.names() if name.endswith(".log")))
            return True

        before_each(host, "link", gone)
        rescue._capture(host, acks)
        acks.ack("undone")

    def judge(start: World, state: State, acks: Acks) -> list[str]:
        crashed = state.crashed.tree()
        if any(f"/{DELETED}/" in path and path.endswith(".log") for path in crashed):
            return []  # The power cut gave the broker its file back: a start captures it anew, and may be cut off.
        left = [path for path in crashed if "/incoming/" in path]
        return [f"foreign: {path} was said to be gone" for path in left] if "undone" in acks else []

    judged = with_missing(judge, no_more)
    return Case(name, rescue._deleted(), run, rescue._recover_capture, judged, reaches=UNDONE)


# Adoption.


def _adopts(present: int, *, keep: bool) -> Judge:
    """Return the judge of an adoption: with a disk missing none goes on or back, and nothing is lost on the others."""

    def partly(start: World, state: State, acks: Acks, there: frozenset[str]) -> list[str]:
        wrong = []
        for word, world in (("crashed", state.crashed), ("recovered", state.recovered)):
            if "/d0" in there:
                wrong += _rescued(world, word, is_adopted="adopted" in acks)
            if present and "/d1" in there:
                wrong += _replaced(world, word, is_adopted="adopted" in acks)
        for mount in there:
            was, now = (_names(world, mount) for world in (state.crashed, state.recovered))
            wrong += [] if was == now else [f"other: {was} became {now} with a disk missing"]
        return wrong

    return with_missing(rescue._judge_adopt(present, keep=keep), partly)


def _rescued(world: World, word: str, *, is_adopted: bool) -> list[str]:
    """Return what is wrong with the log dir of the rescued files, whatever the other one holds."""
    log = next(name for name in rescue.SMALL if name.endswith(".log"))
    files = world.files()
    if not any(path.endswith(f"/{log}") and data == rescue.SMALL[log] for path, data in files.items()):
        return [f"lost: what was rescued, when {word}"]
    live = rescue._below(world, "/d0/kafka/t-0")
    return (
        [f"lost: acknowledged adopted, live is {sorted(live)}"] if is_adopted and live != rescue.SMALL_ADOPTED else []
    )


def _replaced(world: World, word: str, *, is_adopted: bool) -> list[str]:
    """Return what is wrong with the log dir of the replica that was made anew, whatever the other one holds."""
    live, aside = (rescue._below(world, f"/d1/{path}") for path in ("kafka/t-0", f"kafka.logdird/deleting/{NEW}_0"))
    if sorted([bool(live), bool(aside)]) != [False, True] or {**live, **aside} != rescue.SMALL_NEW:
        return [f"half: the new topic's replica is live with {sorted(live)}, aside with {sorted(aside)}, when {word}"]
    return ["lost: acknowledged adopted, the new one is live"] if is_adopted and live else []


def _names(world: World, mount: str) -> list[str]:
    """Return what says how far an adoption is: live names, what is staged, what is ready to be live."""
    parents = (f"{mount}/kafka", f"{mount}/kafka.logdird/deleting")
    paths = [path for path, node in world.tree().items() if node.type is Type.DIRECTORY]
    return [path for path in paths if path.rpartition("/")[0] in parents or path.endswith(".ready")]


def _adopt(name: str, present: int, *, keep: bool) -> Case:
    start, judge = rescue._made_anew(present), _adopts(present, keep=keep)
    return Case(name, start, rescue._adopt_on(present, keep=keep), rescue._recover_adopt, judge, reaches=ADOPTED)


def _adopting(present: int) -> Do:
    return lambda host: rescue._adopt_on(present, keep=False)(host, Acks())


def _cut(present: int, call: str, path: str) -> tuple[ModelHost, int]:
    """Return a host on which an adoption was killed before a call, and the number of that."""
    start = rescue._made_anew(present)
    whole = ModelHost(start.world())
    _adopting(present)(whole)
    at = next(
        number
        for number, made in enumerate(whole.records)
        if made.call.name == call and (made.call.to or made.call.path).endswith(path)
    )
    return killed(start, _adopting(present), at), at


def _withdraw(name: str) -> Case:
    """The start after one that was killed before it had set the new replica aside."""
    start, _ = _cut(0, "write", "/t-0/replica.json")
    return _started(name, start, 0, "withdrawn")


def _finish(name: str, present: int) -> Case:
    """The start after one that was killed when it had."""
    start, _ = _cut(present, "rename", "/kafka/t-0")
    return _started(name, start, present, "adopted")


def _started(name: str, start: ModelHost, present: int, end: str) -> Case:
    adopted = _adopts(present, keep=True)

    def run(host: ModelHost, acks: Acks) -> None:
        rescue._recover_adopt(host)
        acks.ack(end)

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = adopted(before, state, acks)
        mount = "/d0" if end == "adopted" else f"/d{present}"
        if end in acks and mount in readable(state):
            # Recovery said it to whoever came next, who may have acted on it.
            live = rescue._below(state.crashed, f"{mount}/kafka/t-0")
            if live != (rescue.SMALL_ADOPTED if end == "adopted" else rescue.SMALL_NEW):
                wrong.append(f"lost: acknowledged {end}, live is {sorted(live)}")
            wrong += [f"lost: {path} was said to be gone" for path in state.crashed.files() if ".ready/" in path]
        return wrong

    return Case(name, start, run, rescue._recover_adopt, judge, reaches=frozenset({end}))


def _finish_unsynced(name: str) -> Case:
    """The new replica was staged by a process that was killed before it had made that durable."""
    start, _ = _cut(1, "write", "/t-0/replica.json")
    adopted = _adopts(1, keep=True)

    def run(host: ModelHost, acks: Acks) -> None:
        with ExitStack() as stack:
            open_dir = rescue._sites(host, stack)[1]
            marker = present_marker(open_dir, open_dir.top.stat("t-0").inode)
            # All of staging but the sync of its two parents.
            host.kill(len(host.records) + 3)
            try:
                stage(open_dir, [StageItem(path="t-0", marker=marker)])
            except Killed:
                host.kill_at, host.is_dead = None, False
            assert host.records[-1].call.name == "rename", host.records[-1]
        rescue._recover_adopt(host)
        acks.ack("adopted")

    return Case(name, start, run, rescue._recover_adopt, adopted, reaches=ADOPTED)


def _interrupted_capture(name: str) -> Case:
    """A start takes away what an adoption had begun: links, and last the marker that says what they are."""
    start, _ = _cut(0, "rename", f"/incoming/{NEW}_0.ready")

    def run(host: ModelHost, acks: Acks) -> None:
        rescue._recover_adopt(host)
        acks.ack("undone")

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = _adopts(0, keep=True)(before, state, acks)
        for path, node in state.crashed.tree().items():
            if path.endswith(f"/incoming/{NEW}_0") and set(node.entries) - {"replica.json"}:
                with ModelHost(state.crashed).open_top(path) as directory:
                    if read_marker(directory) is None:
                        wrong.append("stuck: links without the marker that says what they are")
        return wrong

    return Case(name, settled(start), run, rescue._recover_adopt, judge, reaches=UNDONE)


RESCUE: dict[str, Callable[[str], Case]] = {
    "capture": _capture,
    "capture, then removed by its broker": _captured_and_removed,
    "capture after a killed one, then removed by its broker": _captured_again_and_removed,
    "capture of a part": _partial,
    "capture of the last of it": _given_up,
    "capture of nothing": _not_at_all,
    "adopt": partial(_adopt, present=0, keep=False),
    "adopt and keep": partial(_adopt, present=0, keep=True),
    "adopt from another disk": partial(_adopt, present=1, keep=False),
    "start after an adoption only begun": _interrupted_capture,
    "start that withdraws an adoption": _withdraw,
    "start that finishes an adoption": partial(_finish, present=0),
    "start that finishes an adoption over two disks": partial(_finish, present=1),
    "start that finishes an adoption not durable": _finish_unsynced,
}
"""Name to what makes it."""
