"""Asking a daemon over its control socket.

Not here: the daemon's side (``server``).

Spec: design §5; docs/json.md.
"""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any, Final

from logdir.daemon.report.status import StatusResult
from logdir.daemon.socket.routes import STATUS, path_of
from logdir.errors import LogDirError, MalformedMessageError, Problem
from logdir.service.batch.use_cases import Spec
from logdir.service.report.exit_status import AnsweredError, Exit
from logdir.service.report.json_form import from_json, to_json
from logdir.service.report.use_case import Ran

CONNECT_S: Final = 2.0


class DaemonUnreachableError(LogDirError):
    """No daemon answers on a socket."""

    code = "daemon-unreachable"


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(CONNECT_S)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.sock.close()
            raise
        self.sock.settimeout(None)  # A purge takes as long as it takes; the daemon's end closes the connection.


def is_answering(path: str) -> bool:
    """Whether a daemon listens on a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CONNECT_S)
        try:
            connection.connect(path)
        except OSError:
            return False
        return True


def status(path: str) -> StatusResult:
    """Return the status of the daemon on a socket.

    Raises:
        DaemonUnreachableError: no daemon answers there.
        AnsweredError: it answered without a status, for example because it has too many clients.
        MalformedMessageError: its answer is no status.
    """
    answer = _ask(path, "GET", STATUS, None)
    if not answer["result"]:
        raise _without_result(path, answer)
    return from_json(StatusResult, answer["result"])


def run(path: str, spec: Spec, request: Any, *, is_applied: bool) -> tuple[Ran, tuple[str, ...]]:
    """Let a daemon run a use case; return what came of it, and the warnings that came before a change.

    Raises:
        DaemonUnreachableError: no daemon answers there, or it ended before it answered.
        AnsweredError: it answered without a result.
        MalformedMessageError: its answer is no result.
    """
    body = json.dumps({"apply": is_applied, "request": to_json(request)}).encode()
    answer = _ask(path, "POST", path_of(spec.name), body)
    status = Exit(answer["exit"])
    problems = tuple(from_json(Problem, one) for one in answer["problems"])
    if not answer["result"]:
        raise _without_result(path, answer)
    result = from_json(_result_type(spec, answer["result"]), answer["result"])
    lines = tuple(map(str, answer.get("lines", ())))
    warnings = tuple(map(str, answer.get("warnings", ())))
    is_waiting, following = bool(answer.get("is_waiting", False)), str(answer.get("next", ""))
    ran = Ran(exit=status, problems=problems, result=result, lines=lines, is_waiting=is_waiting, next=following)
    return ran, warnings


def _without_result(path: str, answer: dict[str, Any]) -> AnsweredError:
    problems = tuple(from_json(Problem, one) for one in answer["problems"])
    problems = problems or (_malformed(path, "no result").problem(),)
    return AnsweredError(problems, answer["exit"])


def _result_type(spec: Spec, value: dict[str, Any]) -> Any:
    # Where nothing was selected a purge answers with the plain list.
    from logdir.service.report.result import ItemsResult

    return ItemsResult if value.keys() <= {"applied", "items"} else spec.result


def _ask(path: str, method: str, where: str, body: bytes | None) -> dict[str, Any]:
    connection = _Connection(path)
    try:
        connection.request(method, where, body=body, headers={"Content-Type": "application/json"})
        data = connection.getresponse().read()
    except (OSError, http.client.HTTPException) as error:
        found = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
        fix = "see whether it runs: systemctl status 'logdird@*'"
        raise DaemonUnreachableError(path, expected="a daemon that answers", found=found, fix=fix) from error
    finally:
        connection.close()
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _malformed(path, str(error)) from error
    if not isinstance(answer, dict) or not {"exit", "problems", "result"} <= answer.keys():
        raise _malformed(path, "another value")
    return answer


def _malformed(path: str, found: str) -> MalformedMessageError:
    return MalformedMessageError(path, expected="an answer of logdird", found=found, fix="is it the same release?")
