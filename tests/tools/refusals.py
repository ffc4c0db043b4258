"""One situation per kind of refusal: made on real directories, and the command that is refused there.

Not here: judging what is printed (``test_refusals``).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from logdir.formats.own import replica_marker
from logdir.formats.own.replica_marker import Intent
from logdir.refusal_slug import Why
from tests.builders import TOPIC_ID, log_dir, partition
from tests.logdir.cluster.log_dir import change, noop, record, register, remove
from tests.logdir.cluster.log_dir import partition as claimed
from tests.reconcile.universe import BROKER_EPOCH, document, listed
from tests.tools.adopt_rig import NEW, OLD, RECORDS, UNIQUE, AdoptRig, edited, make
from tests.tools.assignment_rig import Cluster
from tests.tools.cluster_log import elsewhere
from tests.tools.ctl import Said, ctl, two_disks
from tests.tools.layout_fleet import Planned, big
from tests.tools.reconcile_rig import GONE, PARTITIONS, PAY, Rig, gone_records, raw
from tools.cli.arguments import Exit

Words = tuple[object, ...]
Situation = Callable[[Path], Words]
SITUATIONS: dict[Why, Situation] = {}
FULL, INCREMENTAL = 2, 1
OLD_MS = 1_650_000_000_000
EVERY = tuple(range(PARTITIONS))


def of(why: Why) -> Callable[[Situation], Situation]:
    """Register what makes a situation of a kind, and returns the command that is refused in it."""

    def add(situation: Situation) -> Situation:
        assert why not in SITUATIONS
        SITUATIONS[why] = situation
        return situation

    return add


def done(said: Said) -> None:
    """Check that a command that leads to a situation did what it should."""
    assert said.status == Exit.DONE, said


class Two:
    """Two log dirs with work roots: ``pay-0`` to ``pay-2``, and ``other-0``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.one, self.two = two_disks(folder)
        self.named: Words = ("--log-dirs", f"{self.one},{self.two}")
        done(ctl("init", *self.named, "--apply"))

    def staged(self, topic: str = "pay-0", *more: object) -> Path:
        """Stage a replica; return where it lies."""
        done(ctl("stage", topic, "--even-if-unknown", "--even-over-limit", *self.named, *more, "--apply"))
        return next(Path(f"{self.one}.logdird/deleting").iterdir())

    def stage(self, topic: str = "pay-0", *more: object) -> Words:
        return "stage", topic, "--even-if-unknown", "--even-over-limit", *self.named, *more

    def restore(self, topic: str = "pay-0", *more: object) -> Words:
        return "staged", "restore", topic, "--even-if-unknown", *self.named, *more


# What lies there.


@of(Why.METADATA_LOG)
def _(folder: Path) -> Words:
    two = Two(folder)
    partition(two.one / "__cluster_metadata-0", topic_id="AAAAAAAAAAAAAAAAAAAAAQ")
    return two.stage("__cluster_metadata-0", "--internal")


@of(Why.TOPIC_PROTECTED)
def _(folder: Path) -> Words:
    two = Two(folder)
    partition(two.one / "__consumer_offsets-3")
    return two.stage("__consumer_offsets")


@of(Why.FUTURE_REPLICA_EXISTS)
def _(folder: Path) -> Words:
    two = Two(folder)
    partition(two.two / f"pay-0.{UNIQUE}-future")
    return two.stage()


@of(Why.LIVE_REPLICA_EXISTS)
def _(folder: Path) -> Words:
    two = Two(folder)
    two.staged()
    partition(two.two / "pay-0")
    return two.restore()


@of(Why.LIVE_REPLICA_MISSING)
def _(folder: Path) -> Words:
    rig = AdoptRig(folder)
    shutil.rmtree(rig.live())
    return adopting(rig)


@of(Why.NOT_A_PLAIN_DIRECTORY)
def _(folder: Path) -> Words:
    two = Two(folder)
    (two.one / "pay-0").rename(folder / "away")
    (two.one / "pay-0").symlink_to(folder / "away")
    return two.stage()


@of(Why.UNEXPECTED_ENTRY)
def _(folder: Path) -> Words:
    two = Two(folder)
    (two.one / "pay-0" / "copy").mkdir()
    return two.stage()


@of(Why.PARTITION_METADATA_BROKEN)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    (rig.disks[0] / "pay-0" / "partition.metadata").write_bytes(b"version: 0\ntopic_id: ?")
    return requested(rig)


