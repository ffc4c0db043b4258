"""What a daemon adds to a bug report: its configuration, its status if it answers, and the last lines of its history.

Every key of the configuration is a number, a path, a topic glob or a word, and none is a secret. Of a configuration
that is refused only the problems are there.

Not here: the rest of the report (``service.bug_report.report``).

Spec: design §6 ``bug-report``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from logdir.daemon.config import DaemonConfig, read_config
from logdir.daemon.socket import client
from logdir.errors import LogDirError
from logdir.paths import HISTORY
from logdir.service.report.exit_status import problems_of
from logdir.service.report.json_form import to_json

_MOST_LINES: Final = 1000
_MOST_BYTES: Final = 1 << 20


def documents(config: str | None, socket: str | None) -> Mapping[str, bytes]:
    """Return the documents, by their paths in the archive; never raises for a daemon or a file that is not well.

    Args:
        config: Path of the daemon's configuration; ``None``: it is not named.
        socket: Path of the control socket of a daemon that answers; ``None``: none does.
    """
    found: dict[str, bytes] = {}
    if config is not None:
        try:
            read = read_config(config)
        except LogDirError as error:
            found["logdird-config.json"] = _refused(error)
        else:
            found["logdird-config.json"] = _json(to_json(read))
            found |= _history(read)
    if socket is not None:
        try:
            found["status.json"] = _json(to_json(client.status(socket)))
        except LogDirError as error:
            found["status.json"] = _refused(error)
    return found


def _history(config: DaemonConfig) -> Mapping[str, bytes]:
    path = os.path.join(config.state_dir, HISTORY)
    try:
        with Path(path).open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - _MOST_BYTES))
            lines = file.read(_MOST_BYTES).splitlines()
    except OSError:
        return {}
    kept = lines if end <= _MOST_BYTES else lines[1:]  # The first one is cut off.
    return {HISTORY: b"".join(line + b"\n" for line in kept[-_MOST_LINES:] if _is_event(line))}


def _is_event(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _refused(error: LogDirError) -> bytes:
    return _json({"problems": [problem._asdict() for problem in problems_of(error)]})


def _json(value: object) -> bytes:
    return f"{json.dumps(value, indent=2, sort_keys=True)}\n".encode()
