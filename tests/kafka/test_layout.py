"""A stock broker beside a change of layout: kept out without side effects, and served by again after a rollback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from logdir.disk.kernel.host import Call, HostDisk
from tests.kafka.rig import Rig
from tests.kafka.rotation import releases_of
from tests.oracle.oracle import answer
from tests.tools.ctl import ctl, ctl_json, tree
from tests.tools.layout_fleet import Planned, apply, rollback
from tools.cli.arguments import Exit

pytestmark = pytest.mark.kafka

TOPICS = {"plain": 3, "a.b_c-d": 2, "wide": 12}


class _CutError(BaseException):
    """The process is gone at this call: nothing of ours may catch it."""


def planned(rig: Rig, folder: Path) -> Planned:
    """Return the stopped broker of a rig, its plan and its work roots."""
    (broker,) = rig.brokers
    made = Planned(broker.log_dirs, folder / "plan.jsonl")
    assert ctl("inventory", *made.words, "-o", folder / "inventories").status == Exit.DONE
    lines = ["clusters:", "  - name: c", "    brokers:", "      - node_id: 1"]
    (folder / "fleet.yaml").write_text("\n".join([*lines, f"        inventories: [{folder}/inventories/*.jsonl]", ""]))
    (data,) = answer(folder / "fleet.yaml").documents.values()
    made.plan.write_bytes(data)
    assert {step["topic"] for step in made.steps} >= TOPICS.keys()
    assert ctl("init", *made.words, "--apply").status == Exit.DONE
    return made


def everything(broker: Planned) -> tuple[object, set[str]]:
    """Return all that lies in the log dirs; of Kafka's locks that they are there."""
    return tree(*broker.log_dirs), {str(path) for top in broker.log_dirs for path in top.glob(".lock")}


def cut_at(call: Callable[[Call], bool], broker: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apply the plan, cut off before the first call that is asked for."""

    def tell(told: Call) -> None:
        if call(told):
            raise _CutError

    with monkeypatch.context() as patched:
        patched.setattr("logdir.worker.state.HostDisk", lambda: HostDisk(tell))
        with pytest.raises(_CutError):
            apply(broker)


def assert_kept_out(rig: Rig, broker: Planned) -> None:
    before = everything(broker)
    (stock,) = rig.brokers
    assert stock.try_start() not in (None, 0)
    assert "2147483647" in stock.log_text, stock.trouble()
    assert everything(broker) == before


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", releases_of("layout"))
def test_a37_a_stock_broker_is_kept_out_until_the_rollback_and_then_serves_every_record(
    version: str, make_rig: Callable[[str], Rig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_rig(version) as rig:
        stock = rig.add_broker(log_dirs=3)
        stock.start()
        for topic, partitions in TOPICS.items():
            rig.client.create_on(topic, [[1]] * partitions)
            rig.client.produce_rich(topic, records=200)
        rig.client.produce_rich("plain", records=30, transactional_id="yes")
        rig.client.produce_rich("plain", records=30, transactional_id="no", commit=False)

        def digests() -> list[object]:
            return [
                rig.client.digest(topic, partition, isolation=isolation)
                for topic, partitions in TOPICS.items()
                for partition in range(partitions)
                for isolation in ("read_uncommitted", "read_committed")
            ]

        records = digests()
        assert any(getattr(one, "records", 0) > 200 for one in records)
        # While it runs, nothing is changed.
        words = ("--log-dirs", ",".join(map(str, stock.log_dirs)))
        assert ctl("init", *words, "--apply").status == Exit.DONE
        assert ctl("layout", "rollback", *words, "--apply").status == Exit.BROKER_RUNS
        stock.stop()
        broker = planned(rig, tmp_path)
        first = tree(*broker.log_dirs)

        # Half a start block, then half the replicas, then all of them.
        blocked: list[str] = []

        def is_second_bar(told: Call) -> bool:
            if told.name == "replace" and told.to.endswith("/meta.properties"):
                blocked.append(told.to)
            return len(blocked) == 2

        cut_at(is_second_bar, broker, monkeypatch)
        assert_kept_out(rig, broker)
        moved: list[str] = []

        def is_fifth_replica(told: Call) -> bool:
            if told.name == "rename" and Path(told.to).parent.parent in broker.log_dirs:
                moved.append(told.to)
            return len(moved) == 5

        cut_at(is_fifth_replica, broker, monkeypatch)
        assert_kept_out(rig, broker)
        status, result = apply(broker)
        assert (status, result["finished"], result["done_before"]) == (Exit.DONE, True, 4)
        assert_kept_out(rig, broker)
        assert ctl_json("layout", "verify", broker.plan, *broker.words, "--apply")[0] == Exit.DONE
        assert_kept_out(rig, broker)

        assert rollback(broker)[0] == Exit.DONE
        assert tree(*broker.log_dirs) == first
        for _ in range(2):
            stock.start()
            assert digests() == records
            stock.stop()
        # Uninstalled as well: what is left is a stock broker's own.
        assert ctl("uninstall", *broker.words, "--apply").status == Exit.DONE
        stock.start()
        assert digests() == records
        rig.client.produce_rich("wide", records=10)
        stock.stop()
