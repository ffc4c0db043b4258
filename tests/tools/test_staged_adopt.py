"""``logdirctl staged adopt``: files of a deleted topic become the log of one that was created again, or none do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from logdir.errors import RefusedError
from logdir.refusal_slug import Why
from logdir.service import adopt as adopting
from logdir.service.adopt import AdoptRequest
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.opening import opened
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.reporter import SILENT
from logdir.service.report.staged import Selection
from logdir.wire.metadata_records import MetadataRecord
from tests.builders import partition
from tests.logdir.cluster.log_dir import change, noop, record, remove, topic
from tests.logdir.cluster.log_dir import partition as claimed
from tests.tools.adopt_rig import NEW, OLD, SEGMENT, UNIQUE, AdoptRig, assert_refused, failing, filled, make
from tests.tools.ctl import ctl, ctl_json, held, tree
from tests.tools.reconcile_rig import raw
from tests.whole_refusal import require_whole
from tools.cli.arguments import Exit

HOUR_MS = 60 * 60 * 1000


def test_a16_files_of_a_deleted_topic_become_live_byte_for_byte_with_the_new_id(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    segment = (rig.staged() / SEGMENT).read_bytes()
    written = (rig.live() / SEGMENT).read_bytes()
    before = tree(tmp_path)
    status, plan = rig.adopt_json()
    assert status == Exit.DONE
    assert tree(tmp_path) == before  # a plan changes nothing
    (item,) = plan["items"]
    assert (item["state"], item["path"], item["new_path"]) == ("planned", f"deleting/{OLD}_0", "pay-0")
    assert plan["new_topic"] == {"topic": "pay", "topic_id": NEW}
    assert (plan["stop"], plan["start"]) == ([1], [1])
    assert [(one["node_id"], one["partition"], one["log_end"]) for one in plan["adoptions"]] == [(1, 0, 100)]

    status, done = rig.adopt_json("--apply")
    assert (status, [one["state"] for one in done["items"]]) == (Exit.DONE, ["done"])
    assert done["items"][0]["new_path"] == "pay-0"
    live = rig.adopted()
    assert (live / SEGMENT).read_bytes() == segment
    assert f"topic_id: {NEW}" in (live / "partition.metadata").read_text()
    assert not (live / f"{0:020}.index").exists()  # A36: zeros, which a broker would trust
    assert not (live / "replica.json").exists()
    # What the new topic had is staged for four hours, and the rescued directory is consumed.
    assert not rig.live().exists()
    assert rig.deleting() == [f"{NEW}_0"]
    assert (rig.staged(f"{NEW}_0") / SEGMENT).read_bytes() == written
    _, listed = ctl_json("staged", "ls", *rig.named)
    (one,) = listed["items"]
    assert (one["reason"], one["delay_ms"], one["topic_id"]) == ("duplicate", 4 * HOUR_MS, NEW)


def test_the_plan_warns_of_what_is_replaced_and_proposes_the_same_with_apply(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    said = rig.adopt()
    assert said.status == Exit.DONE
    assert "records written to pay since it was created again are replaced" in said.out
    assert "pay-0: its records up to offset 3 are replaced; staged with reason duplicate until 2" in said.out
    assert said.out.splitlines()[-1] == (f"next: logdirctl staged adopt {OLD} {' '.join(rig.named)} --as pay --apply")
    start = "the log start offset is not known for pay-0: records that kafka-delete-records had deleted come back"
    assert start in said.out
    applied = rig.adopt("--apply")
    assert "pay-0: its records up to offset 3 are replaced" in applied.err
    assert applied.out.splitlines()[-1] == f"next: logdirctl staged ls {' '.join(rig.named)}"


def test_a_log_start_that_was_captured_is_written_down(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path, log_start=7)
    said = rig.adopt("--apply")
    assert (said.status, "the log start is not known" in said.err) == (Exit.DONE, False), said
    assert "pay 0 7\n" in (rig.disks[0] / "log-start-offset-checkpoint").read_text()


def test_a_log_of_which_every_record_was_deleted_keeps_its_log_start(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path, log_start=100)
    said = rig.adopt("--apply")
    assert (said.status, "is not written" in said.out + said.err) == (Exit.DONE, False), said
    assert "pay 0 100\n" in (rig.disks[0] / "log-start-offset-checkpoint").read_text()


def test_a_log_start_behind_the_end_of_the_log_is_not_written_down(tmp_path: Path) -> None:
    """A broker that finds one deletes every record of that log."""
    rig = AdoptRig(tmp_path, log_start=5000)
    (rig.disks[0] / "log-start-offset-checkpoint").write_text("0\n1\nother 0 3\n")
    for words in ([], ["--apply"]):
        said = rig.adopt(*words)
        assert said.status == Exit.DONE, said
        assert "its log start 5000 lies behind its end: no log start is written" in said.out + said.err
    assert (rig.disks[0] / "log-start-offset-checkpoint").read_text() == "0\n1\nother 0 3\n"


class Recorder:
    """Hears everything."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []

    def begin(self, what: str, total: int) -> None:
        self.heard.append(("begin", what, total))

    def advance(self, count: int) -> None:
        self.heard.append(("advance", count))

    def end(self) -> None:
        self.heard.append(("end",))

    def warn(self, line: str) -> None:
        self.heard.append(("warn",))


