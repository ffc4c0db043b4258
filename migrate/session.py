"""The Spark session: started without output on the terminal, stopped together with its JVM.

``spark_session`` finds a JVM, starts it with a configuration for one machine (or for a given cluster), writes its log
to a file, and stops it when the body is left. A failed job becomes one error line that names the log file.

Not here: the computations. pyspark is imported only inside functions, so that this module can be imported on a broker
host.

Spec: libraries §1.2, §1.3; design §7.3, §10 "fleet plan"; style §5.10.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import migrate
from migrate import jvm
from migrate.errors import NoSparkError, SessionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER_VARIABLE = "LOGDIRD_SPARK_MASTER"
MEMORY_VARIABLE = "LOGDIRD_SPARK_MEMORY"
DEFAULT_MASTER = "local[*]"
_GIB = 1024**3
_STOP_SECONDS = 20
_LOG4J = """status = off
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{ISO8601}{UTC}Z %p %c{1}: %m%n%ex
"""
# Of a failed task's text only the line from our own error is for people.
_OURS = re.compile(r"^(?:migrate|logdir)\.[\w.]*(?:Error): (.+)$", re.MULTILINE)


def is_local(master: str) -> bool:
    """Whether Spark with this master URL runs completely on this machine, in one JVM.

    >>> is_local("local[2,3]"), is_local("local-cluster[2,1,1024]"), is_local("spark://host:7077")
    (True, False, False)
    """
    return master == "local" or master.startswith("local[")


def _memory_bytes() -> int:
    """Return the bytes of memory of this machine, or the limit of its control group if that is smaller."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            total = min(total, int(Path(limit).read_text(encoding="ascii")))
    return total


def driver_memory(total_bytes: int) -> str:
    """Return the heap for the driver's JVM: half of the memory, at least 1 and at most 4 GiB, as Spark
    writes it.

    >>> driver_memory(24 * 1024**3), driver_memory(4 * 1024**3), driver_memory(512 * 1024**2)
    ('4096m', '2048m', '1024m')
    """
    return f"{min(4 * _GIB, max(_GIB, total_bytes // 2)) // 1024**2}m"


def python_path() -> tuple[str, ...]:
    """Return the folders that a Spark worker's Python needs on its path to import this project and ``pyspark_logdir``.

    An installation needs none of them; a source tree that is imported by path needs both.
    """
    tree = Path(migrate.__file__).parent.parent
    bridge = tree / "migrate" / "spark_bridge"
    listed = importlib.util.find_spec("pyspark_logdir") is not None
    return (str(tree),) if listed or not bridge.is_dir() else (str(tree), str(bridge))


# Parallel GC: nothing here waits for a pause, and on two cores G1's own threads take a tenth of the time.
# The optimizing compiler only for very hot code (ten times the usual thresholds): most of Spark's code runs once or
# twice a plan, and full compilation took a quarter of the processor's time at ten thousand directories.
_JVM_OPTIONS = (
    "-XX:+UseParallelGC -Xms1g -XX:-UsePerfData -XX:+ExitOnOutOfMemoryError "
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)


def configuration(
    master: str, *, folder: Path, memory: str | None, shuffle_partitions: int, given: Mapping[str, str]
) -> dict[str, str]:
    """Return Spark's settings for a session.

    Args:
        master: Spark's master URL.
        folder: A private directory for the warehouse and, on one machine, for what does not fit in memory.
        memory: The driver's heap, as Spark writes it (``4g``); ``None`` asks the machine.
        shuffle_partitions: How many partitions a shuffle makes before adaptive execution joins small ones.
        given: Settings that override ours.

    Returns:
        Names and values, all texts.
    """
    logging = folder / "log4j2.properties"
    options = f"{_JVM_OPTIONS} -Dlog4j2.configurationFile=file:{logging}"
    settings = {
        "spark.master": master,
        "spark.app.name": "logdird fleet",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": memory or driver_memory(_memory_bytes()),
        "spark.driver.extraJavaOptions": options,
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        # A partition's brokers are collected hash by hash; the default of 128 groups falls back to sorting at once.
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1000000",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.python.filterPushdown.enabled": "true",
    }
    if is_local(master):
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.local.dir": str(folder / "local"),
        }
    return settings | dict(given)


class _Gateway(Protocol):
    proc: subprocess.Popen[bytes] | None

    def shutdown(self) -> None: ...


