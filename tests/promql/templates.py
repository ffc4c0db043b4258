"""The words of an alert: ``{{ $labels.name }}`` and ``{{ $value | humanize }}``, nothing else.

Spec: Prometheus, "Template reference".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.promql.values import Labels, PromqlError

_ACTION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_LABEL = re.compile(r"\$labels\.([A-Za-z_]\w*)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _short(value: float) -> str:
    """Return a number with four digits, as Go's ``%.4g`` does."""
    if math.isinf(value) or math.isnan(value):
        return {True: "NaN", False: "+Inf" if value > 0 else "-Inf"}[math.isnan(value)]
    return f"{value:.4g}"


def humanize(value: float) -> str:
    """Return a number with a prefix of the metric system."""
    if value == 0 or not math.isfinite(value):
        return _short(value)
    prefix = ""
    if abs(value) >= 1:
        for one in "kMGTPEZY":
            if abs(value) < 1000:
                break
            prefix, value = one, value / 1000
    else:
        for one in "munpfazy":
            if abs(value) >= 1:
                break
            prefix, value = one, value * 1000
    return _short(value) + prefix


def humanize_1024(value: float) -> str:
    """Return a number with a prefix of powers of 1024."""
    prefix = ""
    if abs(value) > 1 and math.isfinite(value):
        for one in ("ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"):
            if abs(value) < 1024:
                break
            prefix, value = one, value / 1024
    return _short(value) + prefix


def humanize_duration(value: float) -> str:
    """Return seconds as days, hours, minutes and seconds."""
    if not math.isfinite(value):
        return _short(value)
    if abs(value) < 1:
        prefix = ""
        for one in "munpfazy":
            if value == 0 or abs(value) >= 1:
                break
            prefix, value = one, value * 1000
        return f"{_short(value)}{prefix}s"
    sign, whole = "-" if value < 0 else "", int(abs(value))
    days, hours, minutes = whole // 86_400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{sign}{days}d {hours}h {minutes}m {whole % 60}s"
    if hours:
        return f"{sign}{hours}h {minutes}m {whole % 60}s"
    if minutes:
        return f"{sign}{minutes}m {whole % 60}s"
    return f"{sign}{_short(abs(value))}s"


def humanize_timestamp(value: float) -> str:
    """Return an instant of the epoch, in UTC."""
    if not math.isfinite(value):
        return _short(value)
    at = _EPOCH + timedelta(milliseconds=round(value * 1000))
    part = f"{at.microsecond // 1000:03}".rstrip("0")
    return f"{at:%Y-%m-%d %H:%M:%S}{'.' + part if part else ''} +0000 UTC"


FUNCTIONS: dict[str, Callable[[float], str]] = {
    "humanize": humanize,
    "humanize1024": humanize_1024,
    "humanizeDuration": humanize_duration,
    "humanizeTimestamp": humanize_timestamp,
    "humanizePercentage": lambda value: f"{_short(value * 100)}%",
}


def rendered(text: str, labels: Labels, value: float) -> str:
    """Return a text for people.

    Raises:
        PromqlError: it names a label that the alert does not have, which Prometheus would leave empty; or it has an
            action that is not known here.
    """
    by_name = dict(labels)

    def of(action: re.Match[str]) -> str:
        what, *functions = (part.strip() for part in action[1].split("|"))
        label = _LABEL.fullmatch(what)
        if label is not None and not functions:
            if label[1] not in by_name:
                raise PromqlError(f"no label {label[1]!r} in {sorted(by_name)}: {text!r}")
            return by_name[label[1]]
        if what != "$value" or len(functions) > 1 or not set(functions) <= FUNCTIONS.keys():
            raise PromqlError(f"an action that is not known here: {action[0]!r}")
        return FUNCTIONS[functions[0]](value) if functions else f"{value:g}"

    result = _ACTION.sub(of, text)
    if "{{" in result or "}}" in result:
        raise PromqlError(f"an action without end: {text!r}")
    return result
