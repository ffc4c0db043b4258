"""The result of an inventory as JSON; the rows of an inventory in memory, JSON already, are copied as they are.

Spec: docs/json.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from logdir.service.inventory import InventoryDisk, InventoryResult
from logdir.service.report.json_form import to_json
from logdir.service.report.json_text import compact, envelope


def inventory_envelope(command: str, exit_status: int, found: InventoryResult) -> Iterator[str]:
    """Yield the one JSON object of ``--json`` in parts.

    Args:
        command: The name of the command, for the key ``command``.
        exit_status: The exit status of the command.
        found: The inventories of a broker.
    """
    empty, tail = envelope(command, exit_status, found.problems, {"items": []}), "]}}\n"
    yield empty[: -len(tail)]
    for number, one in enumerate(found.disks):
        yield f"{',' if number else ''}{_disk(one)}"
    yield tail


def _disk(one: InventoryDisk) -> str:
    """Return the JSON of one log dir; the rows of an inventory in memory are copied into its ``entries``."""
    text = compact(to_json(one))
    if one.content is None:
        return text
    at = len(f'{{"disk":{compact(to_json(one.disk))},')
    lines = one.content.decode().split("\n")[1:-2]
    return f'{text[:at]}"entries":[{",".join(lines)}],{text[at:]}'
