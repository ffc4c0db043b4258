"""The table of ``docs/compatibility.md``: which releases of Kafka each feature is tried with, read from the tests.

A cell says *tested* where a stock broker of that release runs in the tests of the feature, *files* where files that it
wrote are read in tests, else *-*.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests import trees
from tests.generated.marked import replaced, write_all
from tests.kafka.rotation import SCENARIOS
from tests.kafka.test_metadata_agrees import FORMS
from tests.kafka.tree_rig import writer

HOME: Final = Path(__file__).parents[2]
PAGE: Final = HOME / "docs" / "compatibility.md"
NAME: Final = "releases"
_GOLDEN: Final = HOME / "tests" / "golden"
_RELEASE: Final = re.compile(r"(?<![\d.])\d+\.\d+\.\d+(?!\.?\d)")


def releases_in(*folders: str) -> frozenset[str]:
    """Return the releases that names of files in folders of ``tests/golden`` begin with, or carry behind a dash."""
    names = [path.name for folder in folders for path in (_GOLDEN / folder).iterdir()]
    return frozenset(release for name in names for release in _RELEASE.findall(name))


TREES: Final = frozenset(map(writer, trees.NAMES))
KRAFT_TREES: Final = frozenset(writer(name) for name in trees.NAMES if trees.manifest(name)["mode"] == "kraft")
"""Each is started by the release that wrote it, after it went to topic ids and back, and was staged and restored."""


class Row(NamedTuple):
    """A feature, and what it is tried with."""

    feature: str
    scenarios: tuple[str, ...] = ()
    """Of ``kafka/rotation.py``."""
    started: frozenset[str] = frozenset()
    """Other releases whose brokers run in its tests."""
    files: frozenset[str] = frozenset()
    """Releases whose files are read in its tests."""

    def cell(self, release: str) -> str:
        """Return what the table says of a release."""
        is_started = release in self.started or any(release in SCENARIOS[one] for one in self.scenarios)
        return "tested" if is_started else "files" if release in self.files else "-"


ROWS: Final = (
    Row("what lies on the disks: `inventory`, `describe`", ("inventory",), files=TREES),
    Row(
        "on a stopped broker: `stage`, `staged restore`, `export` and `purge`",
        ("ways back", "deleted", "deleted elsewhere", "last copy", "renamed by hand"),
        KRAFT_TREES,
        TREES,
    ),
    Row("beside a running broker: `capture`", ("capture", "both captured")),
    Row("a deleted topic comes back: `staged adopt`", ("adopted", "both adopted", "guided")),
    Row(
        "the daemon: `logdird`, `handover`",
        ("daemon", "daemon starts", "daemon undo", "daemon soak", "operations", "gate"),
    ),
    Row("the cluster is asked: `client.properties`, `--from cluster:`", ("client", "live cluster", "cluster")),
    Row(
        "the metadata log: `metadata`, `--from metadata:`",
        (),
        frozenset(FORMS),
        releases_in("metadata", "metadata-odd"),
    ),
    Row("requests of a controller: `--from request:`, the inbox", (), frozenset(), releases_in("wire")),
    Row("topic-id layout and back: `layout`", ("layout",), KRAFT_TREES, TREES),
)
INTERNAL: Final = frozenset({"rig", "recovery"})
"""Scenarios of the tests' own: of their rig, and of what a broker itself does after a crash."""


def columns() -> list[str]:
    """Return every release that any row is tried with, the oldest first."""
    every = {release for row in ROWS for release in (*row.started, *row.files)}
    every |= {release for row in ROWS for one in row.scenarios for release in SCENARIOS[one]}
    return sorted(every, key=lambda release: tuple(map(int, release.split("."))))


def rows() -> Iterator[str]:
    """Yield the table line by line."""
    releases = columns()
    yield f"| | {' | '.join(releases)} |"
    yield f"|---|{'---|' * len(releases)}"
    for row in ROWS:
        yield f"| {row.feature} | {' | '.join(map(row.cell, releases))} |"


def render() -> str:
    """Return the page with the table of now."""
    return replaced(PAGE.read_text("utf-8"), NAME, "\n".join(rows()))


FILES: Final[dict[Path, Callable[[], str]]] = {PAGE: render}


def write() -> str:
    """Write all of it again; return the names of the files."""
    return write_all(FILES)
