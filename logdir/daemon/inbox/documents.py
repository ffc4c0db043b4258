"""When the daemon follows the request documents of its inbox: in order of name, and only on a stopped broker.

A document that needs Kafka's locks waits for the broker's stop, and is then followed only if the configuration has
``auto.while.stopped: true`` (law 4). One that was interrupted is followed again: its controller epoch and sequence in
``controller.json`` make sure that nothing is done twice.

Not here: the directories (``folder``), what follows from a document (``service.batch.reconcile_case``).

Spec: design §2 law 4, §4; KIP-516, "Deletion", step 1; attacks A3, A22, A27.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol

from logdir import clock
from logdir.daemon.faults import fault_of, problem_of
from logdir.daemon.inbox.folder import Inbox, is_of
from logdir.daemon.session import Session
from logdir.decide.image.position import highest, position_unknown
from logdir.disk.record.controller import read_records
from logdir.errors import (
    ConfigError,
    FormatError,
    LockHeldError,
    LogDirError,
    NoPermissionError,
    Problem,
    RefusedError,
    WorkRootOwnedError,
    shown,
)
from logdir.formats.own.controller_file import REQUESTS_UNKNOWN, ControllerFile
from logdir.refusal_slug import Why
from logdir.service.batch.reconcile_case import ReconcileRequest
from logdir.service.batch.use_cases import Spec, spec_of
from logdir.service.cluster.source import Scheme, SourceRequest, Uri
from logdir.service.reconcile import Policy
from logdir.service.report.exit_status import problems_of
from logdir.service.report.reconcile_result import ReconcileResult
from logdir.service.report.use_case import Ran
from logdir.text import quoted

LOG: Final = logging.getLogger("logdir.daemon")
_SLUG: Final = "request-waiting"
_IT_WAITS: Final = "nothing to do: the document waits for the broker's stop"
_AGAIN_MS: Final = 10 * 1000
"""How long no document is followed after one that could not be."""
_NO_ANSWER: Final[Mapping[str, object]] = {}
"""Of a file that is no request."""
_MOST_AT_ONCE: Final = 64
"""How many documents are looked at between two captures."""


class Opened(Protocol):
    """The work on an open broker, as far as documents need it."""

    session: Session
    is_blocked: bool
    """Whether a start block is set."""

    def run(self, spec: Spec, request: Any, *, is_applied: bool) -> tuple[Ran, tuple[str, ...]]:
        """Run a use case; return what came of it, and its warnings. Raises ``LogDirError``."""

    def note(self, event: str, **values: object) -> None:
        """Write an event into the history."""

    def note_document(self, *, is_done: bool) -> None:
        """Count a document that was followed, or refused."""

    def note_error(self, problem: Problem) -> None:
        """Count an error."""


class Documents:
    """The documents of one daemon's inbox, followed on an open broker."""

    def __init__(self, work: Opened) -> None:
        """Take the work on the open broker."""
        self._work = work
        self._config = work.session.config
        self._inbox = Inbox(self._config.state_dir)
        self._due: list[str] = []
        self.waiting: tuple[Problem, ...] = ()
        """Why documents are not followed now."""
        self._last: ControllerFile | None = None
        self._is_lost = False
        """Whether a log dir has lost its record of followed requests."""
        self.is_last_read = False
        """Whether both are as on disk; whatever writes the record of followed requests clears it."""
        self._again_ms = 0
        """When documents are looked at again, after one could not be followed."""

    def look(self, *, is_running: bool | None, is_start_awaited: bool) -> None:
        """Look at the inbox; refuse what is no document, and note what may be followed now.

        Args:
            is_running: Whether a broker runs; ``None``: it is not known.
            is_start_awaited: Whether the log dirs were handed over to a broker that is about to start.
        """
        self._due = []
        if clock.monotonic_ms() < self._again_ms:
            return
        self.waiting = self._wanted()
        try:
            names = self._inbox.names()[:_MOST_AT_ONCE]
        except OSError as error:
            expected = "a directory for requests, which only root and the owner of the log dirs can write"
            self.waiting = (*self.waiting, _unusable(self._inbox.path, expected, error, "chmod go-w, "))
            return
        documents = [name for name in names if self._is_document(name)]
        if not documents:
            return
        problem = self._against(documents[0], is_running=is_running, is_start_awaited=is_start_awaited)
        if problem is None:
            self._due = documents
        else:
            self.waiting = (*self.waiting, problem)

    def _wanted(self) -> tuple[Problem, ...]:
        """Return the problem that the record of followed requests is lost, or that a FULL request is wanted: one may
        have been missed.
        """
        if not self.is_last_read:
            try:
                records = read_records(self._work.session.broker.open_dirs)
            except LogDirError:
                return ()  # The state of its disk shows it.
            self._last, self._is_lost = highest(records), None in records
            self.is_last_read = True
        last = self._last
        if self._is_lost:
            return (position_unknown(),)
        if last is None or last.requests in (None, REQUESTS_UNKNOWN) or not last.is_full_wanted:
            return ()
        expected, found = "a LeaderAndIsr request of type FULL", "requests after one that may have been missed"
        fix = "purges of what such requests leave out wait until one comes"
        return (Problem(Why.FULL_REQUEST_NEEDED.value, self._inbox.path, expected, found, fix),)

    def _is_document(self, name: str) -> bool:
        """Whether a name in the inbox is that of a document; others are refused."""
        try:
            self._inbox.require_document(name)
        except FileNotFoundError:
            return False  # Somebody has taken it back.
        except OSError as error:
            self.waiting = (*self.waiting, _unusable(self._inbox.path_of(name), "a file that can be looked at", error))
            return False
        except LogDirError as error:
            with self._noting(name):
                self._refuse(name, problems_of(error))
            return False
        return True

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        """Let what cannot be moved stay where it is: it keeps no other document from being followed."""
        try:
            yield
        except OSError as error:
            self.waiting = (*self.waiting, _unusable(self._inbox.path_of(name), "a file that can be moved", error))

    def _against(self, name: str, *, is_running: bool | None, is_start_awaited: bool = False) -> Problem | None:
        """Return why documents are not followed now, the first by name; ``None``: they may be."""
        path = self._inbox.path_of(name)
        if is_running is not False:
            found = "a broker that runs" if is_running else "log dirs of which it is not known whether a broker runs"
            expected = "a stopped broker: a change needs Kafka's locks"
            return Problem(_SLUG, path, expected, found, _IT_WAITS)
        if is_start_awaited:
            expected, found = "log dirs that are not handed over", "a handover: a broker is about to start"
            return Problem(_SLUG, path, expected, found, _IT_WAITS)
        if self._work.is_blocked:
            fix = "logdirctl layout status shows how to end the change of layout"
            return Problem(_SLUG, path, "log dirs that are not blocked", "a start block", fix)
        if not self._config.auto_while_stopped:
            config = quoted(self._config.file)
            fix = f"logdirctl reconcile --from {quoted(str(Uri(Scheme.REQUEST, path)))} --config {config} --apply"
            expected = "auto.while.stopped: true, to follow it without an operator"
            return Problem(_SLUG, path, expected, "auto.while.stopped: false", fix)
        return None

    def follow_next(self) -> bool:
        """Follow the next document; return whether there was one.

        Raises:
            LogDirError: the broker has to be opened again.
        """
        if not self._due:
            return False
        name = self._due.pop(0)
        self._work.session.require_same()
        try:
            path = self._inbox.take(name)
        except FileNotFoundError:
            return True  # Somebody has taken it back.
        except OSError as error:
            self._stop(name, problem_of(self._config, error))
            return True
        except LogDirError as error:
            with self._noting(name):
                self._refuse(name, problems_of(error))
            return True
        try:
            self._follow(name, path)
        except OSError as error:
            self._stop(name, problem_of(self._config, error))
        return True

    def _follow(self, name: str, path: str) -> None:
        """Follow a document that was taken, and move it where it belongs. Raises ``OSError``."""
        try:
            request = ReconcileRequest(
                source=SourceRequest(str(Uri(Scheme.REQUEST, path))), policy=Policy(delays=self._config.delays)
            )
            ran, _ = self._work.run(spec_of("reconcile"), request, is_applied=True)
        except (FormatError, ConfigError, RefusedError, NoPermissionError) as error:
            if is_of(error, path):
                self._refuse(name, problems_of(error))
            else:
                self._give_back(name, error.problem())
        except LogDirError as error:
            has_started = isinstance(error, LockHeldError) and not isinstance(error, WorkRootOwnedError)
            problem = self._against(name, is_running=True) if has_started else None
            self._give_back(name, problem or error.problem())
        except OSError:
            raise
        except Exception as error:  # A document must not end the daemon at every start.
            LOG.exception("request.fault document=%s", shown(name))
            self._refuse(name, (fault_of(name, error),))
        else:
            self._settle(name, ran)

    def _settle(self, name: str, ran: Ran) -> None:
        answers = _answers(ran.result)
        if not ran.result.is_refused and ran.result.is_whole:
            self._inbox.finish(name)
            self._note("done", name, answers)
            return
        left = Problem("request-not-whole", name, "a request of which all can be done", "a part that is left")
        self._refuse(name, ran.problems or (left,), answers)

    def _refuse(self, name: str, problems: tuple[Problem, ...], answers: Mapping[str, object] = _NO_ANSWER) -> None:
        self._inbox.refuse(name, problems)
        LOG.error("document.refused name=%s %s", shown(name), problems[0].line())
        self._work.note_error(problems[0])
        self._note("refused", name, answers)

    def _give_back(self, name: str, problem: Problem) -> None:
        self._inbox.give_back(name)
        self._stop(name, problem)

    def _stop(self, name: str, problem: Problem) -> None:
        """Follow no other document for a while: their order counts, and what is wrong may not end at once."""
        LOG.warning("document.waits name=%s %s", shown(name), problem.line())
        self._due, self.waiting = [], (problem,)
        self._again_ms = clock.monotonic_ms() + _AGAIN_MS

    def _note(self, state: str, name: str, answers: Mapping[str, object]) -> None:
        self._work.note_document(is_done=state == "done")
        self._work.note("document", name=shown(name), outcome=state, **answers)


def _answers(result: ReconcileResult) -> dict[str, object]:
    """Return what a controller would be answered: the code of the whole request, and how many partitions got which."""
    codes = Counter(int(one.code) for one in result.answers)
    answers = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
    return {"code": None if result.code is None else int(result.code), "answers": answers}


def _unusable(path: str, expected: str, error: OSError, more: str = "") -> Problem:
    found, fix = error.strerror or str(error), f"give it to the owner of the log dirs, {more}or remove it"
    return Problem("inbox-unusable", path, expected, found, fix)
