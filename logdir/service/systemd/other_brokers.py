"""The other brokers of a host: whether the control sockets of two of them can lie in one directory.

systemd gives the directory of the sockets, with all in it, to the user and the group of the unit that starts. Where two
units have the same, nothing changes; else each start would take the sockets of the others away from their groups, and
give them to another user.

Not here: the texts of the drop-ins (``drop_ins``), their files (``drop_in_files``).

Spec: systemd.exec(5), ``RuntimeDirectory=``; SECURITY.md, who is trusted with what.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from logdir.errors import Problem
from logdir.service.systemd import drop_in_files
from logdir.service.systemd.drop_ins import OURS, RUNTIME, Facts
from logdir.service.systemd.unit_text import word


def own_runtime(name: str) -> str:
    """Return the directory below /run for the socket of one broker alone.

    >>> own_runtime("b1")
    'logdird-b1'
    """
    return f"{RUNTIME}-{name}"


def check_runtime(folder: str, facts: Facts, socket: str) -> tuple[Problem, ...]:
    """Return a problem if another broker of the host, of another user or group, uses the same directory.

    Args:
        folder: Of the units of the host.
        facts: Of the broker whose drop-ins are to be written.
        socket: Its control socket.

    Raises:
        OutputError: a drop-in of another broker cannot be read.
    """
    if facts.runtime != RUNTIME or facts.user is None or facts.group is None:
        return ()
    ours = word(facts.user), word(facts.group)
    for name, theirs in _others(folder, facts.name):
        if theirs != ours:
            own = f"/run/{own_runtime(facts.name)}"
            expected = f"a directory of its own for the socket: logdird@{name} runs as {':'.join(theirs)}"
            fix = f"socket: {own}/{facts.name}.sock in the configuration, and repeat the command"
            return (Problem("config-error", "socket", expected, f"{socket}, as {':'.join(ours)}", fix),)
    return ()


def _others(folder: str, name: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield name, and user and group, of the other brokers of a host that use the directory of all."""
    for path in drop_in_files.found_beside(folder, OURS):
        unit = Path(path).parent.name
        other = unit.removeprefix("logdird@").removesuffix(".service.d")
        if unit != f"logdird@{other}.service.d" or other == name:
            continue
        lines = (drop_in_files.text_at(path) or "").splitlines()
        found = dict(line.split("=", 1) for line in lines if line.startswith(("User=", "Group=", "RuntimeDirectory=")))
        if {"User", "Group"} <= found.keys() and "RuntimeDirectory" not in found:
            yield other, (found["User"], found["Group"])
