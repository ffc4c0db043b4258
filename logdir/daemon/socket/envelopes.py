"""The answers of the control socket: the one JSON object that ``--json`` prints, with its HTTP status.

Not here: sending them (``handler``).

Spec: design §6; docs/api.md, docs/json.md.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from logdir.daemon.faults import StoppingError
from logdir.daemon.operations import Operation
from logdir.daemon.socket.refusals import BusyError, NoSuchOperationError, OperationBegunError, ReadEndedError
from logdir.errors import LogDirError, MalformedMessageError, Problem
from logdir.service.report.exit_status import Exit, exit_for, problems_of
from logdir.service.report.json_form import to_json
from logdir.service.report.json_text import FORMAT, compact
from logdir.service.report.use_case import Ran
from logdir.text import printable

_NOTHING: Final[dict[str, object]] = {}


class Reply(NamedTuple):
    """An answer."""

    status: int
    """Of HTTP."""
    value: dict[str, Any]

    @property
    def is_done(self) -> bool:
        """Whether it has a result."""
        return bool(self.value["result"])

    @property
    def data(self) -> bytes:
        """Its text."""
        return f"{compact(self.value)}\n".encode()


def envelope(command: str, status: Exit, problems: tuple[Problem, ...], result: object) -> dict[str, Any]:
    """Return the object of an answer; ``result`` is JSON."""
    return {
        "command": command,
        "format": FORMAT,
        "exit": int(status),
        "problems": [problem._asdict() for problem in problems],
        "result": result,
    }


def found(command: str, result: object) -> Reply:
    """Return the answer to a question; ``result`` has a form of ``json_form``."""
    return Reply(200, envelope(command, Exit.DONE, (), to_json(result)))


def refusal(status: int, command: str, *problems: Problem, exit_status: Exit = Exit.REFUSED) -> Reply:
    """Return an answer without a result."""
    return Reply(status, envelope(command, exit_status, problems, _NOTHING))


def of_ran(command: str, ran: Ran, warnings: tuple[str, ...]) -> Reply:
    """Return what came of a use case, with what it says to people."""
    answer = envelope(command, ran.exit, ran.problems, to_json(ran.result))
    more = {"lines": list(ran.lines), "is_waiting": ran.is_waiting, "next": ran.next, "warnings": list(warnings)}
    return Reply(200, answer | more)


def of_error(command: str, error: LogDirError) -> Reply:
    """Return the answer to a request that an error ended; what a use case refuses is an answer like another."""
    match error:
        case MalformedMessageError():
            status = 400
        case NoSuchOperationError():
            status = 404
        case OperationBegunError():
            status = 409
        case StoppingError() | BusyError() | ReadEndedError():
            status = 503
        case _:
            status = 200
    return Reply(status, envelope(command, exit_for(error), problems_of(error), _NOTHING))


def of_fault(command: str, error: Exception) -> Reply:
    """Return the answer to a request that a fault of ours ended."""
    words = f"{type(error).__name__}: {error}"
    fault = Problem("internal-error", command, "an answer", printable(words), "report this line")
    return Reply(500, envelope(command, Exit.INTERNAL, (fault,), _NOTHING))


def of_operation(command: str, operation: Operation, answer: bytes | None) -> bytes:
    """Return the text of the answer about one operation.

    Args:
        command: The command of the answer.
        operation: The operation.
        answer: Its own answer, JSON that is copied as it is; ``None``: it has none, or it is not kept.
    """
    own = compact(to_json(operation)).removesuffix("}").encode() + b',"answer":' + (answer or b"null").strip() + b"}"
    around = compact(envelope(command, Exit.DONE, (), None))
    before, _, after = around.rpartition('"result":null')
    return before.encode() + b'"result":' + own + after.encode() + b"\n"


def raw(reason: str, reply: Reply) -> bytes:
    """Return the bytes of an answer for a client whose request is not read; ``reason``: the words of its status."""
    head = f"HTTP/1.1 {reply.status} {reason}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(reply.data)}\r\nConnection: close\r\n\r\n".encode() + reply.data