@contextlib.contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set (or with ``None`` unset) environment variables, and restore them afterwards."""
    before = {name: os.environ.get(name) for name in changes}
    _put(changes)
    try:
        yield
    finally:
        _put(before)


def _put(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _variables(master: str, folder: Path) -> dict[str, str | None]:
    found = jvm.find(os.environ)
    known = os.environ.get("PYTHONPATH", "")
    changes: dict[str, str | None] = {
        "JAVA_HOME": str(jvm.java_home(found, (jvm.cache_dir(os.environ), folder))),
        "PYTHONPATH": os.pathsep.join(part for part in (*python_path(), known) if part),
        # A warning of a library inside a worker is not ours to turn into a failure.
        "PYTHONWARNINGS": None,
    }
    if is_local(master):
        # One machine: the interpreter and the Spark of this very environment, whatever else is set up here.
        changes |= dict.fromkeys(("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE"))
        changes["SPARK_LOCAL_DIRS"] = None  # It would override spark.local.dir.
        changes["SPARK_LOCAL_IP"] = "127.0.0.1"
        changes["PYSPARK_PYTHON"] = sys.executable
    elif "PYSPARK_PYTHON" not in os.environ:
        changes["PYSPARK_PYTHON"] = sys.executable
    return changes


def first_line(error: BaseException) -> str:
    """Return the line of a Spark error that names the cause: our own error if a task raised one, else the first."""
    text = str(error)
    ours = _OURS.findall(text)
    if ours:
        return str(ours[-1])
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


def _halt(gateway: _Gateway) -> None:
    """Stop the JVM behind a gateway; wait until it has ended, and kill it after 20 seconds."""
    with contextlib.suppress(Exception):
        gateway.shutdown()
    process = gateway.proc
    if process is None:
        return  # Started by spark-submit, its parent, which will end it.
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()  # The JVM ends when its input is closed.
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _active() -> SparkSession | None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() if SparkContext._active_spark_context is not None else None


@contextlib.contextmanager
def spark_session(
    master: str | None = None,
    *,
    memory: str | None = None,
    shuffle_partitions: int = 8,
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Start a Spark session for the body; stop it and its JVM when the body is left.

    If this process already has a session, that one is used, and left running.

    Args:
        master: Spark's master URL; ``None`` asks ``LOGDIRD_SPARK_MASTER``, then takes all cores of this
            machine.
        memory: The driver's heap (``4g``); ``None`` asks ``LOGDIRD_SPARK_MEMORY``, then the machine.
        shuffle_partitions: How many partitions a shuffle makes at most.
        settings: Further settings of Spark, which override ours.

    Yields:
        The session. Its time zone is UTC.

    Raises:
        NoSparkError: pyspark is not installed.
        SessionError: there is no JVM, it is too old or did not start; or a Spark job of the body failed. The error
            names the file with the JVM's output.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise NoSparkError(
            "pyspark",
            expected="the extra logdird[fleet]",
            found="no package pyspark",
            fix="pip install 'logdird[fleet]'",
        )
    lent = _active()
    if lent is not None:
        yield lent
        return
    master = master or os.environ.get(MASTER_VARIABLE) or DEFAULT_MASTER
    memory = memory or os.environ.get(MEMORY_VARIABLE) or None
    folder = Path(tempfile.mkdtemp(prefix="logdird-spark-"))
    keep = False
    try:
        (folder / "log4j2.properties").write_text(_LOG4J, encoding="ascii")
        given = dict(settings or {})
        conf = configuration(master, folder=folder, memory=memory, shuffle_partitions=shuffle_partitions, given=given)
        with _environment(_variables(master, folder)):
            yield from _running(conf, folder / "jvm.log")
    except SessionError as error:
        keep = str(folder) in str(error)
        raise
    finally:
        _clear(folder, keep_log=keep)


def _clear(folder: Path, *, keep_log: bool) -> None:
    if not keep_log:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for path in folder.iterdir():
        if path.name == "jvm.log":
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _running(settings: Mapping[str, str], log: Path) -> Iterator[SparkSession]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    failures = (PySparkException, Py4JError)
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    gateway: Any = None
    started = False
    try:
        with log.open("wb") as sink, warnings.catch_warnings():
            # Popen's preexec_fn beside threads draws a DeprecationWarning from 3.12 on; it is pyspark's.
            warnings.simplefilter("ignore", DeprecationWarning)
            launch: Any = launch_gateway  # Untyped in pyspark.
            gateway = launch(conf, {"stdout": sink, "stderr": sink})
        context = SparkContext(conf=conf, gateway=gateway)
        spark = SparkSession(context)
        started = True
        try:
            yield spark
        finally:
            with contextlib.suppress(*failures, OSError):
                spark.stop()
    except failures as error:
        expected = "Spark to finish its work" if started else "Spark to start"
        # The reason is in the fix, which is never shortened: our own errors end with what to do.
        raise SessionError(
            str(log),
            expected=expected,
            found="a failure",
            fix=f"{' '.join(first_line(error).split())}; that file holds the output of the JVM",
        ) from error
    finally:
        SparkContext._gateway = None
        SparkContext._jvm = None
        if gateway is not None:
            _halt(gateway)
