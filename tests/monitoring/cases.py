"""For each alert what makes it fire, and the first minute in which it does; and what must not, though it is close."""

from __future__ import annotations

from typing import NamedTuple

from tests.monitoring.healthy import BOUNDS


class Case(NamedTuple):
    """Series that differ from those of a healthy daemon, one a line; two blanks part the values from the labels."""

    alert: str
    differing: str
    minute: int
    """The first in which the alert fires; of a near miss, through which it does not."""
    since: int = 0
    """The first minute in which the rules are evaluated."""
    labels: tuple[tuple[str, str], ...] = ()
    """Some labels of the alert."""


_D1 = (("log_dir", "/d1"),)
_STATE = 'logdird_log_dir_state{log_dir="/d1", state="online"}  1x9 0x50\nlogdird_log_dir_state{log_dir="/d1", state='
_INFO = 'logdird_info{daemon="b1", version="0.3.0", node_id="1", cluster_id="c"}'
_FILE = 'node_textfile_mtime_seconds{file="/t/logdird-b1.prom"}'
_PAUSED = 'logdird_waiting{slug="pause-file"}'
_DUE = 'logdird_next_purge_timestamp_seconds{log_dir="/d1"}'
_SLOW = "\n".join(f'logdird_look_seconds_bucket{{log_dir="/d1", le="{one}"}}  0+6x9 54x50' for one in BOUNDS[2:10])
"""From the tenth minute on every look takes between 1 and 2.5 seconds."""

FIRES = (
    # Minutes 0 to 9 are well.
    Case("LogdirdDown", "up  1x9 0x20", 12, labels=(("instance", "b1:9404"), ("severity", "critical"))),
    Case("LogdirdGone", f"{_INFO}  1x9 stale", 15, labels=(("daemon", "b1"), ("severity", "critical"))),
    Case("LogdirdTextfileStale", f"{_FILE}  0+60x9 540x30", 14, labels=(("file", "/t/logdird-b1.prom"),)),
    Case("LogdirdTextfileStale", 'node_textfile_mtime_seconds{file="logdird.prom"}  0+60x9 540x30', 14),
    Case("LogdirdNotRunning", "logdird_broker_state  3x9 2x30", 15),
    Case("LogdirdRestarts", "process_start_time_seconds  1000x9 1100 1200 1300 1400x30", 13),
    Case("LogdirdRestarts", 'logdird_process_start_time_seconds{daemon="b2"}  1 2 3 4 5x30', 4),
    Case(
        "LogdirdVersionsDiffer",
        'logdird_info{instance="b2:9404", daemon="b2", version="0.3.1", node_id="2", cluster_id="c"}  1x1500',
        1440,
    ),
    Case("LogdirdReloadRefused", "logdird_config_reload_failed  0x9 1x20", 15),
    Case("LogdirdRequestsQueueUp", "logdird_requests_queued  0x9 11x30", 20),
    Case("LogdirdHistoryDropped", "logdird_history_dropped_total  0x9 5x30", 10),
    Case("LogdirdDocumentsRefused", 'logdird_documents_total{outcome="refused"}  0x9 1x30', 10),
    Case("LogdirdDocumentsRefused", 'logdird_documents_total{outcome="refused"}  _x10 1x30', 10),
    Case("LogdirdMetadataLag", "logdird_metadata_lag  0x9 2000x100", 100),
    Case("LogdirdWaiting", 'logdird_waiting{slug="stale-disk"}  0x9 1x60', 40, labels=(("slug", "stale-disk"),)),
    Case("LogdirdWaiting", 'logdird_waiting{slug="log-dir-error"}  _x10 2x60', 40, labels=(("slug", "log-dir-error"),)),
    Case("LogdirdLogDirOffline", f'{_STATE}"offline"}}  0x9 1x50', 12, labels=_D1),
    Case("LogdirdLogDirQuarantined", f'{_STATE}"quarantined"}}  0x9 1x50', 15, labels=(*_D1, ("state", "quarantined"))),
    Case("LogdirdLogDirReadOnly", f'{_STATE}"read-only"}}  0x9 1x50', 15, labels=(*_D1, ("state", "read-only"))),
    Case("LogdirdDiskHung", f'{_STATE}"suspect"}}  0x9 1x50', 12, labels=_D1),
    # A gigabyte each minute, of 240: with the next minute four hours are too long.
    Case("LogdirdDiskFills", 'logdird_log_dir_free_bytes{log_dir="/d1"}  240e9-1e9x60', 16, labels=_D1),
    Case("LogdirdStagedShare", 'logdird_staged_bytes{log_dir="/d1"}  1e11x9 4e11x90', 70, labels=_D1),
    Case("LogdirdLookSlow", _SLOW, 25, labels=_D1),
    Case("LogdirdErrors", 'logdird_errors_total{log_dir="/d1", slug="disk-error"}  _x10 3 6 9x40', 16, labels=_D1),
    Case("LogdirdErrors", 'logdird_errors_total{log_dir="/d1", slug="disk-error"}  0x29 0+1x30', 41, labels=_D1),
    Case("LogdirdNotWatched", 'logdird_log_dir_watched{log_dir="/d1"}  1x9 0x30', 25, labels=_D1),
    Case("LogdirdUndoOff", 'logdird_undo_off{log_dir="/d1"}  0x9 1x20', 15, labels=_D1),
    Case("LogdirdPurgedEarly", "logdird_purged_early_total  0x9 1x90", 10),
    Case("LogdirdPurgedEarly", "logdird_purged_early_total  _x10 2x30", 10),
    Case("LogdirdDeletionMissed", "logdird_missed_total  0x9 1x90", 10),
    Case("LogdirdDeletionMissed", "logdird_missed_total  _x10 2x30", 10),
    Case("LogdirdNotLooking", "logdird_last_look_timestamp_seconds  0+60x9 540x20", 14),
    Case("LogdirdGap", "logdird_last_gap_end_timestamp_seconds  _x10 600x30", 10),
    Case("LogdirdPartialCapture", 'logdird_partial_captures{log_dir="/d1"}  0x9 1x30', 25, labels=_D1),
    Case("LogdirdPurgesStopped", f"{_PAUSED}  _x10 1x80", 70),
    Case("LogdirdPurgeOverdue", f"{_DUE}  600x140", 130, labels=_D1),
    Case("LogdirdPurgeOverdue", f"{_DUE}  600x9 600+60x140", 130, labels=_D1),
    Case("LogdirdPurgeDoesNotEnd", 'logdird_purging_replicas{log_dir="/d1"}  0x9 1x400', 370, labels=_D1),
    Case("LogdirdPurgeSoon", f"{_DUE}  3600x60", 31, labels=_D1),
    Case("LogdirdHeldGrows", 'logdird_held_replicas{log_dir="/d1"}  0x1499 1x100', 1560, since=1490, labels=_D1),
)

