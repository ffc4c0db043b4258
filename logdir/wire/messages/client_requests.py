"""Messages of a client's connection: SaslHandshake, SaslAuthenticate; and DescribeCluster, DescribeQuorum.

Not here: what a SASL mechanism sends (``client.scram``).

Spec: KIP-43, KIP-152, KIP-700, KIP-836; clients/src/main/resources/common/message of 3.9.2 and 4.3.1.
"""

from __future__ import annotations

from typing import Final

from logdir.wire.message import api

SASL_HANDSHAKE: Final = api(
    17, "SaslHandshake", "0-1",
    request="mechanism string",
    response="""
    errorCode             int16
    mechanisms            []string
    """,
)  # fmt: skip
"""After version 0 a client sends SASL tokens without headers; after version 1 in SaslAuthenticate."""

SASL_AUTHENTICATE: Final = api(
    36, "SaslAuthenticate", "0-2", "2+",
    request="authBytes bytes",
    response="""
    errorCode             int16
    errorMessage          string    null 0+
    authBytes             bytes
    sessionLifetimeMs     int64     1+
    """,
)  # fmt: skip

DESCRIBE_CLUSTER: Final = api(
    60, "DescribeCluster", "0-2", "0+",
    request="""
    includeClusterAuthorizedOperations  bool
    endpointType          int8      1+  = 1
    includeFencedBrokers  bool      2+
    """,
    response="""
    throttleTimeMs        int32
    errorCode             int16
    errorMessage          string    null 0+  = null
    endpointType          int8      1+  = 1
    clusterId             string
    controllerId          int32     = -1
    brokers               []{}
        brokerId          int32
        host              string
        port              int32
        rack              string    null 0+  = null
        isFenced          bool      2+
    clusterAuthorizedOperations  int32  = -2147483648
    """,
)  # fmt: skip
"""``endpointType`` is 1 for brokers, 2 for controllers."""

_REPLICA_STATE: Final = """
                replicaId  int32
                replicaDirectoryId  uuid  2+
                logEndOffset  int64
                lastFetchTimestamp  int64  1+  = -1
                lastCaughtUpTimestamp  int64  1+  = -1
"""
DESCRIBE_QUORUM: Final = api(
    55, "DescribeQuorum", "0-2", "0+",
    request="""
    topics                []{}
        topicName         string
        partitions        []{}
            partitionIndex  int32
    """,
    response=f"""
    errorCode             int16
    errorMessage          string    2+  null 2+
    topics                []{{}}
        topicName         string
        partitions        []{{}}
            partitionIndex  int32
            errorCode     int16
            errorMessage  string    2+  null 2+
            leaderId      int32
            leaderEpoch   int32
            highWatermark  int64
            currentVoters  []{{}}
                {_REPLICA_STATE.strip()}
            observers     []{{}}
                {_REPLICA_STATE.strip()}
    nodes                 []{{}}    2+
        nodeId            int32
        listeners         []{{}}
            name          string
            host          string
            port          uint16
    """,
)  # fmt: skip

MESSAGES: Final = (*SASL_HANDSHAKE, *SASL_AUTHENTICATE, *DESCRIBE_CLUSTER, *DESCRIBE_QUORUM)
