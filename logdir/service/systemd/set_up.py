"""The use case *init --systemd*: write the drop-ins that the units of logdird and of its broker need on this host.

It reads the configuration, the mount table, and of each log dir where it lies and whose it is, by a worker process. It
changes no log dir. A file that somebody else wrote, or has changed since, is left alone, and then no other is written.

Not here: the texts (``drop_ins``), what may be written and why (``writable``), the files (``drop_in_files``).

Spec: design §5 "A use case", §6; attacks A6, A22.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from logdir.errors import ConfigError, LogDirOfflineError, Problem
from logdir.observe.log_dir_place import LogDirPlace, place_of
from logdir.observe.mounts import read_mounts
from logdir.observe.outside import require_outside
from logdir.service.log_dirs.owner import identity_of
from logdir.service.log_dirs.request import BrokerRequest, skipped_of
from logdir.service.report.exit_status import Exit
from logdir.service.report.json_form import HIDDEN
from logdir.service.report.result import ItemState
from logdir.service.report.table import Column
from logdir.service.systemd import drop_in_files
from logdir.service.systemd.drop_ins import GATE, RUNTIME, UNITS, Facts, drop_ins, may_be_there, shown
from logdir.service.systemd.other_brokers import check_runtime, own_runtime
from logdir.service.systemd.unit_text import is_writable, sealed
from logdir.service.systemd.writable import HOMES, check_paths, is_below, writable_paths
from logdir.text import quoted
from logdir.worker.remote import gather
from logdir.worker.start import close_all, start

CHANGED: Final = "drop-in-changed"
"""Slug of the problem that a file was not written by us, or was changed since."""
_UNIT: Final = re.compile(r"[A-Za-z0-9:_.\\@-]{1,247}\.service")
_STATE_HOME: Final = "/var/lib/logdird"
"""Made by the unit, which may write there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemdRequest:
    """A request to write the drop-ins of one broker."""

    broker: BrokerRequest
    name: str
    """Of the configuration of logdird."""
    unit: str | None
    """The unit of the broker, with or without ``.service``; ``None``: there is none."""
    programs: str
    """Absolute path of the directory of ``logdirctl``."""
    root: str
    """The root of the host for which they are written; ``/`` for this one."""
    state_dir: str
    socket: str
    textfile: str | None = None
    """As ``metrics.textfile``."""
    status_listen: tuple[str, int] | None = None
    metrics_listen: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIn:
    """One drop-in, as planned or as it is now."""

    path: str
    state: ItemState
    detail: str
    content: str | None
    """What stands in it; ``None``: it is removed."""
    problem: Problem | None = None
    """Why it is left alone."""
    is_changed: bool = field(default=False, metadata=HIDDEN)
    """Whether it is to be written or removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemdResult:
    """The result of ``init --systemd``: every drop-in, as planned or as it is now."""

    applied: bool
    unit: str | None
    """The unit of the broker; ``None``: it is not named, and there is no start gate."""
    items: tuple[DropIn, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why files are left alone."""
        return tuple(one.problem for one in self.items if one.problem is not None)

    @property
    def exit(self) -> Exit:
        """The exit status: refused, with nothing written, while a file is left alone."""
        return Exit.REFUSED if self.problems else Exit.DONE


COLUMNS: Final[tuple[Column[DropIn], ...]] = (
    Column("drop-in", "path"),
    Column("state", "state"),
    Column("detail", "detail"),
)
"""The table of drop-ins, for people."""


def plan(asked: SystemdRequest) -> SystemdResult:
    """Look at the host and return every drop-in with its text; changes nothing.

    Raises:
        ConfigError: the configuration is invalid, the units cannot use a path of it, or logdird of another broker would
            take the socket away.
        LogDirOfflineError: a log dir cannot be read: where its disk is mounted is not known.
        RefusedError: the log dirs have different owners, or the files would lie in a log dir.
    """
    root = os.path.abspath(asked.root)
    require_outside(os.path.join(root, UNITS))
    facts = _facts(asked)
    if problems := check_runtime(os.path.join(root, UNITS), facts, asked.socket):
        raise ConfigError(problems)
    wanted = {os.path.join(root, path): sealed(text) for path, text in drop_ins(facts).items()}
    items = [_wanted(path, text) for path, text in wanted.items()]
    beside = drop_in_files.found_beside(os.path.join(root, UNITS), GATE.format(name=asked.name))
    for path in (*(os.path.join(root, one) for one in may_be_there(asked.name)), *beside):
        if path not in wanted and (text := drop_in_files.text_at(path)) is not None:
            items.append(_unwanted(path, text))
    return SystemdResult(applied=False, unit=facts.unit, items=tuple(items))


def apply(planned: SystemdResult) -> SystemdResult:
    """Write and remove the planned files; none while one of them is to be left alone.

    Raises:
        OutputError: a file cannot be written; those before it are written.
    """
    if planned.problems:
        undone = (_ended(one, ItemState.UNDONE) if one.is_changed else one for one in planned.items)
        return SystemdResult(applied=True, unit=planned.unit, items=tuple(undone))
    for one in planned.items:
        if one.is_changed and one.content is None:
            drop_in_files.remove(one.path)
        elif one.is_changed and one.content is not None:
            drop_in_files.write(one.path, one.content)
    done = tuple(_ended(one, ItemState.DONE) for one in planned.items)
    return SystemdResult(applied=True, unit=planned.unit, items=done)


