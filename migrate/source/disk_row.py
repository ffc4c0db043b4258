"""The disks of one broker, from its sources: usable ones, and unread ones with their paths if known.

Plain Python over the first line of every source.

Not here: conflicts between brokers and disks (``plan.census``), reading the sources (``data_source``).

Spec: design §7.2.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from migrate.source.fleet import BrokerEntry, Fleet
from migrate.source.fleet_values import is_uri

USABLE_STATUS = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRow:
    """One disk: line 1 of the inventory of one source, from the frame's row of kind ``disk``."""

    broker: int
    """Ordinal of the broker entry over the whole fleet file."""
    source: int
    """Ordinal of the listed path or file over the whole fleet."""
    sha256: str | None
    """The digest in the inventory's last line; ``None`` if the inventory is not whole."""
    status: str | None
    cluster_id: str | None = None
    node_id: int | None = None
    rack: str | None = None
    log_dir: str | None = None
    log_dirs: tuple[str, ...] | None = None
    directory_id: str | None = None
    problems: tuple[str, ...] = ()
    device: str | None = None
    fs_type: str | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    layout: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the inventory was read from its first line to a matching last one."""
        return self.sha256 is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadDisk:
    """A disk without a usable inventory."""

    log_dir: str | None
    """Its path in the broker's entry or in an inventory; ``None`` if neither contains it."""
    why: str
    """Why it is unread, with the listed inventories that are at fault."""


def source_names(fleet: Fleet) -> dict[int, str]:
    """Return the display name of each source: its path, for an inventory file relative to the common folder.

    Args:
        fleet: The fleet file, paths absolute.

    Returns:
        Names by ordinal of the source; the place of the fleet on this machine does not change an inventory's name.
    """
    files = [source for source in fleet.sources() if not source.is_walked and not is_uri(source.path)]
    shared = os.path.commonpath([os.path.dirname(source.path) for source in files]) if files else ""
    names = {source.number: source.path for source in fleet.sources()}
    return names | {source.number: os.path.relpath(source.path, shared) for source in files}


def usable_disks(disks: Sequence[DiskRow]) -> tuple[DiskRow, ...]:
    """Return the usable inventories among all sources of one broker, by (``log_dir``, ``source``).

    Spec: design §7.2: whole, readable, status ``ok``, and the only one of its broker with that ``log_dir``.
    """
    whole = [disk for disk in disks if disk.is_whole]
    named = Counter(disk.log_dir for disk in whole)
    usable = [disk for disk in whole if disk.status == USABLE_STATUS and disk.log_dir and named[disk.log_dir] == 1]
    return tuple(sorted(usable, key=lambda disk: (disk.log_dir or "", disk.source)))


def unread_disks(entry: BrokerEntry, disks: Sequence[DiskRow], names: Mapping[int, str]) -> tuple[UnreadDisk, ...]:
    """Return the unread disks of one broker.

    Args:
        entry: The broker of the fleet file.
        disks: All its sources, usable or not.
        names: Display names of sources by ordinal.

    Returns:
        As many as the larger of two counts: listed sources that are not usable (whole ones of one ``log_dir`` counted
        once), and known log dirs without a usable inventory. Named ones first, by name.

    Spec: design §7.2.
    """
    usable = usable_disks(disks)
    read = {disk.log_dir for disk in usable}
    sources = {disk.source for disk in usable}
    whole = [disk for disk in disks if disk.is_whole]
    torn = sorted((disk for disk in disks if not disk.is_whole), key=lambda disk: _name(disk, names))
    lost = len(torn) + len({disk.log_dir for disk in whole if disk.source not in sources})
    # `log_dir` and `log_dirs` of every whole inventory count, even if it is not usable.
    named = set(entry.log_dirs) | {disk.log_dir for disk in whole if disk.log_dir}
    named.update(path for disk in whole for path in disk.log_dirs or ())
    missing = sorted(named - read)
    # A walked log dir is its own source; the disk of an incomplete inventory is not known.
    faults = [f"{_name(disk, names)}: {_problem(disk)}" for disk in torn if _name(disk, names) not in missing]
    extra = max(lost, len(missing)) - len(missing)
    known = [UnreadDisk(log_dir=path, why=_why(path, whole, names, faults[extra:])) for path in missing]
    spare = [*faults[:extra], *["no inventory names it"] * (extra - len(faults))]
    return (*known, *(UnreadDisk(log_dir=None, why=fault) for fault in spare))


def _why(path: str, whole: Sequence[DiskRow], names: Mapping[int, str], faults: Sequence[str]) -> str:
    own = [disk for disk in whole if disk.log_dir == path]
    if len(own) > 1:
        return f"{len(own)} inventories of it: {', '.join(sorted(_name(disk, names) for disk in own))}"
    if own:
        return _problem(own[0])
    return "; ".join(["no usable inventory of it", *faults])


def _problem(disk: DiskRow) -> str:
    return ", ".join(disk.problems) or str(disk.status)


def _name(disk: DiskRow, names: Mapping[int, str]) -> str:
    return names.get(disk.source, f"source {disk.source}")
