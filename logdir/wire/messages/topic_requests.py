"""Messages from clients about topics: Metadata, CreateTopics, DeleteTopics.

Spec: KIP-516, "CreateTopics", "Describe Topics", "DeleteTopics"; KIP-4; clients/src/main/resources/common/message of
3.9.2 and 4.3.1.
"""

from __future__ import annotations

from typing import Final

from logdir.wire.message import Form, api

_AUTHORIZED_OPERATIONS: Final = "int32  8-10  = -2147483648"

_METADATA_RESPONSE: Final = f"""
    throttleTimeMs        int32     3+
    brokers               []{{}}
        nodeId            int32
        host              string
        port              int32
        rack              string    1+  null 1+  = null
    clusterId             string    2+  null 2+  = null
    controllerId          int32     1+  = -1
    topics                []{{}}
        errorCode         int16
        name              string    null 12+
        topicId           uuid      10+
        isInternal        bool      1+
        partitions        []{{}}
            errorCode     int16
            partitionIndex  int32
            leaderId      int32
            leaderEpoch   int32     7+  = -1
            replicaNodes  []int32
            isrNodes      []int32
            offlineReplicas  []int32  5+
        topicAuthorizedOperations  int32  8+  = -2147483648
    clusterAuthorizedOperations  {_AUTHORIZED_OPERATIONS}
    errorCode             int16     13+
"""
METADATA: Final = api(
    3, "Metadata", "0-13", "9+",
    request="""
    topics                []{}      null 1+
        topicId           uuid      10+
        name              string    null 10+
    allowAutoTopicCreation  bool    4+  = true
    includeClusterAuthorizedOperations  bool  8-10
    includeTopicAuthorizedOperations  bool  8+
    """,
    response=_METADATA_RESPONSE,
)  # fmt: skip

# Divergence: in the KIP's v10 the name stands before the id.
METADATA_OF_THE_KIP: Final = api(
    3, "Metadata", "10", "10",
    form=Form.KIP,
    request="""
    topics                []{}      null 1+
        name              string    null 0+
        topicId           uuid
    allowAutoTopicCreation  bool    = true
    includeClusterAuthorizedOperations  bool
    includeTopicAuthorizedOperations  bool
    """,
    response=_METADATA_RESPONSE,
)  # fmt: skip

CREATE_TOPICS: Final = api(
    19, "CreateTopics", "0-7", "5+",
    request="""
    topics                []{}
        name              string
        numPartitions     int32
        replicationFactor  int16
        assignments       []{}
            partitionIndex  int32
            brokerIds     []int32
        configs           []{}
            name          string
            value         string    null 0+
    timeoutMs             int32     = 60000
    validateOnly          bool      1+
    """,
    response="""
    throttleTimeMs        int32     2+
    topics                []{}
        name              string
        topicId           uuid      7+
        errorCode         int16
        errorMessage      string    1+  null 0+
        topicConfigErrorCode  int16  5+  tag 0
        numPartitions     int32     5+  = -1
        replicationFactor  int16    5+  = -1
        configs           []{}      5+  null 5+
            name          string
            value         string    null 5+
            readOnly      bool
            configSource  int8      = -1
            isSensitive   bool
    """,
)  # fmt: skip

DELETE_TOPICS: Final = api(
    20, "DeleteTopics", "0-6", "4+",
    request="""
    topics                []{}      6+
        name              string    null 6+  = null
        topicId           uuid
    topicNames            []string  0-5
    timeoutMs             int32
    """,
    response="""
    throttleTimeMs        int32     1+
    responses             []{}
        name              string    null 6+
        topicId           uuid      6+
        errorCode         int16
        errorMessage      string    5+  null 5+  = null
    """,
)  # fmt: skip

MESSAGES: Final = (*METADATA, *METADATA_OF_THE_KIP, *CREATE_TOPICS, *DELETE_TOPICS)
