"""The log start that may be written back for a log: none behind the end of that log.

A broker that finds one removes every segment at its start (kafka-behaviour §10.7).

Spec: design §2 law 9, §3.3; attacks A30.
"""

from __future__ import annotations

from dataclasses import replace

from logdir.formats.own.replica_marker import Checkpoints


def within(checkpoints: Checkpoints, log_end: int | None) -> tuple[Checkpoints, str]:
    """Return the entries to write for a log, and what is left out in words, empty if nothing is.

    Args:
        checkpoints: The entries that are known of it.
        log_end: The offset after its last record; ``None``: not known.
    """
    start = checkpoints.log_start
    if not start or (log_end is not None and start <= log_end):
        return checkpoints, ""
    why = "lies behind its end" if log_end is not None else "may lie behind its end, which is not known"
    return replace(checkpoints, log_start=None), f"; its log start {start} {why}: no log start is written"
