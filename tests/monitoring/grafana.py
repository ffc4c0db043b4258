"""A Grafana dashboard as a file: its panels, its variables, and the expressions that they ask Prometheus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INTERVALS = {"$__rate_interval": "4m", "$__interval": "1m", "$__range": "6h"}
"""What Grafana would put there for a scrape each minute."""
_VARIABLE = re.compile(r"\$\{?(\w+)(?::\w+)?\}?")
_LABEL_VALUES = re.compile(r"label_values\((.+), *([A-Za-z_]\w*)\)")


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A dashboard of the classic schema, which every Grafana can import."""

    document: Mapping[str, Any]

    @property
    def panels(self) -> tuple[Mapping[str, Any], ...]:
        """Its panels, rows included, and what lies in folded rows."""
        top = self.document["panels"]
        return tuple(one for panel in top for one in (panel, *panel.get("panels", ())))

    @property
    def variables(self) -> dict[str, Mapping[str, Any]]:
        """Its variables by name."""
        return {one["name"]: one for one in self.document["templating"]["list"]}

    @property
    def expressions(self) -> Iterator[tuple[str, str]]:
        """Title of the panel and expression, as it is written, of each query."""
        for panel in self.panels:
            for target in panel.get("targets", ()):
                yield panel["title"], target["expr"]

    @property
    def label_values(self) -> Iterator[tuple[str, str, str]]:
        """Name, selector and label of each variable whose values are those of a label."""
        for name, variable in self.variables.items():
            if variable["type"] == "query":
                query = variable["query"]
                found = _LABEL_VALUES.fullmatch(query if isinstance(query, str) else query["query"])
                assert found is not None, variable
                yield name, found[1], found[2]


def read_dashboard(path: Path) -> Dashboard:
    """Read a dashboard."""
    return Dashboard(json.loads(path.read_text("utf-8")))


def names_of_variables(text: str) -> set[str]:
    """Return the variables that a text uses, those of Grafana itself left out."""
    return {name for name in _VARIABLE.findall(text) if not name.startswith("__")}


def substituted(text: str, values: Mapping[str, str]) -> str:
    """Return an expression as Grafana sends it.

    Args:
        text: As it is written.
        values: What is chosen for each variable; all of them is ``.*``.

    Raises:
        KeyError: it uses a variable without a value.
    """
    for name, value in INTERVALS.items():
        text = text.replace(name, value)
    return _VARIABLE.sub(lambda found: values[found[1]], text)
