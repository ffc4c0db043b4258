"""How the tests start a JVM: what the machine must have, the command line, a cap on brokers alive at once.

Every JVM is told to keep its temporary files below the rig's root, which also makes that root part of its
command line: ``leftovers`` finds by it whatever outlived its rig. Where ``setpriv`` exists, the kernel ends a
JVM whose tests died without cleaning up.

Not here: brokers (``rig.py``), the client (``client.py``).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.kafka.fetch import locked

MIN_JAVA: Final = 17
MAX_BROKERS: Final = 3
"""Brokers alive at once on this machine, over all test processes that share a cache."""
_SLOT_TIMEOUT_SECONDS: Final = 150
_HELPER: Final = Path(__file__).with_name("Helper.java")

_LOG4J: Final = """log4j.rootLogger={level}, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%d{{HH:mm:ss,SSS}} %p %m (%c{{1}})%n
"""


class RigError(Exception):
    """A broker or tool did not do what the test asked of it."""


def missing_java() -> str:
    """Return one line that says what to install before brokers can run here; empty if nothing."""
    wanted = f"a JDK {MIN_JAVA} or newer: install one (Debian: apt install openjdk-17-jdk-headless)"
    if shutil.which("java") is None or shutil.which("javac") is None:
        return f"the kafka tests need {wanted}; found no java or no javac"
    said = subprocess.run(["java", "-XX:-UsePerfData", "-version"], capture_output=True, text=True, timeout=60).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < MIN_JAVA:
        return f"the kafka tests need {wanted}; found {said.splitlines()[0] if said else 'no answer'}"
    return ""


def java_command(*, libs: Path, root: Path, heap_mib: int, level: str, classes: Path | None = None) -> list[str]:
    """Return the start of a command line; a main class and its arguments follow.

    Args:
        libs: Folder of jars.
        root: The rig's temporary root; a logging configuration is written there.
        heap_mib: Fixed heap size in MiB.
        level: Of logging to stdout: ``INFO``, ``WARN``, ``OFF``.
        classes: Folder of compiled classes that goes before the jars.
    """
    scratch = root / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    log4j = root / f"log4j-{level.lower()}.properties"
    if not log4j.exists():
        log4j.write_text(_LOG4J.format(level=level))
    guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    options = [f"-Xms{heap_mib}m", f"-Xmx{heap_mib}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    # Performance data would lie in /tmp whatever java.io.tmpdir says, crash reports where pytest was started.
    options += ["-XX:-UsePerfData", f"-XX:ErrorFile={root}/hs_err.log", f"-Djava.io.tmpdir={scratch}"]
    options += ["-Djava.awt.headless=true", f"-Dlog4j.configuration=file:{log4j}"]
    path = f"{classes}:{libs}/*" if classes else f"{libs}/*"
    return [*guard, "java", *options, "-cp", path]


def compiled_helper(cache: Path, libs: Path) -> Path:
    """Return the folder with the compiled ``Helper``, compiling it into ``cache`` at its first use.

    Raises:
        RigError: It does not compile against the jars in ``libs``.
    """
    digest = hashlib.sha256(_HELPER.read_bytes() + str(libs).encode()).hexdigest()[:16]
    classes = cache / "helper" / digest
    with locked(cache / "helper" / "compile.lock"):
        if not (classes / "Helper.class").exists():
            building = Path(tempfile.mkdtemp(prefix=".building-", dir=classes.parent))
            try:
                command = ["javac", "-J-XX:-UsePerfData", "-cp", f"{libs}/*", "-d", str(building)]
                done = subprocess.run([*command, str(_HELPER)], capture_output=True, text=True, timeout=120)
                if done.returncode:
                    raise RigError(f"javac {_HELPER.name}: {done.stderr.strip()}")
                shutil.rmtree(classes, ignore_errors=True)
                building.rename(classes)
            finally:
                shutil.rmtree(building, ignore_errors=True)
    return classes


def take_slot(cache: Path) -> int:
    """Wait until fewer than ``MAX_BROKERS`` run; return a descriptor that holds the place. Blocks.

    The lock belongs to the open file: handed to a broker's process, the place is free when that process is
    gone, also if the tests died before it.

    Raises:
        RigError: No place became free in time.
    """
    folder = cache / "slots"
    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + _SLOT_TIMEOUT_SECONDS
    while True:
        for number in range(MAX_BROKERS):
            slot = os.open(folder / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(slot)
            else:
                return slot
        if time.monotonic() > until:
            raise RigError(f"{MAX_BROKERS} brokers run on this machine already; end them (locks: {folder})")
        time.sleep(0.2)


def leftovers(root: Path) -> list[str]:
    """Return a line for every process whose command line names ``root``, and for every path left below it."""
    wanted = os.fsencode(root)
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:  # ended meanwhile, or somebody else's
            continue
        if wanted in command:
            found.append(f"process {entry.name}: {os.fsdecode(command.replace(bytes(1), b' '))[:200]}")
    return sorted(found) + [f"path {path}" for path in sorted(root.rglob("*"))]
