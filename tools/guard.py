"""Refuse to run a mixture of installations.

The four packages have short names that other distributions could carry too; running with half of somebody else's
code could do harm, so ``logdirctl`` checks this first.

Spec: design §1.
"""

from __future__ import annotations

import os

import logdir
import migrate
import scheduler
import tools


def mixed_installation() -> str | None:
    """Return an error line if the four packages do not lie side by side, else ``None``."""
    homes = {
        os.path.dirname(os.path.dirname(os.path.abspath(package.__file__ or "?")))
        for package in (logdir, migrate, scheduler, tools)
    }
    if len(homes) == 1:
        return None
    found = ", ".join(sorted(homes))
    return (
        "mixed-installation: logdir, migrate, scheduler, tools: expected one installation, "
        f"found {found}; install logdird into an environment of its own"
    )