@of(Why.TOPIC_NAME_UNKNOWN)
def _(folder: Path) -> Words:
    top = log_dir(folder / "d1")
    partition(top / TOPIC_ID[:2] / f"{TOPIC_ID}_0")
    named = ("--log-dirs", top)
    done(ctl("init", *named, "--apply"))
    return "stage", f"{TOPIC_ID}_0", "--even-if-unknown", "--even-over-limit", *named


@of(Why.NAME_TOO_LONG)
def _(folder: Path) -> Words:
    two = Two(folder)
    partition(two.one / f"{'x' * 247}-0", topic_id=None)
    return two.stage("x*")


@of(Why.CHECKPOINT_UNREADABLE)
def _(folder: Path) -> Words:
    two = Two(folder)
    (two.one / "log-start-offset-checkpoint").write_text("garbage")
    return two.stage()


@of(Why.NO_SEGMENTS)
def _(folder: Path) -> Words:
    two = Two(folder)
    (two.one / f"late-0.{UNIQUE}-delete").mkdir()
    return "capture", "late", *two.named, "--apply"


@of(Why.PARTIAL_CAPTURE)
def _(folder: Path) -> Words:
    rig = AdoptRig(folder)
    staged = rig.staged()
    staged.rename(staged.parent.parent / "incoming" / staged.name)
    return adopting(rig)


# What is staged.


@of(Why.NOT_STAGED)
def _(folder: Path) -> Words:
    two = Two(folder)
    file = two.staged() / "replica.json"
    marker = replica_marker.parse(file.read_bytes())
    file.write_bytes(replica_marker.render(replace(marker, intent=Intent.INCOMING, delay_ms=None)))
    return "staged", "export", "pay-0", *two.named, "-o", make(folder / "out"), "--apply"


@of(Why.INCOMING)
def _(folder: Path) -> Words:
    two = Two(folder)
    staged = two.staged()
    shutil.copytree(staged, staged.parent.parent / "incoming" / staged.name)
    return two.restore()


@of(Why.PURGING)
def _(folder: Path) -> Words:
    cluster = Cluster(folder)
    done(cluster.stage())
    (staged,) = Path(f"{cluster.rig.disks[0]}.logdird/deleting").iterdir()
    staged.rename(f"{staged}.purging")
    source = cluster.copy_of_a_controller()
    known = ("--high-watermark", source.offset, "--leader-epoch", 1)
    return "reconcile", "--from", f"metadata:{source.directory}", *known, *cluster.named


@of(Why.MARKER_UNUSABLE)
def _(folder: Path) -> Words:
    two = Two(folder)
    (two.staged() / "replica.json").write_bytes(b"{}")
    return two.restore(f"{TOPIC_ID}_0")


@of(Why.FOREIGN_MARKER)
def _(folder: Path) -> Words:
    two = Two(folder)
    staged = two.staged()
    shutil.copytree(staged, folder / "copy")
    staged.rename(folder / "first")
    (folder / "copy").rename(staged)
    return two.restore()


@of(Why.AMBIGUOUS)
def _(folder: Path) -> Words:
    two = Two(folder)
    two.staged()
    partition(two.one / "pay-0")
    two.staged()
    return two.restore()


@of(Why.NOT_DUE)
def _(folder: Path) -> Words:
    two = Two(folder)
    source = elsewhere(folder)
    done(ctl("stage", "other", *source, *two.named, "--apply"))
    return "staged", "purge", "other", *source, *two.named


@of(Why.DEADLINE_UNKNOWN)
def _(folder: Path) -> Words:
    words = SITUATIONS[Why.NOT_DUE](folder)
    Path(f"{folder}/d1.logdird/heartbeat.json").unlink()
    return words


@of(Why.NO_DEADLINE)
def _(folder: Path) -> Words:
    two = Two(folder)
    source = elsewhere(folder)
    done(ctl("stage", "other", *source, *two.named, "--apply"))
    done(ctl("staged", "hold", "other", *two.named, "--apply"))
    return "staged", "purge", "other", *source, *two.named


@of(Why.TOPIC_NOT_REMOVED)
def _(folder: Path) -> Words:
    two = Two(folder)
    source = elsewhere(folder)
    done(ctl("stage", "other", *source, *two.named, "--apply"))
    return "staged", "purge", "--topic-removed", "other", *source, *two.named


# What the cluster says.


