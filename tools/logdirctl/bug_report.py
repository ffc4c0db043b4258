"""``logdirctl bug-report``: what lies on a host, for those who look into a fault, without records and secrets.

Not here: what is in it (``logdir.service.bug_report``), what a daemon adds (``logdir.daemon.report``).

Spec: design §6.
"""

from __future__ import annotations

import argparse
from contextlib import suppress

from logdir.daemon.report.for_bug_report import documents
from logdir.errors import LogDirError
from logdir.service.bug_report import report
from logdir.service.bug_report.report import REPORTED_COLUMNS, WARNING, BugReportRequest
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.table import Table
from tools.cli.arguments import Streams, answer
from tools.cli.broker import BROKER, JSON, argv_of, request_of, timeout_ms
from tools.cli.change import socket_of_daemon
from tools.cli.command import Command
from tools.cli.option import Option
from tools.cli.progress import TerminalReporter
from tools.version import VERSION


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    reporter = TerminalReporter(streams, arguments.title)
    reporter.warn(WARNING)
    broker, socket = BrokerRequest(disk_timeout_ms=timeout_ms(arguments)), None
    with suppress(LogDirError):  # What is wrong with a configuration is a part of the report.
        broker = request_of(arguments)
        socket = socket_of_daemon(arguments)
    added = documents(arguments.config, socket)
    asked = BugReportRequest(broker=broker, output=arguments.output, version=VERSION)
    result, problems = report.make(asked, added, reporter)
    lines = (f"wrote {result.output}", f"next: logdirctl inventory {argv_of(arguments)}")
    return answer(arguments, streams, result, problems, (Table(REPORTED_COLUMNS, result.files), *lines))


COMMAND = Command(
    title="bug-report",
    run=act,
    description="Write versions, settings without secrets, inventories and the small files of logdird into an archive. "
    "Reads only. It holds names of topics and paths, and no records.",
    ends="0 all of it was read, 1 a part could not be read, 2 usage or configuration, 4 refused",
    options=(
        *BROKER,
        Option("-o --output", "a directory for the report, or its file; it must not exist", "PATH", default="."),
        JSON,
    ),
)
