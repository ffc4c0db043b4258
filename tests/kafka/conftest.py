"""Fixtures of the tests that start stock brokers: jars, one temporary root, rigs, a look at what is left.

Every test module of this folder is marked ``kafka``. Without Java, or without Maven and a filled cache, its
tests are skipped with a reason that says what to install; a release that cannot be fetched is a failure.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.kafka.fetch import RELEASES, FetchError, cache_dir, fetch, is_whole
from tests.kafka.jvm import leftovers, missing_java
from tests.kafka.rig import Rig
from tests.kafka.rotation import how

_RELEASE: Final = re.compile(r"\[(?:.*-)?(\d+\.\d+\.\d+)(?:-.*)?\]$")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which releases each test took, and how to take the same again."""
    ran: dict[str, list[str]] = {}
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        release = _RELEASE.search(report.nodeid)
        if "kafka" in report.keywords and release is not None:
            took = ran.setdefault(report.nodeid.partition("[")[0], [])
            took += [release[1]] if release[1] not in took else []
    if ran:
        terminalreporter.section(f"stock releases, {how()}")
        for test, took in ran.items():
            terminalreporter.write_line(f"{test}: {' '.join(took)}")


@pytest.fixture(scope="session")
def releases() -> dict[str, Path]:
    """The folders of jars by version; fetched at the first use."""
    if reason := missing_java():
        pytest.skip(reason)
    cache = cache_dir(os.environ)
    if shutil.which("mvn") is None and not all(is_whole(cache / version) for version in RELEASES):
        pytest.skip(f"the kafka tests need mvn to fill {cache}: install Maven (Debian: apt install maven)")
    try:
        return {version: fetch(version, cache) for version in RELEASES}
    except FetchError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def jars(releases: dict[str, Path]) -> Callable[[str], Path]:
    """Return the folder of jars of a release, also of one that no other test needs; fetched at the first use."""

    def found(version: str) -> Path:
        if version in releases:
            return releases[version]
        cache = cache_dir(os.environ)
        if shutil.which("mvn") is None and not is_whole(cache / version):
            pytest.skip(f"needs mvn to fetch Kafka {version}: install Maven (Debian: apt install maven)")
        try:
            return fetch(version, cache)
        except FetchError as error:
            pytest.fail(str(error), pytrace=False)

    return found


@pytest.fixture(scope="session", autouse=True)
def told_to_end() -> Iterator[None]:
    """Let SIGTERM end the run as Ctrl-C does, brokers first; a shell's background job hears nothing of Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def kafka_root() -> Iterator[Path]:
    """The one temporary root; fails the run if a process or a path is left when all rigs are closed."""
    root = Path(tempfile.mkdtemp(prefix="logdird-kafka-"))
    yield root
    left = leftovers(root)
    shutil.rmtree(root, ignore_errors=True)
    assert left == []
    assert not root.exists()


@pytest.fixture(scope="module")
def make_rig(jars: Callable[[str], Path], kafka_root: Path) -> Iterator[Callable[[str], Rig]]:
    """Make a rig of a version; those a module made are closed at its end, whatever failed before."""
    rigs: list[Rig] = []

    def make(version: str) -> Rig:
        rig = Rig(
            version=version,
            libs=jars(version),
            client_libs=jars(RELEASES[-1]),
            cache=cache_dir(os.environ),
            root=kafka_root / f"{version}-{os.urandom(4).hex()}",
        )
        rigs.append(rig)
        return rig

    yield make
    for rig in rigs:
        rig.close()
