"""What is typed amid a change of layout, beside a disk that hangs: refused by its name, and no start block is lifted.

``test_every_command`` shows the same commands where nothing of a change of layout lies on the disks.

Spec: design §2 laws 4, 6, §6 ``handover``, §8; attacks A22, A37.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from logdir.formats.own import layout_file
from logdir.formats.own.layout_file import LayoutState
from tests.hung.rig import Broker, Sick, all_ended, on_lock
from tests.hung.test_every_command import (
    INCOMPLETE,
    RIGS,
    Case,
    cold,
    prepare,
    replicas_of,
    require_all_in_time,
    require_named,
    typed,
)
from tests.kernel.images import Images
from tests.tools.ctl import ctl

pytestmark = pytest.mark.root

VERIFY = Case("layout verify {folder}/plan.jsonl --apply", 4)
FINALIZE = Case("layout finalize --for-broker next --apply", 4)
ROLLBACK = Case("layout rollback --apply", 4)
HANDOVER = Case("handover", 4, slug=INCOMPLETE)


def applied(broker: Broker) -> None:
    """Carry out the plan: all replicas lie under topic ids, and the start block stands."""
    prepare(broker)
    said = ctl("layout", "apply", broker.folder / "plan.jsonl", *broker.named, "--apply")
    assert said.status == 0, said
    require_blocked(broker)


def layout_of(disk: Path) -> layout_file.LayoutFile:
    """Return how far the change is on a disk."""
    return layout_file.parse((disk / "layout.json").read_bytes())


def require_blocked(broker: Broker) -> None:
    """Assert that no broker starts with any of the log dirs."""
    for disk in broker.disks:
        assert (disk / "start-block.json").exists(), disk
        assert "node.id=1\n" not in (disk / "meta.properties").read_text(), disk


def cut_off_a_finalize(broker: Broker) -> None:
    """Leave what ``layout finalize`` leaves that was killed after its first write."""
    file = layout_of(broker.disks[0])._replace(state=LayoutState.FINALIZING, for_broker="next")
    (broker.disks[0] / "layout.json").write_bytes(layout_file.render(file))


def half_finalized(broker: Broker) -> None:
    """Leave a plan that is carried out and verified, and a finalize that was cut off."""
    applied(broker)
    said = ctl("layout", "verify", broker.folder / "plan.jsonl", *broker.named, "--apply")
    assert said.status == 0, said
    cut_off_a_finalize(broker)


def require_refused(sick: Sick, *cases: Case, hung: Sequence[str] = ()) -> None:
    """Type commands while the disk hangs: each is refused, and changes none."""
    broker = sick.broker
    before = replicas_of(broker)
    sick.hang(*hung)
    answers = []
    for case in cases:
        answer = typed(broker, case)
        require_named(answer, broker, case)
        assert replicas_of(broker) == before, case
        answers.append((case, answer))
    sick.go_on()
    assert all_ended(*(answer.session for _, answer in answers))
    require_blocked(broker)
    require_all_in_time(answers)


def require_done(broker: Broker, case: Case) -> None:
    """Type a command where every disk answers."""
    answer = typed(broker, case)
    assert (answer.status, answer.suspects) == (0, []), answer


def require_final(broker: Broker) -> None:
    """Assert that the broker which was named may start."""
    for disk in broker.disks:
        assert (layout_of(disk).state, layout_of(disk).for_broker) == (LayoutState.FINAL, "next")
        assert not (disk / "start-block.json").exists()
        assert "node.id=1\n" in (disk / "meta.properties").read_text()


def require_the_whole_way(sick: Sick, *hung: str) -> None:
    """Go from a plan that is carried out to the end of its change, each step first beside the disk that hangs."""
    broker = sick.broker
    require_refused(sick, VERIFY, hung=hung)
    require_done(broker, VERIFY)
    # Each by itself: behind one that was killed and sleeps, the next ones are refused by the lock it holds.
    require_refused(sick, ROLLBACK, hung=hung)
    require_refused(sick, FINALIZE, hung=hung)
    cut_off_a_finalize(broker)
    require_refused(sick, HANDOVER, hung=hung)
    require_done(broker, HANDOVER)
    require_final(broker)


def test_a37_a_change_of_layout_half_way_stays_as_it_is_beside_a_disk_that_cannot_be_looked_at(
    images: Images, tmp_path: Path
) -> None:
    with cold(images, tmp_path, half_finalized) as sick:
        require_refused(sick, VERIFY, ROLLBACK, FINALIZE, HANDOVER)
        require_done(sick.broker, HANDOVER)
        require_final(sick.broker)


@pytest.mark.parametrize("rig", ["unwritten", "frozen"])
def test_a37_a_change_of_layout_half_way_stays_as_it_is_beside_a_disk_that_cannot_be_written_to(
    rig: str, images: Images, tmp_path: Path
) -> None:
    with RIGS[rig](images, tmp_path, applied) as sick:
        require_the_whole_way(sick)


@pytest.mark.parametrize("hung", ["OPEN", "FLUSH"])
def test_a22_a_change_of_layout_half_way_stays_as_it_is_beside_a_kafka_lock_that_hangs(
    hung: str, images: Images, tmp_path: Path
) -> None:
    with on_lock(tmp_path, applied) as sick:
        require_the_whole_way(sick, hung)
