"""Capture: a replica that its broker removes is kept by hard links, also while the broker goes on removing it.

Starts and judges are those of ``tests.logdir.disk.rescue_crash``.

Spec: design §2 law 4, §3.3; attacks A17.
"""

from __future__ import annotations

from contextlib import suppress

from logdir.disk.kernel.host import Call
from logdir.disk.replica.capture import capture
from logdir.disk.replica.capture_item import CaptureItem
from logdir.names import DirForm
from tests.crash.enumerate import State
from tests.crash.model import Killed, ModelHost
from tests.crash.recording import Acks
from tests.crash.soak.hands import DELAYS_MS, Hands, token
from tests.crash.soak.seen import Seen, said_of
from tests.crash.tree import World
from tests.logdir.disk import rescue_crash as rescue
from tests.logdir.disk.rescue import DELETED
from tests.operations import functions, wrong
from tests.operations.case import Case, before_each, no_more, with_missing
from tests.operations.operation import Draw, Make, Operation, Syncs, Trait, When
from tests.operations.seeded import Change, Seeded, wrapped

_INDEX = "00000000000000000007.index"


CAPTURED, PARTIAL, UNDONE = (frozenset({said}) for said in ("captured", "partial", "undone"))


def _captured(case: Case, reaches: frozenset[str] = CAPTURED) -> Case:
    """Return it judged with its only disk missing, too: nothing is done then, and what was said to be kept is there."""

    def partly(start: World, state: State, acks: Acks, there: frozenset[str]) -> list[str]:
        held = rescue._below(state.recovered, rescue.WHOLE)
        is_lost = "captured" in acks and there and held != rescue.SMALL
        return ["lost: acknowledged, but not whole in deleting/"] if is_lost else []

    return case._replace(holds=with_missing(case.holds, partly), reaches=reaches)


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


def _removed_once_linked(name: str) -> Case:
    """Its broker removes its own before the links are durable: what is not acknowledged by then may stay a part."""

    def judge(start: World, state: State, acks: Acks) -> list[str]:
        # What a power cut leaves of a removal is another directory: that is captured, too.
        return [line for line in rescue._judge_capture(start, state, acks) if not line.startswith("doubled")]

    run = rescue._link_remove_and_complete
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


def _draw(hands: Hands, seen: Seen) -> bool:
    if not seen.deleted:
        return False
    live = hands.draw.choice(seen.deleted)
    delay_ms = hands.draw.choice(DELAYS_MS)
    said = token(live.open_dir.top, live.name)
    held = live.parts.form is DirForm.STRAY
    hands.begin("capture", token=said, id=str(said_of(live).topic_id), delay_ms=None if held else delay_ms)
    (outcome,) = capture(live.open_dir, [CaptureItem(name=live.name, delay_ms=delay_ms)], lambda: hands.now)
    hands.end("capture", outcome)
    return True


_REMOVED = "capture, then removed by its broker"
_AGAIN = "capture after a killed one, then removed by its broker"
_LINKED = "capture of what its broker removes once it is linked"
_CASES: dict[str, Make] = {
    "capture": _capture,
    _REMOVED: _captured_and_removed,
    _AGAIN: _captured_again_and_removed,
    _LINKED: _removed_once_linked,
    "capture of a part": _partial,
    "capture of the last of it": _given_up,
    "capture of nothing": _not_at_all,
}
_CAPTURES = ("capture", _REMOVED, "capture of a part")
OPERATIONS = (
    Operation(
        name="capture",
        family="rescue",
        cases=_CASES,
        traits={Trait.LONG: (_REMOVED,), Trait.LONG_RECOVERY: (_REMOVED,), Trait.ALIKE: (_REMOVED,)},
        on_kernels=("capture",),
        syncs=(
            Syncs(of=functions.CAPTURE, cases=_CAPTURES),
            Syncs(of=functions.CAPTURE_BEGIN, cases=(_AGAIN,)),
            Syncs(of=functions.CAPTURE_COMPLETE, cases=("capture of a part",)),
            Syncs(of=functions.CAPTURE_SYNC, cases=_CAPTURES),
            Syncs(of=functions.CAPTURE_COMMIT, cases=_CAPTURES),
            Syncs(of=functions.CAPTURE_GIVE_UP, cases=("capture of the last of it",)),
            Syncs(of=functions.LINKED_SYNC, cases=_CAPTURES),
            Syncs(of=functions.LINKED_DROP, cases=("capture of nothing",)),
        ),
        draws=(Draw(kind="capture", do=_draw, when=When.NAMES),),
        seeded=(
            Seeded(
                name="a capture said to be done before it is in its place",
                changes=(Change(functions.CAPTURE_COMMIT, wrapped(wrong.not_committed)),),
                tried=("capture", "--models", "KJBP"),
                caught_by=frozenset({"K", "J", "B", "P"}),
            ),
        ),
    ),
)
"""The descriptor."""
