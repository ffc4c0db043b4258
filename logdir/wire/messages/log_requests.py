"""Messages about a partition's log: Fetch, ListOffsets, OffsetForLeaderEpoch.

``records`` of a fetched partition are the bytes of record batches: :mod:`logdir.wire.batches` reads them.

Spec: KIP-516, "Fetch", "ListOffsets", "OffsetForLeader"; clients/src/main/resources/common/message of 3.9.2 and 4.3.1.
"""

from __future__ import annotations

from typing import Final

from logdir.wire.message import Form, api

FETCH: Final = api(
    1, "Fetch", "0-18", "12+",
    request="""
    clusterId             string    12+  null 12+  tag 0  = null
    replicaId             int32     0-14  = -1
    replicaState          {}        15+  tag 1
        replicaId         int32     = -1
        replicaEpoch      int64     = -1
    maxWaitMs             int32
    minBytes              int32
    maxBytes              int32     3+  = 2147483647
    isolationLevel        int8      4+
    sessionId             int32     7+
    sessionEpoch          int32     7+  = -1
    topics                []{}
        topic             string    0-12
        topicId           uuid      13+
        partitions        []{}
            partition     int32
            currentLeaderEpoch  int32  9+  = -1
            fetchOffset   int64
            lastFetchedEpoch  int32  12+  = -1
            logStartOffset  int64   5+  = -1
            partitionMaxBytes  int32
            replicaDirectoryId  uuid  17+  tag 0
            highWatermark  int64    18+  tag 1  = 9223372036854775807
    forgottenTopicsData   []{}      7+
        topic             string    7-12
        topicId           uuid      13+
        partitions        []int32
    rackId                string    11+
    """,
    response="""
    throttleTimeMs        int32     1+
    errorCode             int16     7+
    sessionId             int32     7+
    responses             []{}
        topic             string    0-12
        topicId           uuid      13+
        partitions        []{}
            partitionIndex  int32
            errorCode     int16
            highWatermark  int64
            lastStableOffset  int64  4+  = -1
            logStartOffset  int64   5+  = -1
            divergingEpoch  {}      12+  tag 0
                epoch     int32     = -1
                endOffset  int64    = -1
            currentLeader  {}       12+  tag 1
                leaderId  int32     = -1
                leaderEpoch  int32  = -1
            snapshotId    {}        12+  tag 2
                endOffset  int64    = -1
                epoch     int32     = -1
            abortedTransactions  []{}  4+  null 4+
                producerId  int64
                firstOffset  int64
            preferredReadReplica  int32  11+  = -1
            records       bytes     null 0+
    nodeEndpoints         []{}      16+  tag 0
        nodeId            int32
        host              string
        port              int32
        rack              string    null 16+  = null
    """,
)  # fmt: skip

_LIST_OFFSETS_PARTITIONS: Final = """
        partitions        []{}
            partitionIndex  int32
            currentLeaderEpoch  int32  4+  = -1
            timestamp     int64
            maxNumOffsets  int32    0  = 1
"""
_LISTED_PARTITIONS: Final = """
        partitions        []{}
            partitionIndex  int32
            errorCode     int16
            oldStyleOffsets  []int64  0
            timestamp     int64     1+  = -1
            offset        int64     1+  = -1
            leaderEpoch   int32     4+  = -1
"""
LIST_OFFSETS: Final = api(
    2, "ListOffsets", "0-11", "6+",
    request=f"""
    replicaId             int32
    isolationLevel        int8      2+
    topics                []{{}}
        name              string
        {_LIST_OFFSETS_PARTITIONS}
    timeoutMs             int32     10+
    """,
    response=f"""
    throttleTimeMs        int32     2+
    topics                []{{}}
        name              string
        {_LISTED_PARTITIONS}
    """,
)  # fmt: skip

# Divergence: the KIP's v6 names topics by id; the releases still name them by name in v11.
LIST_OFFSETS_OF_THE_KIP: Final = api(
    2, "ListOffsets", "6", "6",
    form=Form.KIP,
    request=f"""
    replicaId             int32
    isolationLevel        int8
    topics                []{{}}
        topicId           uuid
        {_LIST_OFFSETS_PARTITIONS}
    """,
    response=f"""
    throttleTimeMs        int32
    topics                []{{}}
        topicId           uuid
        {_LISTED_PARTITIONS}
    """,
)  # fmt: skip

_EPOCH_PARTITIONS: Final = """
        partitions        []{}
            partition     int32
            currentLeaderEpoch  int32  2+  = -1
            leaderEpoch   int32
"""
_END_OFFSETS: Final = """
        partitions        []{}
            errorCode     int16
            partition     int32
            leaderEpoch   int32     1+  = -1
            endOffset     int64     = -1
"""
OFFSET_FOR_LEADER_EPOCH: Final = api(
    23, "OffsetForLeaderEpoch", "0-4", "4+",
    request=f"""
    replicaId             int32     3+  = -2
    topics                []{{}}
        topic             string
        {_EPOCH_PARTITIONS}
    """,
    response=f"""
    throttleTimeMs        int32     2+
    topics                []{{}}
        topic             string
        {_END_OFFSETS}
    """,
)  # fmt: skip

# Divergence: the KIP's v4 names topics by id, the releases' by name.
OFFSET_FOR_LEADER_EPOCH_OF_THE_KIP: Final = api(
    23, "OffsetForLeaderEpoch", "4", "4",
    form=Form.KIP,
    request=f"""
    replicaId             int32     = -2
    topics                []{{}}
        topicId           uuid
        {_EPOCH_PARTITIONS}
    """,
    response=f"""
    throttleTimeMs        int32
    topics                []{{}}
        topicId           uuid
        {_END_OFFSETS}
    """,
)  # fmt: skip

MESSAGES: Final = (
    *FETCH, *LIST_OFFSETS, *LIST_OFFSETS_OF_THE_KIP, *OFFSET_FOR_LEADER_EPOCH, *OFFSET_FOR_LEADER_EPOCH_OF_THE_KIP,
)  # fmt: skip
