"""``logdird``: the daemon of one broker.

Not here: what it does (``logdir.daemon``), its timer (``scheduler``).

Spec: design §5, §6.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TextIO

from logdir.daemon.config import broker_of, read_config
from logdir.daemon.process import DaemonProcess, log_to_stderr
from logdir.errors import LogDirError
from logdir.service.log_dirs.proof import check
from logdir.service.report.exit_status import Exit, exit_for, problems_of
from scheduler.timer import Timer
from tools.version import VERSION


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of ``logdird``."""
    parser = argparse.ArgumentParser(
        prog="logdird",
        description="Keep what a Kafka broker removes from its log dirs, and purge it when its deadline has passed.",
        epilog="exit status: 0 ended in order, 1 problems found, 2 usage or configuration, 4 refused, 5 internal",
    )
    parser.add_argument("--config", metavar="FILE", required=True, help="as /etc/logdird/NAME.yaml")
    parser.add_argument(
        "--check-config", action="store_true", help="check configuration and log dirs, print OK, and leave"
    )
    parser.add_argument("--version", action="version", version=f"logdird {VERSION}")
    return parser


def main(argv: Sequence[str], stdout: TextIO, stderr: TextIO) -> int:
    """Run the daemon until SIGTERM; return its exit status."""
    arguments = build_parser().parse_args(argv)
    try:
        config = read_config(arguments.config)
        broker = broker_of(config)
        if arguments.check_config:
            if errors := check(config.broker_request()):
                stderr.writelines(f"logdird: {error.problem().line()}\n" for error in errors)
                return max(map(exit_for, errors))
            stdout.write(f"OK: {config.file}: node {broker.node_id}, log dirs {', '.join(broker.log_dirs)}\n")
            return Exit.DONE
        log_to_stderr()
        DaemonProcess(config, version=VERSION, make_timer=Timer).run()
    except LogDirError as error:
        for problem in problems_of(error):
            stderr.write(f"logdird: {problem.line()}\n")
        return exit_for(error)
    return Exit.DONE
