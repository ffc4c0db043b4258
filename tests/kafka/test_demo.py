"""The undo story of the demonstration, told beside a real broker (``make demo KAFKA=1``)."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from examples import kafka_broker, undo
from tests.kafka.rig import Rig
from tests.test_demo import STORY, without_times

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]


def test_a_deleted_topic_comes_back_beside_a_real_broker(make_rig: Callable[[str], Rig], tmp_path: Path) -> None:
    out = io.StringIO()
    with make_rig(kafka_broker.RELEASE) as rig:
        undo.run(kafka_broker.KafkaBroker(rig), tmp_path, out)
    assert without_times(out.getvalue()) == STORY.replace("COUNT", "100")
