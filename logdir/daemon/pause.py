"""The pause file: while ``pause-purge`` exists in the state directory, the daemon purges nothing.

It may only hold purges back: what cannot be looked at counts as a pause file that exists.

Spec: design §2 law 2; issue "The daemon", events to actions.
"""

from __future__ import annotations

import os
from typing import ClassVar

from logdir.errors import StateError
from logdir.paths import PAUSE_FILE


class PauseFileError(StateError):
    """The pause file exists: nothing is purged."""

    code: ClassVar[str] = "pause-file"


def pause_error(state_dir: str) -> PauseFileError | None:
    """Return that the pause file exists in a state directory; ``None``: it does not."""
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
