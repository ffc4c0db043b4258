"""What all tests share: a scrubbed environment, one Spark session, and the record of what was proven."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.free_space import roomy
from tests.proof import plugin as proof

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling

# What the person who starts the tests says.
_KEPT = (
    "LOGDIRD_PROOF", "LOGDIRD_PROOF_OUT", "LOGDIRD_CI", "LOGDIRD_CI_SEED", "LOGDIRD_KAFKA_CACHE", "LOGDIRD_OPERATIONS",
)  # fmt: skip

for _name in [name for name in os.environ if name.startswith(("LOGDIRD_", "SPARK_", "PYSPARK_")) and name not in _KEPT]:
    del os.environ[_name]

os.umask(0o022)
"""As on a host: what a test puts into an inbox is refused if its group can write it."""


# How long an example takes says something about the machine alone.
hypothesis.settings.register_profile("logdird", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("logdird")


def pytest_configure(config: pytest.Config) -> None:
    """Gather what tests record of the proof."""
    proof.configure(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Run all that needs Spark in one worker, and what takes long first, unless files are torn apart anyhow."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.schedule import LongFirst

    return LongFirst(config, log)


@pytest.fixture(autouse=True, scope="session")
def half_of_the_disk_free() -> Iterator[None]:
    """Report at least half of the disk that tests run on as free: a capture must not depend on how full it is."""
    with roomy():
        yield


@pytest.fixture(autouse=True, scope="session")
def ports_in_this_process() -> Iterator[None]:
    """Make the calls of every log dir in this process: most tests are about what they do, not about who makes them."""
    from logdir.worker.start import placed

    with placed(is_here=True):
        yield


@pytest.fixture
def workers() -> Iterator[None]:
    """Make the calls of every log dir in worker processes, as a command does."""
    from logdir.worker.start import placed

    with placed(is_here=False):
        yield


@pytest.fixture
def record_proof(request: pytest.FixtureRequest) -> proof.Recorder:
    """Record what a test showed of a claim of :mod:`tests.proof.claims`; call it last, when all was asserted."""
    return proof.Recorder(request.node)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local Spark session for the whole run: two cores, no UI, UTC, two shuffle partitions."""
    for package in ("pyspark", "pyarrow", "pandas"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}: pip install 'logdird[fleet]'")
    from migrate import jvm
    from migrate.errors import SessionError
    from migrate.session import spark_session

    try:
        jvm.find(os.environ)
    except SessionError as error:
        pytest.skip(str(error))
    with spark_session("local[2]", memory="1g", shuffle_partitions=2) as session:
        yield session
