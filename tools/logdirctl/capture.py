"""``logdirctl capture``: keep ``-delete`` and ``-stray`` directories before the broker removes them.

Not here: which directories are captured, and how (``logdir.service.capture``).
"""

from __future__ import annotations

from tools.cli.broker import CHANGED, next_argv, selector
from tools.cli.command import Change, Command
from tools.cli.delay import DELAY, HOLD

_SELECTOR = selector("everything if there is none")
COMMAND = Command(
    title="capture",
    description="Keep the -delete and -stray directories that lie in the log dirs now, by hard links in the work "
    "root: a -delete directory is gone a minute after its topic was deleted. A broker may run; nothing of it is "
    "changed. What was captured can be exported, and stays until its deadline.",
    ends="0 done, 1 not all was done, 2 usage or configuration, 4 refused",
    options=(_SELECTOR, *CHANGED, DELAY, HOLD),
    run=Change(again=(_SELECTOR, next_argv, DELAY, HOLD)),
)