@of(Why.NO_EVIDENCE)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    log = rig.log()
    log.time_ms = OLD_MS
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    done(rig.reconcile("metadata:", "--delay-ms", 0, "--apply"))
    return "staged", "purge", GONE, *rig.named


@of(Why.ASSIGNED_HERE)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    log = rig.log()
    start_ms, log.time_ms = log.time_ms, OLD_MS
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    done(rig.reconcile("metadata:", "--delay-ms", 0, "--apply"))
    log.time_ms = start_ms
    log.append(*gone_records())
    rig.snapshot(log, *gone_records())
    return "staged", "purge", GONE, *rig.named


@of(Why.REMOVAL_NOT_PROVEN)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    log = rig.log()
    rig.snapshot(log)
    return reconciling(rig)


@of(Why.REPLICA_TOO_YOUNG)
def _(folder: Path) -> Words:
    rig = Rig(folder).with_removal()
    shutil.rmtree(rig.disks[0] / "gone-0")
    partition(rig.disks[0] / "gone-0", topic_id=GONE)
    for path in (rig.disks[0] / "gone-0").iterdir():
        os.utime(path, (4_000_000_000, 4_000_000_000))
    return reconciling(rig)


@of(Why.LAST_COPY)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    log = rig.log()
    log.append(change(raw(GONE), 0, replicas=(7,), isr=(7,), leader=7))
    log.append(noop())
    rig.snapshot(log, *gone_records()[:1], claimed(raw(GONE), 0, (7,)), claimed(raw(GONE), 1, (1, 2)))
    return reconciling(rig)


@of(Why.ID_CONFLICT)
def _(folder: Path) -> Words:
    rig = Rig(folder).with_removal()
    (rig.disks[0] / "pay-0" / "partition.metadata").unlink()
    return reconciling(rig)


@of(Why.STALE_TOPIC_ID)
def _(folder: Path) -> Words:
    rig = Rig(folder).with_removal()
    done(rig.reconcile("metadata:", "--apply"))
    wanted = listed(pay=(PAY, EVERY), gone=(GONE, (0, 1)))
    return "reconcile", "--from", rig.document(document(wanted, type=FULL, sequence=1)), *rig.named


@of(Why.LAST_IN_SYNC)
def _(folder: Path) -> Words:
    return "stage", "pay-0", *Cluster(folder, isr=(1,)).named


@of(Why.ASSIGNMENT_UNKNOWN)
def _(folder: Path) -> Words:
    return "stage", "pay-0", *Two(folder).named


@of(Why.TOPIC_GONE)
def _(folder: Path) -> Words:
    rig = AdoptRig(folder, new_topic="again")
    return "staged", "restore", OLD, *rig.named


@of(Why.NOT_ASSIGNED_HERE)
def _(folder: Path) -> Words:
    cluster = Cluster(folder)
    done(cluster.stage())
    cluster.log.append(change(raw(PAY), 0, replicas=(2,), isr=(2,), leader=2))
    return "staged", "restore", "pay-0", *cluster.named


@of(Why.STILL_ASSIGNED)
def _(folder: Path) -> Words:
    cluster = Cluster(folder)
    done(cluster.stage())
    return "staged", "purge", "pay-0", "--even-if-early", *cluster.named


@of(Why.KEPT_FOR_LAST)
def _(folder: Path) -> Words:
    cluster = Cluster(folder, isr=(1,))
    done(cluster.stage("--even-if-last"))
    return "staged", "purge", "pay-0", *cluster.named


# Adoptions.


def adopting(rig: AdoptRig, *more: object) -> Words:
    return "staged", "adopt", OLD, "--as", rig.new_topic, *rig.named, *more


class Pair:
    """Two stopped brokers with replicas of one partition, and the listing of each."""

    def __init__(self, folder: Path, records: int = RECORDS) -> None:
        self.one = AdoptRig(make(folder / "one"), replicas=(1, 2))
        self.two = AdoptRig(make(folder / "two"), node=2, replicas=(1, 2), records=records)
        self.listings = {1: self.one.listing(folder / "one.json"), 2: self.two.listing(folder / "two.json")}

    def adopting(self, listing: int = 2) -> Words:
        return adopting(self.one, "--with", self.listings[listing])


@of(Why.RESTORE_KIND_DIFFERS)
def _(folder: Path) -> Words:
    rig = AdoptRig(folder, new_topic="again")
    rig.log.append(record(4, resourceType=2, resourceName="again", name="remote.storage.enable", value="true"))
    return adopting(rig)


