"""What is staged on real brokers and no longer wanted, or wanted still: taken back only on what is known.

One release per run and scenario in CI, every one in ``make proof``.

Spec: design §3.3; kafka-behaviour §10.4; attacks A16, A47, A48.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.kafka.rig import Broker, Rig, await_true
from tests.kafka.rotation import releases_of
from tests.kafka.undo_rig import (
    QUICK,
    RECORDS,
    await_in_sync,
    everything,
    filled,
    knows_strays,
    live,
    stage,
    staged,
    stop,
    type_,
)
from tests.tools.ctl import Said
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

_LOG: Final = "__cluster_metadata-0"
_SINCE: Final = re.compile(r"not known since offset \d+")


def begin(broker: Broker) -> None:
    """Make its work roots."""
    said = type_(broker, "init", "--apply")
    assert said.status == Exit.DONE, said


def items(said: Said) -> list[dict[str, Any]]:
    """Return what a command with ``--json`` says of each replica."""
    found: list[dict[str, Any]] = json.loads(said.out)["result"]["items"]
    return found


def argv_of(said: Said) -> str:
    """Return all that a command with ``--json`` says of its replicas and problems, as one text."""
    value = json.loads(said.out)
    return json.dumps([value["problems"], value["result"]["items"]])


def restore(broker: Broker, topic: str, *more: str) -> Said:
    """Type ``staged restore`` with ``--apply``."""
    return type_(broker, "staged", "restore", topic, *more, "--apply", "--json")


def assert_refused(broker: Broker, topic: str, *more: str) -> Said:
    """Check that a restore is refused, planned as well as applied, and that nothing changes."""
    before = everything(broker)
    plan = type_(broker, "staged", "restore", topic, *more, "--json")
    said = restore(broker, topic, *more)
    assert (plan.status, said.status) == (Exit.REFUSED, Exit.REFUSED), (plan, said)
    assert [one["state"] for one in items(said)] == ["refused"]
    assert everything(broker) == before
    return said


@pytest.mark.parametrize("version", releases_of("deleted"))
def test_a47_nothing_is_renamed_back_whose_topic_was_deleted_or_made_again_meanwhile(
    version: str, make_rig: Callable[[str], Rig]
) -> None:
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=3, properties=QUICK)
        broker.start()
        topics = ("gone", "again")
        filled(rig, {topic: [1] for topic in topics})
        stop(broker)
        begin(broker)
        for topic in topics:
            stage(broker, topic, "--even-if-last")
        kept = staged(broker)
        assert sum(path.endswith(".log") for path in kept) == len(topics)
        broker.start()
        for topic in topics:
            rig.client.delete(topic)
        rig.client.create("again")
        rig.client.produce("again", records=3)
        await_true("the broker removed its empty one", lambda: live(broker, "gone") == [], timeout_seconds=90)
        stop(broker)
        # It is known: no word makes a rename of it.
        for topic in topics:
            assert_refused(broker, topic)
            assert_refused(broker, topic, "--even-if-unknown")
        uninstalled = type_(broker, "uninstall", "--restore", "--apply")
        assert uninstalled.status in (Exit.PROBLEMS, Exit.REFUSED), uninstalled
        assert staged(broker) == kept
        broker.start()
        assert rig.client.topics() == ["again"]
        assert rig.client.digest("again").records == 3
        stop(broker)
        assert staged(broker) == kept


@pytest.mark.parametrize("version", releases_of("deleted elsewhere"))
def test_a47_what_was_deleted_while_its_node_was_down_is_not_taken_back_unasked(
    version: str, make_rig: Callable[[str], Rig]
) -> None:
    with make_rig(version) as rig:
        for _ in range(3):
            rig.add_broker(log_dirs=3, properties=QUICK).start()
        broker = rig.brokers[-1]
        written = filled(rig, {"gone": [3], "lost": [3], "kept": [3], "copied": [1, 3]})
        stop(broker)
        begin(broker)
        for topic in written:
            stage(broker, topic, "--even-if-last", "--even-if-unknown")
        kept = staged(broker)
        for topic in ("gone", "lost"):
            rig.client.delete(topic)

        # Its own log ends before that: of the living as of the deleted it says from where on nobody knows.
        for topic in written:
            said = assert_refused(broker, topic)
            assert _SINCE.search(argv_of(said)), said
            assert "--even-if-unknown" in argv_of(said), said
        # The controller's log, up to what is committed, knows of each.
        epoch, watermark = rig.client.quorum()
        log = rig.brokers[0].log_dirs[0] / _LOG
        asked = ("--from", f"metadata:{log}", "--high-watermark", str(watermark), "--leader-epoch", str(epoch))
        for topic in ("gone", "lost"):
            assert_refused(broker, topic, *asked)
            assert_refused(broker, topic, *asked, "--even-if-unknown")
        assert staged(broker) == kept
        for topic in ("kept", "copied"):
            assert restore(broker, topic, *asked).status == Exit.DONE
        # Not known, and insisted on: what a broker does then is said before it is done.
        said = restore(broker, "lost", "--even-if-unknown")
        assert said.status == Exit.DONE, said
        warned = said.out + said.err
        assert "-stray" in warned
        assert "erases" in warned
        broker.start()
        for topic, nodes in (("kept", [3]), ("copied", [1, 3])):
            await_in_sync(rig, topic, nodes)
            assert rig.client.digest(topic) == written[topic]
        if knows_strays(version):
            (stray,) = live(broker, "lost")
            assert stray.name.endswith("-stray")
            assert any(path.stat().st_size for path in stray.glob("*.log"))
        else:
            await_true("it was erased, as was said", lambda: live(broker, "lost") == [], timeout_seconds=75)
        stop(broker)
        ours = {path: state for path, state in kept.items() if path in staged(broker)}
        assert staged(broker) == ours
        assert sum(path.endswith(".log") for path in ours) == 1


@pytest.mark.parametrize("version", releases_of("last copy"))
def test_a48_the_only_copy_is_not_purged_while_what_the_start_made_in_its_place_is_empty(
    version: str, make_rig: Callable[[str], Rig]
) -> None:
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=3, properties=QUICK)
        broker.start()
        written = filled(rig, {"only": [1]})
        stop(broker)
        begin(broker)
        before = everything(broker)
        words = ("stage", "only", "--even-over-limit", "--delay", "1s", "--apply")
        said = type_(broker, *words, "--json")
        assert said.status == Exit.REFUSED, said
        assert "--even-if-last" in argv_of(said)
        assert everything(broker) == before
        assert type_(broker, *words, "--even-if-last").status == Exit.DONE
        kept = staged(broker)
        broker.start()
        assert rig.client.digest("only").records == 0
        rig.client.produce("only", records=1)
        stop(broker)

        # Its deadline would be past, had it one.
        (name,) = {path.rpartition("/deleting/")[2].partition("/")[0] for path in kept if path.endswith(".log")}
        for more in (
            (),
            ("only",),
            (name,),
            ("only", "--even-if-early", "--include-held"),
            (name, "--even-if-assigned"),
        ):
            said = type_(broker, "staged", "purge", *more, "--apply", "--json")
            assert said.status in (Exit.DONE, Exit.PROBLEMS, Exit.REFUSED), said
            assert staged(broker) == kept, more
            (left,) = items(said)
            assert left["path"].endswith(name)
            assert left["state"] not in ("planned", "done")
            assert left["detail"] or left["problem"]
        listed = type_(broker, "staged", "ls", "--json")
        (one,) = items(listed)
        assert one["state"] == "held"
        assert one["undo_until_ms"] is None
        broker.start()
        assert rig.client.digest("only").records == 1
        stop(broker)
        assert staged(broker) == kept
        assert written["only"].records == RECORDS
        # By its name and that word it goes.
        said = type_(broker, "staged", "purge", name, "--even-if-last", "--apply")
        assert said.status == Exit.DONE, said
        assert staged(broker) == {}
