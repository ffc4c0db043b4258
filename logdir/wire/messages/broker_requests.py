"""Messages of a broker's registration: BrokerRegistration, BrokerHeartbeat, UnregisterBroker; and ApiVersions.

Spec: KIP-631, "BrokerRegistration", "BrokerHeartbeat", "UnregisterBroker"; clients/src/main/resources/common/message of
3.9.2 and 4.3.1.
"""

from __future__ import annotations

from typing import Final

from logdir.wire.message import Form, api

_LISTENERS_AND_FEATURES: Final = """
    listeners             []{}
        name              string
        host              string
        port              uint16
        securityProtocol  int16
    features              []{}
        name              string
        minSupportedVersion  int16
        maxSupportedVersion  int16
    rack                  string    null 0+
"""
_REGISTERED: Final = """
    throttleTimeMs        int32
    errorCode             int16
    brokerEpoch           int64     = -1
"""
BROKER_REGISTRATION: Final = api(
    62, "BrokerRegistration", "0-4", "0+",
    request=f"""
    brokerId              int32
    clusterId             string
    incarnationId         uuid
    {_LISTENERS_AND_FEATURES}
    isMigratingZkBroker   bool      1+
    logDirs               []uuid    2+
    previousBrokerEpoch   int64     3+  = -1
    """,
    response=_REGISTERED,
)  # fmt: skip

_HEARTBEAT: Final = """
    brokerId              int32
    brokerEpoch           int64     = -1
    currentMetadataOffset  int64
    wantFence             bool
    wantShutDown          bool
    offlineLogDirs        []uuid    1+  tag 0
    cordonedLogDirs       []uuid    2+  null 2+  tag 1  = null
"""
_HEARTBEAT_ANSWER: Final = """
    throttleTimeMs        int32
    errorCode             int16
    isCaughtUp            bool
    isFenced              bool      = true
    shouldShutDown        bool
"""
BROKER_HEARTBEAT: Final = api(63, "BrokerHeartbeat", "0-2", "0+", request=_HEARTBEAT, response=_HEARTBEAT_ANSWER)
UNREGISTER_BROKER: Final = api(
    64, "UnregisterBroker", "0", "0+",
    request="brokerId int32",
    response="""
    throttleTimeMs        int32
    errorCode             int16
    errorMessage          string    null 0+
    """,
)  # fmt: skip

# Divergence: the KIP's API keys are 57 to 59, which the releases use for other APIs; its registration also contains the
# highest metadata offset, and its response to UnregisterBroker has no message.
BROKER_REGISTRATION_OF_THE_KIP: Final = api(
    57, "BrokerRegistration", "0", "0",
    form=Form.KIP,
    request=f"""
    brokerId              int32
    clusterId             string
    incarnationId         uuid
    currentMetadataOffset  int64
    {_LISTENERS_AND_FEATURES}
    """,
    response=_REGISTERED,
)  # fmt: skip
BROKER_HEARTBEAT_OF_THE_KIP: Final = api(
    58, "BrokerHeartbeat", "0", "0", form=Form.KIP, request=_HEARTBEAT, response=_HEARTBEAT_ANSWER
)
UNREGISTER_BROKER_OF_THE_KIP: Final = api(
    59, "UnregisterBroker", "0", "0",
    form=Form.KIP,
    request="brokerId int32",
    response="""
    throttleTimeMs        int32
    errorCode             int16
    """,
)  # fmt: skip

API_VERSIONS: Final = api(
    18, "ApiVersions", "0-4", "3+",
    request="""
    clientSoftwareName    string    3+
    clientSoftwareVersion  string   3+
    """,
    response="""
    errorCode             int16
    apiKeys               []{}
        apiKey            int16
        minVersion        int16
        maxVersion        int16
    throttleTimeMs        int32     1+
    supportedFeatures     []{}      3+  tag 0
        name              string
        minVersion        int16
        maxVersion        int16
    finalizedFeaturesEpoch  int64   3+  tag 1  = -1
    finalizedFeatures     []{}      3+  tag 2
        name              string
        maxVersionLevel   int16
        minVersionLevel   int16
    zkMigrationReady      bool      3+  tag 3
    """,
)  # fmt: skip

MESSAGES: Final = (
    *BROKER_REGISTRATION, *BROKER_REGISTRATION_OF_THE_KIP, *BROKER_HEARTBEAT, *BROKER_HEARTBEAT_OF_THE_KIP,
    *UNREGISTER_BROKER, *UNREGISTER_BROKER_OF_THE_KIP, *API_VERSIONS,
)  # fmt: skip
