"""Messages of the metadata quorum's leader election: Vote, BeginQuorumEpoch, EndQuorumEpoch. Only read and printed,
never sent.

Spec: KIP-516, "Vote", "BeginQuorumEpoch", "EndQuorumEpoch"; design §11; clients/src/main/resources/common/message of
3.9.2 and 4.3.1 (whose field names these are).
"""

from __future__ import annotations

from typing import Final

from logdir.wire.message import Form, api

_NODE_ENDPOINTS: Final = """
    nodeEndpoints         []{}      1+  tag 0
        nodeId            int32
        host              string
        port              uint16
"""
_LEADER_ENDPOINTS: Final = """
    leaderEndpoints       []{}      1+
        name              string
        host              string
        port              uint16
"""
_LEADER: Final = """
            leaderId      int32
            leaderEpoch   int32
"""
_LEADER_RESPONSE: Final = f"""
            partitionIndex  int32
            errorCode     int16
            {_LEADER}
"""
VOTE: Final = api(
    52, "Vote", "0-2", "0+",
    request="""
    clusterId             string    null 0+  = null
    voterId               int32     1+  = -1
    topics                []{}
        topicName         string
        partitions        []{}
            partitionIndex  int32
            replicaEpoch  int32     # candidateEpoch up to 3.9
            replicaId     int32     # candidateId
            replicaDirectoryId  uuid  1+
            voterDirectoryId  uuid  1+
            lastOffsetEpoch  int32
            lastOffset    int64
            preVote       bool      2+
    """,
    response=f"""
    errorCode             int16
    topics                []{{}}
        topicName         string
        partitions        []{{}}
            {_LEADER_RESPONSE}
            voteGranted   bool
    {_NODE_ENDPOINTS}
    """,
)  # fmt: skip

BEGIN_QUORUM_EPOCH: Final = api(
    53, "BeginQuorumEpoch", "0-1", "1+",
    request=f"""
    clusterId             string    null 0+  = null
    voterId               int32     1+  = -1
    topics                []{{}}
        topicName         string
        partitions        []{{}}
            partitionIndex  int32
            voterDirectoryId  uuid  1+
            {_LEADER}
    {_LEADER_ENDPOINTS}
    """,
    response=f"""
    errorCode             int16
    topics                []{{}}
        topicName         string
        partitions        []{{}}
            {_LEADER_RESPONSE}
    {_NODE_ENDPOINTS}
    """,
)  # fmt: skip

END_QUORUM_EPOCH: Final = api(
    54, "EndQuorumEpoch", "0-1", "1+",
    request=f"""
    clusterId             string    null 0+  = null
    topics                []{{}}
        topicName         string
        partitions        []{{}}
            partitionIndex  int32
            {_LEADER}
            preferredSuccessors  []int32  0
            preferredCandidates  []{{}}  1+
                candidateId  int32
                candidateDirectoryId  uuid
    {_LEADER_ENDPOINTS}
    """,
    response=f"""
    errorCode             int16
    topics                []{{}}
        topicName         string
        partitions        []{{}}
            {_LEADER_RESPONSE}
    {_NODE_ENDPOINTS}
    """,
)  # fmt: skip


def _answer(members: str = "") -> str:
    return f"""
    errorCode             int16
    topics                []{{}}
        topicId           uuid
        partitions        []{{}}
            {_LEADER_RESPONSE}
            {members}
    """


# Divergence: the KIP's v0 of all three names the metadata topic by its sentinel id; the releases name it by name.
VOTE_OF_THE_KIP: Final = api(
    52, "Vote", "0", "0",
    form=Form.KIP,
    request="""
    clusterId             string    null 0+  = null
    topics                []{}
        topicId           uuid
        partitions        []{}
            partitionIndex  int32
            replicaEpoch  int32     # candidate_epoch
            replicaId     int32     # candidate_id
            lastOffsetEpoch  int32
            lastOffset    int64
    """,
    response=_answer("voteGranted  bool"),
)  # fmt: skip

BEGIN_QUORUM_EPOCH_OF_THE_KIP: Final = api(
    53, "BeginQuorumEpoch", "0",
    form=Form.KIP,
    request=f"""
    clusterId             string    null 0+  = null
    topics                []{{}}
        topicId           uuid
        partitions        []{{}}
            partitionIndex  int32
            {_LEADER}
    """,
    response=_answer(),
)  # fmt: skip

END_QUORUM_EPOCH_OF_THE_KIP: Final = api(
    54, "EndQuorumEpoch", "0",
    form=Form.KIP,
    request=f"""
    clusterId             string    null 0+  = null
    topics                []{{}}
        topicId           uuid
        partitions        []{{}}
            partitionIndex  int32
            replicaId     int32
            {_LEADER}
            preferredSuccessors  []int32
    """,
    response=_answer(),
)  # fmt: skip

MESSAGES: Final = (
    *VOTE, *VOTE_OF_THE_KIP, *BEGIN_QUORUM_EPOCH, *BEGIN_QUORUM_EPOCH_OF_THE_KIP, *END_QUORUM_EPOCH,
    *END_QUORUM_EPOCH_OF_THE_KIP,
)  # fmt: skip
