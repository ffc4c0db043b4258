"""Adoption: captured files become the log of a replica made anew; and what a start makes of an unfinished one.

Starts and judges are those of ``tests.logdir.disk.rescue_crash``.

Spec: design §3.3; attacks A16.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from logdir.disk.replica.adopt import AdoptItem, adopt
from logdir.disk.replica.replica_dir import read_marker
from logdir.disk.replica.staging import StageItem, stage
from logdir.ids import TopicId
from logdir.observe.classify import Type
from logdir.reasons import Reason
from tests.crash.enumerate import Judge, State
from tests.crash.model import Killed, ModelHost
from tests.crash.recording import Acks
from tests.crash.soak.hands import Hands, token
from tests.crash.soak.seen import Seen
from tests.crash.tree import World
from tests.logdir.disk import rescue_crash as rescue
from tests.logdir.disk.rescue import NEW, present_marker
from tests.operations import functions, wrong
from tests.operations.case import Case, Do, killed, readable, settled, with_missing
from tests.operations.operation import Draw, Make, Needless, Operation, Syncs, When
from tests.operations.seeded import Change, Seeded, call, instead, moved, wrapped

ADOPTED, UNDONE = (frozenset({said}) for said in ("adopted", "undone"))


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


def _draw(hands: Hands, seen: Seen) -> bool:
    for aside, marker, said in hands.asides(seen):
        lives = hands.lives(seen, marker)
        if len(lives) != 1:
            continue
        (live,) = lives
        present_token = token(live.open_dir.top, live.name)
        present = hands.marker(live, reason=Reason.DUPLICATE)
        # What was adopted before and is staged by now would have a twin: the same files under the same id.
        taken = {(other, str(marked.topic_id)) for _, marked, other in hands.asides(seen)}
        is_twin = present_token == said or (said, str(present.topic_id)) in taken
        is_twin |= bool({present.topic_id, marker.topic_id} & {other.parts.topic_id for other in seen.claimed})
        if present.topic_id in (None, marker.topic_id) or is_twin:
            continue
        assert isinstance(present.topic_id, TopicId)
        item = AdoptItem(
            name=aside.name,
            marker=marker,
            topic=marker.topic,
            topic_id=present.topic_id,
            present=live.open_dir,
            present_marker=present,
            keep=hands.draw.random() < 0.3,
        )
        hands.begin(
            "adopt",
            token=said,
            id=str(marker.topic_id),
            present={"token": present_token, "id": str(present.topic_id), "delay_ms": present.delay_ms},
            keeps=item.keep,
        )
        with hands.locked():
            hands.end("adopt", adopt(aside.open_dir, item, hands.open_dirs))
        return True
    return False


_WITHDRAWS = "start that withdraws an adoption"
_STARTS: dict[str, Make] = {
    "start that finishes an adoption": partial(_finish, present=0),
    "start that finishes an adoption over two disks": partial(_finish, present=1),
    "start that finishes an adoption not durable": _finish_unsynced,
}
_ADOPTIONS: dict[str, Make] = {
    "adopt": partial(_adopt, present=0, keep=False),
    "adopt and keep": partial(_adopt, present=0, keep=True),
    "adopt from another disk": partial(_adopt, present=1, keep=False),
}
_CASES: dict[str, Make] = {
    **_ADOPTIONS,
    "start after an adoption only begun": _interrupted_capture,
    _WITHDRAWS: _withdraw,
    **_STARTS,
}
_ANY = frozenset({"K", "J", "B", "P"})
OPERATIONS = (
    Operation(
        name="adopt",
        family="rescue",
        cases=_CASES,
        on_kernels=tuple(_ADOPTIONS),
        syncs=(
            Syncs(of=functions.ADOPT_BUILD, cases=tuple(_ADOPTIONS)),
            Syncs(of=functions.ADOPT_READY, cases=tuple(_ADOPTIONS)),
            Syncs(of=functions.ADOPT_WITHDRAW, cases=(_WITHDRAWS,)),
            Syncs(of=functions.ADOPT_PUBLISH, cases=(*_ADOPTIONS, *_STARTS)),
            Syncs(of=functions.ADOPT_FINISH, cases=tuple(_STARTS)),
            Syncs(of=functions.LINKED_MAKE, cases=tuple(_ADOPTIONS)),
            Syncs(of=functions.LINKED_SYNC, cases=tuple(_ADOPTIONS)),
            Syncs(of=functions.LINKED_DROP, cases=(_WITHDRAWS, "adopt")),
        ),
        needless=(
            Needless(
                function=functions.ADOPT_WITHDRAW,
                call=call("sync", of="incoming"),
                because="ext4, XFS, btrfs: the replica that speaks against the adoption is live, durably, before this "
                "rename and until the directory is gone, so a half-emptied `.ready` that comes back is withdrawn again "
                "by the next start; kept because what is being removed must not bear, at any instant of any disk, the "
                "name of what may be published",
            ),
            Needless(
                function=functions.LINKED_MAKE,
                call=call("sync", of="incoming"),
                because="ext4, XFS, btrfs: until an adoption is ready each of its links is a second name, so a "
                "directory whose own name did not become durable takes nothing along; kept because an adoption that "
                "was cut off explains itself by its marker",
            ),
            Needless(
                function=functions.ADOPT_PUBLISH,
                call=call("sync", nth=-1),
                because="ext4, XFS, btrfs: a marker that comes back under a live name means nothing, brokers pass over "
                "it and every start takes it away; kept so that an inventory taken after the acknowledgement shows the "
                "replica as live alone",
            ),
        ),
        draws=(Draw(kind="adopt", do=_draw, when=When.NAMES, is_rare=True),),
        seeded=(
            Seeded(
                name="links outlive the marker that says what they are",
                changes=(Change(functions.LINKED_UNLINK, wrapped(wrong.marker_first)),),
                tried=(_WITHDRAWS, "--models", "KJBP"),
                caught_by=_ANY,
            ),
            Seeded(
                name="an adoption sets the present one aside before the other is ready",
                changes=(Change(functions.ADOPT, moved(call("_make_ready"), after=call("stage"))),),
                tried=("adopt", "--models", "KJBP"),
                caught_by=_ANY,
            ),
            Seeded(
                name="an adoption that keeps the indexes",
                changes=(Change(functions.ADOPT_BUILD, instead(call("last_indexes"), "()")),),
                killed=("foreign: ", "trap: "),
            ),
        ),
    ),
)
"""The descriptor."""
