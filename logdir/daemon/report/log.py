"""Log lines of the daemon: one JSON object a line.

Spec: style §5.9.
"""

from __future__ import annotations

import json
import logging


class JsonFormatter(logging.Formatter):
    """Renders a record as ``{"at", "level", "logger", "event", …}``.

    The message is ``event key=value …``: the event comes first, and the values are those of the call.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        event, _, rest = record.getMessage().partition(" ")
        line: dict[str, object] = {
            "at_ms": int(record.created * 1000),
            "level": record.levelname,
            "logger": record.name,
            "event": event,
        }
        if rest:
            line["detail"] = rest
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, sort_keys=True, ensure_ascii=True)
