"""Capture and adopt, cut at every call under every model of a file system, their recovery too (A16, A17).

The judge knows no order of calls. *Lost*: a byte of the log has no name that leads to it. *Half*: under a live name or
in ``deleting/`` lies something else than one of the two ends. *Stuck*: doing it again does not end well.
"""

from __future__ import annotations

import errno

import pytest

from logdir.errors import LogDirError
from tests.crash.enumerate import State, explore, explore_failures
from tests.crash.model import ModelHost
from tests.crash.recording import Acks
from tests.crash.result import Result as Found
from tests.crash.tree import World
from tests.logdir.disk.rescue import (
    DELETED,
)
from tests.logdir.disk.rescue_crash import (
    SMALL,
    _adopt_on,
    _below,
    _capture,
    _deleted,
    _host,
    _judge_adopt,
    _judge_capture,
    _made_anew,
    _plant,
    _recover_adopt,
    _recover_capture,
    _remove,
    _write_capture_and_remove,
)

MODELS = ("K", "J", "B", "P")


def _explored(result: Found, states: int) -> None:
    assert result.violations == (), str(result)
    assert result.states >= states, result.totals()


@pytest.mark.slow
def test_a17_a_capture_cut_anywhere_and_made_again_is_whole_and_once() -> None:
    _explored(
        explore(_deleted(), _capture, _recover_capture, _judge_capture, MODELS, depth=2, operation="capture"), 1_000
    )


@pytest.mark.slow
def test_a17_what_is_acknowledged_outlives_the_broker_removing_its_own() -> None:
    def judge(start: World, state: State, acks: Acks) -> list[str]:
        # What a power cut leaves of the broker's own unsynced files is another directory: that is captured, too.
        return [line for line in _judge_capture(start, state, acks) if not line.startswith("doubled")]

    run = _write_capture_and_remove
    _explored(explore(_deleted(), run, _recover_capture, judge, MODELS, operation="capture, removal"), 500)


def test_a17_a_partial_capture_outlives_the_broker_removing_the_rest() -> None:
    host = _host()
    rest = {name: data for name, data in SMALL.items() if name != "partition.metadata"}
    _plant(host, f"/d0/kafka/{DELETED}", rest)

    def run(host: ModelHost, acks: Acks) -> None:
        _capture(host, acks)
        _remove(host)

    def judge(start: World, state: State, acks: Acks) -> list[str]:
        held = _below(state.recovered, "/d0/kafka.logdird/incoming/no-id.t_0")
        wrong = ["lost: a part that was said to be kept"] if "partial" in acks and held != rest else []
        if any("/deleting/" in path for path in state.recovered.files()):
            wrong.append("half in deleting/")
        return wrong

    _explored(explore(host, run, _recover_capture, judge, MODELS, operation="capture, partial"), 200)


@pytest.mark.slow
def test_a17_a_capture_whose_calls_fail_is_whole_or_not_there() -> None:
    def run(host: ModelHost, acks: Acks) -> None:
        try:
            _capture(host, acks)
        except LogDirError as error:
            raise OSError(str(error)) from error

    numbers = (errno.EIO, errno.ENOSPC, errno.EMLINK, errno.EXDEV, errno.EPERM)
    _explored(
        explore_failures(_deleted(), run, _recover_capture, _judge_capture, numbers, operation="capture"),
        300,
    )


@pytest.mark.parametrize(
    ("present", "keep"),
    [pytest.param(0, False, marks=pytest.mark.slow), pytest.param(0, True, marks=pytest.mark.slow), (1, False)],
)
def test_a16_an_adoption_cut_anywhere_is_done_or_not_begun(present: int, keep: bool) -> None:
    result = explore(
        _made_anew(present),
        _adopt_on(present, keep=keep),
        _recover_adopt,
        _judge_adopt(present, keep=keep),
        MODELS,
        depth=2,
        operation="adopt",
    )
    _explored(result, 1_000)


def test_a16_an_adoption_whose_calls_fail_is_done_or_not_begun() -> None:
    def run(host: ModelHost, acks: Acks) -> None:
        try:
            _adopt_on(0, keep=False)(host, acks)
        except LogDirError as error:
            raise OSError(str(error)) from error

    result = explore_failures(
        _made_anew(0),
        run,
        _recover_adopt,
        _judge_adopt(0, keep=False),
        (errno.EIO, errno.ENOSPC, errno.EACCES),
        operation="adopt",
    )
    _explored(result, 300)
