"""The texts of the drop-ins: which settings a host adds to the units of logdird, and what the broker's unit gets.

Pure: facts of a host in, texts by the path of their files out.

Not here: the facts (``set_up``), how a file is written (``drop_in_files``), the units themselves (``systemd/``).

Spec: systemd.unit(5), systemd.exec(5), systemd.service(5); design §2 laws 5, 6; attacks A6, A22.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from logdir.paths import SKIP_GATE
from logdir.service.systemd.unit_text import argument, word

UNITS: Final = "etc/systemd/system"
"""Where the operator's units lie, below the root of a host."""
GATE: Final = "50-logdird-{name}.conf"
"""The drop-in of the broker's unit: named after the configuration of logdird, and found by that in any unit."""
OURS: Final = "50-logdirctl.conf"
RUNTIME: Final = "logdird"
"""The directory below /run of the unit itself: whenever it starts, systemd gives it, with all in it, to its user."""
_CLIENT: Final = "60-client.conf"
_GATE_S: Final = 600
"""A handover ends within half a minute, also beside a log dir that hangs, unless ``--at-most`` gives it longer. The
rest is for the broker itself: with ``Type=notify`` its start counts, too.
"""
_GATED: Final = (
    f'case "$${SKIP_GATE}" in ""|0|no|false) exec "$$@";; *) echo "logdird: gate-skipped: {SKIP_GATE} is set";; esac'
)
"""A shell, so that the way round works beside a broken installation, too; ``$$`` is a dollar sign for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the drop-ins of one broker depend on."""

    name: str
    """Of the configuration of logdird: ``NAME`` in ``/etc/logdird/NAME.yaml``."""
    unit: str | None
    """The unit of the broker; ``None``: no unit starts it, and nothing is a start gate."""
    programs: str
    """Absolute path of the directory of ``logdirctl``."""
    user: str | None
    """Whose the log dirs are: a name, or a number that has none; ``None``: not known."""
    group: str | None
    """As ``user``."""
    groups: tuple[str, ...] = ()
    """Other groups of log dirs."""
    log_dirs: tuple[str, ...]
    """Their paths without links."""
    writable: tuple[str, ...]
    """What may be written: the paths above log dirs and work roots, and what lies elsewhere than usual."""
    needed: tuple[str, ...]
    """What logdird cannot do without, on whichever file system it lies."""
    reads_homes: bool
    """Whether something lies where home directories lie."""
    has_client: bool
    """Whether the cluster is asked, over TCP."""
    status_listen: tuple[str, int] | None = None
    metrics_listen: tuple[str, int] | None = None
    runtime: str = RUNTIME
    """The directory below /run that systemd makes for the control socket; empty: none, it lies elsewhere."""


def drop_ins(facts: Facts) -> dict[str, str]:
    """Return the text of every drop-in, by its path below the root of the host, in the order in which units start."""
    name = facts.name
    found = {
        f"{UNITS}/logdird-recover@{name}.service.d/{OURS}": _recover(facts),
        f"{UNITS}/logdird@{name}.service.d/{OURS}": _daemon(facts),
    }
    if facts.has_client:
        found[_client_of(name)] = _ASKS
    for page, address in (("status", facts.status_listen), ("metrics", facts.metrics_listen)):
        if address is not None:
            found[_socket_of(page, name)] = _listening(*address)
    if facts.unit is not None:
        found[f"{UNITS}/{facts.unit}.d/{GATE.format(name=name)}"] = _gate(facts, facts.unit)
    return found


def may_be_there(name: str) -> tuple[str, ...]:
    """Return the drop-ins of a broker that another configuration asks for; those of its own unit are found by GATE."""
    return _client_of(name), _socket_of("status", name), _socket_of("metrics", name)


def _client_of(name: str) -> str:
    return f"{UNITS}/logdird@{name}.service.d/{_CLIENT}"


def _socket_of(page: str, name: str) -> str:
    return f"{UNITS}/logdird-{page}@{name}.socket.d/{OURS}"


def _sandbox(facts: Facts) -> Iterator[str]:
    """Yield what the two services have in common: whose they are, and what they may write."""
    yield "[Service]"
    if facts.user is not None:
        yield f"User={word(facts.user)}"
    if facts.group is not None:
        yield f"Group={word(facts.group)}"
    if facts.groups:
        yield f"SupplementaryGroups={' '.join(map(word, facts.groups))}"
    # A disk that is not there is no reason not to start (law 6).
    yield from (f"ReadWritePaths={word(f'-{path}')}" for path in facts.writable)
    if facts.reads_homes:
        yield "ProtectHome=read-only"


def _daemon(facts: Facts) -> str:
    wanted = [
        f"logdird-{page}@{facts.name}.socket"
        for page, address in (("status", facts.status_listen), ("metrics", facts.metrics_listen))
        if address is not None
    ]
    return _text(
        "[Unit]",
        "# Not the log dirs: without one of them it serves the others.",
        f"RequiresMountsFor={' '.join(map(word, facts.needed))}",
        *(f"Wants={one}" for one in wanted),
        "",
        *_sandbox(facts),
        *(() if facts.runtime == RUNTIME else ("RuntimeDirectory=",)),
        *(() if facts.runtime in ("", RUNTIME) else (f"RuntimeDirectory={facts.runtime}",)),
    )


def _recover(facts: Facts) -> str:
    return _text(
        "[Unit]",
        "# It waits for the disks, and with it all that comes after it. Without one of them it does nothing.",
        f"RequiresMountsFor={' '.join(map(word, (*facts.needed, *facts.log_dirs)))}",
        "",
        *_sandbox(facts),
    )


_ASKS: Final = """\
[Service]
# client.properties: the cluster is asked over TCP.
RestrictAddressFamilies=AF_INET AF_INET6
PrivateNetwork=no
IPAddressDeny=
"""


def _listening(host: str, port: int) -> str:
    # The unit lets only this host in; an empty value takes back what it says.
    is_local = ipaddress.ip_address(host).is_loopback
    return _text(
        "[Socket]",
        "ListenStream=",
        f"ListenStream={_bracketed(host)}:{port}",
        *(() if is_local else ("IPAddressDeny=", "IPAddressAllow=")),
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _gate(facts: Facts, unit: str) -> str:
    name = facts.name
    ours = f"logdird-recover@{name}.service logdird@{name}.service"
    command = f"{argument(f'{facts.programs}/logdirctl')} handover --quiet --config /etc/logdird/{name}.yaml"
    return _text(
        "[Unit]",
        f"Wants={ours}",
        f"After={ours}",
        "",
        "[Service]",
        "# What logdird has not finished is finished or undone, and it takes no lock of Kafka's until the broker runs.",
        "# The broker is not started without one of its disks: its partitions would come back empty elsewhere. Why it",
        f"# is not started stands in the journal (journalctl -u {unit}).",
        f"# To start it without asking logdird: systemctl set-environment {SKIP_GATE}=1; it counts until systemctl",
        f"# unset-environment {SKIP_GATE}, or until the host restarts.",
        f"TimeoutStartSec={_GATE_S}",
        f"ExecStartPre=/bin/sh -c '{_GATED}' gate {command}",
    )


def _text(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def shown(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of some drop-ins for people, each below its path."""
    for path, text in texts.items():
        yield f"{path}:"
        yield from (f"    {line}".rstrip() for line in text.splitlines())
