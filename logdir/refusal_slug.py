"""Slugs of all refusals: of items, metadata sources, layouts and disks.

Each is explained in ``docs/errors.md``, and shown by a real command in ``tests/tools/test_refusals.py``.

Not here: slugs of errors that are no refusal (``errors``), of what an inventory finds (``observe``), of a fleet.

Spec: design §2 law 8, §5 "A use case"; style §5.6.
"""

from __future__ import annotations

from enum import Enum


class Why(Enum):
    """The reason of a refusal; the value is the slug."""

    # Of a replica: what lies there.
    NOT_FOUND = "not-found"
    NOT_LIVE = "not-a-live-replica"
    CHANGED = "changed-since-plan"
    METADATA_LOG = "metadata-log-read-only"
    TOPIC_PROTECTED = "topic-protected"
    FUTURE_REPLICA_EXISTS = "future-replica-exists"
    """A broker would promote the ``-future`` directory over the replica, or restore it (A13)."""
    LIVE_REPLICA_EXISTS = "live-replica-exists"
    LIVE_REPLICA_MISSING = "live-replica-missing"
    NOT_A_PLAIN_DIRECTORY = "not-a-plain-directory"
    """A link or a mount point (A44)."""
    REPLICA_UNREADABLE = "replica-unreadable"
    UNEXPECTED_ENTRY = "unexpected-entry"
    """It contains an entry that is no regular file."""
    PARTITION_METADATA_BROKEN = "partition-metadata-broken"
    TOPIC_NAME_UNKNOWN = "topic-name-unknown"
    NAME_TOO_LONG = "name-too-long"
    """Its name while staged is too long for a file system."""
    CHECKPOINT_UNREADABLE = "checkpoint-unreadable"
    LOG_AHEAD = "log-ahead"
    """Its log end or epoch is ahead of its other replicas (A4)."""
    NO_SEGMENTS = "no-segments"
    PARTIAL_CAPTURE = "partial-capture"

    # Of a replica: what is staged.
    NOT_STAGED = "not-staged"
    INCOMING = "incoming"
    PURGING = "purging"
    MARKER_UNUSABLE = "marker-unusable"
    FOREIGN_MARKER = "foreign-marker"
    AMBIGUOUS = "ambiguous"
    NOT_DUE = "not-due"
    DEADLINE_UNKNOWN = "deadline-unknown"
    NO_DEADLINE = "no-deadline"
    PURGE_DUE = "purge-due"
    TOPIC_NOT_REMOVED = "topic-not-removed"

    # Of a replica: what the cluster says.
    NO_EVIDENCE = "no-evidence"
    ASSIGNED_HERE = "assigned-here"
    REMOVAL_NOT_PROVEN = "removal-not-proven"
    """A deadline is requested without proof of removal."""
    REPLICA_TOO_YOUNG = "replica-too-young"
    """The image is not certainly younger than the directory (A1)."""
    LAST_COPY = "last-copy"
    """It may be the last copy of committed records (A46)."""
    ID_CONFLICT = "id-conflict"
    """The directory and the cluster metadata contradict each other."""
    STALE_TOPIC_ID = "stale-topic-id"
    """A source names a topic id that was staged here before as removed (A3)."""
    LAST_IN_SYNC = "last-in-sync"
    """No other broker is in its ISR: the next start would serve an empty replica (A48)."""
    ASSIGNMENT_UNKNOWN = "assignment-unknown"
    """It is not known whether the cluster still assigns it here (A47, A48)."""
    TOPIC_GONE = "topic-gone"
    """Its topic id was removed: a broker would erase it, or rename it to -stray (A47)."""
    NOT_ASSIGNED_HERE = "not-assigned-here"
    """Its partition belongs to other nodes now (A47)."""
    STILL_ASSIGNED = "still-assigned"
    """Its removal waits for a live replica in the ISR (A48)."""
    KEPT_FOR_LAST = "kept-for-last"
    """It was staged as the only in-sync replica, or without knowledge of its assignment (A48)."""

    # Of an adoption, over all brokers.
    RESTORE_KIND_DIFFERS = "restore-kind-differs"
    NOT_IN_TOPIC = "not-in-topic"
    """The adopting topic has no such partition, or no replica of it on that broker."""
    TOPIC_NOT_FOUND = "topic-not-found"
    REASSIGNMENT_UNDER_WAY = "reassignment-under-way"
    REPLICA_BROKER_RUNNING = "replica-broker-running"
    STAGED_REPLICA_MISSING = "staged-replica-missing"
    LOG_ENDS_DIFFER = "log-ends-differ"
    LISTING_MISSING = "listing-missing"
    LISTING_UNUSABLE = "listing-unusable"

    # Of a source of metadata.
    SOURCE_CLUSTER_UNKNOWN = "source-cluster-unknown"
    SOURCE_FOREIGN = "source-foreign"
    NODE_NOT_IN_SOURCE = "node-not-in-source"
    NODE_RUNS_ELSEWHERE = "node-runs-elsewhere"
    METADATA_TOO_OLD = "metadata-too-old"
    METADATA_OLDER = "metadata-older"
    """The metadata is older than the last applied position."""
    METADATA_DIVERGED = "metadata-diverged"
    METADATA_LOG_CHANGED = "metadata-log-changed"
    METADATA_LOG_UNREAD = "metadata-log-unread"
    LAST_APPLIED_UNKNOWN = "last-applied-unknown"
    REPLICA_MISSING = "replica-missing"
    FULL_REQUEST_NEEDED = "full-request-needed"
    REQUEST_OVERTAKEN = "request-overtaken"
    REQUEST_EMPTY = "request-empty"
    REQUEST_FOR_ANOTHER_BROKER = "request-for-another-broker"
    BROKER_EPOCH_DIFFERS = "broker-epoch-differs"

    # Of the staging limit.
    OVER_STAGING_LIMIT = "over-staging-limit"
    WHOLE_TOPIC_UNPROVEN = "whole-topic-unproven"
    STAGING_LIMIT_UNKNOWN = "staging-limit-unknown"

    # Of a change of layout.
    LAYOUT_DIFFERS = "layout-differs"
    LAYOUT_STATE_DIFFERS = "layout-state-differs"
    LAYOUT_PLAN_DIFFERS = "layout-plan-differs"
    LAYOUT_NOT_APPLIED = "layout-not-applied"
    LAYOUT_FILE_MISSING = "layout-file-missing"
    LAYOUT_CHANGE_UNDER_WAY = "layout-change-under-way"
    FOREIGN_PLAN = "foreign-plan"
    NO_PLAN_STEP = "no-plan-step"
    FOR_BROKER_MISSING = "for-broker-missing"
    PREFIX_NOT_EMPTY = "prefix-directory-not-empty"
    WORK_ROOT_INSIDE = "work-root-inside"

    # Of a broker and its log dirs.
    CONFIGURATION_CHANGED = "configuration-changed"
    NOT_FORMATTED = "not-formatted"
    FOREIGN = "foreign"
    NO_WORK_ROOT = "no-work-root"
    LOW_SPACE = "low-space"
    LOG_DIR_UNREADABLE = "log-dir-unreadable"
    """Another log dir may hold the same replica, and cannot be read."""
    LOG_DIR_SUSPECT = "log-dir-suspect"
    LOG_DIRS_INCOMPLETE = "log-dirs-incomplete"
    NO_LOG_DIR_ANSWERS = "no-log-dir-answers"
    DUPLICATE_LOG_DIR = "duplicate-log-dir"
    NO_PERMISSION = "no-permission"
    UNSUPPORTED_FILE_SYSTEM = "unsupported-file-system"
    MOUNTS_DIFFER = "mounts-differ"
    RENAME_FAILED = "rename-failed"
    WORK_ROOT_FAILED = "work-root-failed"
    RECOVERY_FAILED = "recovery-failed"
    HEARTBEAT_LOST = "heartbeat-lost"

    # Of a file.
    WRONG_FILE_TYPE = "wrong-file-type"
    FILE_TOO_LARGE = "file-too-large"
    FILE_TIME_INVALID = "file-time-invalid"
    READ_BACK_DIFFERS = "read-back-differs"
    RECORD_EXISTS = "record-exists"
    NAME_TAKEN = "name-taken"
    NO_FREE_NAME = "no-free-name"
    LOCK_FILE_REPLACED = "lock-file-replaced"
    OUTPUT_EXISTS = "output-exists"
    OUTPUT_INVALID = "output-invalid"
    INSIDE_LOG_DIR = "inside-log-dir"
