"""On what capture and adoption are cut off, what is done there, and who judges: for their tests and their descriptors.

The judge knows no order of calls. *Lost*: a byte of the log has no name that leads to it. *Half*: under a live name or
in ``deleting/`` lies something else than one of the two ends. *Stuck*: doing it again does not end well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack

from logdir.disk.kernel.calls import Owner
from logdir.disk.recover_broker import recover_broker
from logdir.disk.recover_log_dir import recover
from logdir.disk.replica.adopt import AdoptItem, adopt
from logdir.disk.replica.capture import Linked, capture, complete, link_up
from logdir.disk.replica.capture_item import CaptureItem
from logdir.disk.replica.outcome import Result
from logdir.disk.replica.replica_dir import read_marker
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.observe.classify import Type
from tests.crash.enumerate import State
from tests.crash.model import ModelHost
from tests.crash.oracle import deadline
from tests.crash.recording import Acks
from tests.crash.tree import World
from tests.logdir.disk.rescue import (
    ADOPTED,
    DELAY_MS,
    DELETED,
    FILES,
    NEW,
    NEW_FILES,
    OLD,
    entries,
    instant,
    make_root,
    meta,
    open_site,
    present_marker,
)

# A few files are enough for every order of calls; all sets of more would be sampled.
SMALL = {name: FILES[name] for name in FILES if name.startswith("00000000000000000007.") or "metadata" in name}
SMALL_ADOPTED = {name: data for name, data in ADOPTED.items() if name in SMALL}
SMALL_NEW = {name: NEW_FILES[name] for name in NEW_FILES if name.endswith((".log", "metadata"))}
OLD_ENTRIES = entries(recovery_point=9, log_start=7)
NEW_ENTRIES = entries(recovery_point=2, log_start=1)
ITEM = CaptureItem(name=DELETED, delay_ms=DELAY_MS)
WHOLE = f"/d0/kafka.logdird/deleting/{OLD}_0"


def _host(disks: int = 1) -> ModelHost:
    host = ModelHost.with_disks(*(f"/d{number}" for number in range(disks)))
    for number in range(disks):
        for name, data in {"meta.properties": meta(number), **OLD_ENTRIES}.items():
            host.plant(f"/d{number}/kafka/{name}", data)
        make_root(host, f"/d{number}/kafka")
    return _settled(host)


def _settled(host: ModelHost) -> ModelHost:
    world = host.world()
    return ModelHost(world._replace(volumes=tuple(volume.durable() for volume in world.volumes)))


def _plant(host: ModelHost, path: str, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        host.plant(f"{path}/{name}", data)


def _below(world: World, path: str) -> dict[str, bytes]:
    """Return the files of a directory but for our markers."""
    found = {}
    for at, data in world.files().items():
        folder, _, name = at.rpartition("/")
        if folder == path and not name.startswith("replica."):
            found[name] = data
    return found


def _sites(host: ModelHost, stack: ExitStack) -> list[OpenLogDir]:
    """Open the log dirs that answer and take changes: a command goes on only without the others, or not at all."""
    there = [system for system in host.systems if system.status == "ok"]
    return [stack.enter_context(open_site(host, f"{system.mount}/kafka")).open_dir for system in there]


def _says_when(world: World, path: str) -> list[str]:
    """Return what is wrong with the deadline of what is staged: four hours from when that was decided."""
    said = deadline(world.tree(), path)
    wanted = (1_700_000_000_000, 4 * 60 * 60 * 1000, "b", 5_000)
    return [] if said == wanted else [f"early: the deadline of {path} is {said}, not {wanted}"]


# Capture.


def _deleted() -> ModelHost:
    host = _host()
    _plant(host, f"/d0/kafka/{DELETED}", SMALL)
    return host


def _capture(host: ModelHost, acks: Acks) -> None:
    with ExitStack() as stack:
        (outcome,) = capture(_sites(host, stack)[0], [ITEM], instant)
    if outcome.place is not None:
        acks.ack("captured" if outcome.result is Result.DONE else "partial")


def _write_capture_and_remove(host: ModelHost, acks: Acks) -> None:
    """As a broker does: what it wrote need not be synced when it renames the directory, nor when it removes it."""
    with host.open_top("/d0/kafka") as top, top.open(DELETED) as directory:
        log = next(name for name in SMALL if name.endswith(".log"))
        directory.write("later", SMALL[log], Owner(0, 0, 0o644))
        directory.replace("later", log)
    _capture(host, acks)
    _remove(host)


def _link_remove_and_complete(host: ModelHost, acks: Acks) -> None:
    """Its broker removes its own as soon as all of it is linked."""
    with ExitStack() as stack:
        open_dir = _sites(host, stack)[0]
        (linked,) = link_up(open_dir, [ITEM], instant)
        assert isinstance(linked, Linked)
        _remove(host)
        (outcome,) = complete(open_dir, [linked], instant)
    if outcome.result is Result.DONE:
        acks.ack("captured")


def _remove(host: ModelHost) -> None:
    with host.open_top("/d0/kafka") as top:
        with top.open(DELETED) as directory:
            for name in directory.names():
                directory.unlink(name)
        top.remove(DELETED)


def _recover_capture(host: ModelHost) -> None:
    with ExitStack() as stack:
        for open_dir in _sites(host, stack):
            recover(open_dir)
            if DELETED in open_dir.top.names():
                capture(open_dir, [ITEM], instant)


def _judge_capture(start: World, state: State, acks: Acks) -> list[str]:
    wrong = []
    world = state.recovered
    roots = ("/d0/kafka.logdird/deleting/", "/d0/kafka.logdird/incoming/")
    directories = [
        path for path, node in world.tree().items() if path.startswith(roots) and node.type is Type.DIRECTORY
    ]
    source = _below(world, f"/d0/kafka/{DELETED}")
    crashed_source = _below(state.crashed, f"/d0/kafka/{DELETED}")
    if source != crashed_source:
        wrong.append("the broker's directory was changed")
    held = _below(world, WHOLE)
    if held == SMALL:
        wrong += _says_when(world, WHOLE)
    else:
        if "captured" in acks:
            wrong.append("acknowledged, but not whole in deleting/")
        elif crashed_source == SMALL:
            wrong.append("stuck: captured again, it is not whole in deleting/")
        elif held and held != crashed_source:
            wrong.append("half in deleting/")
    if WHOLE in directories and directories != [WHOLE]:
        wrong.append(f"doubled: {directories}")
    return wrong


# Adopt.


def _made_anew(present: int) -> ModelHost:
    host = _host(1 + present)
    _plant(host, f"/d0/kafka/{DELETED}", SMALL)
    with ExitStack() as stack:
        capture(_sites(host, stack)[0], [ITEM], instant)
    _remove(host)
    with host.open_top(f"/d{present}/kafka") as top:
        for name in NEW_ENTRIES:
            if name in top.names():
                top.unlink(name)
    host = _settled(host)
    _plant(host, f"/d{present}/kafka/t-0", SMALL_NEW)
    _plant(host, f"/d{present}/kafka", NEW_ENTRIES)
    return host


def _adopt_on(present: int, *, keep: bool) -> Callable[[ModelHost, Acks], None]:
    def run(host: ModelHost, acks: Acks) -> None:
        with ExitStack() as stack:
            open_dirs = _sites(host, stack)
            with open_dirs[0].deleting.open(f"{OLD}_0") as directory:
                marker = read_marker(directory)
            assert marker is not None
            inode = open_dirs[present].top.stat("t-0").inode
            item = AdoptItem(
                name=f"{OLD}_0",
                marker=marker,
                topic="t",
                topic_id=NEW,
                present=open_dirs[present],
                present_marker=present_marker(open_dirs[present], inode),
                keep=keep,
            )
            outcome = adopt(open_dirs[0], item, open_dirs)
        if outcome.result is Result.DONE:
            acks.ack("adopted")
        else:
            acks.ack("undone")

    return run


def _recover_adopt(host: ModelHost) -> None:
    with ExitStack() as stack:
        open_dirs = _sites(host, stack)
        recover_broker(open_dirs, is_whole=len(open_dirs) == len(host.systems))


def _judge_adopt(present: int, *, keep: bool) -> Callable[[World, State, Acks], list[str]]:
    def judge(start: World, state: State, acks: Acks) -> list[str]:
        world = state.recovered
        files = world.files()
        live = {number: _below(world, f"/d{number}/kafka/t-0") for number in range(1 + present)}
        rescued = _below(world, WHOLE)
        # Its name has a counter if the kernel said of the plain one that it is taken (EEXIST).
        names = (f"/d{present}/kafka.logdird/deleting/{NEW}_0{counter}" for counter in ("", ".2"))
        aside, replaced = next(((name, there) for name in names if (there := _below(world, name))), ("", {}))
        has_old, has_new = (
            all(files.get(f"/d{number}/kafka/{name}") == data for name, data in wanted.items())
            for number, wanted in ((0, OLD_ENTRIES), (present, NEW_ENTRIES))
        )
        wrong = _says_when(world, WHOLE) if rescued == SMALL else []
        if replaced == SMALL_NEW:
            wrong += _says_when(world, aside)
        if any("incoming/" in path for path in files):
            wrong.append("something is left under incoming/")
        if any(path.startswith(f"/d{n}/kafka/t-0/replica.") for n in live for path in files):
            wrong.append("a marker is left under a live name")
        if live[0] == SMALL_ADOPTED and (present == 0 or not live[present]):
            if not has_old:
                wrong.append("adopted without its entries")
            if replaced != SMALL_NEW:
                wrong.append("lost: what the new topic held")
            if keep and rescued != SMALL:
                wrong.append("lost: what was to be kept")
            if rescued and rescued != SMALL:
                wrong.append("half: what was rescued is in parts under a name that can be restored")
            if "undone" in acks:
                wrong.append("said undone, but adopted")
        elif live[present] == SMALL_NEW and (present == 0 or not live[0]):
            if not has_new:
                wrong.append("not adopted, and its entries are others")
            if rescued != SMALL:
                wrong.append("lost: what was rescued")
            if replaced:
                wrong.append("doubled: what the new topic held")
            if "adopted" in acks:
                wrong.append("acknowledged, but not adopted")
        else:
            wrong.append(f"half: {sorted(live[0])}, {sorted(live[present])}")
        return wrong

    return judge
