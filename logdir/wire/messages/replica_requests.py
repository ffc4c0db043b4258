"""Messages from a controller to brokers in ZooKeeper mode and during migration: LeaderAndIsr, StopReplica,
UpdateMetadata; and ControlledShutdown from a broker. Removed in 4.0.

Not here: their meaning (``logdir.cluster.requests``).

Spec: kafka-formats §11.1; KIP-516, "LeaderAndIsr", "StopReplica", "UpdateMetadata"; clients/src/main/resources/common/
message of 3.9.2.
"""

from __future__ import annotations

from textwrap import indent
from typing import Final

from logdir.wire.message import Form, api

_STATE: Final = """
    topicName             string    0-1
    partitionIndex        int32
    controllerEpoch       int32
    leader                int32
    leaderEpoch           int32
    isr                   []int32
    partitionEpoch        int32
    replicas              []int32
    addingReplicas        []int32   3+
    removingReplicas      []int32   3+
    isNew                 bool      1+
    leaderRecoveryState   int8      6+
"""
_LIVE_LEADERS: Final = """
    liveLeaders           []{}
        brokerId          int32
        hostName          string
        port              int32
"""
LEADER_AND_ISR: Final = api(
    4, "LeaderAndIsr", "0-7", "4+",
    request=f"""
    controllerId          int32
    isKRaftController     bool      7+
    controllerEpoch       int32
    brokerEpoch           int64     2+  = -1
    type                  int8      5+
    ungroupedPartitionStates  []{{}}  0-1
{indent(_STATE, "    ")}
    topicStates           []{{}}    2+
        topicName         string
        topicId           uuid      5+
        partitionStates   []{{}}
{indent(_STATE, "        ")}
    {_LIVE_LEADERS}
    """,
    response="""
    errorCode             int16
    partitionErrors       []{}      0-4
        topicName         string
        partitionIndex    int32
        errorCode         int16
    topics                []{}      5+
        topicId           uuid
        partitionErrors   []{}
            partitionIndex  int32
            errorCode     int16
    """,
)  # fmt: skip
"""``type`` is KIP-516's: 0 unspecified, 1 INCREMENTAL, 2 FULL. Only the KRaft controller of a migration sets it."""

# Divergence: the KIP's v5 has neither adding nor removing replicas, which the releases have since v3.
LEADER_AND_ISR_OF_THE_KIP: Final = api(
    4, "LeaderAndIsr", "5", "5",
    form=Form.KIP,
    request=f"""
    controllerId          int32
    controllerEpoch       int32
    brokerEpoch           int64     = -1
    type                  int8
    topicStates           []{{}}
        topicName         string
        topicId           uuid
        partitionStates   []{{}}
            partitionIndex  int32
            controllerEpoch  int32
            leader        int32
            leaderEpoch   int32
            isr           []int32
            partitionEpoch  int32   # zk_version
            replicas      []int32
            isNew         bool
    {_LIVE_LEADERS}
    """,
    response="""
    errorCode             int16
    topics                []{}
        topicId           uuid
        partitionErrors   []{}
            partitionIndex  int32
            errorCode     int16
    """,
)  # fmt: skip

STOP_REPLICA: Final = api(
    5, "StopReplica", "0-4", "2+",
    request="""
    controllerId          int32
    isKRaftController     bool      4+
    controllerEpoch       int32
    brokerEpoch           int64     1+  = -1
    deletePartitions      bool      0-2
    ungroupedPartitions   []{}      0
        topicName         string
        partitionIndex    int32
    topics                []{}      1-2
        name              string
        partitionIndexes  []int32
    topicStates           []{}      3+
        topicName         string
        partitionStates   []{}
            partitionIndex  int32
            leaderEpoch   int32     = -1
            deletePartition  bool
    """,
    response="""
    errorCode             int16
    partitionErrors       []{}
        topicName         string
        partitionIndex    int32
        errorCode         int16
    """,
)  # fmt: skip

# Divergence: the KIP's v4 names topics by id; the releases kept the name and used v4 for KRaft.
STOP_REPLICA_OF_THE_KIP: Final = api(
    5, "StopReplica", "4", "4",
    form=Form.KIP,
    request="""
    controllerId          int32
    controllerEpoch       int32
    brokerEpoch           int64     = -1
    deletePartitions      bool
    topicStates           []{}
        topicId           uuid
        partitionStates   []{}
            partitionIndex  int32
            leaderEpoch   int32     = -1
            deletePartition  bool
    """,
    response="""
    errorCode             int16
    topics                []{}
        topicId           uuid
        partitionErrors   []{}
            partitionIndex  int32
            errorCode     int16
    """,
)  # fmt: skip

_METADATA_STATE: Final = """
    topicName             string    0-4
    partitionIndex        int32
    controllerEpoch       int32
    leader                int32
    leaderEpoch           int32
    isr                   []int32
    zkVersion             int32
    replicas              []int32
    offlineReplicas       []int32   4+
"""
_LIVE_BROKERS: Final = """
    liveBrokers           []{}
        id                int32
        v0Host            string    0
        v0Port            int32     0
        endpoints         []{}      1+
            port          int32
            host          string
            listener      string    3+
            securityProtocol  int16
        rack              string    2+  null 0+
"""
UPDATE_METADATA: Final = api(
    6, "UpdateMetadata", "0-8", "6+",
    request=f"""
    controllerId          int32
    isKRaftController     bool      8+
    type                  int8      8+  tag 0
    controllerEpoch       int32
    brokerEpoch           int64     5+  = -1
    ungroupedPartitionStates  []{{}}  0-4
{indent(_METADATA_STATE, "    ")}
    topicStates           []{{}}    5+
        topicName         string
        topicId           uuid      7+
        partitionStates   []{{}}
{indent(_METADATA_STATE, "        ")}
    {_LIVE_BROKERS}
    """,
    response="errorCode int16",
)  # fmt: skip

# Divergence: the KIP's v7 carries the partitions of older versions beside the new ones, and the host and port of v0.
UPDATE_METADATA_OF_THE_KIP: Final = api(
    6, "UpdateMetadata", "7", "7",
    form=Form.KIP,
    request=f"""
    controllerId          int32
    controllerEpoch       int32
    brokerEpoch           int64     = -1
    ungroupedPartitionStates  []{{}}
        topicName         string
{indent(_METADATA_STATE.replace("0-4", "0", 1), "    ")}
    topicStates           []{{}}
        topicName         string
        topicId           uuid
        partitionStates   []{{}}
{indent(_METADATA_STATE, "        ")}
    liveBrokers           []{{}}
        id                int32
        v0Host            string
        v0Port            int32
        endpoints         []{{}}
            port          int32
            host          string
            listener      string
            securityProtocol  int16
        rack              string    null 0+
    """,
    response="errorCode int16",
)  # fmt: skip

CONTROLLED_SHUTDOWN: Final = api(
    7, "ControlledShutdown", "0-3", "3+",
    request="""
    brokerId              int32
    brokerEpoch           int64     2+  = -1
    """,
    response="""
    errorCode             int16
    remainingPartitions   []{}
        topicName         string
        partitionIndex    int32
    """,
)  # fmt: skip

MESSAGES: Final = (
    *LEADER_AND_ISR, *LEADER_AND_ISR_OF_THE_KIP, *STOP_REPLICA, *STOP_REPLICA_OF_THE_KIP, *UPDATE_METADATA,
    *UPDATE_METADATA_OF_THE_KIP, *CONTROLLED_SHUTDOWN,
)  # fmt: skip
