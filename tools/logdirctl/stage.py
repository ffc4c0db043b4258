"""``logdirctl stage``: stage replicas, to be restored or purged later.

Not here: deciding and staging (``logdir.service.stage``).
"""

from __future__ import annotations

from logdir.service.report.following import after_stage
from tools.cli.broker import CHANGED, even_if_unknown, next_argv, selector
from tools.cli.command import CHANGES, Change, Command
from tools.cli.delay import DELAY, HOLD
from tools.cli.option import Flag
from tools.cli.protection import protection
from tools.cli.source import SOURCE, named_argv

_SELECTOR, _PROTECTION = selector(), protection()
_UNKNOWN = "also where it is not known whether the cluster assigns it here; it never gets a deadline"
_OVERRIDES = (
    Flag("--even-if-last", "also the only in-sync replica; it never gets a deadline", "is_even_if_last"),
    even_if_unknown(_UNKNOWN),
    Flag("--even-over-limit", "also stage what exceeds the staging limit", "is_even_over_limit"),
)
COMMAND = Command(
    title="stage",
    description="Move live replicas of a stopped broker to the work root. They can be restored until purged.",
    ends=CHANGES,
    options=(_SELECTOR, *CHANGED, DELAY, HOLD, *_PROTECTION, *SOURCE, *_OVERRIDES),
    run=Change(again=(_SELECTOR, next_argv, DELAY, HOLD, *_PROTECTION, named_argv), next_of=after_stage),
)
