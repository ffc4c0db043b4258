"""What the sandbox of the units has to let logdird write: one path above each log dir and its work root.

The path is the mount point of the disk, wherever there is one of its own. systemd makes a mount of each path that is
none, and of a mount that is there it only changes the flags. A mount made on a directory of a disk would keep the disk
mounted for the service after it was unmounted on the host; and two of them on one disk are two mounts, between which
nothing can be renamed (``EXDEV``).

Not here: reading the mounts of this host (``observe.mounts``), the text of a drop-in (``drop_ins``).

Spec: systemd.exec(5), ``ReadWritePaths=``; attacks A6; reliability §5.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from logdir.errors import ConfigError, Problem
from logdir.observe.log_dir_place import LogDirPlace
from logdir.observe.mounts import Mount

_SYSTEM: Final = ("/", "/home", "/opt", "/root", "/srv", "/usr", "/var", "/var/lib")
"""File systems of the system: no disk that is replaced, and more than log dirs lies there."""
_EMPTIED: Final = ("/tmp", "/var/tmp")  # noqa: S108 - named to refuse them
"""Hidden from the units by ``PrivateTmp=``."""
HOMES: Final = ("/home", "/root", "/run/user")
"""Hidden from the units by ``ProtectHome=``."""


def is_below(path: str, tops: Iterable[str]) -> bool:
    """Return whether a path is, or lies below, one of some directories.

    >>> is_below("/home/kafka", HOMES), is_below("/homes/kafka", HOMES)
    (True, False)
    """
    return any(f"{path}/".startswith(f"{top.rstrip('/')}/") for top in tops)


def mount_point_of(path: str, mounts: Iterable[Mount]) -> str:
    """Return the mount point of the file system at an absolute path without links; ``/`` if none is known."""
    points = (os.fsdecode(mount.point) for mount in mounts)
    return max((point for point in points if is_below(path, (point,))), key=len, default="/")


def writable_path(log_dir: str, place: LogDirPlace, mounts: Iterable[Mount]) -> str:
    """Return the one path above a log dir and its work root that the units may write.

    Args:
        log_dir: As configured, for the message.
        place: Where it lies.
        mounts: Of this host.

    Raises:
        ConfigError: log dir and work root lie side by side at the top of the system.
    """
    point = mount_point_of(place.real, mounts)
    if point not in _SYSTEM or point == place.real:
        return point
    if place.holds_work_root:
        return place.real
    above = os.path.dirname(place.real)
    if above == "/":
        raise ConfigError(
            (
                Problem(
                    "config-error",
                    log_dir,
                    "a log dir in a directory of its own, so that its work root beside it is not in /",
                    place.real,
                    "logdirctl init --work-root in-place; or move the log dir one level down",
                ),
            )
        )
    return above


def writable_paths(places: Mapping[str, LogDirPlace], mounts: Iterable[Mount]) -> tuple[str, ...]:
    """Return the paths above all log dirs and work roots, each once, in the order of the log dirs.

    Raises:
        ConfigError: as ``writable_path``; all problems at once.
    """
    known = tuple(mounts)
    found: dict[str, None] = {}
    problems: list[Problem] = []
    for log_dir, place in places.items():
        try:
            found[writable_path(log_dir, place, known)] = None
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(tuple(problems))
    return tuple(found)


def check_paths(paths: Mapping[str, str]) -> tuple[Problem, ...]:
    """Return a problem for each path that the units cannot use.

    Args:
        paths: Paths without links, by what they are, for the message.
    """
    return tuple(
        Problem("config-error", what, "a path outside /tmp and /var/tmp, which a service has of its own", path, _MOVE)
        for what, path in paths.items()
        if is_below(path, _EMPTIED)
    )


_MOVE: Final = "move it: what lies there does not outlive a restart of the host anyway"
