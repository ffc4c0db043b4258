"""Fetches stock Kafka releases by their Maven coordinates into a cache outside the repository.

Run as a program it fills the cache ahead of a test run: ``python tests/kafka/fetch.py 3.9.2 4.3.1``. Where
the jars come from is the machine's own Maven configuration; no address stands here. A release is complete or
not there: it is put together beside its final place and renamed.

Not here: starting anything of what was fetched (``rig.py``).

Spec: design §9, row "real Kafka"; https://kafka.apache.org/downloads for the coordinates.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

RELEASES: Final = ("3.9.2", "4.3.1")
"""The releases the tests compare with: the last that still knows ZooKeeper, and the newest."""
TRIES: Final = 3
_MVN_TIMEOUT_SECONDS: Final = 280
_WHOLE: Final = "whole.txt"
"""``{bytes} {name}`` per jar, written last: a cache somebody cleaned by hand is noticed and filled again."""

_POM: Final = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>logdird.test</groupId><artifactId>stock-kafka</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""


class FetchError(Exception):
    """A release cannot be had; the message is one line that says what to do."""


def cache_dir(environ: Mapping[str, str]) -> Path:
    """Return the folder that holds the fetched releases; it need not exist.

    Args:
        environ: ``LOGDIRD_KAFKA_CACHE`` wins, then ``XDG_CACHE_HOME``, then ``HOME``.
    """
    if own := environ.get("LOGDIRD_KAFKA_CACHE"):
        return Path(own).absolute()
    if xdg := environ.get("XDG_CACHE_HOME"):
        return Path(xdg).absolute() / "logdird" / "kafka"
    home = environ.get("HOME")
    return (Path(home) if home else Path.home()) / ".cache" / "logdird" / "kafka"


def coordinates(version: str) -> tuple[str, ...]:
    """Return the Maven coordinates of a release, each ``group:artifact:version``."""
    stock = (f"org.apache.kafka:kafka_2.13:{version}", f"org.apache.kafka:kafka-tools:{version}")
    # 4.x leaves the choice of an SLF4J binding to its distribution; without one a broker says nothing at all.
    return stock if int(version.split(".")[0]) < 4 else (*stock, "org.slf4j:slf4j-reload4j:1.7.36")


def render_pom(version: str) -> str:
    """Return the text of a throw-away ``pom.xml`` whose closure is a runnable release."""
    lines = []
    for group, artifact, wanted in (c.split(":") for c in coordinates(version)):
        lines.append(
            f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{wanted}</version></dependency>"
        )
    return _POM.format(dependencies="\n".join(lines))


def is_whole(release: Path) -> bool:
    """Whether every jar the fetch left in ``release`` is still there in its full size."""
    try:
        wanted = [line.split(" ", 1) for line in (release / _WHOLE).read_text().splitlines()]
        return bool(wanted) and all((release / "libs" / n).stat().st_size == int(s) for s, n in wanted)
    except (OSError, ValueError):
        return False


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` (made if absent): parallel test runs fill a cache once. Blocks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch(version: str, cache: Path, *, pause: Callable[[float], None] = time.sleep) -> Path:
    """Return the folder with the jars of a release, fetched into ``cache`` first if they are not whole there.

    Args:
        version: For example ``4.3.1``.
        cache: See ``cache_dir``; made if absent.
        pause: Waits so many seconds between two tries.

    Raises:
        FetchError: There is no ``mvn``, or it failed three times.
    """
    release = cache / version
    with locked(cache / "fetch.lock"):
        if not is_whole(release):
            _fill(version, cache, release, pause)
    return release / "libs"


def _fill(version: str, cache: Path, release: Path, pause: Callable[[float], None]) -> None:
    if shutil.which("mvn") is None:
        raise FetchError(
            f"Kafka {version} is not in {cache} and there is no mvn: install Maven (Debian: apt install maven)"
        )
    said = ""
    for attempt in range(1, TRIES + 1):
        building = Path(tempfile.mkdtemp(prefix=f".{version}-", dir=cache))
        try:
            said = _copy_dependencies(version, building)
            if not said:
                shutil.rmtree(release, ignore_errors=True)
                building.rename(release)
                return
        finally:
            shutil.rmtree(building, ignore_errors=True)
        if attempt < TRIES:
            pause(2.0 * attempt)
    raise FetchError(
        f"Kafka {version} cannot be fetched ({TRIES} tries), last answer: {said}; "
        f"check the network and Maven's settings, or set LOGDIRD_KAFKA_CACHE to a filled cache"
    )


def _copy_dependencies(version: str, building: Path) -> str:
    """Fill ``building``; return an empty text, or one line that says what went wrong."""
    (building / "pom.xml").write_text(render_pom(version))
    libs = building / "libs"
    command = ["mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(building / "pom.xml")]
    command += ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={libs}"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_MVN_TIMEOUT_SECONDS,
            stdin=subprocess.DEVNULL,
            # Else the JVM leaves a folder of performance data in /tmp.
            env={**os.environ, "MAVEN_OPTS": f"{os.environ.get('MAVEN_OPTS', '')} -XX:-UsePerfData".strip()},
        )
    except subprocess.TimeoutExpired:
        return f"mvn did not end within {_MVN_TIMEOUT_SECONDS} s"
    if done.returncode:
        lines = [ln for ln in (done.stdout + done.stderr).splitlines() if ln.strip()] or ["nothing"]
        told = next((ln for ln in lines if ln.startswith("[ERROR]")), lines[-1])
        return f"mvn exit {done.returncode}: {told.removeprefix('[ERROR] ').strip()[:300]}"
    jars = sorted(libs.glob("*.jar"))
    if not any(jar.name == f"kafka_2.13-{version}.jar" for jar in jars):
        return f"mvn succeeded but left no kafka_2.13-{version}.jar"
    (building / _WHOLE).write_text("".join(f"{jar.stat().st_size} {jar.name}\n" for jar in jars))
    return ""


def main(argv: Sequence[str]) -> int:
    """Fetch the releases named, by default those the tests use; print where each lies."""
    cache = cache_dir(os.environ)
    try:
        for version in argv or RELEASES:
            print(fetch(version, cache))
    except FetchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
