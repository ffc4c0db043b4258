"""A restore is no promise: which log is the broker's own, where it ends, and what else it holds, must be known.

Each case is one in which a topic was deleted behind what the command could see (attack A47), or a replica became the
only one in sync there (A48).
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.logdir.cluster.log_dir import LogDir, change, noop, record, register, remove
from tests.tools.assignment_rig import ALONE, STAGED, THREE, Cluster, slugs
from tests.tools.ctl import ctl
from tests.tools.reconcile_rig import PAY, is_in, raw
from tools.cli.arguments import Exit

KRAFT = "process.roles=broker,controller\n"


def another(cluster: Cluster, source: LogDir, top: Path) -> LogDir:
    """Copy a log into another directory, to be gone on with there."""
    top.mkdir(parents=True, exist_ok=True)
    if not (top / "meta.properties").exists():
        shutil.copy(cluster.rig.disks[0] / "meta.properties", top)
    log = LogDir(top / "__cluster_metadata-0")
    shutil.copytree(source.directory, log.directory, dirs_exist_ok=True)
    log.offset, log.time_ms, log.epoch = source.offset, source.time_ms, source.epoch
    log.segment = log.directory / source.segment.name
    return log


def configured(cluster: Cluster, *lines: str, roles: str = KRAFT) -> None:
    path = Path(cluster.named[1])
    path.write_text(path.read_text().replace(KRAFT, roles) + "".join(f"{line}\n" for line in lines))


def with_a_copy_of_a_stop_before(cluster: Cluster) -> tuple[object, ...]:
    """Let the broker have stopped, started and stopped again; return the quorum's word of its first stop."""
    cluster.log.append(noop(), register(1, epoch=5, fenced=True))
    copy = another(cluster, cluster.log, cluster.rig.folder / "copy")
    copy.append(noop())
    for _ in range(3):
        cluster.log.append(noop())
    return "--from", f"metadata:{copy.directory}", "--high-watermark", copy.offset, "--leader-epoch", 1


def moved_by_a_list(cluster: Cluster) -> tuple[object, ...]:
    words = with_a_copy_of_a_stop_before(cluster)
    real = another(cluster, cluster.log, cluster.rig.folder / "meta")
    real.append(register(1, epoch=9), remove(raw(PAY)))
    shutil.rmtree(cluster.log.directory)
    another(cluster, LogDir(cluster.rig.folder / "copy/__cluster_metadata-0"), cluster.rig.disks[0])
    cluster.named = cluster.rig.named
    return words


def without_roles(cluster: Cluster) -> tuple[object, ...]:
    another(cluster, cluster.log, cluster.rig.folder / "meta").append(remove(raw(PAY)))
    configured(cluster, f"metadata.log.dir={cluster.rig.folder / 'meta'}", roles="")
    return ()


def voters_elsewhere(cluster: Cluster) -> tuple[object, ...]:
    """Its ``quorum-state`` is of a time when it was a controller, too."""
    configured(cluster, "controller.quorum.voters=4@h4:9093,5@h5:9093", roles="process.roles=broker\n")
    return ()


def more_voters(cluster: Cluster) -> tuple[object, ...]:
    configured(cluster, "controller.quorum.voters=1@h1:9093,5@h5:9093,6@h6:9093")
    return ()


def a_newer_log_beside(cluster: Cluster) -> tuple[object, ...]:
    """Its newest snapshot has the topic no more; the record that removed it is gone."""
    log = another(cluster, cluster.log, cluster.rig.disks[1])
    log.append(noop())
    old = log.segment
    log.roll()
    log.snapshot(register(1), register(2))
    old.unlink()
    log.append(noop())
    (log.directory / "quorum-state").write_text(ALONE)
    return ()


def a_new_log_on_a_new_disk(cluster: Cluster) -> tuple[object, ...]:
    (cluster.log.directory / "quorum-state").write_text(THREE)
    words = with_a_copy_of_a_stop_before(cluster)
    cluster.log.append(register(1, epoch=9), remove(raw(PAY)))
    meta = cluster.rig.folder / "meta"
    LogDir(meta / "__cluster_metadata-0")
    shutil.copy(cluster.rig.disks[0] / "meta.properties", meta)
    configured(cluster, f"metadata.log.dir={meta}")
    return words


def _with_length(log: LogDir, position: int, length: int | None = None) -> None:
    """Alter the length of a batch: more than is left of the file."""
    with log.segment.open("r+b") as file:
        file.seek(position + 8)
        (was,) = struct.unpack(">i", file.read(4))
        file.seek(position + 8)
        file.write(struct.pack(">i", was | 1 << 16 if length is None else length))


def a_length_that_is_none(cluster: Cluster) -> tuple[object, ...]:
    position = cluster.log.segment.stat().st_size
    cluster.log.append(noop())
    cluster.log.append(remove(raw(PAY)))
    _with_length(cluster.log, position)
    return ()


