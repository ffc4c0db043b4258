"""Making and removing a work root, cut off at every call: doing it again always ends in the same state."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator

import pytest

from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.failure import give_up_reserve
from logdir.disk.kernel.host import Call
from logdir.disk.root.init import init
from logdir.disk.root.plan import plan_init
from logdir.disk.root.work_root import open_root
from logdir.errors import LogDirError, NoWorkRootError, ReadOnlyDiskError, RefusedError
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.paths import RESERVE
from logdir.refusal_slug import Why
from tests.crash.model import Failure, Killed, ModelHost
from tests.crash.persistence import DiskLog
from tests.crash.tree import World
from tests.logdir.disk.work_root_crash import RESERVE_BYTES, SHAPES, make, remove, start
from tests.whole_refusal import require_whole


def seen(world: World) -> dict[str, tuple[object, ...]]:
    return {path: (node.type, node.owner, node.data) for path, node in world.tree().items()}


def after_crashes(host: ModelHost) -> Iterator[World]:
    """Yield what may be left of the disk: after a kill, and after a power cut in each model."""
    world = host.world()
    log = DiskLog(world.volumes[0])
    edits, syncs = host._marks()[0]
    seen_digests = set()
    for model in "KJBP":
        for loss in log.survivors(model, edits, syncs):
            volume = log.running(loss, syncs) if model == "K" else log.durable(loss)
            if (model == "K", volume.digest()) not in seen_digests:
                seen_digests.add((model == "K", volume.digest()))
                yield world._replace(volumes=(volume,), generation=world.generation + 1, rebooted=model != "K")


def is_never_half_and_called_whole(world: World, shape: str) -> bool:
    host = ModelHost(world)
    try:
        root = open_root(host, SHAPES[shape])
    except NoWorkRootError:
        return False
    with root:
        root.prove()
        assert root.open_dir.work.stat(RESERVE).size_bytes == RESERVE_BYTES
        assert root.open_dir.work.stat("owner.lock").size_bytes > 0
    return True


def _cut(before: World, shape: str, do: Callable[[ModelHost, str], None], *, check: bool) -> tuple[int, int]:
    """Cut ``do`` at each call; return how many calls and how many crashed states there were."""
    whole = ModelHost(before)
    do(whole, shape)
    end = seen(whole.world())
    states = 0
    for at in range(len(whole.records) + 1):
        host = ModelHost(before).kill(at)
        if at < len(whole.records):
            with pytest.raises(Killed):
                do(host, shape)
        else:
            do(host, shape)
        for world in after_crashes(host):
            states += 1
            if check:
                found = is_never_half_and_called_whole(world, shape)
                assert found or at < len(whole.records), "what was reported done was lost"
            again = ModelHost(world)
            do(again, shape)
            assert seen(again.world()) == end, (at, whole.records[min(at, len(whole.records) - 1)].call)
    return len(whole.records), states


@pytest.mark.parametrize("shape", SHAPES)
def test_a_making_cut_off_anywhere_is_finished_by_making_it_again(shape: str) -> None:
    calls, states = _cut(start(shape).world(), shape, make, check=True)
    assert calls > 15
    assert states > 2 * calls


def make_where_beside_does_not_do(host: ModelHost, shape: str) -> None:
    plan = plan_init(host, SHAPES[shape], fs_type="ext4")
    if not plan.is_whole:
        host.fail(Failure(0, errno.EXDEV, name="rename"))
    assert init(host, plan, made_at_ms=5, reserve_bytes=RESERVE_BYTES).kind is WorkRootKind.IN_PLACE


def test_a_making_cut_off_while_a_place_is_given_up_ends_at_the_next() -> None:
    calls, _ = _cut(start("beside").world(), "beside", make_where_beside_does_not_do, check=True)
    assert calls > 25


@pytest.mark.parametrize("shape", SHAPES)
def test_a_removal_cut_off_anywhere_is_finished_by_removing_it_again(shape: str) -> None:
    host = start(shape)
    before = seen(host.world())
    make(host, shape)
    world = host.world()
    settled = world._replace(volumes=(world.volumes[0].durable(),), generation=1)
    end = ModelHost(settled)
    remove(end, shape)
    assert seen(end.world()) == before
    calls, states = _cut(settled, shape, remove, check=False)
    assert calls >= 8
    assert states > calls


def outcome(host: ModelHost, shape: str) -> LogDirError | None:
    try:
        make(host, shape)
    except LogDirError as error:
        return error
    return None


@pytest.mark.parametrize("shape", SHAPES)
def test_an_error_of_any_call_is_one_of_ours_and_leaves_what_init_finishes(shape: str) -> None:
    whole = start(shape)
    make(whole, shape)
    for number in (errno.EIO, errno.ENOSPC):
        for at in range(len(whole.records)):
            host = start(shape)
            host.fail(Failure(at, number))
            call = whole.records[at].call.name
            refused = outcome(host, shape)
            if refused is None:
                assert call in ("write", "rename", "replace", "mkdir", "link", "unlink")
            elif call.startswith("fsync") or number == errno.EIO:
                assert isinstance(refused, ReadOnlyDiskError)
            host.failures.clear()
            again = ModelHost(host.world()._replace(generation=1))
            make(again, shape)
            assert seen(again.world()) == seen(whole.world())


@pytest.mark.parametrize(
    "failure",
    [
        Failure(0, errno.EXDEV, name="rename"),
        Failure(1, errno.EXDEV, name="rename"),
        Failure(3, errno.EXDEV, name="rename"),
        Failure(0, errno.EPERM, name="link"),
        Failure(0, errno.EPERM, name="unlink"),
        Failure(0, errno.EACCES, name="mkdir"),
        Failure(2, errno.EPERM, name="mkdir"),
    ],
    ids=str,
)
def test_a_place_that_does_not_do_is_left_as_it_was_found(failure: Failure) -> None:
    path = SHAPES["beside"]
    host = start("beside").fail(failure)
    done = init(host, plan_init(host, path, fs_type="ext4"), made_at_ms=5, reserve_bytes=RESERVE_BYTES)
    assert (done.kind, [c.kind for c in done.passed]) == (WorkRootKind.IN_PLACE, [WorkRootKind.BESIDE])
    assert [name for name in host.world().tree() if ".logdird" in name or "2147483646" in name] == []
    open_root(host, path).close()
    alone = start("beside").fail(failure)
    before = seen(alone.world())
    with pytest.raises(RefusedError):
        init(alone, plan_init(alone, path, requested=WorkRootKind.BESIDE, fs_type="ext4"), made_at_ms=5)
    assert seen(alone.world()) == before


def test_a_directory_made_again_in_a_whole_root_is_durable() -> None:
    host = start("beside")
    make(host, "beside")
    with host.open_top("/d1/kafka.logdird") as root:
        root.remove("incoming")
        root.sync_disk()
    again = ModelHost(host.world()._replace(generation=1))
    make(again, "beside")
    calls = [record.call for record in again.records]
    assert Call("fsync-dir", "/d1/kafka.logdird") in calls[calls.index(Call("mkdir", "/d1/kafka.logdird/incoming")) :]


@pytest.mark.parametrize("is_small", [True, False], ids=["little room", "no room"])
def test_a_reserve_given_up_waits_for_room(is_small: bool) -> None:
    host = start("beside")
    make(host, "beside")
    with host.open_top("/d1/kafka.logdird") as root:
        assert give_up_reserve(root)
    volume = host.world().volumes[0]
    held = host.systems[0].used_bytes()
    full = ModelHost(host.world()._replace(volumes=(volume._replace(capacity_bytes=held + 1),), generation=1))
    if not is_small:
        full = ModelHost(host.world()._replace(generation=1)).fail(
            Failure(0, errno.ENOSPC, for_ever=True, name="write")
        )
    make(full, "beside")
    assert sum(record.call.name == "write" for record in full.records) == (0 if is_small else 1)
    with full.open_top("/d1/kafka.logdird") as root:
        assert root.stat(RESERVE).size_bytes == 0
    room = ModelHost(host.world()._replace(generation=2))
    make(room, "beside")
    with room.open_top("/d1/kafka.logdird") as root:
        assert root.stat(RESERVE).size_bytes == RESERVE_BYTES


def made(shape: str) -> ModelHost:
    host = start(shape)
    make(host, shape)
    world = host.world()
    return ModelHost(world._replace(volumes=(world.volumes[0].durable(),), generation=1))


def given_to_another(shape: str) -> ModelHost:
    world = made(shape).world()
    host = ModelHost(world._replace(uid=0, gid=0))
    with host.open_top("/d1/kafka.logdird") as root:
        for name, mode in (("incoming", 0o700), ("probe", 0o755), ("owner.lock", 0o644), ("work-root.json", 0o600)):
            root.adopt(name, Owner(3, 3, mode))
    volumes = (host.world().volumes[0].durable(),)
    return ModelHost(host.world()._replace(volumes=volumes, generation=2))


RUNS: dict[str, tuple[str, Callable[[str], ModelHost], Callable[[ModelHost, str], None]]] = {
    "made": ("beside", start, make),
    "given up for another place": ("beside", start, make_where_beside_does_not_do),
    "given back": ("beside", given_to_another, make),
    **{f"taken away {shape}": (shape, made, remove) for shape in SHAPES},
}


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=errno.errorcode.get)
@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_written_after_a_sync_failed(name: str, number: int) -> None:
    shape, first, run = RUNS[name]
    whole = first(shape)
    run(whole, shape)
    syncs = [at for at, record in enumerate(whole.records) if not record.is_change]
    assert syncs
    for at in syncs:
        host = first(shape).fail(Failure(at, number))
        with pytest.raises(ReadOnlyDiskError):
            run(host, shape)
        assert len(host.records) == at + 1, [r.call for r in host.records[at:]]


def test_a09_nothing_in_a_root_is_left_to_another_owner() -> None:
    host = given_to_another("beside")
    make(host, "beside")
    fresh = made("beside")
    assert seen(host.world()) == seen(fresh.world())


@pytest.mark.parametrize(
    ("number", "slug", "fix"),
    [
        (errno.EACCES, "work-root-failed", "as the owner of the log dir"),
        (errno.EPERM, "work-root-failed", "as the owner of the log dir"),
        (errno.ENOSPC, "disk-full", "free space on that disk"),
        (errno.ENAMETOOLONG, "work-root-failed", "give the log dir a shorter name in log.dirs"),
        (errno.EMFILE, "work-root-failed", "raise the limit of open files of this process"),
        (errno.EBUSY, "work-root-failed", "unmount what is mounted there"),
        (errno.EINVAL, "work-root-failed", "remove the cause that the kernel names"),
    ],
)
@pytest.mark.parametrize("call", ["write", "replace"])
def test_what_keeps_a_root_from_being_finished_is_told_in_the_words_of_the_kernel(
    call: str, number: int, slug: str, fix: str
) -> None:
    host = start("beside").fail(Failure(0, number, name=call, for_ever=True))
    refused = outcome(host, "beside")
    assert refused is not None
    assert refused.slug == slug
    assert refused.found == os.strerror(number)
    assert fix in str(refused)
    assert ("owner" in str(refused.fix)) is (number in (errno.EACCES, errno.EPERM))


def test_a_root_that_may_not_be_finished_is_refused_with_whom_to_run_as() -> None:
    refused = outcome(start("beside").fail(Failure(0, errno.EACCES, name="write", for_ever=True)), "beside")
    assert refused is not None
    require_whole(
        refused,
        Why.WORK_ROOT_FAILED,
        path="/d1/kafka.logdird/owner.lock.tmp",
        expected="a work root that can be created",
        found="Permission denied",
        fix="repeat the command as the owner of the log dir",
    )


def test_the_file_that_says_it_is_whole_is_the_last_thing_written() -> None:
    host = start("beside")
    make(host, "beside")
    changes = [record.call for record in host.records if record.is_change]
    assert changes[-1] == Call("replace", "/d1/kafka.logdird/work-root.json.tmp", "/d1/kafka.logdird/work-root.json")
    assert host.records[-1].call == Call("fsync-dir", "/d1/kafka.logdird")
