"""Every metric of ours: its name, type, labels and help. ``docs/metrics.md`` explains them; a test compares both.

Names, units and labels follow Prometheus' conventions: base units, ``_total`` on counters. Where KIP-631 has a metric
its name is taken into the same form: ``OfflineLogDirectoryCount`` is ``logdird_offline_log_directory_count``.

Not here: where the values come from (``samples``).

Spec: docs/metrics.md; KIP-631, "New Metrics".
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class Type(Enum):
    """The type of a metric."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Family(NamedTuple):
    """One metric with all its label values."""

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str


LOG_DIR: Final = ("log_dir",)


def _gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Family:
    return Family(f"logdird_{name}", Type.GAUGE, labels, text)


def _counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Family:
    return Family(f"logdird_{name}_total", Type.COUNTER, labels, text)


INFO: Final = _gauge("info", "Always 1; its labels name the daemon.", ("daemon", "version", "node_id", "cluster_id"))
BROKER_STATE: Final = _gauge("broker_state", "State of logdird in the numbers of KIP-631's BrokerState; 3 is RUNNING.")
STATE_SINCE: Final = _gauge("state_since_timestamp_seconds", "Since when it is in this state.")
BROKER_RUNNING: Final = _gauge("broker_running", "1: the broker runs, 0: it does not.")
METADATA_LAG: Final = _gauge(
    "metadata_lag", "Records of the metadata log behind the last one that was followed (KIP-631 MetadataLag)."
)
OFFLINE: Final = _gauge(
    "offline_log_directory_count", "Log dirs that are not online (Kafka's OfflineLogDirectoryCount)."
)
LOG_DIR_STATE: Final = _gauge("log_dir_state", "1 for the state that the log dir is in.", ("log_dir", "state"))
FREE_BYTES: Final = _gauge("log_dir_free_bytes", "Free bytes of its disk.", LOG_DIR)
SIZE_BYTES: Final = _gauge("log_dir_size_bytes", "Bytes of its disk.", LOG_DIR)
FREE_INODES: Final = _gauge("log_dir_free_inodes", "Free inodes of its disk.", LOG_DIR)
LOG_DIR_BYTES: Final = _gauge("log_dir_bytes", "Bytes of segments by kind of directory.", ("log_dir", "kind"))
LOG_DIR_ENTRIES: Final = _gauge("log_dir_entries", "Directories by kind.", ("log_dir", "kind"))
READ_AT: Final = _gauge("log_dir_read_timestamp_seconds", "When the log dir was read in full last.", LOG_DIR)
WATCHED: Final = _gauge("log_dir_watched", "1: a watch finds deletions at once, 0: only the sweep does.", LOG_DIR)
UNDO_OFF: Final = _gauge("undo_off", "1: below staged.min.free, nothing is captured.", LOG_DIR)
STAGED: Final = _gauge("staged_replicas", "Staged replicas, held ones among them.", LOG_DIR)
STAGED_BYTES: Final = _gauge("staged_bytes", "Bytes of their segments.", LOG_DIR)
HELD: Final = _gauge("held_replicas", "Staged replicas without a deadline.", LOG_DIR)
PURGING: Final = _gauge("purging_replicas", "Replicas whose removal has begun.", LOG_DIR)
PARTIAL: Final = _gauge("partial_captures", "Partial captures: they can be exported, and not restored.", LOG_DIR)
NEXT_PURGE: Final = _gauge("next_purge_timestamp_seconds", "When the next staged replica may be purged.", LOG_DIR)
CAPTURED: Final = _counter("captured", "Directories captured.")
MISSED: Final = _counter("missed", "Directories that the broker removed before they were captured.")
PURGED: Final = _counter("purged", "Replicas purged.")
PURGED_BYTES: Final = _counter("purged_bytes", "Bytes of segments that purges removed.")
PURGED_EARLY: Final = _counter("purged_early", "Replicas that went before their deadline, for room on their disk.")
GAPS: Final = _counter("gaps", "Times without a look for deletions that were too long, over all starts.")
LAST_GAP_END: Final = _gauge("last_gap_end_timestamp_seconds", "When the last of these ended.")
LOOK_SECONDS: Final = Family(
    "logdird_look_seconds", Type.HISTOGRAM, LOG_DIR, "Time of one look at a log dir, the wait for its disk included."
)
LAST_LOOK: Final = _gauge("last_look_timestamp_seconds", "When logdird last looked for deletions.")
ERRORS: Final = _counter("errors", "Errors by the slug of their problem.", ("log_dir", "slug"))
WAITING: Final = _gauge("waiting", "Problems that wait for an operator.", ("slug",))
FAILED_REPLICAS: Final = _gauge("failed_replicas", "Replicas on failed disks (KIP-631 FailedReplicasRecord).")
REQUESTS_QUEUED: Final = _gauge("requests_queued", "Requests that wait for their turn.")
REQUESTS: Final = _counter("requests", "Requests answered, by exit status.", ("use_case", "exit"))
DOCUMENTS: Final = _counter("documents", "Documents of the inbox that came to their end.", ("outcome",))
HISTORY_DROPPED: Final = _counter("history_dropped", "Lines of history.jsonl that were dropped.")
RELOAD_FAILED: Final = _gauge("config_reload_failed", "1: the configuration file was not taken when it was read again.")

FAMILIES: Final = (
    INFO, BROKER_STATE, STATE_SINCE, BROKER_RUNNING, METADATA_LAG, OFFLINE, LOG_DIR_STATE, FREE_BYTES, SIZE_BYTES,
    FREE_INODES, LOG_DIR_BYTES, LOG_DIR_ENTRIES, READ_AT, WATCHED, UNDO_OFF, STAGED, STAGED_BYTES, HELD, PURGING,
    PARTIAL, NEXT_PURGE, CAPTURED, MISSED, PURGED, PURGED_BYTES, PURGED_EARLY, GAPS, LAST_GAP_END, LOOK_SECONDS,
    LAST_LOOK, ERRORS, WAITING, FAILED_REPLICAS, REQUESTS_QUEUED, REQUESTS, DOCUMENTS, HISTORY_DROPPED, RELOAD_FAILED,
)  # fmt: skip
"""In the order in which they are printed."""
