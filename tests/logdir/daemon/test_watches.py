"""The thread that keeps the watch processes: it waits without waking up, and hears what is asked of it."""

from __future__ import annotations

from pathlib import Path

from logdir import clock
from logdir.daemon.watches import Watches
from tests.logdir.daemon.rig import until


def test_a_log_dir_that_is_left_loses_its_watch_and_gets_it_back(tmp_path: Path) -> None:
    tops = [tmp_path / "d1", tmp_path / "d2"]
    for top in tops:
        top.mkdir()
    hints: list[int] = []
    watches = Watches([str(top) for top in tops], lambda: hints.append(1))
    watches.start()
    try:
        until("both are watched", lambda: len(hints) >= 2)
        watches.leave([str(tops[0])])
        heard = len(hints)
        (tops[1] / "pay-0.0123456789abcdef0123456789abcdef-delete").mkdir()
        until("the other is watched", lambda: len(hints) > heard)
        heard = len(hints)
        watches.leave(())
        until("the first is watched again", lambda: len(hints) > heard)
    finally:
        watches.stop()
    started_ms = clock.monotonic_ms()
    watches.leave([str(tops[0])])  # Of one that has ended nothing is asked.
    assert clock.monotonic_ms() - started_ms < 2000  # It would wait so long for a watch that does not end.
    watches.stop()


def test_an_error_that_no_rule_foresees_does_not_end_the_hints(tmp_path: Path) -> None:
    errors, hints = [MemoryError()], []

    def hint() -> None:
        if errors:
            raise errors.pop()
        hints.append(1)

    watches = Watches([str(tmp_path)], hint)
    watches.start()
    try:
        until("the first hint has failed", lambda: not errors)
        (tmp_path / "pay-0.0123456789abcdef0123456789abcdef-delete").mkdir()
        until("the next one comes", lambda: bool(hints))
    finally:
        watches.stop()