def texts(found: SystemdResult) -> Iterator[str]:
    """Yield the lines of every file that is written or was, for people, each file below its path."""
    return shown({one.path: one.content or "" for one in found.items if one.is_changed})


def _ended(one: DropIn, state: ItemState) -> DropIn:
    return DropIn(path=one.path, state=state, detail=one.detail, content=one.content, is_changed=one.is_changed)


def _wanted(path: str, text: str) -> DropIn:
    found = drop_in_files.text_at(path)
    if found == text:
        return DropIn(path=path, state=ItemState.DONE, detail="is there", content=text)
    if not drop_in_files.is_ours(found):
        return _left_alone(path, text)
    detail = "is new" if found is None else "is written again"
    return DropIn(path=path, state=ItemState.PLANNED, detail=detail, content=text, is_changed=True)


def _unwanted(path: str, found: str) -> DropIn:
    if not drop_in_files.is_ours(found):
        return _left_alone(path, None)
    detail = "is removed: the configuration asks for it no more"
    return DropIn(path=path, state=ItemState.PLANNED, detail=detail, content=None, is_changed=True)


def _left_alone(path: str, text: str | None) -> DropIn:
    fix = (
        f"move what is yours into a file of another name in the same directory, then rm {quoted(path)}, and repeat the "
        "command"
    )
    problem = Problem(CHANGED, path, "a file that this command wrote and nobody has changed", "another one", fix)
    return DropIn(path=path, state=ItemState.REFUSED, detail="", content=text, problem=problem)


def _facts(asked: SystemdRequest) -> Facts:
    places = _looked(asked.broker)
    used = _used(asked, places)
    unit = _unit_of(asked.unit)
    if problems := (*_unwritable(used), *check_paths(used)):
        raise ConfigError(problems)
    owner = identity_of({log_dir: (place.uid, place.gid) for log_dir, place in places.items()})
    gids = list(dict.fromkeys(place.gid for place in places.values()))
    return Facts(
        name=asked.name,
        unit=unit,
        programs=asked.programs,
        user=None if owner is None else _user(owner.uid),
        group=_group(gids[0]) if gids else None,
        groups=tuple(map(_group, gids[1:])),
        log_dirs=tuple(place.real for place in places.values()),
        writable=tuple(dict.fromkeys((*writable_paths(places, read_mounts()), *_elsewhere(asked)))),
        needed=(asked.state_dir, *(path for path in (asked.broker.server_properties,) if path is not None)),
        reads_homes=any(is_below(path, HOMES) for path in used.values()),
        has_client=asked.broker.client_properties is not None,
        status_listen=asked.status_listen,
        metrics_listen=asked.metrics_listen,
        runtime=_runtime(asked),
    )


def _runtime(asked: SystemdRequest) -> str:
    """Return the directory below /run that systemd makes for the socket; empty: none."""
    folder = os.path.dirname(asked.socket)
    return next((one for one in (RUNTIME, own_runtime(asked.name)) if folder == f"/run/{one}"), "")


def _elsewhere(asked: SystemdRequest) -> Iterator[str]:
    """Yield the directories of our own that lie where the unit may not write by itself."""
    if asked.state_dir != f"{_STATE_HOME}/{asked.name}":
        yield asked.state_dir
    if not _runtime(asked):
        yield os.path.dirname(asked.socket)
    if asked.textfile is not None:
        yield os.path.dirname(asked.textfile)


def _looked(request: BrokerRequest) -> dict[str, LogDirPlace]:
    """Return the place of each log dir that is not skipped, in their order. Raises as ``plan``."""
    named = request.config()
    skipped = skipped_of(request, named)
    ports = start([log_dir for log_dir in named.log_dirs if log_dir not in skipped], request.disk_timeout_ms)
    found: dict[str, LogDirPlace] = {}
    try:
        begun = {port.log_dir: port.begin(place_of, port.log_dir) for port in ports}
        gather(begun.values())
        for log_dir, pending in begun.items():
            place = pending.result()
            if place is None:
                raise LogDirOfflineError(
                    log_dir,
                    expected="a log dir, whose mount the units are to name",
                    found="none that can be read",
                    fix=f"mount its disk, and repeat the command; or add --skip-log-dir {quoted(log_dir)}",
                )
            found[log_dir] = place
    finally:
        close_all(ports)
    return found


def _used(asked: SystemdRequest, places: Mapping[str, LogDirPlace]) -> dict[str, str]:
    """Return every path that the units use, without links, by what it is."""
    files = {
        "server.properties": asked.broker.server_properties,
        "client.properties": asked.broker.client_properties,
        "state.dir": asked.state_dir,
        "socket": asked.socket,
        "metrics.textfile": asked.textfile,
        "logdirctl": asked.programs,
    }
    known = {key: os.path.realpath(path) for key, path in files.items() if path is not None}
    return {**known, **{log_dir: place.real for log_dir, place in places.items()}}


def _unwritable(paths: Mapping[str, str]) -> tuple[Problem, ...]:
    return tuple(
        Problem("config-error", what, "a path of printable characters, as a unit can name it", path, "rename it")
        for what, path in paths.items()
        if not is_writable(path)
    )


def _unit_of(typed: str | None) -> str | None:
    """Return the full name of a unit. Raises ``ConfigError``: it is none."""
    if typed is None:
        return None
    unit = f"{typed}.service" if "." not in typed else typed
    if _UNIT.fullmatch(unit) is None:
        fix = "systemctl list-units --type=service lists them"
        raise ConfigError((Problem("config-error", "server.unit", "the name of a service unit", typed, fix),))
    return unit


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
