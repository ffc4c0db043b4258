"""The process of one daemon: its parts put together, its signals, and its messages to systemd.

Not here: the parts (``supervisor``, ``socket.server``, ``web.server``, ``watches``), the timer (``scheduler``), its
options (``tools.logdird``).

Spec: design §5, §6.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from logdir.daemon.config import DaemonConfig, broker_of, delete_delay_ms, read_config
from logdir.daemon.faults import fault_of
from logdir.daemon.metrics.exposition import textfile_of
from logdir.daemon.metrics.textfile import Textfile
from logdir.daemon.report.history import History
from logdir.daemon.report.log import JsonFormatter
from logdir.daemon.report.notify import Notifier
from logdir.daemon.socket.server import Control
from logdir.daemon.supervisor import Supervisor
from logdir.daemon.timer import Timer
from logdir.daemon.watches import Watches
from logdir.daemon.web.passed import take_passed
from logdir.daemon.web.server import Web
from logdir.daemon.web.site import NAMES
from logdir.disk.kernel.kernel_process import give_back_memory
from logdir.errors import LogDirError, Problem
from logdir.service.report.exit_status import problems_of

LOG: Final = logging.getLogger("logdir.daemon")
_TICK_S: Final = 5.0
"""How often the main thread looks whether the others work, and whether the wall clock was set."""
_END_S: Final = 1.0
"""How long a part may take to end, beside the work that it has in hand."""
MakeTimer = Callable[[Callable[[], None], Callable[[], None], Callable[[], None]], Timer]
"""Makes the timer from what its jobs call: a sweep, a purge of what is due, a rescan."""


def log_to_stderr() -> None:
    """Write every log line of this process to standard error, as JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def _make_directories(config: DaemonConfig) -> None:
    try:
        os.makedirs(config.state_dir, mode=0o750, exist_ok=True)
        Path(config.socket).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        path = os.fsdecode(error.filename or config.state_dir)
        fix = "make it, writable for the owner of the log dirs; or name another with state.dir or socket"
        raise LogDirError(
            path, expected="a directory that can be made", found=error.strerror, fix=fix, slug="no-permission"
        ) from error