@of(Why.NOT_IN_TOPIC)
def _(folder: Path) -> Words:
    return adopting(AdoptRig(folder, partitions=2, new_partitions=1))


@of(Why.TOPIC_NOT_FOUND)
def _(folder: Path) -> Words:
    return "staged", "adopt", OLD, "--as", "never", *AdoptRig(folder).named


@of(Why.REASSIGNMENT_UNDER_WAY)
def _(folder: Path) -> Words:
    rig = AdoptRig(folder)
    rig.log.append(change(raw(NEW), 0, addingReplicas=(2,), replicas=(1, 2)))
    return adopting(rig)


@of(Why.REPLICA_BROKER_RUNNING)
def _(folder: Path) -> Words:
    pair = Pair(folder)
    edited(pair.listings[2], broker_runs=True)
    return pair.adopting()


@of(Why.STAGED_REPLICA_MISSING)
def _(folder: Path) -> Words:
    pair = Pair(folder)
    edited(pair.listings[2], items=[])
    return pair.adopting()


@of(Why.LOG_ENDS_DIFFER)
def _(folder: Path) -> Words:
    return Pair(folder, RECORDS + 7).adopting()


@of(Why.LISTING_MISSING)
def _(folder: Path) -> Words:
    return adopting(Pair(folder).one)


@of(Why.LISTING_UNUSABLE)
def _(folder: Path) -> Words:
    return Pair(folder).adopting(1)


@of(Why.PURGE_DUE)
def _(folder: Path) -> Words:
    pair = Pair(folder)
    edited(pair.listings[2], undo_until_ms=1)
    return pair.adopting()


# Sources of metadata.


def reconciling(rig: Rig, *more: object, source: str = "metadata:") -> Words:
    return "reconcile", "--from", source, *rig.named, *more


def elsewhere_log(rig: Rig) -> Path:
    """Make a log of a cluster beside the log dirs, without its ``meta.properties``."""
    other = rig.folder / "other"
    log = rig.log(other)
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    return other


@of(Why.SOURCE_CLUSTER_UNKNOWN)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    return reconciling(rig, source=f"metadata:{elsewhere_log(rig)}")


@of(Why.SOURCE_FOREIGN)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    other = elsewhere_log(rig)
    text = (rig.disks[0] / "meta.properties").read_text()
    (other / "meta.properties").write_text(text.replace("cluster.id=", "cluster.id=A"))
    return reconciling(rig, source=f"metadata:{other}")


@of(Why.NODE_NOT_IN_SOURCE)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    log = rig.log()
    log.append(noop())
    log.snapshot(register(9))
    return reconciling(rig)


@of(Why.NODE_RUNS_ELSEWHERE)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    other = elsewhere_log(rig)
    shutil.copy(rig.disks[0] / "meta.properties", other)
    return reconciling(rig, source=f"metadata:{other}")


@of(Why.METADATA_OLDER)
def _(folder: Path) -> Words:
    rig = Rig(folder).with_removal()
    done(rig.reconcile("metadata:", "--apply"))
    for path in (rig.disks[0] / "__cluster_metadata-0").iterdir():
        path.unlink()
    rig.log().snapshot(register(1))
    return reconciling(rig)


@of(Why.METADATA_DIVERGED)
def _(folder: Path) -> Words:
    rig = Rig(folder).with_removal()
    done(rig.reconcile("metadata:", "--apply"))
    for path in (rig.disks[0] / "__cluster_metadata-0").iterdir():
        path.unlink()
    log = rig.log()
    log.lead(4)
    log.append(*(noop() for _ in range(20)))  # as far as the log that was followed, and on, in another epoch
    rig.snapshot(log)
    return reconciling(rig)


@of(Why.METADATA_LOG_UNREAD)
def _(folder: Path) -> Words:
    cluster = Cluster(folder)
    shutil.rmtree(cluster.log.directory)
    return "strays", *cluster.named


@of(Why.LAST_APPLIED_UNKNOWN)
def _(folder: Path) -> Words:
    rig = Rig(folder).with_removal()
    Path(f"{rig.disks[1]}.logdird/controller.json").unlink()
    return reconciling(rig)


@of(Why.REPLICA_MISSING)
def _(folder: Path) -> Words:
    rig = Rig(folder).with_removal()
    shutil.rmtree(rig.disks[1] / "pay-3")
    return "describe", "pay-3", "--from", "metadata:", *rig.named


