"""All disks of a broker as a command that only reads sees them, with what is remembered in their work roots.

Works beside a running broker, and without work roots: what is not remembered only means that less is proven.

Not here: opening them for a change (``broker``).

Spec: design §2 laws 2, 6, §6, §8; attacks A20, A25, A38.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from logdir.decide import staging_limit as brake_rule
from logdir.decide.image.position import highest
from logdir.decide.refusal import not_formatted
from logdir.disk.record import controller, staging_limit
from logdir.disk.root.open_log_dir import Site
from logdir.errors import LogDirError, LogDirSuspectError, NoWorkRootError, Problem
from logdir.formats.own.controller_file import ControllerFile
from logdir.formats.own.staging_limit_file import Count
from logdir.observe.facts import LogDirFacts
from logdir.service.log_dirs.os_errors import told
from logdir.service.log_dirs.ports import BrokerPorts
from logdir.service.log_dirs.quarantine import closed_of


class Host(NamedTuple):
    """A broker's disks, and what is remembered beside them."""

    facts: tuple[LogDirFacts, ...]
    used: ControllerFile | None
    """How far the cluster was followed."""
    record: tuple[Count, ...] | None
    """What the brake counted."""
    problems: tuple[Problem, ...]
    """Why log dirs may not be changed."""
    rootless: tuple[str, ...] = ()
    """Log dirs that were never given a work root."""


def unformatted(facts: Iterable[LogDirFacts]) -> list[Problem]:
    """Return a problem for each log dir that can be read and was never formatted: no broker starts on it."""
    return [problem for one in facts if (problem := not_formatted(one)) is not None]


def look_at_host(ports: BrokerPorts) -> Host:
    """Look at all disks of a broker and at what is remembered in their work roots; reads only.

    Args:
        ports: Of the broker.

    Raises:
        FormatError: a newer release wrote what is remembered.
    """
    facts = {one.log_dir: one for one in ports.look()}
    used: list[ControllerFile | None] = []
    records: list[tuple[Count, ...] | None] = []
    sites: dict[str, Site] = {}
    rootless: list[str] = []
    for log_dir, pending in ports.begin_roots(is_start_block_allowed=True):
        try:
            with told(log_dir):
                root = pending.result()
                last_applied = controller.read_records([root.site])
                record = staging_limit.read_records([root.site])
        except LogDirError as error:
            if isinstance(error, LogDirSuspectError):
                ports.note(error)
            if isinstance(error, NoWorkRootError):
                rootless.append(log_dir)
            # Without a work root nothing is remembered, which only means that less is proven.
            used.append(None)
            records.append(None)
            continue
        sites[log_dir] = root.site
        used += last_applied
        records += record
        # Behind a start block the true node stands elsewhere.
        facts[log_dir] = replace(facts[log_dir], node_id=root.belongs.node_id)
    with told(ports.named.log_dirs[0]):
        closed = ports.on_all(sites, closed_of)
    found = tuple(replace(one, closed=closed.get(log_dir)) for log_dir, one in facts.items())
    problems = (*closed.values(), *ports.notes)
    return Host(found, highest(used), brake_rule.highest(records), problems, tuple(rootless))
