"""Which delay a command gives to what it stages: the one that was typed, else the configuration's, else four hours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logdir.formats.own import replica_marker
from tests.builders import log_dir, partition
from tests.reconcile.universe import document, listed
from tests.tools.ctl import ctl
from tests.tools.reconcile_rig import age

HOURS_4, HOURS_48, HOURS_168 = 14_400_000, 172_800_000, 604_800_000
IDS = {"pay": "eXOy6xj-Q8ivrWAlsZGnkw", "orders": "b8tRS7h4TJ2Vt43Dp85v2A", "temp": "MkU3OEVBNTcwNTJENDM2Qg"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    top = log_dir(tmp_path / "d1")
    for name, topic_id in IDS.items():
        partition(top / f"{name}-0", topic_id=topic_id)
    age(top)
    (tmp_path / "server.properties").write_text(f"broker.id=1\nlog.dirs={top}\n")
    assert ctl("init", "--log-dirs", top, "--apply").status == 0
    made = tmp_path / "b1.yaml"
    made.write_text(
        "server.properties: server.properties\nstate.dir: state\nsocket: s.sock\ndelete.topic.delay.ms: 48h\n"
        "topics:\n  orders*:\n    delete.topic.delay.ms: 168h\n  temp*:\n    delete.topic.delay.ms: 0\n"
    )
    return made


def delay_of(config: Path, name: str) -> int | None:
    """The delay in the marker of the staged replica of a topic."""
    path = Path(f"{config.parent / 'd1'}.logdird") / "deleting" / f"{IDS[name]}_0" / "replica.json"
    return replica_marker.parse(path.read_bytes()).delay_ms


@pytest.mark.parametrize(
    ("topic", "more", "delay_ms"),
    [
        ("pay", (), HOURS_48),
        ("orders", (), HOURS_168),
        ("temp", (), HOURS_4),
        ("orders", ("--delay", "4h"), HOURS_4),
    ],
)
def test_a_capture_by_hand_is_kept_for_what_the_configuration_says(
    config: Path, topic: str, more: tuple[str, ...], delay_ms: int
) -> None:
    live = config.parent / "d1" / f"{topic}-0"
    live.rename(live.with_name(f"{topic}-0.{'0' * 32}-delete"))
    said = ctl("capture", topic, "--config", config, *more, "--apply")
    assert said.status == 0, said
    assert delay_of(config, topic) == delay_ms


def test_without_a_configuration_it_is_four_hours(config: Path) -> None:
    live = config.parent / "d1" / "orders-0"
    live.rename(live.with_name(f"orders-0.{'0' * 32}-delete"))
    assert ctl("capture", "orders", "--log-dirs", config.parent / "d1", "--apply").status == 0
    assert delay_of(config, "orders") == HOURS_4


def test_what_a_request_leaves_out_gets_the_delay_that_the_daemon_would_give_it(config: Path) -> None:
    request = config.parent / "request.json"
    request.write_text(json.dumps(document(listed(pay=(IDS["pay"], (0,))), type=2, sequence=1)))
    said = ctl("reconcile", "--from", f"request:{request}", "--config", config, "--even-over-limit", "--apply")
    assert said.status == 0, said
    assert [delay_of(config, name) for name in ("orders", "temp")] == [HOURS_168, 0]


def test_a_configuration_that_does_not_fit_is_refused(config: Path) -> None:
    config.write_text(config.read_text() + "unknown: 1\n")
    said = ctl("capture", "pay", "--config", config)
    assert said.status == 2
    assert "unknown key" in said.err
