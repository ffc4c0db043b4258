"""The well-known names in and around a log dir: files, directories and suffixes, each spelled here alone.

Not here: names that are made of a topic or an id (``names``), those of one format's or one module's only.

Spec: kafka-formats §2-§6, §8; design §3.1, §3.2.
"""

from __future__ import annotations

from typing import Final

# Kafka's, at the top of a log dir.
META_PROPERTIES: Final = "meta.properties"
"""Whose log dir it is (StorageTool, MetaPropertiesEnsemble)."""
KAFKA_LOCK: Final = ".lock"
"""The file that a running broker keeps locked (LogManager, FileLock)."""
CLEAN_MARKER: Final = ".kafka_cleanshutdown"
"""Lies there after the broker was shut down in order (CleanShutdownFileHandler)."""
BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"
"""The first records of a cluster (StorageTool, BootstrapDirectory)."""
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
"""How far each log is flushed (LogManager)."""
LOG_STARTS: Final = "log-start-offset-checkpoint"
"""Where each log begins that was cut by a request (LogManager)."""
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
"""How far each log is replicated (ReplicaManager)."""
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
"""How far each log is compacted (LogCleanerManager)."""
REMOTE_LOG_OFFSETS: Final = "_rlmm_committed_offsets"
"""How far the metadata of remote segments was read (ConsumerTask, before 3.6)."""
INDEX_CACHE: Final = "remote-log-index-cache"
"""A directory of indexes of remote segments (RemoteIndexCache)."""

# Kafka's, of the metadata log of a KRaft node.
METADATA_TOPIC: Final = "__cluster_metadata"
"""The topic of the metadata log (Topic, CLUSTER_METADATA_TOPIC_NAME)."""
METADATA_DIR: Final = "__cluster_metadata-0"
"""The directory of the metadata log (KafkaRaftManager)."""

# Kafka's, of a partition directory.
METADATA_FILE: Final = "partition.metadata"
"""The topic id of a partition directory (PartitionMetadataFile)."""
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
"""The offset at which each leader epoch begins (LeaderEpochCheckpointFile)."""
SEGMENT_SUFFIX: Final = ".log"
"""Of a segment; before it stands its base offset in 20 digits (LogFileUtils)."""
DELETE_SUFFIX: Final = "-delete"
"""Of a directory that the broker is about to remove (LocalLog)."""
FUTURE_SUFFIX: Final = "-future"
"""Of a replica that the broker moves to this log dir (LocalLog)."""
STRAY_SUFFIX: Final = "-stray"
"""Of a replica that no assignment claims, since 3.8 (LocalLog)."""

# Ours: where the work root of a log dir lies.
HIDDEN_WORK_ROOT: Final = "__cluster_metadata-2147483647"
"""The work root in place: the one sub-directory of a log dir that every stock broker passes over (kafka-behaviour
§10.11).
"""
BESIDE: Final = ".logdird"
"""Suffix to the path of a log dir: the work root that lies beside it."""
PROBE_IN_LOG_DIR: Final = "__cluster_metadata-2147483646"
"""What ``PROBE`` is called while it is in the log dir: a name stock brokers pass over (kafka-behaviour §2.8)."""

# Ours, in a work root.
DELETING: Final = "deleting"
"""The directory of staged replicas."""
INCOMING: Final = "incoming"
"""The directory of copies on their way in."""
PROBE: Final = "probe"
"""A directory that is renamed into the log dir and back, as a proof that replicas can be renamed; else empty."""
PROBE_LINK: Final = "probe-link"
"""A second name of ``meta.properties`` in ``PROBE``, for an instant, to prove that files can be linked."""
SPARE: Final = "spare-inodes"
"""The directory of empty files that are removed when the disk has no free inodes."""
RESERVE: Final = "reserve"
"""The file whose blocks are given up on a full disk."""
WORK_ROOT_FILE: Final = "work-root.json"
"""The marker of a work root: whose it is."""
OWNER_LOCK: Final = "owner.lock"
"""The file that a logdird process keeps locked while it works in the work root."""
LAYOUT: Final = "layout.json"
"""State of a change between topic-name and topic-id layout."""
HEARTBEAT: Final = "heartbeat.json"
"""When this disk was last changed together with the others of its broker."""
START_BLOCK: Final = "start-block.json"
"""The true ``meta.properties`` while a start block is set."""
START_BLOCK_NOTE: Final = "logdird-start-block.txt"
"""A text for people beside a start block: why no broker starts."""
QUARANTINE: Final = "quarantine.json"
"""Why this log dir may not be changed."""
CONTROLLER: Final = "controller.json"
"""The newest metadata offset that a reconcile acted on."""
STAGING_LIMIT: Final = "staging-limit.json"
"""How much was staged within 24 hours, for the staging limit."""
HANDOVER: Final = "handover.json"
"""When the log dirs were last handed over to a broker, and Kafka's checkpoint files as they were then."""
HISTORY: Final = "history.jsonl"
"""What was done to the log dir, for people to read."""

# Ours, in the state directory of a daemon.
PAUSE_FILE: Final = "pause-purge"
"""While it exists the daemon purges nothing."""
LAST_LOOK: Final = "last-look"
"""When the daemon last looked for deletions."""
GAPS: Final = "gaps.json"
"""How often it looked too late."""
INBOX: Final = "inbox"
"""The directory of request documents."""
INBOX_RUNNING: Final = ".running"
"""In the inbox: the document that is followed now."""
SOCKET_LOCK: Final = ".lock"
"""Suffix to the path of the control socket: the file that its daemon keeps locked."""

# Ours, in the environment of a command.
SKIP_GATE: Final = "LOGDIRD_SKIP_GATE"
"""Set by an operator who lets a broker start although ``logdirctl handover`` would refuse it."""

# Ours, in a directory of ours, and of any file that is written.
MARKER_FILE: Final = "replica.json"
"""Why a replica was moved, and until when that can be undone."""
TEMPORARY: Final = ".tmp"
"""Suffix of a small file until it is whole; Kafka uses the same."""