class DaemonProcess:
    """The parts of one daemon, and its signals."""

    def __init__(self, config: DaemonConfig, *, version: str, make_timer: MakeTimer) -> None:
        """Put a daemon together that is not started.

        Args:
            config: Its configuration.
            version: The release.
            make_timer: Makes its timer.

        Raises:
            LogDirError: the state directory or the folder of the socket cannot be made, or what systemd passed is no
                socket that can be used.
        """
        self.passed = take_passed(NAMES)  # First: no process that is started later gets them.
        broker_of(config)
        self.wake = threading.Event()
        self.is_stop_asked = self.is_reload_asked = False
        self.watches: Watches | None = None
        self.notifier = Notifier()
        _make_directories(config)
        self.supervisor = Supervisor(config, version=version, history=History(config.state_dir))
        supervisor = self.supervisor
        self.timer = supervisor.timer = make_timer(supervisor.sweep, supervisor.purge_due, supervisor.rescan)
        self.textfile = Textfile(
            partial(textfile_of, supervisor), lambda problem: supervisor.counters.note_error(problem, ())
        )
        supervisor.reports.append(self.textfile.problems)

    def run(self) -> None:
        """Run until SIGTERM or SIGINT ends it; SIGHUP reads the configuration again.

        Raises:
            LogDirError: it cannot start, or a fault of ours ended it.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._signalled)
        give_back_memory()
        control = Control(self.supervisor)
        try:
            web = Web(self.supervisor, self.passed)
        except BaseException:
            control.stop()
            raise
        try:
            control.start()
            web.start()
            self.timer.start()
            self._set_sweep(self.supervisor.config)
            self.supervisor.start()
            self.textfile.write_to(self.supervisor.config.metrics_textfile)
            self._wait_for_start()
            self._watch(broker_of(self.supervisor.config).log_dirs)
            self.notifier.send("READY=1", f"STATUS={self.supervisor.state.name}")
            self._loop(control)
        finally:
            self.notifier.send("STOPPING=1")
            with suppress(LogDirError):
                self.supervisor.stop()
            self.timer.stop()
            if self.watches is not None:
                self.watches.stop()
            # The change in progress ends first: its client gets the answer.
            self.supervisor.join(self.supervisor.config.disk_timeout_ms / 1000 + _END_S)
            control.stop()
            self.textfile.close(_END_S)
            web.stop()
            self.supervisor.history.close(_END_S)

    def _wait_for_start(self) -> None:
        while not self.supervisor.started.done() and not self.is_stop_asked:
            self.wake.wait(0.05)
            self.wake.clear()
        if self.supervisor.started.done():
            self.supervisor.started.result()

    def _loop(self, control: Control) -> None:
        tick_s = _TICK_S if self.notifier.watchdog_ms is None else min(_TICK_S, self.notifier.watchdog_ms / 1000)
        while not self.is_stop_asked:
            self.wake.wait(tick_s)
            self.wake.clear()
            self._require_threads(control)
            self.timer.follow_wall_clock()
            if self.notifier.watchdog_ms is not None:
                self.notifier.send("WATCHDOG=1")
            if self.is_reload_asked:
                self.is_reload_asked = False
                self._reload()

    def _require_threads(self, control: Control) -> None:
        """Check that the threads work without which the daemon does not what it seems to do.

        Raises:
            LogDirError: one has ended: the daemon ends, and is started again.
        """
        for name, part in (("changes", self.supervisor), ("control", control), ("timer", self.timer)):
            if not part.is_alive():
                found = f"that the thread {name} has ended"
                fix = "read the log; systemd starts logdird again"
                raise LogDirError("logdird", expected="threads that work", found=found, fix=fix, slug="internal-error")

    def _reload(self) -> None:
        """Read the configuration again; one that is refused changes nothing, and the former one stays in use."""
        self.notifier.send("RELOADING=1")
        file = self.supervisor.config.file
        try:
            self._take(read_config(file))
            LOG.info("config.reloaded file=%s", file)
        except LogDirError as error:
            self._refuse(problems_of(error))
        except Exception as error:  # What no rule foresees must not end a daemon that works by the former one.
            LOG.exception("config.fault")
            self._refuse((fault_of(file, error),))
        self.notifier.send("READY=1")

    def _take(self, config: DaemonConfig) -> None:
        """Use another configuration from now on. Raises ``LogDirError``: it is refused, and nothing was changed."""
        # All that may be refused comes first.
        log_dirs, delay_ms = broker_of(config).log_dirs, delete_delay_ms(config.server_properties)
        self.supervisor.reload(config)
        self.timer.set_sweep(config.sweep_ms, delay_ms)
        self.textfile.write_to(config.metrics_textfile)
        self._watch(log_dirs)

    def _refuse(self, problems: tuple[Problem, ...]) -> None:
        for problem in problems:
            LOG.error("config.refused %s", problem.line())
        self.supervisor.refuse_reload(problems)

    def _watch(self, log_dirs: tuple[str, ...]) -> None:
        """Watch these log dirs; watches of others end."""
        if self.watches is not None and self.watches.log_dirs == log_dirs:
            self.watches.leave(())
            return
        made = Watches(log_dirs, self.supervisor.sweep)
        if self.watches is not None:
            self.watches.stop()
        self.watches = made
        self.supervisor.unwatch, self.supervisor.unwatched = made.leave, made.failures
        made.start()

    def _set_sweep(self, config: DaemonConfig) -> None:
        self.timer.set_sweep(config.sweep_ms, delete_delay_ms(config.server_properties))

    def _signalled(self, number: int, frame: object) -> None:
        if number == signal.SIGHUP:
            self.is_reload_asked = True
        else:
            self.is_stop_asked = True
        self.wake.set()
