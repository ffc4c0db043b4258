"""The records of the metadata log, one field table each; versions and numbers are Kafka's.

Not here: their frame and codec (``metadata_records``), what they do to an image (``cluster.fold``).

Spec: kafka-formats §9.3, §9.4; metadata/src/main/resources/common/metadata of the releases named there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from logdir.wire.schema import Field, Table, Versions


class RecordType(IntEnum):
    """The number of a type of metadata record, and its name without ``_RECORD``.

    6, 13 and 16 are missing: 2.8 to 3.4 named but never wrote them in a form that a later release reads.
    """

    REGISTER_BROKER = 0
    UNREGISTER_BROKER = 1
    TOPIC = 2
    PARTITION = 3
    CONFIG = 4
    PARTITION_CHANGE = 5
    FENCE_BROKER = 7
    UNFENCE_BROKER = 8
    REMOVE_TOPIC = 9
    DELEGATION_TOKEN = 10
    USER_SCRAM_CREDENTIAL = 11
    FEATURE_LEVEL = 12
    CLIENT_QUOTA = 14
    PRODUCER_IDS = 15
    BROKER_REGISTRATION_CHANGE = 17
    ACCESS_CONTROL_ENTRY = 18
    REMOVE_ACCESS_CONTROL_ENTRY = 19
    NO_OP = 20
    ZK_MIGRATION_STATE = 21
    REMOVE_USER_SCRAM_CREDENTIAL = 22
    BEGIN_TRANSACTION = 23
    END_TRANSACTION = 24
    ABORT_TRANSACTION = 25
    REMOVE_DELEGATION_TOKEN = 26
    REGISTER_CONTROLLER = 27
    CLEAR_ELR = 28


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTable:
    """One type of metadata record: its versions and field table."""

    number: int
    name: str
    """Its name, as ``kafka-dump-log`` prints it."""
    versions: Versions
    table: Table

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of all versions, in the order of the binary format."""
        return self.table.fields


def _type(kind: RecordType, versions: str, text: str) -> RecordTable:
    versions_ = Versions.parse(versions)
    return RecordTable(number=kind.value, name=f"{kind.name}_RECORD", versions=versions_, table=Table(text))


_END_POINTS_AND_FEATURES: Final = """
    endPoints                []{}
        name                 string
        host                 string
        port                 uint16
        securityProtocol     int16
    features                 []{}
        name                 string
        minSupportedVersion  int16
        maxSupportedVersion  int16
"""

