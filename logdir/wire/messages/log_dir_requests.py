"""Messages about the disks of a broker: DescribeLogDirs, AlterReplicaLogDirs, AssignReplicasToDirs.

Spec: kafka-formats §11.2; clients/src/main/resources/common/message of 3.9.2 and 4.3.1.
"""

from __future__ import annotations

from typing import Final

from logdir.wire.message import api

ALTER_REPLICA_LOG_DIRS: Final = api(
    34, "AlterReplicaLogDirs", "0-2", "2+",
    request="""
    dirs                  []{}
        path              string
        topics            []{}
            name          string
            partitions    []int32
    """,
    response="""
    throttleTimeMs        int32
    results               []{}
        topicName         string
        partitions        []{}
            partitionIndex  int32
            errorCode     int16
    """,
)  # fmt: skip

DESCRIBE_LOG_DIRS: Final = api(
    35, "DescribeLogDirs", "0-5", "2+",
    request="""
    topics                []{}      null 0+
        topic             string
        partitions        []int32
    """,
    response="""
    throttleTimeMs        int32
    errorCode             int16     3+
    results               []{}
        errorCode         int16
        logDir            string
        topics            []{}
            name          string
            partitions    []{}
                partitionIndex  int32
                partitionSize  int64
                offsetLag  int64
                isFutureKey  bool
        totalBytes        int64     4+  = -1
        usableBytes       int64     4+  = -1
        isCordoned        bool      5+
    """,
)  # fmt: skip
"""``topics`` of the request may be ``null``: all topics."""

ASSIGN_REPLICAS_TO_DIRS: Final = api(
    73, "AssignReplicasToDirs", "0", "0+",
    request="""
    brokerId              int32
    brokerEpoch           int64     = -1
    directories           []{}
        id                uuid
        topics            []{}
            topicId       uuid
            partitions    []{}
                partitionIndex  int32
    """,
    response="""
    throttleTimeMs        int32
    errorCode             int16
    directories           []{}
        id                uuid
        topics            []{}
            topicId       uuid
            partitions    []{}
                partitionIndex  int32
                errorCode  int16
    """,
)  # fmt: skip

MESSAGES: Final = (*ALTER_REPLICA_LOG_DIRS, *DESCRIBE_LOG_DIRS, *ASSIGN_REPLICAS_TO_DIRS)
