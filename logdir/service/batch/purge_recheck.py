"""Recheck before a purge: read the current cluster metadata about the staged replicas.

The source is the broker's own metadata log if it has one, or the source that ``--from`` names. It is read when the
command begins. A purge more than some seconds later reads it again, together with the log dirs.

Not here: the decision (``decide.staged.purge_recheck``), reading a source (``service.cluster.image_source``).

Spec: design §2 law 1, §4; attacks A2, A20, A28, A43.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from logdir.clock import boottime_ms
from logdir.decide.image.position import highest
from logdir.decide.image.still_assigned import ClusterState
from logdir.decide.image.trust import ANY_AGE_MS, check_image
from logdir.decide.refusal import at
from logdir.decide.staged.purge import Purge
from logdir.decide.staged.purge_recheck import PurgeRecheck, against_purge
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.record import controller
from logdir.errors import LogDirError, LogDirSuspectError, Problem, RefusedError
from logdir.formats.own.controller_file import ControllerFile
from logdir.observe.facts import LogDirFacts, ReplicaIndex
from logdir.paths import DELETING, METADATA_DIR
from logdir.refusal_slug import Why
from logdir.service.cluster.cluster_state import own_log_there, read_source, require_source, usable, with_own_logs
from logdir.service.cluster.own_log import own_log
from logdir.service.cluster.source import OWN_LOG, SourceRequest, parse_uri
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.ports import BrokerPorts, metadata_path
from logdir.worker.look import NOTHING
from logdir.worker_call import worker_call

if TYPE_CHECKING:
    from logdir.service.log_dirs.open_broker import OpenBroker

_FRESH_MS = 10 * 1000
"""How long a reading counts as current: reading a large log takes seconds."""


class Looked(NamedTuple):
    """The cluster metadata that was read before a purge; ``has_source``: whether there is a source to read at all."""

    look: PurgeRecheck
    problem: Problem | None = None
    """Why there is no image although one is expected."""
    has_source: bool = True
    cluster: ClusterState = ClusterState()
    """The same metadata, for the question whether a replica is still assigned here."""


class PurgeOverrides(NamedTuple):
    """The operator's overrides (``--even-if-…``) for reasons that keep a staged replica from being purged."""

    is_even_if_assigned: bool = False
    """``--even-if-assigned``: purge what is still assigned here, if another broker has it in the ISR."""
    is_even_if_last: bool = False
    """``--even-if-last``: purge what was staged as the only in-sync replica, or with nothing known."""
    is_even_if_early: bool = False
    """``--even-if-early``: purge what an operator staged, before its deadline."""
    is_latest_alone: bool = False
    """Whether of several images the one that reaches furthest alone may keep a replica; no option of a command, but of
    the daemon on a nearly full disk.
    """


NO_OVERRIDES: Final = PurgeOverrides()


class Rechecking:
    """The cluster metadata and facts with which purges are checked; read again when they are some seconds old."""

    def __init__(
        self, source: SourceRequest, overrides: PurgeOverrides, broker: OpenBroker, facts: Sequence[LogDirFacts]
    ) -> None:
        """Read the source for the first time.

        Args:
            source: The source.
            overrides: The operator's overrides.
            broker: Open.
            facts: Facts of every configured log dir, from a new scan.

        Raises:
            ConfigError: the source is invalid, or is a request document.
        """
        self._source, self._overrides, self._broker = source, overrides, broker
        self.facts: tuple[LogDirFacts, ...] = tuple(facts)
        self._read()

    def against(self, action: Purge) -> LogDirError | None:
        """Return why a replica may not be purged although it was planned; ``None`` if it may.

        Args:
            action: The purge of a replica that is not claimed yet; claimed ones are always finished.
        """
        if action.marker is None:
            return None
        if self._has_source and boottime_ms() - self._at_ms > _FRESH_MS:
            self.facts = self._broker.look(NOTHING)
            self._read()
        item = self._items.get((action.log_dir, action.name))
        if item is None:
            place = self._broker.path_of(action.log_dir, f"{DELETING}/{action.name}")
            return RefusedError(
                place,
                why=Why.CHANGED,
                expected="the staged replica of the plan",
                found="none in a new scan of the log dirs",
                fix="see what is staged now: logdirctl staged ls",
            )
        refusal = against_purge(self.look, item, self._known)
        return None if refusal is None else RefusedError.of(at(item.place, refusal).problem)

    def _read(self) -> None:
        self._known = ReplicaIndex(self.facts)
        self._items = {(one.log_dir, item.name): item for one in self.facts for item in one.staged}
        last_applied = highest(self._broker.on_all(controller.read_records))
        looked = recheck(self._source, self._broker.ports, self.facts, last_applied, overrides=self._overrides)
        self.look, self.problem, self._has_source = looked.look, looked.problem, looked.has_source
        self._at_ms = boottime_ms()


