"""Read-only view of all disks of a broker, with the records in their work roots.

Works beside a running broker and without work roots: a missing record only means that less is proven.

Not here: opening them for a change (``opening``).

Spec: design §2 laws 2, 6, §6, §8; attacks A20, A25, A38.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from logdir.decide import staging_limit as limit_rule
from logdir.decide.image.position import highest
from logdir.decide.refusal import not_formatted
from logdir.disk.record import controller, staging_limit
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, LogDirSuspectError, NoWorkRootError, Problem
from logdir.formats.own.controller_file import ControllerFile
from logdir.formats.own.staging_limit_file import Count
from logdir.observe.facts import LogDirFacts
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.log_dirs.ports import BrokerPorts
from logdir.service.log_dirs.quarantine import quarantine_of


class Host(NamedTuple):
    """The disks of a broker, and the records in its work roots."""

    facts: tuple[LogDirFacts, ...]
    last_applied: ControllerFile | None
    """The last applied position of the cluster metadata."""
    record: tuple[Count, ...] | None
    """The record of the staging limit."""
    problems: tuple[Problem, ...]
    """Why log dirs may not be changed, or did not answer."""
    rootless: tuple[str, ...] = ()
    """Log dirs that never had a work root."""


def unformatted(facts: Iterable[LogDirFacts]) -> list[Problem]:
    """Return a problem for each readable log dir that is not formatted: no broker starts on it."""
    return [problem for one in facts if (problem := not_formatted(one)) is not None]


def look_at_host(ports: BrokerPorts) -> Host:
    """Scan all disks of a broker and read the records in their work roots; changes nothing.

    Args:
        ports: Of the broker.

    Raises:
        FormatError: a newer release wrote a record.
    """
    facts = {one.log_dir: one for one in ports.look()}
    last_applied: list[ControllerFile | None] = []
    records: list[tuple[Count, ...] | None] = []
    open_dirs: dict[str, OpenLogDir] = {}
    rootless: list[str] = []
    for log_dir, pending in ports.begin_roots(is_start_block_allowed=True):
        try:
            with map_os_errors(log_dir):
                root = pending.result()
                found = controller.read_records([root.open_dir])
                record = staging_limit.read_records([root.open_dir])
        except LogDirError as error:
            if isinstance(error, LogDirSuspectError):
                ports.note(error)
            if isinstance(error, NoWorkRootError):
                rootless.append(log_dir)
            # Without a work root there is no record, which only means that less is proven.
            last_applied.append(None)
            records.append(None)
            continue
        open_dirs[log_dir] = root.open_dir
        last_applied += found
        records += record
        # Behind a start block the original node id is in start-block.json.
        facts[log_dir] = replace(facts[log_dir], node_id=root.belongs.node_id)
    with map_os_errors(ports.named.log_dirs[0]):
        quarantined = ports.on_all(open_dirs, quarantine_of)
    every = tuple(replace(one, quarantined=quarantined.get(log_dir)) for log_dir, one in facts.items())
    problems = (*quarantined.values(), *ports.notes)
    return Host(every, highest(last_applied), limit_rule.highest(records), problems, tuple(rootless))
