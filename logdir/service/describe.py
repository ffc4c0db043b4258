"""Describe partitions of one broker by name, id or glob: their directories in the log dirs, and their state in the
cluster.

Only reads, also beside a running broker. Without a source and without an own metadata log only the log dirs are
described.

Not here: comparing the two (``decide.describe``), the output of stock tools (``report.describe_stock``).

Spec: design §6; KIP-516, "Tools".
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from logdir.cluster.image import Image
from logdir.decide import describe as rule
from logdir.decide.describe import Described, State, choose, missing_problem, unusable_problem
from logdir.decide.image.trust import ANY_AGE_MS, check_image
from logdir.decide.selector import EVERYTHING, Selector, parse
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.errors import ConfigError, LogDirError, Problem, RefusedError
from logdir.service.cluster.image_source import Desired, against_blank, read_desired
from logdir.service.cluster.own_log import own_log
from logdir.service.cluster.source import Scheme, SourceRequest, parse_uri
from logdir.service.cluster.source import asked as asked_for
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.host import Host, look_at_host, unformatted
from logdir.service.log_dirs.ports import BrokerPorts, connected, metadata_path
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.describe_item import DescribedItem
from logdir.service.report.following import Next
from logdir.service.report.json_form import HIDDEN
from logdir.service.report.selection import nothing_selected
from logdir.service.report.source_item import SourceItem
from logdir.text import printable


class Form(Enum):
    """The output forms of a description."""

    LISTING = auto()
    """Our own: one item per directory or missing replica."""
    KAFKA_LOG_DIRS = auto()
    """The line of JSON of ``kafka-log-dirs --describe``."""
    KAFKA_TOPICS = auto()
    """The lines of ``kafka-topics --describe``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeRequest:
    """A request to describe partitions."""

    broker: BrokerRequest
    source: SourceRequest | None = None
    """``None``: the broker's own metadata log, if it has one."""
    selector: str | None = None
    """Which partitions; ``None``: all."""
    disks: tuple[str, ...] | None = None
    """Only these log dirs; ``None``: all."""
    form: Form = Form.LISTING


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeResult:
    """The partitions of a broker, in the requested form."""

    items: tuple[DescribedItem, ...]
    """One per directory or missing replica; empty unless the form is ``Form.LISTING``."""
    source: SourceItem | None
    """``None``: no cluster metadata was read."""
    image: Image | None = field(metadata=HIDDEN)
    """The cluster image that was read; ``None``, as ``source``."""
    lines: tuple[str, ...] = field(metadata=HIDDEN)
    """The output in the format of a stock tool; empty if the form is ``Form.LISTING``."""
    problems: tuple[Problem, ...] = field(metadata=HIDDEN)
    notes: tuple[Problem, ...] = field(metadata=HIDDEN)
    """Remarks that are no errors, for example that the metadata log has no snapshot yet."""
    is_whole: bool = field(metadata=HIDDEN)
    """Whether every log dir was read."""

    @property
    def next(self) -> Next:
        """The next command to type."""
        states = {one.state for one in self.items}
        if states & {State.UNCLAIMED, State.STRAY}:
            return Next.STRAYS
        return Next.STAGED_LS if states & {State.STAGED, State.PURGING, State.INCOMING} else Next.INVENTORY


def describe(asked: DescribeRequest, *, source_read: Callable[[Image], None]) -> DescribeResult:
    """Scan every log dir of a broker and read its cluster metadata; only reads.

    Args:
        asked: The request.
        source_read: Called with an image that is refused, right before the error is raised.

    Raises:
        ConfigError: the broker, a log dir, the source or the selector is invalid.
        LogDirError: the source that the operator named cannot be used.
    """
    selector = None if asked.selector in (None, EVERYTHING) else parse(str(asked.selector))
    source = SourceRequest() if asked.source is None else asked.source
    if parse_uri(source.uri).scheme is Scheme.CLUSTER:
        # A partition that the cluster assigns here, and that no log dir has, would not be shown.
        expected = "a source with every partition: metadata:[DIR], request:FILE or znodes:FILE"
        fix = "logdirctl strays and reconcile take it: the cluster is asked only about the ids on these disks"
        raise ConfigError((asked_for(expected, source.uri, fix),))
    with connected(asked.broker) as ports:
        return _describe(asked, selector, source, ports, source_read)


