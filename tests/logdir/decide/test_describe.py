"""How everything on the disks stands, decided from facts alone; the command is tested in ``tests/tools``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdir.decide.describe import describe, one_broker
from logdir.errors import ConfigError
from logdir.formats.own.replica_marker import Checkpoints
from tests.logdir.decide.builders import assigning, facts, replica


@pytest.mark.parametrize(
    ("start", "first", "is_tiered"), [(40, 40, False), (41, 40, False), (39, 40, True), (None, 40, False)]
)
def test_no_replica_is_called_tiered_whose_log_starts_where_its_first_segment_does(
    start: int | None, first: int, is_tiered: bool
) -> None:
    one = replica(first_offset=first, checkpoints=Checkpoints(recovery_point=100, log_start=start))
    for image in (None, assigning().image):
        (found,) = describe([facts(one)], image)
        assert found.is_tiered is is_tiered


@pytest.mark.parametrize(
    ("of_log_dirs", "configured", "names"), [((1, 2), None, ("1", "2")), ((1, 1), 3, ("1", "3")), ((None,), None, ())]
)
def test_no_node_id_is_chosen_where_log_dirs_contradict_each_other_or_say_none(
    of_log_dirs: tuple[int | None, ...], configured: int | None, names: tuple[str, ...]
) -> None:
    disks = [replace(facts(log_dir=f"/d{n}"), node_id=node_id) for n, node_id in enumerate(of_log_dirs)]
    with pytest.raises(ConfigError) as error:
        one_broker(disks, configured)
    for name in (*names, "node.id"):
        assert name in str(error.value)


def test_one_node_id_is_taken_from_wherever_it_is_said() -> None:
    assert one_broker([facts(), replace(facts(), node_id=None)], None) == 1
    assert one_broker([replace(facts(), node_id=None)], 7) == 7
