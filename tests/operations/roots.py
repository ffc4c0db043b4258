"""Work roots made and taken away: in each shape, over what a kill left, at a place that does not do, with spare inodes.

Spec: design §3.2; attacks A5, A6, A10.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from functools import partial

from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.failure import calling
from logdir.disk.kernel.host import Call
from logdir.disk.kernel.small_file import read_file, replace_file
from logdir.disk.root.init import init, put_back_missing
from logdir.disk.root.plan import plan_init
from logdir.disk.root.probe import NOT_HERE
from logdir.disk.root.removal import remove_root
from logdir.disk.root.reserve import put_back
from logdir.disk.root.upgrade import upgrade
from logdir.disk.root.work_root import open_log_dir, open_root, open_work_root
from logdir.errors import LogDirOfflineError, NotFormattedError, ReadOnlyDiskError
from logdir.formats.own import own_json, work_root_file
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.observe.classify import Type
from logdir.paths import OWNER_LOCK, PROBE_IN_LOG_DIR, RESERVE, SPARE, WORK_ROOT_FILE
from tests.builders import TOPIC_ID
from tests.crash.enumerate import Judge, State
from tests.crash.model import Failure, ModelHost
from tests.crash.recording import Acks
from tests.crash.tree import World
from tests.logdir.disk.work_root_crash import META_TEXT, SHAPES
from tests.operations import functions
from tests.operations.case import (
    DONE,
    Case,
    acknowledged,
    after,
    below,
    changeable,
    differences,
    killed,
    resumed,
    seen,
    settled,
    unless_missing,
    with_missing,
)
from tests.operations.operation import Make, Operation, Syncs, Trait, Written
from tests.operations.seeded import Change, Seeded, call, moved_whole

OWNER = Owner(7, 8, 0o755)
_PROBES = ("/probe", f"/{PROBE_IN_LOG_DIR}")
_LINKS = tuple(f"{probe}/probe-link" for probe in _PROBES)
_SMALL = 48
_WITH_SPARES = 64 * 1024
_WORK = {"beside": "/d1/kafka.logdird", "in-place": "/d1/__cluster_metadata-2147483647", "inside": "/d1/kafka"}


def is_probe(call: Call) -> bool:
    """Whether a call renames the probe, or links a file into it: it proves that it can be done, and is undone."""
    if call.name in ("link", "unlink"):
        return (call.to or call.path).endswith(_LINKS)
    return call.name == "rename" and call.path.endswith(_PROBES) and call.to.endswith(_PROBES)


def _on(mount: str, path: str) -> str:
    """Return the same path on another disk."""
    return path.replace("/d1", mount, 1)


def _start(shape: str, *, by_root: bool = False, mounts: tuple[str, ...] = ("/d1",)) -> ModelHost:
    """Return log dirs without a work root; where root makes it, all must be given away."""
    host = ModelHost.with_disks(*mounts, uid=0, gid=0) if by_root else ModelHost.with_disks(*mounts, uid=7, gid=8)
    live = f"{TOPIC_ID[:2]}/{TOPIC_ID}_0" if shape == "inside" else "a-0"
    for mount in mounts:
        for name, data in (("meta.properties", META_TEXT), (f"{live}/00000000000000000000.log", b"x")):
            host.plant(f"{_on(mount, SHAPES[shape])}/{name}", data, owner=OWNER.for_file())
    return host


def _each(host: ModelHost, shape: str, do: Callable[[str], object]) -> None:
    """Do it in every log dir by itself; a disk that is missing must refuse it, and keeps no other from it."""
    for system in host.systems:
        try:
            do(_on(system.mount, SHAPES[shape]))
        except (LogDirOfflineError, NotFormattedError):
            if system.status not in ("absent", "empty"):
                raise
        except ReadOnlyDiskError:
            if system.status != "read-only":
                raise


def _make(host: ModelHost, shape: str, reserve_bytes: int = _SMALL) -> None:
    def make(log_dir: str) -> None:
        done = init(host, plan_init(host, log_dir, fs_type="ext4"), made_at_ms=5, reserve_bytes=reserve_bytes)
        assert done.kind.value == shape

    _each(host, shape, make)


def _remove_roots(host: ModelHost, shape: str) -> None:
    _each(host, shape, lambda log_dir: remove_root(host, log_dir))


def _facts(world: World, *, owners: bool) -> dict[str, tuple[object, ...]]:
    """Return what everything is, but for where the probe is just now, and a link in it.

    Args:
        world: What is looked at.
        owners: Also to whom directories belong. After a power cut a worst POSIX has forgotten that of one that was not
            itself synced; ext4, XFS and btrfs have not, and making the root again gives it away again.
    """
    return {
        path: (kind, owner if owners or kind is Type.FILE else None, data)
        for path, (kind, owner, data) in seen(world).items()
        if not path.endswith(_PROBES + _LINKS)
    }


def _ends_as(end: World, *, owners: bool = False) -> Judge:
    """Return the judge of what must come to one end, and be there before any recovery once it was acknowledged."""

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        wrong = differences(_facts(end, owners=True), _facts(state.recovered, owners=True), "other")
        if DONE in acks:
            wrong += differences(_facts(end, owners=owners), _facts(state.crashed, owners=owners), "lost")
        return wrong

    def partly(before: World, state: State, acks: Acks, there: frozenset[str]) -> list[str]:
        fine = changeable(state)
        whole, found = below(fine, _facts(end, owners=True)), below(fine, _facts(state.recovered, owners=True))
        wrong = differences(whole, found, "other")
        if DONE in acks:
            kept = below(there, _facts(state.crashed, owners=owners))
            wrong += differences(below(there, _facts(end, owners=owners)), kept, "lost")
        return wrong

    return with_missing(judge, partly)


def _half(found: World, whole: World, work: str) -> list[str]:
    """Return what is missing of a root that is called whole."""
    tree = found.tree()
    if f"{work}/work-root.json" not in tree:
        return []
    needed = [path for path in _facts(whole, owners=False) if path.startswith(f"{work}/") and not path.endswith(".log")]
    wrong = [f"half: called whole without {path}" for path in needed if path not in tree]
    mount = work[: work.index("/", 1) + 1]
    if sum(path.startswith(mount) and path.endswith(_PROBES) for path in tree) != 1:
        wrong.append("half: called whole without its one probe")
    return wrong


def _whole_or_not(end: World, shape: str) -> Judge:
    """Besides its end: wherever the file lies that says it is whole, everything else does, too."""
    ends = _ends_as(end)

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        works = [_on(volume.mount, _WORK[shape]) for volume in state.crashed.volumes if volume.status != "absent"]
        return ends(before, state, acks) + [line for work in works for line in _half(state.crashed, end, work)]

    return judge


def _init(
    name: str, shape: str, *, by_root: bool = False, reserve_bytes: int = _SMALL, mounts: tuple[str, ...] = ("/d1",)
) -> Case:
    start = _start(shape, by_root=by_root, mounts=mounts)
    make = partial(_make, shape=shape, reserve_bytes=reserve_bytes)
    holds = _whole_or_not(after(start, make).world(), shape)
    return Case(name, start, acknowledged(make), make, holds, is_probe, leads_elsewhere=_NOT_HERE)


def _resumed(name: str, shape: str, at: int) -> Case:
    start = _start(shape, by_root=True)
    make = partial(_make, shape=shape)
    return Case(name, start, resumed(make, at), make, _whole_or_not(after(start, make).world(), shape), is_probe)


def _over_others(name: str, what: str) -> Case:
    """Something of the root belongs to somebody else, as a process of root leaves it that is killed."""
    make = partial(_make, shape="beside")
    whole = after(_start("beside", by_root=True), make)
    end = whole.world()
    with whole.open_top(_WORK["beside"]) as work:
        work.adopt(what, Owner(0, 0, 0o700 if what == "incoming" else 0o600))
    start = after(whole, lambda host: None)
    return Case(name, start, acknowledged(make), make, _ends_as(end, owners=True), is_probe)


def _lacking(name: str) -> Case:
    """A directory of a whole root is missing: nothing else is written, so nothing else makes it durable."""
    make = partial(_make, shape="beside")
    whole = after(_start("beside", by_root=True), make)
    end = whole.world()
    with whole.open_top(_WORK["beside"]) as work:
        work.remove("incoming")
    start = after(whole, lambda host: None)
    return Case(name, start, acknowledged(make), make, _ends_as(end), is_probe)


def _lockless(name: str) -> Case:
    """A whole root has lost its ``owner.lock`` and a directory: both are put back before it is opened and owned."""

    def put_back_at(host: ModelHost, log_dir: str) -> None:
        plan = plan_init(host, log_dir, fs_type="ext4")
        assert set(plan.lacks) <= {"incoming", OWNER_LOCK}
        with open_log_dir(host, log_dir) as top, open_work_root(host, plan.candidates[0].kind, log_dir, top) as work:
            with calling(work):
                put_back_missing(work, top.own_stat().owner)
            assert set(work.names()) >= {"incoming", OWNER_LOCK}
        init(host, plan_init(host, log_dir, fs_type="ext4"), made_at_ms=5, reserve_bytes=_SMALL)

    def put_back_all(host: ModelHost) -> None:
        _each(host, "beside", partial(put_back_at, host))

    whole = after(_start("beside", by_root=True), partial(_make, shape="beside"))
    end = whole.world()
    with whole.open_top(_WORK["beside"]) as work:
        work.remove("incoming")
        work.unlink(OWNER_LOCK)
    start = after(whole, lambda host: None)
    return Case(name, start, acknowledged(put_back_all), put_back_all, _ends_as(end), is_probe)


def _put_back(name: str) -> Case:
    """What a full disk made us give up is put back, at any time, also where that is cut off."""
    whole = after(_start("beside"), partial(_make, shape="beside", reserve_bytes=_WITH_SPARES))
    end = whole.world()
    with whole.open_top(_WORK["beside"]) as work:
        work.truncate(RESERVE, 0)
        with work.open(SPARE) as spare:
            spare.unlink(spare.names()[-1])
    start = after(whole, lambda host: None)

    def make(host: ModelHost) -> None:
        with host.open_top(_WORK["beside"]) as work:
            assert put_back(work, work.own_stat().owner.for_file(), _WITH_SPARES) is None

    return Case(name, start, acknowledged(make), unless_missing(make), _ends_as(end), is_probe)


def _as_0_2_0(host: ModelHost, shape: str) -> None:
    """Leave the file of every work root in the version of 0.2.0."""
    for system in host.systems:
        with host.open_top(_on(system.mount, _WORK[shape])) as work:
            before = read_file(work, WORK_ROOT_FILE) or b""
            values = json.loads(before)
            del values["sha256"], values[work_root_file.KIND]
            older = own_json.render(work_root_file.KIND, 1, values)
            replace_file(work, WORK_ROOT_FILE, older, before=before, owner=OWNER, work=work, keep=False)


def _upgrade(name: str, shape: str) -> Case:
    """A work root of 0.2.0 gets the version of this release, and nothing else of it changes."""

    def upgrade_at(host: ModelHost, log_dir: str) -> None:
        with open_root(host, log_dir) as root:
            upgrade(root.open_dir)
            assert not upgrade(root.open_dir), "it is done once"

    def do(host: ModelHost) -> None:
        _each(host, shape, partial(upgrade_at, host))

    whole = after(_start(shape, mounts=("/d1", "/d2")), partial(_make, shape=shape))
    start = after(whole, partial(_as_0_2_0, shape=shape))
    file = f"{_WORK[shape]}/{WORK_ROOT_FILE}"
    assert work_root_file.parse(start.world().files()[file]).version == 1
    return Case(name, start, acknowledged(do), do, _ends_as(whole.world()), leads_elsewhere=_FULL)


def _elsewhere(name: str) -> Case:
    """Beside the log dir nothing can be renamed: the next place is taken, and that one left as it was."""

    def make_at(host: ModelHost, log_dir: str) -> None:
        plan = plan_init(host, log_dir, fs_type="ext4")
        if not plan.is_whole and host.systems[0].status == "ok":
            host.fail(Failure(len([r for r in host.records if r.call.name == "rename"]), errno.EXDEV, name="rename"))
        assert init(host, plan, made_at_ms=5, reserve_bytes=_SMALL).kind is WorkRootKind.IN_PLACE

    def make(host: ModelHost) -> None:
        _each(host, "beside", partial(make_at, host))

    start = _start("beside")
    return Case(name, start, acknowledged(make), make, _ends_as(after(start, make).world()), is_probe)


def _remove(name: str, shape: str, reserve_bytes: int = _SMALL, mounts: tuple[str, ...] = ("/d1",)) -> Case:
    first = _start(shape, mounts=mounts)
    make = partial(_make, shape=shape, reserve_bytes=reserve_bytes)
    remove = partial(_remove_roots, shape=shape)
    start = after(first, make)
    ends = _ends_as(first.world())

    def judge(before: World, state: State, acks: Acks) -> list[str]:
        works = [_on(volume.mount, _WORK[shape]) for volume in state.crashed.volumes if volume.status != "absent"]
        whole = start.world()
        return ends(before, state, acks) + [line for work in works for line in _half(state.crashed, whole, work)]

    return Case(name, start, acknowledged(remove), remove, judge)


def _remove_after_a_proof(name: str) -> Case:
    """What a proof left that was killed, the second name of a file of the broker, is taken away, and not the file."""
    first = _start("beside")
    made = after(first, partial(_make, shape="beside"))
    with made.open_top("/d1/kafka") as top, made.open_top(f"{_WORK['beside']}/probe") as probe:
        top.link("meta.properties", probe, "probe-link")
    remove = partial(_remove_roots, shape="beside")
    start = settled(made)
    return Case(name, start, acknowledged(remove), remove, _ends_as(first.world()))


def _remove_unfinished(name: str) -> Case:
    """What a making left that was killed is taken away, too."""
    first = _start("beside")
    remove = partial(_remove_roots, shape="beside")
    start = killed(first, partial(_make, shape="beside"), 9)
    assert any(node.type is Type.DIRECTORY and "logdird" in path for path, node in start.world().tree().items())
    return Case(name, start, acknowledged(remove), remove, _ends_as(first.world()))


_TAKEN_UP: dict[str, Make] = {
    f"init beside, taken up at call {at}": partial(_resumed, shape="beside", at=at) for at in (1, 4, 7, 11)
}
_ELSEWHERE = "init where beside does not do"
_MADE: dict[str, Make] = {
    **{f"init {shape}": partial(_init, shape=shape) for shape in SHAPES},
    "init of two log dirs": partial(_init, shape="beside", mounts=("/d1", "/d2")),
    "init beside, by root": partial(_init, shape="beside", by_root=True),
    "init with spare inodes": partial(_init, shape="beside", reserve_bytes=_WITH_SPARES),
    "what is kept for a full disk, put back": _put_back,
    _ELSEWHERE: _elsewhere,
    "init where a directory is missing": _lacking,
    "init where the owner lock is missing": _lockless,
    "init over a directory of another": partial(_over_others, what="incoming"),
    "init over a reserve of another": partial(_over_others, what="reserve"),
    **_TAKEN_UP,
}
_REMOVED: dict[str, Make] = {
    **{f"uninstall {shape}": partial(_remove, shape=shape) for shape in SHAPES},
    "uninstall of two log dirs": partial(_remove, shape="beside", mounts=("/d1", "/d2")),
    "uninstall with spare inodes": partial(_remove, shape="beside", reserve_bytes=_WITH_SPARES),
    "uninstall what was only begun": _remove_unfinished,
    "uninstall with a link in the probe": _remove_after_a_proof,
}
_UPGRADED: dict[str, Make] = {f"upgrade of {shape}": partial(_upgrade, shape=shape) for shape in SHAPES}
_ALL_INITS = tuple(name for name in _MADE if name.startswith("init "))
_MANY = tuple(name for name in _ALL_INITS if name != "init inside")
_INITS = ("init beside", "init inside", "init beside, by root")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""With which an operation takes the reserve."""
_NOT_HERE = NOT_HERE | {errno.ENOENT} | _FULL
"""With which a place for a work root does not do, so that the next is tried, or which takes the reserve just made."""
OPERATIONS = (
    Operation(
        name="init",
        family="roots",
        cases=_MADE,
        traits={
            Trait.TAKEN_UP: tuple(_TAKEN_UP),
            Trait.LONG: _MANY,
            Trait.LONG_CALLS: tuple(name for name in _MANY if name != _ELSEWHERE),
            Trait.LONG_SYNCS: _ALL_INITS,
            Trait.LONG_RECOVERY: _ALL_INITS,
            Trait.MOVES_ON: (_ELSEWHERE,),
            Trait.RESERVE: tuple(_MADE),
        },
        on_kernels=("init beside", "init in-place", "init inside"),
        syncs=(
            Syncs(of=functions.ROOT_INODES, cases=("init with spare inodes",)),
            Syncs(of=functions.ROOT_BEGIN, cases=("init where a directory is missing",)),
            Syncs(of=functions.ROOT_MAKE, cases=_INITS),
            Syncs(of=functions.ROOT_DIRECTORY, cases=("init over a directory of another",)),
            Syncs(of=functions.ROOT_UNDO, cases=(_ELSEWHERE,)),
            Syncs(of=functions.ROOT_FINISH, cases=("init with spare inodes",)),
            Syncs(of=functions.ROOT_GIVE, cases=("init over a reserve of another",)),
        ),
        files={"work-root.json": Written(cases=_INITS)},
    ),
    Operation(
        name="upgrade",
        family="roots",
        cases=_UPGRADED,
        traits={Trait.RESERVE: tuple(_UPGRADED)},
        on_kernels=("upgrade of beside",),
        files={"work-root.json, upgraded": Written(cases=tuple(_UPGRADED))},
    ),
    Operation(
        name="uninstall",
        family="roots",
        cases=_REMOVED,
        traits={Trait.REORDERED: tuple(_REMOVED), Trait.RESERVE: tuple(_REMOVED)},
        on_kernels=("uninstall beside",),
        syncs=(
            Syncs(
                of=functions.ROOT_REMOVE,
                cases=("uninstall inside", "uninstall beside", "uninstall with spare inodes"),
            ),
            Syncs(of=functions.ROOT_REMOVE_SYNCED, cases=("uninstall beside", "uninstall in-place")),
        ),
        seeded=(
            Seeded(
                name="a work root of which the word goes last that it is whole",
                changes=(Change(functions.ROOT_REMOVE, moved_whole(call("unlink"), after=call("remove", of="work"))),),
                tried=("uninstall beside", "--models", "KJBP"),
                caught_by=frozenset({"K", "J", "B", "P"}),
            ),
        ),
    ),
)
"""The descriptors: of making work roots, of bringing them to a newer version, and of taking them away."""
