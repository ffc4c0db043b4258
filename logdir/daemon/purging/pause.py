"""The pause file: while ``pause-purge`` exists in the state directory, the daemon purges nothing. It purges in short
steps, so that the file counts within a second.

It may only hold purges back: what cannot be looked at counts as a pause file that exists.

Spec: design §2 law 2; issue "The daemon", events to actions.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import ClassVar, Final

from logdir.errors import StateError
from logdir.paths import PAUSE_FILE
from logdir.service.batch.purge_batches import Halted
from logdir.service.purge import PurgeRequest

STEP_MS: Final = 500
"""Longest time of one step of a purge: a capture may be waiting, and a pause file or a stop counts within a second."""


class PauseFileError(StateError):
    """The pause file exists: nothing is purged."""

    code: ClassVar[str] = "pause-file"


def pause_error(state_dir: str) -> PauseFileError | None:
    """Return the error that the pause file exists in a state directory; ``None``: it does not."""
    path = os.path.join(state_dir, PAUSE_FILE)
    try:
        os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        found = error.strerror or str(error)
    else:
        found = "the file"
    return PauseFileError(
        path, expected="no such file, to purge anything", found=found, fix="remove it, and the purges go on"
    )


def in_steps(request: PurgeRequest, halted: Halted) -> PurgeRequest:
    """Return a request of an operator so that captures come between its steps, and a pause file stops it soon."""
    budget_ms = min(request.budget_ms or STEP_MS, STEP_MS)
    return replace(request, budget_ms=budget_ms, goes_on=not request.budget_ms, halted=halted)
