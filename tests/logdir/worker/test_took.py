"""How long a worker had a call: from the question to the answer, or until it was given up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from logdir import clock
from logdir.errors import DiskError
from logdir.worker.port import LocalPort
from logdir.worker.remote import took_ns
from logdir.worker.waiting import Asked, Sent, Waiting


def sent(begun_ns: int | None) -> Sent[object]:
    made: Sent[object] = Sent(cast(Asked, SimpleNamespace(waiting=Waiting())), "glance", lambda value: value)
    made.begun_ns = begun_ns
    return made


def test_a_call_takes_until_its_answer_or_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "monotonic_ns", lambda: 1_000)
    answered, failed, open_one = sent(400), sent(900), sent(100)
    answered.take("result", 1)
    failed.fail(DiskError("/d2", expected="a call that succeeds", found="none"))
    assert took_ns({"/d1": answered, "/d2": failed, "/d3": open_one}) == {"/d1": 600, "/d2": 100}
    # What comes later changes nothing.
    monkeypatch.setattr(clock, "monotonic_ns", lambda: 5_000)
    failed.fail(DiskError("/d2", expected="a call that succeeds", found="none"))
    assert failed.took_ns == 100


def test_a_call_that_is_refused_at_once_and_one_of_this_process_took_no_time() -> None:
    refused = sent(None)
    refused.fail(DiskError("/d1", expected="a call that succeeds", found="none"))
    here = LocalPort("/d2").begin(abs, -1)
    assert here.result() == 1
    assert took_ns({"/d1": refused, "/d2": here}) == {}
