"""The start-up guard: a mixture of installations does not run."""

from __future__ import annotations

import types

import pytest

import scheduler
from tools import guard


def test_one_installation_passes() -> None:
    assert guard.mixed_installation() is None


def test_a_package_from_elsewhere_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = types.ModuleType("scheduler")
    elsewhere.__file__ = "/elsewhere/scheduler/__init__.py"
    monkeypatch.setattr(guard, "scheduler", elsewhere)
    line = guard.mixed_installation()
    assert line is not None
    assert "/elsewhere" in line
    assert "\n" not in line
    assert scheduler.__file__ is not None