_ALL: Final = (
    _type(RecordType.REGISTER_BROKER, "0-4", f"""
    brokerId                 int32
    isMigratingZkBroker      bool     2+
    incarnationId            uuid
    brokerEpoch              int64
    {_END_POINTS_AND_FEATURES}
    rack                     string   null 0+
    fenced                   bool     = true
    inControlledShutdown     bool     1+
    logDirs                  []uuid   3+  tag 0
    cordonedLogDirs          []uuid   4+  null 4+  tag 1  = null
    """),
    _type(RecordType.UNREGISTER_BROKER, "0", """
    brokerId                 int32
    brokerEpoch              int64
    """),
    _type(RecordType.TOPIC, "0", """
    name                     string
    topicId                  uuid
    """),
    _type(RecordType.PARTITION, "0-2", """
    partitionId              int32    = -1
    topicId                  uuid
    replicas                 []int32
    isr                      []int32
    removingReplicas         []int32
    addingReplicas           []int32
    leader                   int32    = -1
    leaderRecoveryState      int8     tag 0
    leaderEpoch              int32    = -1
    partitionEpoch           int32    = -1
    directories              []uuid   1+
    eligibleLeaderReplicas   []int32  2+  null 2+  tag 1  = null
    lastKnownElr             []int32  2+  null 2+  tag 2  = null
    """),
    _type(RecordType.CONFIG, "0", """
    resourceType             int8
    resourceName             string
    name                     string
    value                    string   null 0+
    """),
    _type(RecordType.PARTITION_CHANGE, "0-2", """
    partitionId              int32    = -1
    topicId                  uuid
    isr                      []int32  null 0+  tag 0  = null
    leader                   int32    tag 1  = -2
    replicas                 []int32  null 0+  tag 2  = null
    removingReplicas         []int32  null 0+  tag 3  = null
    addingReplicas           []int32  null 0+  tag 4  = null
    leaderRecoveryState      int8     tag 5  = -1
    directories              []uuid   1+  null 1+  tag 8  = null
    eligibleLeaderReplicas   []int32  2+  null 2+  tag 6  = null
    lastKnownElr             []int32  2+  null 2+  tag 7  = null
    """),
    _type(RecordType.FENCE_BROKER, "0", """
    id                       int32
    epoch                    int64
    """),
    _type(RecordType.UNFENCE_BROKER, "0", """
    id                       int32
    epoch                    int64
    """),
    _type(RecordType.REMOVE_TOPIC, "0", """
    topicId                  uuid
    """),
    _type(RecordType.DELEGATION_TOKEN, "0", """
    owner                    string
    requester                string
    renewers                 []string
    issueTimestamp           int64
    maxTimestamp             int64
    expirationTimestamp      int64
    tokenId                  string
    """),
    _type(RecordType.USER_SCRAM_CREDENTIAL, "0", """
    name                     string
    mechanism                int8
    salt                     bytes
    storedKey                bytes
    serverKey                bytes
    iterations               int32
    """),
    _type(RecordType.FEATURE_LEVEL, "0", """
    name                     string
    featureLevel             int16
    """),
    _type(RecordType.CLIENT_QUOTA, "0", """
    entity                   []{}
        entityType           string
        entityName           string   null 0+
    key                      string
    value                    float64
    remove                   bool
    """),
    _type(RecordType.PRODUCER_IDS, "0", """
    brokerId                 int32
    brokerEpoch              int64    = -1
    nextProducerId           int64
    """),
    _type(RecordType.BROKER_REGISTRATION_CHANGE, "0-3", """
    brokerId                 int32
    brokerEpoch              int64
    fenced                   int8     tag 0
    inControlledShutdown     int8     1+  tag 1
    logDirs                  []uuid   2+  tag 2
    cordonedLogDirs          []uuid   3+  null 3+  tag 3  = null
    """),
    _type(RecordType.ACCESS_CONTROL_ENTRY, "0", """
    id                       uuid
    resourceType             int8
    resourceName             string
    patternType              int8
    principal                string
    host                     string
    operation                int8
    permissionType           int8
    """),
    _type(RecordType.REMOVE_ACCESS_CONTROL_ENTRY, "0", """
    id                       uuid
    """),
    _type(RecordType.NO_OP, "0", ""),
    _type(RecordType.ZK_MIGRATION_STATE, "0", """
    zkMigrationState         int8
    """),
    _type(RecordType.REMOVE_USER_SCRAM_CREDENTIAL, "0", """
    name                     string
    mechanism                int8
    """),
    _type(RecordType.BEGIN_TRANSACTION, "0", """
    name                     string   null 0+  tag 0  = null
    """),
    _type(RecordType.END_TRANSACTION, "0", ""),
    _type(RecordType.ABORT_TRANSACTION, "0", """
    reason                   string   null 0+  tag 0  = null
    """),
    _type(RecordType.REMOVE_DELEGATION_TOKEN, "0", """
    tokenId                  string
    """),
    _type(RecordType.REGISTER_CONTROLLER, "0", f"""
    controllerId             int32
    incarnationId            uuid
    zkMigrationReady         bool
    {_END_POINTS_AND_FEATURES}
    """),
    _type(RecordType.CLEAR_ELR, "0", """
    topicName                string
    """),
)  # fmt: skip

TYPES: Final[Mapping[int, RecordTable]] = MappingProxyType({one.number: one for one in _ALL})
"""Types of metadata record by number."""