@pytest.mark.parametrize(
    "deleted",
    [
        moved_by_a_list, without_roles, voters_elsewhere, more_voters, a_newer_log_beside, a_new_log_on_a_new_disk,
        a_length_that_is_none,
    ],
)  # fmt: skip
def test_a47_nothing_is_renamed_back_where_more_may_have_been_written(
    deleted: Callable[[Cluster], tuple[object, ...]], tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    words = deleted(cluster)
    said = cluster.restore(*words)
    assert said.status == Exit.REFUSED, said
    assert slugs(said)[0] in ("assignment-unknown", "topic-gone"), said
    assert not cluster.is_live()
    assert is_in(cluster.rig.disks[0], STAGED)


def test_a47_what_would_make_it_known_is_proposed_and_does(tmp_path: Path) -> None:
    """The quorum's word counts beyond the end of the broker's own log, and a list does not say which log that is."""
    cluster = Cluster(tmp_path, quorum=THREE)
    assert cluster.stage().status == Exit.DONE
    copy = another(cluster, cluster.log, tmp_path / "copy")
    copy.append(register(1, epoch=3, fenced=True), noop())
    words = ("--from", f"metadata:{copy.directory}", "--high-watermark", copy.offset, "--leader-epoch", 1)
    configuration, cluster.named = cluster.named, cluster.rig.named
    said = cluster.restore(*words)
    assert (slugs(said), "--server-properties" in said.err) == (["assignment-unknown"], True)
    cluster.named = configuration
    assert (cluster.restore(*words).status, cluster.is_live()) == (Exit.DONE, True)


def test_a47_the_same_without_any_of_that_is_renamed_back(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    configured(cluster, "controller.quorum.voters=1@h1:9093")
    assert cluster.stage().status == Exit.DONE
    assert (cluster.restore().status, cluster.is_live()) == (Exit.DONE, True)


def unregistered(cluster: Cluster) -> None:
    """Node 2, the last of the ISR, died for good."""
    cluster.log.append(change(raw(PAY), 0, isr=(2,), leader=2), record(1, brokerId=2, brokerEpoch=0))


def behind_a_length_that_is_none(cluster: Cluster) -> None:
    position = cluster.log.segment.stat().st_size
    cluster.log.append(noop())
    cluster.log.append(change(raw(PAY), 0, isr=(1,)))
    _with_length(cluster.log, position)


def unread(cluster: Cluster) -> None:
    """No own log can be read; the source that is named is an older one."""
    copy = another(cluster, cluster.log, cluster.rig.folder / "copy")
    copy.append(register(1, epoch=3, fenced=True))
    cluster.log.append(change(raw(PAY), 0, isr=(1,)))
    data = bytearray(cluster.log.segment.read_bytes())
    data[16] = 9  # no batch at all
    cluster.log.segment.write_bytes(data)
    cluster.named = (*cluster.named, "--from", f"metadata:{copy.directory}")


@pytest.mark.parametrize("alone", [unregistered, behind_a_length_that_is_none, unread])
@pytest.mark.parametrize("quorum", [ALONE, THREE], ids=["one voter", "three"])
def test_a48_no_deadline_is_promised_where_no_other_broker_is_known_to_have_it(
    alone: Callable[[Cluster], None], quorum: str, tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path, quorum=quorum)
    alone(cluster)
    said = cluster.stage()
    assert said.status == Exit.REFUSED, said
    assert slugs(said)[0] in ("last-in-sync", "assignment-unknown"), said
    assert cluster.is_live()


def test_a46_an_own_log_that_goes_on_keeps_what_an_older_copy_would_let_go(tmp_path: Path) -> None:
    """By the copy nodes 2 and 3 have it; behind that none of them answers."""
    cluster = Cluster(tmp_path, quorum=THREE)
    cluster.log.append(change(raw(PAY), 0, replicas=(2, 3), isr=(2, 3)))
    assert cluster.stage("--delay", "1ms").status == Exit.DONE
    copy = another(cluster, cluster.log, tmp_path / "copy")
    copy.time_ms += 24 * 60 * 60 * 1000
    copy.append(register(1, epoch=3, fenced=True))
    watermark = copy.offset
    cluster.log.append(noop())
    cluster.log.append(register(2, epoch=3, fenced=True), register(3, epoch=4, fenced=True))
    words = ("--from", f"metadata:{copy.directory}", "--high-watermark", watermark, "--leader-epoch", 1)
    ctl("staged", "purge", *cluster.named, *words, "--apply")
    assert is_in(cluster.rig.disks[0], STAGED)
    shutil.rmtree(cluster.log.directory)
    said = ctl("staged", "purge", *cluster.named, *words, "--apply")
    assert not is_in(cluster.rig.disks[0], STAGED), said