def recheck(
    source: SourceRequest,
    ports: BrokerPorts,
    facts: tuple[LogDirFacts, ...],
    last_applied: ControllerFile | None,
    *,
    overrides: PurgeOverrides = NO_OVERRIDES,
    is_past_needed: bool = False,
) -> Looked:
    """Call ``look_again`` in a process of its own, so that a hung disk with the metadata log does not block the
    command.
    """
    running = ports.running()
    try:
        return ports.apart(
            metadata_path(ports.named, parse_uri(source.uri).path),
            look_again,
            source,
            ports.named,
            facts,
            last_applied,
            is_broker_running=running,
            overrides=overrides,
            is_past_needed=is_past_needed,
        )
    except LogDirSuspectError as error:
        if parse_uri(source.uri) != OWN_LOG:
            raise
        problem = error.problem()
        return Looked(_blank(last_applied, overrides, problem), problem, cluster=ClusterState(blind=problem))


def _blank(
    last_applied: ControllerFile | None, overrides: PurgeOverrides, blind: Problem | None = None
) -> PurgeRecheck:
    return PurgeRecheck(
        image=None,
        blind=blind,
        last_applied=last_applied,
        is_even_if_assigned=overrides.is_even_if_assigned,
        is_even_if_last=overrides.is_even_if_last,
        is_latest_alone=overrides.is_latest_alone,
        # If an expected log is missing, only replicas that the operator names are purged.
        is_named=overrides.is_even_if_last or overrides.is_even_if_early,
    )


@worker_call
def look_again(
    source: SourceRequest,
    named: BrokerConfig,
    facts: tuple[LogDirFacts, ...],
    last_applied: ControllerFile | None,
    *,
    is_broker_running: bool | Problem,
    overrides: PurgeOverrides = NO_OVERRIDES,
    is_past_needed: bool = False,
) -> Looked:
    """Read the current cluster metadata about the staged replicas.

    Args:
        source: The source.
        named: The broker.
        facts: Facts of every configured log dir.
        last_applied: The last applied position, from ``decide.image.position.highest``.
        is_broker_running: Whether the broker runs, or why that is unknown, from ``BrokerPorts.running``.
        overrides: The operator's overrides.
        is_past_needed: As for ``read_desired``.

    Raises:
        ConfigError: the source is invalid, or is a request document.
        LogDirError: a source that ``--from`` names cannot be read.
    """
    require_source(source)
    blank = _blank(last_applied, overrides)

    def blind(problem: Problem, cluster: ClusterState | None = None) -> Looked:
        # The plan warns of named replicas that are purged all the same.
        warning = None if blank.is_named else problem
        cluster = cluster or with_own_logs(
            ClusterState(blind=problem), source, named, facts, last_applied, is_broker_running
        )
        return Looked(replace(blank, blind=problem), warning, cluster=cluster)

    if parse_uri(source.uri) == OWN_LOG and not own_log_there(named, facts):
        if _is_zookeeper(named, facts, last_applied):
            left_behind = with_own_logs(ClusterState(), source, named, facts, last_applied, is_broker_running)
            return Looked(blank, has_source=False, cluster=left_behind)
        expected = "the broker's own metadata log, to check that staged replicas are not assigned again"
        fix = "mount the disk with that log, or name another source with --from"
        return blind(
            Problem(Why.METADATA_LOG_UNREAD.value, own_log(named, facts) or METADATA_DIR, expected, "no such log", fix)
        )
    now_ms = max(0, read_instant().wall_ms)
    desired = read_source(
        source,
        named,
        facts,
        last_applied,
        now_ms=now_ms,
        is_broker_running=is_broker_running,
        is_past_needed=is_past_needed,
    )
    if isinstance(desired, Problem):
        return blind(desired)
    from logdir.service.cluster.image_source import against_blank

    cluster = with_own_logs(usable(desired, facts, now_ms), source, named, facts, last_applied, is_broker_running)
    ends = (cluster.latest, *(one.latest for one in cluster.beside))
    blank = replace(blank, latest=tuple(image for image in ends if image is not None))
    blank_log = against_blank(desired.image)
    if blank_log is not None:
        return blind(blank_log, cluster)
    rejection = check_image(desired.image, facts, desired.host_context(), now_ms)
    if rejection is None:
        return Looked(replace(blank, image=desired.image), cluster=cluster)
    if not rejection.holds_purges:
        # Beside a running broker the newest snapshot may be an hour old.
        again = check_image(desired.image, facts, desired.host_context(max_age_ms=ANY_AGE_MS), now_ms)
        if again is None:
            return Looked(replace(blank, aged=desired.image), cluster=cluster)
        rejection = again
    if rejection.holds_purges:
        return Looked(replace(blank, held=rejection.problem), rejection.problem, cluster=cluster)
    return blind(rejection.problem, cluster)


def _is_zookeeper(named: BrokerConfig, facts: Sequence[LogDirFacts], last_applied: ControllerFile | None) -> bool:
    """Whether a broker without a metadata log never had one (ZooKeeper mode)."""
    if last_applied is not None and last_applied.metadata is not None:
        return False
    if named.is_kraft is not None:
        return not named.is_kraft
    # A missing disk may hold one.
    return all(one.problem is None for one in facts)
