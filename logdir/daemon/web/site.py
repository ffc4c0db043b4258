"""The pages that are served over TCP: their paths, how they are made, and the host names under which they are answered.

A browser sends the name it was given. A page of the internet may have its own name resolved to 127.0.0.1 and then read
what it gets there (DNS rebinding); so the status page is answered to names of this host alone.

Not here: sockets (``web.listener``), requests (``web.server``).

Spec: issue "The daemon at home on a host", interfaces and status page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from logdir import clock
from logdir.daemon.config import DaemonConfig

if TYPE_CHECKING:
    from logdir.daemon.supervisor import Supervisor

_LOOPBACK: Final = re.compile(r"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)


class Body(NamedTuple):
    """What is answered."""

    content_type: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A page that is served on sockets of its own."""

    name: str
    """``FileDescriptorName=`` of its socket unit."""
    key: str
    """The key of the configuration that names its address."""
    address_of: Callable[[DaemonConfig], tuple[str, int] | None]
    """Returns the value of that key."""
    is_of_this_host: bool
    """Whether only this host may reach its sockets."""
    is_asked_rightly: Callable[[Sequence[str]], bool]
    """Whether it is answered under these names: the values of all ``Host`` headers of a request."""
    paths: frozenset[str]
    make: Callable[[Supervisor], Body]
    """Makes it from what is in memory; waits for no disk."""

    def unit_of(self, config: DaemonConfig) -> str:
        """Return the socket unit that opens its port for a daemon."""
        return f"logdird-{self.name}@{config.name}.socket"


def is_loopback(hosts: Sequence[str]) -> bool:
    """Whether a request names this host, once.

    >>> is_loopback(["localhost:9470"]), is_loopback(["[::1]"]), is_loopback(["evil.example"]), is_loopback([])
    (True, True, False, False)
    """
    return len(hosts) == 1 and _LOOPBACK.fullmatch(hosts[0].strip()) is not None


def _is_anything(hosts: Sequence[str]) -> bool:
    return True


def _status_page(supervisor: Supervisor) -> Body:
    # Loaded when the first client asks, as the metrics are: most daemons have no such port.
    from logdir.daemon.page.render import render

    return Body("text/html; charset=utf-8", render(supervisor.status(), clock.now_ms()).encode())


def _metrics(supervisor: Supervisor) -> Body:
    from logdir.daemon.metrics.exposition import CONTENT_TYPE, text_of

    return Body(CONTENT_TYPE, text_of(supervisor))


STATUS_PAGE: Final = Site(
    name="status",
    key="status.listen",
    address_of=lambda config: config.status_listen,
    is_of_this_host=True,
    is_asked_rightly=is_loopback,
    paths=frozenset({"/", "/status.html"}),
    make=_status_page,
)
METRICS: Final = Site(
    name="metrics",
    key="metrics.listen",
    address_of=lambda config: config.metrics_listen,
    is_of_this_host=False,
    is_asked_rightly=_is_anything,
    paths=frozenset({"/metrics"}),
    make=_metrics,
)
SITES: Final = (STATUS_PAGE, METRICS)
"""All of them."""
NAMES: Final = frozenset(site.name for site in SITES)
"""``FileDescriptorName=`` of all socket units."""
