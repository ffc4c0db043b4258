"""docs/operations.md: its sections, the values that it sets, and which test types which section.

Not here: typing (``typed_page``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.typed_page import Block, sections, settings_of

PAGE: Final = (Path(__file__).parents[1] / "docs" / "operations.md").read_text("utf-8")
SETTINGS: Final = "What the commands below use"
ALARMS: Final = "What an alarm means"
BESIDE_KAFKA, ON_DISKS, ALONE = (
    "tests/kafka/test_operations_page.py",
    "tests/hung/test_operations_page.py",
    "tests/test_operations_page.py",
)
TYPED_BY: Final[Mapping[str, str]] = {
    "A topic was deleted": BESIDE_KAFKA,
    "A topic was deleted, and the broker has stopped": ALONE,
    "A disk is full": BESIDE_KAFKA,
    "A disk is dead": ON_DISKS,
    "A disk is back that was away": ALONE,
    "A disk hangs": ON_DISKS,
    "The broker is not started": ALONE,
    "A start of the broker failed": ALONE,
    "Deletions were missed": ALONE,
    "A log dir is not watched": ALONE,
    "Purges are to stop": ALONE,
    "Something is purged too early": ALONE,
    "Something is not purged": ALONE,
    "Change the configuration": ALONE,
    "The configuration is not taken": ALONE,
    "The status page or the metrics are missing": ALONE,
    "A fault of logdird": ALONE,
    "Upgrade logdird": ALONE,
    "Upgrade Kafka": BESIDE_KAFKA,
}
"""The test that types each section; a section without a block that is typed is not here."""
SECTIONS: Final = sections(PAGE)
VALUES: Final = settings_of(SECTIONS[SETTINGS][0])


def section(heading: str) -> list[Block]:
    """Return the blocks of a section."""
    return SECTIONS[heading]
