"""The gate before a broker's start: ``logdirctl handover`` within a time limit, and the way round it.

A daemon that is starting, ending or opening its log dirs is waited for. The limit holds for all of it, also beside a
disk that hangs and a daemon that does not answer: a unit of systemd waits for its ``ExecStartPre=`` for a limited time,
and tries again. What was done by then stays done, as after an interruption, and the next start goes on.

An operator passes the gate by an environment variable (``LOGDIRD_SKIP_GATE``): nothing is looked at then, so that a
fault of ours cannot keep a broker down.

Not here: what is done before a start, and what refuses it (``service.batch.handover``).

Spec: design §6 ``handover``, §8; attacks A22, A40.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import ClassVar, Final, TypeVar

from logdir import clock
from logdir.daemon.faults import ReopeningError, StoppingError
from logdir.daemon.socket.client import DaemonUnreachableError
from logdir.errors import LogDirError, LogDirReplacedError, Problem, WorkRootOwnedError
from logdir.paths import SKIP_GATE
from logdir.refusal_slug import Why
from logdir.service.report.exit_status import AnsweredError

_T = TypeVar("_T")

AT_MOST_S: Final = 30
"""How long the gate takes at most: a third of the time that systemd gives a unit to start."""
_MARGIN_S: Final = 1.5
"""For the start of the interpreter, and for the end of workers that hang."""
_AGAIN_S: Final = 0.5
_OFF: Final = frozenset(("", "0", "no", "false"))
_PASSING: Final = frozenset(
    (
        StoppingError.code,
        ReopeningError.code,
        LogDirReplacedError.code,
        "daemon-busy",
        Why.CONFIGURATION_CHANGED.value,
    )
)
"""What a daemon answers that will soon answer otherwise."""
_WAY_ROUND: Final = f"{SKIP_GATE}=1 in the environment of the broker's unit lets it start all the same (docs/daemon.md)"


class GateTimedOutError(LogDirError):
    """The log dirs were not handed over in time: nothing shows that a broker may start."""

    code: ClassVar[str] = "gate-timed-out"


class _TimeOverError(KeyboardInterrupt):
    """The time is over. As after a Ctrl-C, calls that wait for a disk are given up at once."""


def is_skipped(environment: Mapping[str, str]) -> bool:
    """Whether an operator lets a broker start without the gate.

    >>> is_skipped({"LOGDIRD_SKIP_GATE": "1"}), is_skipped({"LOGDIRD_SKIP_GATE": "no"}), is_skipped({})
    (True, False, False)
    """
    return environment.get(SKIP_GATE, "").strip().lower() not in _OFF


def skipped() -> Problem:
    """Return the problem that the gate was passed: it is logged with the start of the broker."""
    return Problem(
        "gate-skipped",
        "handover",
        "a look at the log dirs before the broker starts",
        f"{SKIP_GATE} in the environment: nothing was looked at",
        f"once the broker runs, take {SKIP_GATE} away again, and see logdirctl status for what is left unfinished",
    )


def with_way_round(problem: Problem) -> Problem:
    """Return a problem that refuses a start, with how it is passed, in its fix."""
    return problem._replace(fix=f"{problem.fix}; {_WAY_ROUND}" if problem.fix else _WAY_ROUND)


def handed_over(run: Callable[[], _T], at_most_s: float = AT_MOST_S) -> _T:
    """Hand over, and again as long as a daemon is only passing through another state; return what came of it.

    Args:
        run: Hands over once, in the daemon or here.
        at_most_s: How long all of it may take.

    Raises:
        GateTimedOutError: it was not over in time.
        LogDirError: as ``run``.
    """
    limit_s = max(at_most_s - _MARGIN_S, at_most_s / 2)
    until_ms = clock.monotonic_ms() + round(1000 * limit_s)
    try:
        with _time_limit(limit_s):
            while True:
                try:
                    return run()
                except (WorkRootOwnedError, DaemonUnreachableError, AnsweredError) as error:
                    is_passing = not isinstance(error, AnsweredError) or error.problems[0].slug in _PASSING
                    if not is_passing or clock.monotonic_ms() + 2 * round(1000 * _AGAIN_S) >= until_ms:
                        raise
                time.sleep(_AGAIN_S)
    except _TimeOverError:
        raise GateTimedOutError(
            "handover",
            expected=f"log dirs that are handed over within {at_most_s:g} s",
            found="more to do, or a logdird or a disk that does not answer",
            fix="what was done by then stays done, and the next start goes on; see logdirctl status, and --at-most for "
            "disks that are slow",
        ) from None


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Interrupt the body once its time is over. Another timer of this process goes on afterwards.

    Raises:
        _TimeOverError: the time is over.
    """

    def interrupt(number: int, at: FrameType | None) -> None:
        raise _TimeOverError

    try:
        handler = signal.signal(signal.SIGALRM, interrupt)
    except ValueError:  # Only the main thread gets signals; no command runs in another one.
        yield
        return
    began_ms = clock.monotonic_ms()
    left_s, interval_s = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left_s:
            past_s = (clock.monotonic_ms() - began_ms) / 1000
            signal.setitimer(signal.ITIMER_REAL, max(left_s - past_s, 0.001), interval_s)
