"""The report: one self-contained HTML page with all content of a plan.

Not here: the numbers (``report.model``) and the sections (``report.sections``, ``report.tables``).

Spec: design §7.7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from string import Template

from logdir.markup import STYLE, digest, text
from migrate.report import sections as sections
from migrate.report import tables as tables
from migrate.report.figure import number
from migrate.report.model import ClusterFacts, Model, build_model
from migrate.report.plan import DISK_COLUMNS, Disk

_HERE = "migrate.report"
_BROKER_COLUMNS = ("node_id", "rack", "readiness", "reasons", "steps", "log_bytes", "forecast_ms")
_FACT_COLUMNS = ("wave", "log_dirs", "unread", "replicas", "bytes", "twin", "lists")


def render_report(plan_dir: Path) -> str:
    """Return the report page of a plan.

    Args:
        plan_dir: A plan directory; it is only read.

    Returns:
        A whole HTML document; equal plans give equal text.

    Raises:
        PlanFormatError: a document of the plan is missing or not in its format.
    """
    return render_page(build_model(plan_dir))


def render_page(model: Model) -> str:
    """Return the report page of a model.

    Args:
        model: From ``build_model``.

    Returns:
        A whole HTML document.
    """
    style, script = _part("logdir", STYLE) + _part(_HERE, "page.css"), _part(_HERE, "page.js")
    summary = model["summary"]
    units = sum(summary["conflicts"].values())
    return Template(_part(_HERE, "page.html")).substitute(
        style=style,
        script=script,
        style_digest=digest(style),
        script_digest=digest(script),
        verdict=sections.verdict(model),
        waves=sections.waves(model),
        conflict_count=number(units, "/totals/conflicts"),
        conflicts=sections.conflicts(model),
        kinds=tables.kinds(model),
        brokers=tables.brokers(model),
        skew=tables.skew(model),
        layouts=tables.layouts(model),
        reclaim=sections.reclaim(model),
        disks=tables.disks(model),
        inventory_sha256=text(summary["inventory_sha256"]),
        plan_sha256=text(summary["plan_sha256"]),
        plan=embedded(model),
    )


def embedded(model: Model) -> str:
    """Return the numbers of the page as JSON that is safe inside a ``<script>`` element.

    Keys: ``summary`` and ``waves``, the plan's documents, shortened (of the minted ids only those that are shown, of
    each cluster only the number of its brokers); ``brokers``, one row per broker of any cluster; ``disks``, one row
    per disk, each kind of entry as [entries, bytes].

    Args:
        model: From ``build_model``.
    """
    brokers = [broker for cluster in model["waves"]["clusters"] for broker in cluster["brokers"]]
    document = {
        "report": 1,
        "summary": model["summary"],
        "waves": {
            "clusters": [{**cluster, "brokers": len(cluster["brokers"])} for cluster in model["waves"]["clusters"]]
        },
        "brokers": {
            "columns": _BROKER_COLUMNS + _FACT_COLUMNS,
            "rows": [
                _row(broker, _BROKER_COLUMNS) + _row(facts, _FACT_COLUMNS)
                for broker, facts in zip(brokers, model["broker_facts"], strict=True)
            ],
        },
        "disks": {
            "columns": DISK_COLUMNS,
            "rows": [_row({**disk, "kinds": _kinds(disk)}, DISK_COLUMNS) for disk in model["disks"]],
        },
        "conflicts": {
            conflict["slug"]: {
                "units": conflict["units"],
                "holders": conflict["holders"],
                "shown": len(conflict["shown"]),
            }
            for conflict in model["conflicts"]
        },
        "clusters": [_without_values(cluster) for cluster in model["clusters"]],
        "totals": {**model["totals"], "conflicts": sum(model["summary"]["conflicts"].values())},
    }
    # Only ASCII, without any character that could end the element or open a comment.
    rendered = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return rendered.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _row(value: Mapping[str, object], columns: tuple[str, ...]) -> list[object]:
    return [value[column] for column in columns]


def _kinds(disk: Disk) -> dict[str, list[int]]:
    return {kind: [of["entries"], of["bytes"]] for kind, of in disk["kinds"].items()}


def _without_values(cluster: ClusterFacts) -> dict[str, object]:
    # The ticks of the strips: the bytes of the brokers and disks once more.
    spreads = {
        key: {name: value for name, value in cluster[key].items() if name != "values"}
        for key in ("by_broker", "by_disk")
    }
    return {**cluster, **spreads}


def _part(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
