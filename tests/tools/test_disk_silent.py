"""A log dir that gives no sign of life: what the exit status says of it (``tests/hung`` has real ones)."""

from __future__ import annotations

import pytest

from logdir.errors import LogDirOfflineError, LogDirSuspectError
from logdir.service.report.exit_status import exit_for


@pytest.mark.parametrize(("kind", "status"), [(LogDirSuspectError, 4), (LogDirOfflineError, 1)])
def test_a_command_that_one_log_dir_stops_is_refused(kind: type[LogDirOfflineError], status: int) -> None:
    assert exit_for(kind("/d1", expected="an answer", found="none")) == status
