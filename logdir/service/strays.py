"""List the strays of a broker: directories that the cluster does not assign to it, and what proof of their removal is
missing.

Only reads, also beside a running broker, and needs no work root. Not here: the definition of a stray
(``decide.strays``), staging strays (``reconcile``).

Spec: design §4, §6; attacks A1, A2, A20, A27, A43.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from logdir.clock import Instant
from logdir.cluster.image import AbsenceMeaning, Certainty, Image, Source
from logdir.decide.image.trust import HostContext
from logdir.decide.reconcile import ReconcileRequest
from logdir.decide.selector import EVERYTHING, parse, select
from logdir.decide.strays import State, Stray, StrayView, unclaimed, view_strays, view_unsaid
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.errors import ConfigError, LogDirOfflineError, MetadataLogUnreadError, Problem, RefusedError
from logdir.evidence import Proof, Removed
from logdir.observe.facts import LogDirFacts
from logdir.service.cluster.ends import read_with_ends
from logdir.service.cluster.followed import plan_followed
from logdir.service.cluster.image_source import Desired, against_blank
from logdir.service.cluster.source import SourceRequest, parse_uri
from logdir.service.log_dirs.host import Host, look_at_host
from logdir.service.log_dirs.ports import BrokerPorts, connected, metadata_path
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.json_form import HIDDEN, KEY
from logdir.service.report.selection import nothing_selected
from logdir.service.report.source_item import SourceItem
from logdir.service.report.table import Column
from logdir.text import age, size

_ORDER: Final = (
    State.WANTED,
    State.PROVEN,
    State.HELD,
    State.REFUSED,
    State.UNPROVEN,
    State.UNKNOWN,
    State.LEAVING,
)
"""The states in the order in which an operator should look at strays."""
_UNREAD: Final = Image(
    source=Source.METADATA_LOG,
    origin="",
    node_id=-1,
    cluster_id=None,
    absence_meaning=AbsenceMeaning.NOTHING,
    listed=frozenset(),
)
"""An image without information about any replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StraysRequest:
    """A request to list strays."""

    broker: BrokerRequest
    source: SourceRequest
    selector: str | None = None
    """The partitions; ``None``: all."""
    protected: tuple[str, ...] = ()
    """Globs of topics that must not be changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StraysResult:
    """The strays of a broker."""

    strays: tuple[Stray, ...] = field(metadata={KEY: "items"})
    """The selected strays."""
    source: SourceItem | None
    """``None``: the cluster metadata could not be read."""
    image: Image | None = field(metadata=HIDDEN)
    """The cluster image that was read; ``None``, as ``source``."""
    problems: tuple[Problem, ...] = field(metadata=HIDDEN)
    """All problems, including those of strays that the cluster assigns to this broker."""
    uncommitted: Problem | None = field(metadata=HIDDEN)
    """Why nothing is proven: no part of the metadata log is known to be committed. No problem of these disks."""
    is_unplaced: bool = field(metadata=HIDDEN)
    """Whether a proof depends on the last applied position, which is not known."""
    is_whole: bool = field(metadata=HIDDEN)
    """Whether every log dir was read."""
    has_work_roots: bool = field(metadata=HIDDEN)
    """Whether every log dir has a work root; without them there is no last applied position."""

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        """``problems``, and ``uncommitted`` if there is one."""
        return self.problems if self.uncommitted is None else (*self.problems, self.uncommitted)

    @property
    def by_urgency(self) -> tuple[Stray, ...]:
        """The strays, those an operator should look at first in front."""
        return tuple(sorted(self.strays, key=lambda one: _ORDER.index(one.state)))

    @property
    def summary(self) -> str:
        """How many strays there are in each state, and their size, or that there are none, for people."""
        if not self.strays:
            what = "nothing is unclaimed" if self.image is not None else "nothing is found"
            return what if self.is_whole else f"{what} on the log dirs that can be read"
        counts = Counter(stray.state for stray in self.strays)
        words = ", ".join(f"{counts[state]} {state.value}" for state in _ORDER if counts[state])
        return f"{len(self.strays)} directories, {size(sum(stray.log_bytes or 0 for stray in self.strays))}: {words}"


def strays(asked: StraysRequest, *, source_read: Callable[[Image], None]) -> StraysResult:
    """Scan every log dir of a broker and read its cluster metadata; only reads.

    Args:
        asked: The request.
        source_read: Called with an image that is refused, right before the error is raised.

    Raises:
        ConfigError: the broker, the source or the selector is invalid.
        RefusedError: the image contains no information about these log dirs.
        FormatError: the source, or a file of a work root, is malformed.
    """
    selector = None if asked.selector is None else parse(asked.selector)
    parse_uri(asked.source.uri)
    found = _view(asked, source_read)
    strays = found.view.strays
    problems = list(found.problems)
    if selector is not None and selector.text != EVERYTHING:
        strays = select(selector, strays)
        if not strays:
            problems.append(nothing_selected(selector.text, "strays", found.view.strays))
    problems += [stray.missing for stray in strays if stray.state is State.WANTED and stray.missing is not None]
    return StraysResult(
        strays=tuple(strays),
        problems=tuple(problems),
        uncommitted=found.view.uncommitted,
        source=None if found.image is None else SourceItem.of(found.uri, found.image),
        image=found.image,
        is_unplaced=found.view.unplaced is not None,
        is_whole=not found.view.unseen,
        has_work_roots=found.has_work_roots,
    )


def proof_of(stray: Stray) -> Proof | None:
    """Return what proves that a stray is not wanted any more; ``None``: nothing does."""
    is_decided = stray.state in (State.PROVEN, State.REFUSED)
    return stray.evidence.proof if is_decided and isinstance(stray.evidence, Removed) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    view: StrayView
    problems: list[Problem]
    uri: str = ""
    image: Image | None = None
    has_work_roots: bool = True


def _view(asked: StraysRequest, source_read: Callable[[Image], None]) -> _Found:
    with connected(asked.broker) as ports:
        found = _view_of(asked, source_read, ports)
        # A log dir may have stopped answering after its replicas were read, for example at its lock.
        return replace(found, problems=ports.with_notes(found.problems))


def _view_of(asked: StraysRequest, source_read: Callable[[Image], None], ports: BrokerPorts) -> _Found:
    host, now = look_at_host(ports), read_instant()
    try:
        running = ports.is_running()
        desired = ports.apart(
            metadata_path(ports.named, parse_uri(asked.source.uri).path),
            read_with_ends,
            asked.source,
            ports.named,
            host.facts,
            host.last_applied,
            now_ms=now.wall_ms,
            is_broker_running=running,
            is_end_needed=True,
        )
    except (MetadataLogUnreadError, LogDirOfflineError) as error:
        request = _request(
            asked, host, now, _UNREAD, HostContext(last_applied=host.last_applied, is_broker_running=False)
        )
        request = replace(request, births=ports.births_of(unclaimed(_UNREAD, host.facts)))
        view = view_unsaid(request, host.facts)
        return _Found(view=view, problems=list(dict.fromkeys((*view.unseen, error.problem()))))
    blank = against_blank(desired.image)
    if blank is not None:
        # Before its first snapshot (an hour) a log is read to its end: informative, but no proof.
        if desired.latest is None or against_blank(desired.latest) is not None:
            raise ConfigError((blank,))
        desired = replace(desired, image=replace(desired.latest, certainty=Certainty.LOCAL))
    host_context = replace(desired.host_context(), has_work_roots=not host.rootless)
    request = _request(asked, host, now, desired.image, host_context)
    try:
        request = replace(request, image=_followed(desired, request, host.facts), beyond=desired.beyond)
    except RefusedError:
        source_read(request.image)
        raise
    request = replace(request, births=ports.births_of(unclaimed(request.image, host.facts)))
    view = view_strays(request, host.facts, desired.latest)
    if view.refused is not None:
        source_read(request.image)
        raise RefusedError.of(view.refused)
    return _Found(
        view=view,
        problems=_problems_of(view, request.image),
        uri=str(desired.uri),
        image=request.image,
        has_work_roots=host_context.has_work_roots,
    )


def _request(
    asked: StraysRequest, host: Host, now: Instant, image: Image, host_context: HostContext
) -> ReconcileRequest:
    return ReconcileRequest(
        image=image, now=now, host_context=host_context, births={}, protected=asked.protected, record=host.record
    )


def _followed(desired: Desired, request: ReconcileRequest, facts: Sequence[LogDirFacts]) -> Image:
    """Return the image that a source would yield if it were applied now.

    Raises:
        RefusedError: it is a request document that would be refused.
    """
    planned = plan_followed(desired, request, facts)
    if planned is None:
        return desired.image
    if planned.problem is not None:
        raise RefusedError.of(planned.problem)
    # A document that was applied before changes nothing any more: use its image.
    return desired.image if planned.image is None else planned.image


def _problems_of(view: StrayView, image: Image) -> list[Problem]:
    found = [*view.unseen, *(refusal.problem for refusal in view.passed_over)]
    if image.ended is not None:
        found.append(image.ended)
    if view.unplaced is not None:
        found.append(view.unplaced)
    if view.over_limit is not None:
        fix = "check the plan of logdirctl reconcile, then add --even-over-limit to it"
        found.append(view.over_limit._replace(fix=fix))
    return found


COLUMNS: Final[tuple[Column[Stray], ...]] = (
    Column("state", "state"),
    Column("topic", lambda one: one.ref.topic or "?"),
    Column("p", "ref.partition", is_number=True),
    Column("id", "ref.topic_id"),
    Column("kind", lambda one: one.kind.value + (", tiered" if one.is_tiered else "")),
    Column("bytes", lambda one: size(one.log_bytes), is_number=True),
    Column("age", lambda one: age(one.age_ms), is_number=True),
    Column("assignment", "assignment"),
    Column("reason", "reason"),
    Column("proof", lambda one: proof_of(one) or "no proof"),
    Column("missing", lambda one: None if one.missing is None else f"{one.missing.expected}; {one.missing.found}"),
    Column("disk", "log_dir"),
    Column("path", "path"),
)
"""The table of strays, for people."""