def test_what_is_replaced_is_said_before_anything_is_done_and_heartbeats_go_on(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    beats = [Path(f"{disk}.logdird/heartbeat.json") for disk in rig.disks]
    before = [path.stat().st_ino for path in beats]
    request = AdoptRequest(source=SourceRequest(), selection=Selection(OLD), as_topic="pay")
    recorder = Recorder()
    with opened(BrokerRequest(server_properties=rig.named[1]), changes=True) as broker:
        rows, problems = adopting.apply(broker, adopting.plan(broker, request), recorder)
    assert ([row.state.value for row in rows], problems) == (["done"], [])
    said = [one for one in recorder.heard if one != ("warn",)]
    assert said == [("begin", "adopting", 1), ("advance", 1), ("end",)]
    assert recorder.heard[0] == ("warn",)
    assert [path.stat().st_ino for path in beats] != before  # each is written anew
    assert rig.deleting() == [f"{NEW}_0"]  # nothing is kept unasked


def test_options_are_taken_over_into_the_next_command(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path, replicas=(1, 2))
    other = AdoptRig(make(tmp_path / "two"), node=2, replicas=(1, 2))
    listing = other.listing(tmp_path / "two.json")
    said = rig.adopt("--with", listing, "--keep", "--delay", "5h")
    assert said.status == Exit.DONE, said
    assert said.out.splitlines()[-1].endswith(f" --as pay --with {listing} --keep --delay 5h --apply")
    assert "stop brokers 2, 1 in this order, adopt on all of them, then start them as 1, 2" in said.out


def test_with_keep_the_staged_directory_stays_and_shares_its_files(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    assert rig.adopt("--keep", "--delay", "1h", "--apply").status == Exit.DONE
    assert rig.deleting() == sorted([f"{OLD}_0", f"{NEW}_0"])
    assert (rig.staged() / SEGMENT).samefile(rig.adopted() / SEGMENT)
    _, listed = ctl_json("staged", "ls", NEW, *rig.named)
    assert [one["delay_ms"] for one in listed["items"]] == [HOUR_MS]


def test_another_topic_may_adopt_and_every_partition_is_adopted(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path, partitions=3, new_topic="again", new_partitions=4)
    status, done = rig.adopt_json("--apply")
    assert (status, [one["new_path"] for one in done["items"]]) == (Exit.DONE, ["again-0", "again-1", "again-2"])
    assert any("partitions 3 are not adopted by this command" in line for line in done["warnings"])
    assert [rig.adopted(number).is_dir() for number in range(4)] == [True, True, True, False]
    assert rig.live(3).is_dir()


def test_a22_beside_a_running_broker_nothing_is_adopted(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    with held(rig.disks[0] / ".lock"):
        said = rig.adopt("--apply")
    assert said.status == Exit.BROKER_RUNS
    assert (rig.live().is_dir(), rig.adopted().exists(), rig.deleting()) == (True, False, [f"{OLD}_0"])


@pytest.mark.parametrize("selector", ["nope", f"{OLD}_7"])
def test_a_selector_that_means_nothing_is_said(selector: str, tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    assert "nothing-selected" in assert_refused(rig, selector=selector, status=Exit.PROBLEMS)


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 250])
def test_a_name_that_is_no_topic_is_a_usage_error(name: str, tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    rig.new_topic = name
    assert "--as" in assert_refused(rig, status=Exit.USAGE)


def test_a_topic_that_does_not_exist_is_refused_with_what_to_do(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    rig.new_topic = "nope"
    said = assert_refused(rig)
    assert "the topic 'nope' with an id" in said
    assert "kafka-topics --create" in said


def test_a_topic_that_is_still_deleted_is_refused(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    rig.log.append(remove(raw(NEW)))
    shutil.rmtree(rig.live())
    assert "the topic 'pay' with an id" in assert_refused(rig)


def test_a_topic_whose_replica_the_broker_has_not_made_is_refused(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    shutil.rmtree(rig.live())
    assert "start the broker until it has made its replica" in assert_refused(rig)


def test_a_live_replica_of_another_id_than_the_topic_has_now_is_refused(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    rig.log.append(remove(raw(NEW)), topic("pay", raw("7f0t7kV0TYqv8m3Jbq4pkA")))
    rig.log.append(claimed(raw("7f0t7kV0TYqv8m3Jbq4pkA"), 0, (1,)))
    said = assert_refused(rig)
    assert "one live pay-0 with id 7f0t7kV0TYqv8m3Jbq4pkA" in said
    assert f"(id {NEW})" in said


def test_files_of_the_topic_itself_are_restored_not_adopted(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    assert ctl("stage", "pay-0", *rig.named, "--even-if-last", "--even-over-limit", "--apply").status == Exit.DONE
    assert "logdirctl staged restore" in assert_refused(rig, selector=NEW)


def test_an_old_id_that_lives_is_not_adopted(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path, new_topic="again")
    rig.log.append(topic("pay", raw("7f0t7kV0TYqv8m3Jbq4pkA")))
    other = partition(rig.disks[0] / "pay-0", topic_id=OLD)  # a copy by hand of what was deleted
    assert f"no live replica of id {OLD}" in assert_refused(rig)
    shutil.rmtree(other)


def test_a13_a_future_replica_keeps_it(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    partition(rig.disks[0] / f"pay-0.{UNIQUE}-future", topic_id=NEW)
    assert "no -future of it on any disk" in assert_refused(rig)


def test_a33_a_tiered_topic_is_refused(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    rig.log.append(tiering("pay"))
    assert "log that is all local" in assert_refused(rig)


def tiering(name: str) -> MetadataRecord:
    return record(4, resourceType=2, resourceName=name, name="remote.storage.enable", value="true")


def test_a33_a_new_topic_with_remote_storage_is_refused(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path, new_topic="again")
    rig.log.append(tiering("again"))
    assert "a topic whose log is all local" in assert_refused(rig)


def test_a17_a_partial_capture_is_refused_by_name(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    staged = rig.staged()
    marker = (staged / "replica.json").read_bytes()
    staged.rename(staged.parent.parent / "incoming" / staged.name)
    assert b'"intent":"captured"' in marker
    said = assert_refused(rig)
    assert "a complete replica" in said
    assert "staged export" in said


def test_two_staged_copies_are_a_choice(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    filled(rig.disks[0] / f"pay-0.{UNIQUE[::-1]}-delete", OLD, 50)
    assert ctl("capture", "pay", *rig.named, "--apply").status == Exit.DONE
    shutil.rmtree(rig.disks[0] / f"pay-0.{UNIQUE[::-1]}-delete")
    assert rig.deleting() == [f"{OLD}_0", f"{OLD}_0.2"]
    assert "several on broker 1" in assert_refused(rig)
    status, done = rig.adopt_json("--name", f"{OLD}_0.2", "--apply")
    assert (status, done["adoptions"][0]["log_end"]) == (Exit.DONE, 50)
    assert rig.deleting() == sorted([f"{OLD}_0", f"{NEW}_0"])


def test_files_of_two_topics_are_a_choice(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    third = "7f0t7kV0TYqv8m3Jbq4pkA"
    filled(rig.disks[1] / f"pay-0.{UNIQUE[::-1]}-delete", third, 50)
    assert ctl("capture", "pay", *rig.named, "--apply").status == Exit.DONE
    shutil.rmtree(rig.disks[1] / f"pay-0.{UNIQUE[::-1]}-delete")
    rig.log.append(topic("old", raw(third)), remove(raw(third)))
    said = assert_refused(rig, selector="*")
    assert f"files of one topic id, found {third} and {OLD}" in said


def test_more_partitions_than_the_new_topic_has_are_refused_and_the_others_adopted(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path, partitions=2, new_partitions=1)
    status, done = rig.adopt_json("--apply")
    states = {one["path"]: one["state"] for one in done["items"]}
    assert (status, states) == (Exit.PROBLEMS, {f"deleting/{OLD}_0": "done", f"deleting/{OLD}_1": "refused"})
    assert rig.deleting() == sorted([f"{NEW}_0", f"{OLD}_1"])


def test_replicas_that_are_being_reassigned_are_refused(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    rig.log.append(change(raw(NEW), 0, addingReplicas=(2,), replicas=(1, 2)))
    assert "its replicas are being reassigned" in assert_refused(rig)


def test_replicas_on_other_brokers_are_refused(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    rig.log.append(change(raw(NEW), 0, replicas=(2,), isr=(2,), leader=2))
    assert "create the topic again with partition 0 on broker 1" in assert_refused(rig)


def test_a_log_dir_that_cannot_be_read_refuses_all(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    (rig.disks[1] / "meta.properties").write_bytes(b"\xff")
    said = rig.adopt("--apply")
    assert said.status != Exit.DONE
    assert rig.deleting() == [f"{OLD}_0"]


def test_a_log_dir_in_the_topic_id_layout_refuses(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    third = "b8tRS7h4TJ2Vt43Dp85v2A"
    partition(rig.disks[0] / third[:2] / f"{third}_0", topic_id=third, topic_name="other")
    assert "the topic-name layout" in assert_refused(rig)


def test_what_is_not_known_is_refused_and_with_the_override_kept(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path, node=2, replicas=(2,))
    said = assert_refused(rig)
    assert "assignment-unknown" in said
    assert "--even-if-unknown" in said
    done = rig.adopt("--even-if-unknown", "--apply")
    assert done.status == Exit.DONE, done
    assert rig.deleting() == sorted([f"{OLD}_0", f"{NEW}_0"])  # kept: a broker may erase what is live
    assert (rig.staged() / SEGMENT).samefile(rig.adopted() / SEGMENT)


def test_a_controllers_log_after_the_stop_makes_it_known(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path, node=2, replicas=(2,))
    status, done = rig.adopt_json(*rig.controller(), "--apply")
    assert (status, [one["state"] for one in done["items"]]) == (Exit.DONE, ["done"])
    assert rig.deleting() == [f"{NEW}_0"]


def test_the_metadata_log_written_meanwhile_stops_it(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path)
    request = AdoptRequest(source=SourceRequest(), selection=Selection(OLD), as_topic="pay")
    with opened(BrokerRequest(server_properties=rig.named[1]), changes=True) as broker:
        shown = adopting.plan(broker, request)
        rig.log.append(noop())
        with pytest.raises(RefusedError) as raised:
            adopting.apply(broker, shown, SILENT)
        require_whole(
            raised.value,
            Why.METADATA_LOG_CHANGED,
            path=f"{rig.disks[0]}/__cluster_metadata-0",
            expected="the metadata log as it was read",
            found="it was written since",
            fix="repeat the command while the broker is stopped",
        )
        again = adopting.plan(broker, request)
        (rig.live() / "sub").mkdir()  # looked at again under the locks
        rows, problems = adopting.apply(broker, again, SILENT)
        assert [row.state.value for row in rows] == ["refused"]
        assert problems == []
    assert rig.deleting() == [f"{OLD}_0"]


def test_a_source_that_says_nothing_of_now_is_a_usage_error_before_a_log_dir_is_opened(tmp_path: Path) -> None:
    words = ("--as", "pay", "--from", f"request:{tmp_path}/x", "--log-dirs", "/nowhere/d1", "--apply")
    said = ctl("staged", "adopt", OLD, *words)
    assert (said.status, "--from" in said.err, "/nowhere" in said.err) == (Exit.USAGE, True, False)


def test_a_disk_that_dies_stops_all_that_is_left_and_the_next_command_goes_on(tmp_path: Path) -> None:
    rig = AdoptRig(tmp_path, partitions=3)
    with failing("link", "incoming") as calls:
        status, done = rig.adopt_json("--apply")
    assert (status, [one["state"] for one in done["items"]]) == (Exit.PROBLEMS, ["undone"] * 3)
    assert len(calls) == 1  # nothing was begun after it
    assert [rig.live(number).is_dir() for number in range(3)] == [True] * 3
    assert rig.deleting() == [f"{OLD}_{number}" for number in range(3)]
    status, done = rig.adopt_json("--apply")
    assert (status, [one["state"] for one in done["items"]]) == (Exit.DONE, ["done"] * 3)
