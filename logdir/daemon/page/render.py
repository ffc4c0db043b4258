"""The status page: one self-contained HTML page of a status.

It depends on the status and on the instant it is made for, and on nothing else: it has no script, fetches nothing, and
whatever comes from a disk or a file stands in it as text.

Not here: its sections (``sections``, ``disks``, ``windows``), what is served where (``daemon.web``).

Spec: issue "The daemon at home on a host", status page; design §7.7 "Report".
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from string import Template
from typing import Final

from logdir.daemon.page import disks, sections, windows
from logdir.daemon.page.words import at
from logdir.daemon.report.status import StatusResult
from logdir.markup import STYLE, digest, text

_HERE: Final = "logdir.daemon.page"


def render(status: StatusResult, now_ms: int) -> str:
    """Return the status page.

    Args:
        status: The daemon at one instant.
        now_ms: Wall clock of the page: time spans up to now, or from now on, end or begin there.

    Returns:
        A whole HTML document; equal arguments give equal text.
    """
    style = _part("logdir", STYLE) + _part(_HERE, "page.css")
    return Template(_part(_HERE, "page.html")).substitute(
        style=style,
        style_digest=digest(style),
        name=text(status.name),
        verdict=sections.verdict(status, now_ms),
        log_dirs=disks.log_dirs(status),
        undo=windows.undo(status, now_ms),
        history=sections.history(status),
        gaps=sections.gaps(status),
        failed=sections.failed(status),
        made_at=at(now_ms),
        version=text(status.version),
    )


@cache
def _part(package: str, name: str) -> str:
    """Return a file of the installation; it is read once: the page comes from memory."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
