"""Syncs that no model misses, each with the reason it is kept: at most a fifth of all.

A key is ``module.function: call``, as ``seeded.patched.sync_calls`` finds it.

Spec: reliability §4.4 ("every fsync must either be killed by some model or carry a comment naming the assumption").
"""

from __future__ import annotations

REDUNDANT: dict[str, str] = {}