NEAR_MISSES = (
    Case("LogdirdDown", 'up{job="node"}  0x30', 30),
    Case("LogdirdDown", "up  1x9 0 0 1 0 0 1x30", 30),
    Case("LogdirdGone", f"{_INFO}  1x9 stale\nup  1x9 0x60", 40),
    Case("LogdirdGone", f"{_INFO}  1x9 stale\n{_INFO.replace('0.3.0', '0.3.1')}  _x10 1x60", 40),
    Case("LogdirdTextfileStale", 'node_textfile_mtime_seconds{file="/t/raid.prom"}  0x60', 40),
    Case("LogdirdRestarts", "process_start_time_seconds  1000x9 1100 1200 1300x30", 40),
    Case("LogdirdRequestsQueueUp", "logdird_requests_queued  11x7 1 11x7 1 11x7 1", 23),
    Case("LogdirdHistoryDropped", "logdird_history_dropped_total  5x9 0x30", 40),
    Case(
        "LogdirdMetadataLag",
        f"logdird_metadata_lag  2000x120\n{_DUE}  _x120\n{_DUE.replace('/d1', '/d2')}  _x120",
        120,
    ),
    Case("LogdirdWaiting", f'{_PAUSED}  1x60\nlogdird_waiting{{slug="look-too-late"}}  1x60', 60),
    # It empties as fast, or has more than a quarter left.
    Case("LogdirdDiskFills", 'logdird_log_dir_free_bytes{log_dir="/d1"}  100e9+1e9x60', 60),
    Case("LogdirdDiskFills", 'logdird_log_dir_free_bytes{log_dir="/d1"}  400e9-2e9x60', 60),
    Case("LogdirdErrors", 'logdird_errors_total{log_dir="/d1", slug="disk-error"}  0x29 1 2 3 4 5x30', 60),
    Case("LogdirdPurgeOverdue", f"{_DUE}  600x140\nlogdird_broker_running  0x140", 140),
    Case("LogdirdPurgeOverdue", f"{_DUE}  600x140\n{_PAUSED}  1x140", 140),
    Case("LogdirdPurgeOverdue", f"{_DUE}  600x70 14400x70", 140),
    Case("LogdirdPurgeSoon", f"{_DUE}  0x60", 60),
    Case("LogdirdHeldGrows", 'logdird_held_replicas{log_dir="/d1"}  2x1499 1x100', 1590, since=1490),
)

ENDS = (
    # The minute in which an alert that fired is over.
    Case("LogdirdDown", "up  0x9 1x20", 10),
    Case("LogdirdGone", f"{_INFO}  1x9 stale", 369, since=350),
    Case("LogdirdPurgedEarly", "logdird_purged_early_total  0x9 1x90", 69),
    Case("LogdirdDeletionMissed", "logdird_missed_total  0x9 1x90", 69),
    Case("LogdirdDeletionMissed", "logdird_missed_total  _x10 2x90", 70),
    Case("LogdirdGap", "logdird_last_gap_end_timestamp_seconds  600x300", 250, since=240),
    Case("LogdirdErrors", 'logdird_errors_total{log_dir="/d1", slug="disk-error"}  _x10 3 6 9x40', 25),
    Case("LogdirdPurgeSoon", f"{_DUE}  3600x70", 60),
)