def _describe(
    asked: DescribeRequest,
    selector: Selector | None,
    source: SourceRequest,
    ports: BrokerPorts,
    source_read: Callable[[Image], None],
) -> DescribeResult:
    disks = _disks_of(asked, ports.named)
    host = look_at_host(ports)
    # A log dir that does not answer fails twice: when its facts are read, and its work root.
    problems = list(dict.fromkeys((*host.problems, *(one.problem for one in host.facts if one.problem is not None))))
    problems += unformatted(host.facts)
    notes: list[Problem] = []
    # kafka-log-dirs asks brokers only, not the cluster.
    desired = None if asked.form is Form.KAFKA_LOG_DIRS else _desired(asked, ports, host, problems, notes, source_read)
    image = None if desired is None else desired.image
    rows: tuple[Described, ...] = ()
    lines: tuple[str, ...] = ()
    if asked.form is Form.LISTING:
        rows = _rows(host, image, selector, disks, problems)
    else:
        lines = _lines(asked, ports, host, desired, selector, disks, problems)
    return DescribeResult(
        items=tuple(map(DescribedItem.of, rows)),
        source=None if image is None else SourceItem.of(source.uri, image),
        image=image,
        lines=lines,
        problems=tuple(ports.with_notes(problems)),  # The form of kafka-log-dirs reads logs at last.
        notes=tuple(notes),
        is_whole=all(one.problem is None for one in host.facts),
    )


def _rows(
    host: Host, image: Image | None, selector: Selector | None, disks: frozenset[str] | None, problems: list[Problem]
) -> tuple[Described, ...]:
    known = rows = rule.describe(host.facts, image)
    if selector is not None:
        rows = choose(selector, rows)
    # The meaning of a selector depends on all disks.
    rows = tuple(row for row in rows if disks is None or row.log_dir in disks)
    if selector is not None and not rows:
        problems.append(nothing_selected(selector.text, "describe", known))
    problems += [missing_problem(row) for row in rows if row.state is State.MISSING]
    problems += [problem for row in rows if (problem := unusable_problem(row)) is not None]
    return rows


def _lines(
    asked: DescribeRequest,
    ports: BrokerPorts,
    host: Host,
    desired: Desired | None,
    selector: Selector | None,
    disks: frozenset[str] | None,
    problems: list[Problem],
) -> tuple[str, ...]:
    from logdir.service.report import describe_stock

    if asked.form is Form.KAFKA_LOG_DIRS:
        found = describe_stock.log_dirs(ports, host.facts, selector, disks)
    else:
        found = describe_stock.topics(asked.broker.server_properties, desired, selector)
    if selector is not None and not found.found:
        problems.append(nothing_selected(selector.text, "describe"))
    return found.lines


def _disks_of(asked: DescribeRequest, named: BrokerConfig) -> frozenset[str] | None:
    """Return the requested log dirs; ``None`` if all are meant.

    Raises:
        ConfigError: a path is no log dir of the broker, or ``--kafka-topics`` was asked for, which shows no log dirs.
    """
    if asked.disks is None:
        return None
    if asked.form is Form.KAFKA_TOPICS:
        raise ConfigError((Problem("config-error", "--disk", "an output form that shows log dirs", "--kafka-topics"),))
    disks = frozenset(map(os.path.abspath, asked.disks))
    foreign = sorted(disks.difference(named.log_dirs))
    if foreign:
        expected = "one of the broker's log dirs"
        raise ConfigError(tuple(Problem("config-error", "--disk", expected, printable(path)) for path in foreign))
    return disks


def _desired(
    asked: DescribeRequest,
    ports: BrokerPorts,
    host: Host,
    problems: list[Problem],
    notes: list[Problem],
    source_read: Callable[[Image], None],
) -> Desired | None:
    """Return the cluster metadata; ``None`` if the broker's own metadata log does not exist or cannot be used.

    A problem of that log is added to ``problems`` or ``notes``, or raised if the operator asked for the metadata.

    Raises:
        LogDirError: the source that the operator named cannot be used.
    """
    is_asked = asked.form is Form.KAFKA_TOPICS or asked.source is not None
    named, path = ports.named, metadata_path(ports.named, "")
    if not is_asked and ports.apart(path, own_log, named, host.facts) is None:
        return None
    source = SourceRequest() if asked.source is None else asked.source
    now_ms = read_instant().wall_ms
    try:
        # Its age and a running broker do not matter: a description changes nothing.
        desired = ports.apart(
            metadata_path(named, parse_uri(source.uri).path),
            read_desired,
            source,
            named,
            host.facts,
            host.last_applied,
            now_ms=now_ms,
            is_broker_running=True,
            is_detail_needed=asked.form is Form.KAFKA_TOPICS,
        )
        blank = against_blank(desired.image)
        if blank is not None:
            if is_asked:
                raise ConfigError((blank,))
            notes.append(blank)  # A young cluster has no snapshot yet: that is no error.
            return None
        host_context = desired.host_context(max_age_ms=ANY_AGE_MS, is_position_confirmed=True)
        rejection = check_image(desired.image, host.facts, host_context, now_ms)
        if rejection is not None:
            source_read(desired.image)
            raise RefusedError.of(rejection.problem)
    except LogDirError as error:
        if is_asked:
            raise
        problems.extend(error.problems if isinstance(error, ConfigError) else [error.problem()])
        return None
    if desired.image.ended is not None:
        problems.append(desired.image.ended)
    return desired
