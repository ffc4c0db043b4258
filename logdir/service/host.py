"""All disks of a broker as a command that only reads sees them, with what is remembered in their work roots.

Works beside a running broker, and without work roots: what is not remembered only means that less is proven.

Not here: opening them for a change (``broker``).

Spec: design §2 laws 2, 6, §6, §8; attacks A20, A25, A38.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple

from logdir.decide import brake as brake_rule
from logdir.decide.position import highest
from logdir.decide.refusal import not_formatted
from logdir.disk import brake, controller
from logdir.disk.io import HostDisk
from logdir.errors import LogDirError, NoWorkRootError, Problem
from logdir.formats.brake_file import Count
from logdir.formats.controller_file import ControllerFile
from logdir.observe.facts import LogDirFacts
from logdir.service.broker import look_at
from logdir.service.config import BrokerConfig
from logdir.service.os_errors import told
from logdir.service.quarantine import closed_of
from logdir.service.true_root import open_true_root


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


def look_at_host(named: BrokerConfig) -> Host:
    """Look at all disks of a broker and at what is remembered in their work roots; reads only.

    Raises:
        FormatError: a newer release wrote what is remembered.
    """
    facts = {one.log_dir: one for one in look_at(named)}
    used: list[ControllerFile | None] = []
    records: list[tuple[Count, ...] | None] = []
    sites = []
    rootless: list[str] = []
    disk = HostDisk()
    with ExitStack() as stack:
        for log_dir in named.log_dirs:
            try:
                with told(log_dir):
                    root = stack.enter_context(open_true_root(disk, log_dir))
            except LogDirError as error:
                if isinstance(error, NoWorkRootError):
                    rootless.append(log_dir)
                # Without a work root nothing is remembered, which only means that less is proven.
                used.append(None)
                records.append(None)
                continue
            sites.append(root.site)
            used += controller.read_records([root.site])
            records += brake.read_records([root.site])
            # Behind a bar the true node stands elsewhere.
            facts[log_dir] = replace(facts[log_dir], node_id=root.belongs.node_id)
        with told(named.log_dirs[0]):
            closed = closed_of(sites)
    found = tuple(replace(one, closed=closed.get(log_dir)) for log_dir, one in facts.items())
    return Host(found, highest(used), brake_rule.highest(records), tuple(closed.values()), tuple(rootless))
