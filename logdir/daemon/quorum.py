"""How far the metadata quorum has committed, asked by a thread of its own: no capture waits for the network.

The metadata log of a broker that is no voter does not show what is committed after its newest snapshot, which may be
an hour old. With the high watermark of the quorum it is read up to there, so that the reason of a removal is known at
once. An answer is used for a minute: what was committed stays committed, so an older one only shows less.

Not here: when it is asked (``work``), the question (``service.cluster.live_source``).

Spec: design §4 (a high watermark learnt from the quorum), §5; KIP-836; attack A2.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from logdir import clock
from logdir.daemon.faults import fault_of
from logdir.errors import LogDirError, Problem
from logdir.service.cluster.source import QuorumWord, SourceRequest

LOG: Final = logging.getLogger("logdir.daemon")
FRESH_MS: Final = 60 * 1000
"""How long an answer is used before it is asked again."""

Ask = Callable[[str, str | None], QuorumWord | None]
"""Asks the brokers of a client properties file, which must be of a cluster; raises ``LogDirError``."""


class Answer(NamedTuple):
    """What came of a question."""

    path: str
    """The client properties file."""
    at_ms: int
    """Boot-time clock."""
    word: QuorumWord | None = None
    problem: Problem | None = None
    """Why it is not known."""


def ask_brokers(path: str, cluster_id: str | None) -> QuorumWord | None:
    """Ask the brokers of a client properties file, read again each time. Blocks for ten seconds at most.

    Raises:
        LogDirError: the file does not fit, or there is no usable answer.
    """
    # Loaded with the first question: a daemon without a client needs no TLS.
    from logdir.service.cluster.live_source import ask_quorum, read_settings

    return ask_quorum(read_settings(path, "client.properties"), cluster_id)


class Quorum:
    """The last answer; asks for another one in the background. Used by the thread of changes."""

    def __init__(self, answered: Callable[[], None], ask: Ask = ask_brokers) -> None:
        """Ask nothing yet.

        Args:
            answered: Called by the thread that asks once it has an answer, or knows that there is none.
            ask: Asks.
        """
        self._answered, self._ask = answered, ask
        self._answer: Answer | None = None
        self._thread: threading.Thread | None = None

    def is_known(self, path: str | None, cluster_id: str | None) -> bool:
        """Whether there is nothing to wait for; else the question is asked, and ``answered`` called at its end.

        Args:
            path: The client properties file; ``None``: no broker is to be asked.
            cluster_id: Cluster id of the log dirs.
        """
        if path is None or self._fresh(path) is not None:
            return True
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, args=(path, cluster_id), name="quorum", daemon=True)
            try:
                self._thread.start()
            except RuntimeError as error:  # No more threads can be started.
                LOG.exception("quorum.fault path=%s", path)
                self._answer = Answer(path, clock.boottime_ms(), problem=fault_of(path, error))
                return True
        return False

    def source(self, path: str | None) -> SourceRequest:
        """Return the broker's own metadata log as a source, up to the high watermark where that is known."""
        found = None if path is None else self._fresh(path)
        if found is None or found.word is None:
            return SourceRequest()
        return SourceRequest(high_watermark=found.word.high_watermark, leader_epoch=found.word.leader_epoch)

    def problem(self, path: str | None) -> tuple[Problem, ...]:
        """Return why the last question to the brokers of a file had no answer."""
        found = self._answer
        return () if found is None or found.path != path or found.problem is None else (found.problem,)

    def _fresh(self, path: str) -> Answer | None:
        found = self._answer
        is_fresh = found is not None and found.path == path and clock.boottime_ms() - found.at_ms <= FRESH_MS
        return found if is_fresh else None

    def _run(self, path: str, cluster_id: str | None) -> None:
        # Whatever happens there is an answer in the end: else every purge would wait for it until a restart.
        try:
            word = self._ask(path, cluster_id)
            self._answer = Answer(path, clock.boottime_ms(), word)
        except LogDirError as error:
            LOG.warning("quorum.not-asked %s", error.problem().line())
            self._answer = Answer(path, clock.boottime_ms(), problem=error.problem())
        except Exception as error:  # Without a free descriptor, or without memory, for example.
            LOG.exception("quorum.fault path=%s", path)
            self._answer = Answer(path, clock.boottime_ms(), problem=fault_of(path, error))
        self._answered()