def requested(rig: Rig, *more: object, sequence: int = 1, kind: int = FULL, broker_epoch: int = BROKER_EPOCH) -> Words:
    states = listed(pay=(PAY, EVERY), gone=(GONE, (0, 1)))
    return reconciling(
        rig, *more, source=rig.document(document(states, type=kind, sequence=sequence, broker_epoch=broker_epoch))
    )


@of(Why.FULL_REQUEST_NEEDED)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    Path(f"{rig.disks[1]}.logdird/controller.json").unlink()
    return requested(rig, kind=INCREMENTAL)


@of(Why.REQUEST_OVERTAKEN)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    done(ctl(*requested(rig, "--apply", sequence=7)))
    return requested(rig, sequence=6)


@of(Why.BROKER_EPOCH_DIFFERS)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    done(ctl(*requested(rig, "--apply", broker_epoch=40)))
    return requested(rig, sequence=2, broker_epoch=39)


@of(Why.REQUEST_EMPTY)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    return reconciling(rig, source=rig.document(document([], type=FULL, sequence=1)))


@of(Why.REQUEST_FOR_ANOTHER_BROKER)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    states = listed(pay=(PAY, (0,)))
    states[0]["partitionStates"][0] |= {"replicas": [2, 3], "isr": [2, 3]}
    return reconciling(rig, source=rig.document(document(states, type=FULL, sequence=1)))


# The staging limit.


@of(Why.OVER_STAGING_LIMIT)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    log = rig.log()
    log.append(remove(raw(GONE)), remove(raw(PAY)))
    log.append(noop())
    log.snapshot(register(1), register(2))
    return reconciling(rig)


@of(Why.WHOLE_TOPIC_UNPROVEN)
def _(folder: Path) -> Words:
    rig = Rig(folder)
    done(ctl(*requested(rig, "--apply")))
    states = listed(pay=(PAY, EVERY), gone=("b8tRS7h4TJ2Vt43Dp85v2A", (0, 1)))
    return reconciling(rig, source=rig.document(document(states, type=INCREMENTAL, sequence=2)))


@of(Why.STAGING_LIMIT_UNKNOWN)
def _(folder: Path) -> Words:
    rig = Rig(folder).with_removal()
    Path(f"{rig.disks[0]}.logdird/staging-limit.json").unlink()
    return reconciling(rig)


# A change of layout.


class Layout:
    """A broker of two disks with a plan."""

    def __init__(self, folder: Path) -> None:
        self.broker: Planned = big(folder, 8)
        self.one, self.two = self.broker.log_dirs
        self.named: Words = self.broker.words

    def applied(self) -> Layout:
        done(ctl("layout", "apply", self.broker.plan, *self.named, "--apply"))
        return self

    def verb(self, verb: str, *more: object) -> Words:
        has_plan = verb in ("check", "apply", "verify")
        return "layout", verb, *((self.broker.plan,) if has_plan else ()), *self.named, *more


@of(Why.CHANGED)
def _(folder: Path) -> Words:
    layout = Layout(folder)
    step = layout.broker.steps[0]
    shutil.rmtree(Path(step["log_dir"], step["from"]))
    return layout.verb("check")


@of(Why.LAYOUT_DIFFERS)
def _(folder: Path) -> Words:
    rig = AdoptRig(folder)
    third = "b8tRS7h4TJ2Vt43Dp85v2A"
    partition(rig.disks[0] / third[:2] / f"{third}_0", topic_id=third, topic_name="other")
    return adopting(rig)


@of(Why.LAYOUT_STATE_DIFFERS)
def _(folder: Path) -> Words:
    return Layout(folder).verb("verify")


@of(Why.LAYOUT_NOT_APPLIED)
def _(folder: Path) -> Words:
    layout = Layout(folder).applied()
    step = layout.broker.steps[0]
    Path(step["log_dir"], step["to"]).rename(Path(step["log_dir"], step["from"]))
    return layout.verb("verify")


@of(Why.LAYOUT_FILE_MISSING)
def _(folder: Path) -> Words:
    layout = Layout(folder).applied()
    (layout.one / "layout.json").unlink()
    return layout.verb("rollback")


@of(Why.LAYOUT_CHANGE_UNDER_WAY)
def _(folder: Path) -> Words:
    layout = Layout(folder).applied()
    return "stage", "t1-0", *layout.named


@of(Why.FOREIGN_PLAN)
def _(folder: Path) -> Words:
    layout = Layout(folder)
    named = ("--log-dirs", log_dir(folder / "d9", node=9))
    done(ctl("init", *named, "--apply"))
    return "layout", "check", layout.broker.plan, *named


