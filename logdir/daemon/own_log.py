"""When the daemon follows its broker's own metadata log: once it is stopped, if ``auto.while.stopped`` is ``true``.

A running broker follows its log itself, and renames or removes what the log removes (law 4: nothing but captures and
purges is done beside it). What it had not done when it was stopped is done then, by the rules of the command
``reconcile``: only what the log shows as removed is staged, with a deadline, below the staging limit. While the broker
is stopped its log stays as it is, so once is enough. Kafka's locks are taken only if there is something to do, and not
before the broker has been stopped for a minute: it may be a restart.

Not here: what follows from the log (``service.batch.reconcile_case``).

Spec: design §2 laws 1, 4, §4; KIP-631, "Broker Startup": RECOVERY; attacks A1, A22, A38.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

from logdir import clock
from logdir.daemon.faults import fault_of, problem_of
from logdir.daemon.inbox import documents
from logdir.daemon.quorum import Quorum
from logdir.errors import ConfigError, LogDirError, Problem
from logdir.refusal_slug import Why
from logdir.service.batch.reconcile_case import ReconcileRequest
from logdir.service.batch.use_cases import spec_of
from logdir.service.reconcile import Policy
from logdir.service.report.result import ItemState
from logdir.text import quoted

LOG: Final = logging.getLogger("logdir.daemon")
_SETTLED_MS: Final = 60 * 1000
"""How long the broker has been stopped before its log is followed."""
_AGAIN_MS: Final = 10 * 60 * 1000
"""When a log that could not be followed, or only in part, is read again."""


class Opened(documents.Opened, Protocol):
    """The work on an open broker, as far as its metadata log needs it."""

    def held_up(self) -> LogDirError | None:
        """Return the error that the daemon ends, or that a handover waits; ``None``: neither."""

    def note_offset(self, followed: int, end: int) -> None:
        """Note the offset up to which the metadata log was followed, and up to which it is committed."""


class OwnLog:
    """The metadata log of one open broker."""

    def __init__(self, work: Opened, quorum: Quorum) -> None:
        """Take the work on the open broker; the log was not followed yet."""
        self._work, self._quorum = work, quorum
        self._is_followed = False
        """Whether nothing is left of it since the broker was stopped."""
        self._is_due = False
        self._from_ms: int | None = None
        """From when on it is followed (monotonic clock); ``None``: the broker was not seen stopped."""
        self.problem: tuple[Problem, ...] = ()
        """Why it was not followed, or not all of it."""

    def look(self, *, is_running: bool | None, is_start_awaited: bool) -> None:
        """Note whether the log may be followed now.

        Args:
            is_running: Whether a broker runs; ``None``: it is not known.
            is_start_awaited: Whether the log dirs were handed over to a broker that is about to start.
        """
        now_ms = clock.monotonic_ms()
        if is_running is not False:
            self._is_followed, self.problem, self._from_ms = False, (), None
        elif self._from_ms is None:
            self._from_ms = now_ms + _SETTLED_MS
        is_allowed = self._work.session.config.auto_while_stopped and not self._work.is_blocked and not is_start_awaited
        is_time = self._from_ms is not None and now_ms >= self._from_ms
        self._is_due = is_time and is_allowed and not self._is_followed

    def follow(self) -> bool:
        """Follow the log if it is due; return whether it was.

        Raises:
            LogDirError: the broker has to be opened again.
        """
        session = self._work.session
        client = session.config.client_properties
        if not self._is_due or not self._quorum.is_known(client, session.cluster_id):
            return False  # The thread that asks the quorum ends with a purge, and a sweep comes after it.
        self._is_due = False
        session.require_same()
        request = ReconcileRequest(source=self._quorum.source(client), policy=Policy(delays=session.config.delays))
        reconcile = spec_of("reconcile")
        try:
            ran, _ = self._work.run(reconcile, request, is_applied=False)
            if request.source.high_watermark is not None:
                self._work.note_offset(ran.result.source.offset, request.source.high_watermark)
            if any(item.state is ItemState.PLANNED for item in ran.result.items):
                if self._work.held_up() is not None:
                    return True  # The next sweep finds that a broker is about to start.
                ran, _ = self._work.run(reconcile, request, is_applied=True)
        except ConfigError as error:
            # It has none, as beside ZooKeeper, or holds nothing that is known to be committed.
            LOG.info("metadata-log.not-followed %s", error.problem().line())
            self._is_followed = True
        except (LogDirError, OSError) as error:
            self._wait(problem_of(session.config, error))
        except Exception as error:  # What a log holds must not end the daemon a minute after every start.
            LOG.exception("metadata-log.fault")
            problem = fault_of(request.source.uri, error)
            self._work.note_error(problem)
            self._wait(problem)
        else:
            problems = tuple(one for one in ran.problems if one not in session.broker.notes)
            if ran.result.is_refused:
                command = f"logdirctl reconcile --from {request.source.uri} --config {quoted(session.config.file)}"
                by_hand = f"check {command}, then add --even-over-limit --apply"
                is_limit = Why.OVER_STAGING_LIMIT.value
                self._wait(*(one._replace(fix=by_hand) if one.slug == is_limit else one for one in problems))
            elif not ran.result.is_whole or self._quorum.problem(client):
                self._wait(*problems)
            else:
                self._is_followed, self.problem = True, problems
        return True

    def _wait(self, *problems: Problem) -> None:
        for problem in problems:
            LOG.warning("metadata-log.waits %s", problem.line())
        self.problem = problems
        self._from_ms = clock.monotonic_ms() + _AGAIN_MS
