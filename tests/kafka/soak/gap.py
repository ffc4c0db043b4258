"""The times without a look for deletions that the daemon names in its history.

Spec: design §5; issue "The daemon", undo for stock Kafka; attacks A17.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

_NONE: Final = re.compile(r"none from (\S+) to \S+ \(UTC\)")


def is_gap_over(event: Mapping[str, Any], at_ms: int) -> bool:
    """Whether an event of the history names a time without a look, and an instant (wall clock) lies in it.

    The event comes with the look that ends the time; its text has the seconds in which that began and ended.
    """
    if event["event"] != "look-too-late":
        return False
    parts = _NONE.fullmatch(event["detail"])
    if parts is None:
        raise ValueError(f"expected a time without a look; found {event['detail']}")
    began_ms = int(datetime.fromisoformat(parts[1]).timestamp() * 1000)
    return bool(began_ms <= at_ms <= event["at_ms"])