@of(Why.NO_PLAN_STEP)
def _(folder: Path) -> Words:
    layout = Layout(folder)
    partition(layout.one / "new-0")
    return layout.verb("check")


@of(Why.FOR_BROKER_MISSING)
def _(folder: Path) -> Words:
    layout = Layout(folder).applied()
    done(ctl(*layout.verb("verify", "--apply")))
    return layout.verb("finalize")


@of(Why.PREFIX_NOT_EMPTY)
def _(folder: Path) -> Words:
    layout = Layout(folder).applied()
    step = layout.broker.steps[0]
    (Path(step["log_dir"], step["to"]).parent / "mine").mkdir()
    return layout.verb("rollback", "--apply")


@of(Why.WORK_ROOT_INSIDE)
def _(folder: Path) -> Words:
    one, two = two_disks(folder)
    return "init", "--work-root", "inside", "--log-dirs", f"{one},{two}"


@of(Why.FILE_TIME_INVALID)
def _(folder: Path) -> Words:
    layout = Layout(folder)
    os.utime(layout.one / "meta.properties", (-5, -5))
    return layout.verb("apply", "--apply")


# A broker, its log dirs and files.


@of(Why.NOT_FORMATTED)
def _(folder: Path) -> Words:
    two = Two(folder)
    (two.two / "meta.properties").unlink()
    return two.stage()


@of(Why.FOREIGN)
def _(folder: Path) -> Words:
    two = Two(folder)
    path = two.two / "meta.properties"
    path.write_text(path.read_text().replace("node.id=1", "node.id=7"))
    return two.stage()


@of(Why.NO_WORK_ROOT)
def _(folder: Path) -> Words:
    one, two = two_disks(folder)
    partition(one / f"late-0.{UNIQUE}-delete")
    return "capture", "late", "--log-dirs", f"{one},{two}"


@of(Why.LOG_DIR_UNREADABLE)
def _(folder: Path) -> Words:
    two = Two(folder)
    two.staged()
    two.two.rename(folder / "away")
    return two.restore("pay-0", "--skip-log-dir", two.two)


@of(Why.LAYOUT_PLAN_DIFFERS)
def _(folder: Path) -> Words:
    layout, other = Layout(make(folder / "a")).applied(), Layout(make(folder / "b")).applied()
    shutil.copy(other.one / "layout.json", layout.one)
    return layout.verb("status")


@of(Why.NO_LOG_DIR_ANSWERS)
def _(folder: Path) -> Words:
    two = Two(folder)
    for top in (two.one, two.two):
        top.rename(folder / f"{top.name}.away")
    return two.stage("pay-0", "--skip-log-dir", two.one, "--skip-log-dir", two.two)


@of(Why.RECOVERY_FAILED)
def _(folder: Path) -> Words:
    two = Two(folder)
    (two.one / "pay-0" / "replica.json").mkdir()
    return *two.stage("other-0"), "--apply"


@of(Why.HEARTBEAT_LOST)
def _(folder: Path) -> Words:
    two = Two(folder)
    Path(f"{two.one}.logdird/heartbeat.json").write_text("garbage")
    return *two.stage("other-0"), "--apply"


@of(Why.WRONG_FILE_TYPE)
def _(folder: Path) -> Words:
    two = Two(folder)
    place = Path(f"{two.two}.logdird/deleting")
    place.rmdir()
    place.write_bytes(b"")
    return two.stage()


@of(Why.FILE_TOO_LARGE)
def _(folder: Path) -> Words:
    two = Two(folder)
    path = Path(f"{two.one}.logdird/heartbeat.json")
    path.write_bytes(b"")
    os.truncate(path, 80 << 20)
    return two.stage()


@of(Why.OUTPUT_EXISTS)
def _(folder: Path) -> Words:
    two = Two(folder)
    two.staged("other-0")
    make(folder / "out")
    (folder / "out" / "other-0").write_text("in the way")
    return "staged", "export", "other", *two.named, "-o", folder / "out"


@of(Why.OUTPUT_INVALID)
def _(folder: Path) -> Words:
    two = Two(folder)
    two.staged("other-0")
    return "staged", "export", "other", *two.named, "-o", folder / "no" / "where"


@of(Why.INSIDE_LOG_DIR)
def _(folder: Path) -> Words:
    two = Two(folder)
    return "inventory", *two.named, "-o", two.one / "inventories"
