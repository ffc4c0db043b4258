"""Why the control socket answers no request, or ends one, although nothing is wrong with it: it has no room or no time.

Not here: that the daemon ends (``daemon.faults``), what a use case refuses (``service``).

Spec: design §2 law 8.
"""

from __future__ import annotations

from logdir.errors import StateError


class BusyError(StateError):
    """As much is asked of the daemon as it does at a time."""

    code = "daemon-busy"


class ReadEndedError(StateError):
    """A use case that only reads was ended before it had its answer."""

    code = "read-ended"


class NoSuchOperationError(StateError):
    """No operation of an id is remembered."""

    code = "no-such-operation"


class OperationBegunError(StateError):
    """An operation cannot be cancelled any more."""

    code = "operation-begun"


def busy_error(what: str, expected: str, found: str) -> BusyError:
    """Return the error that there is no room: ``what``, how much there is, and what came."""
    return BusyError(what, expected=expected, found=found, fix="repeat the command")


def no_such_operation(identity: str) -> NoSuchOperationError:
    """Return the error that no operation of an id is remembered."""
    return NoSuchOperationError(
        identity[:200],
        expected="an operation that this logdird remembers",
        found="none: operations are kept in memory alone, for as long as there is room, and until a restart",
        fix="ask what is so on the disks: logdirctl staged ls, logdirctl describe",
    )
