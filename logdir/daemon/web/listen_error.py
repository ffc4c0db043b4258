"""The error that an address cannot be listened on.

Spec: design §2 law 8.
"""

from __future__ import annotations

from logdir.errors import LogDirError


class ListenError(LogDirError):
    """The status page or the metrics cannot be served at the address that is configured, or by a passed socket."""

    code = "listen-failed"
