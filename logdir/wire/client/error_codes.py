"""Kafka's error numbers that an answer to a read-only client may have.

Spec: kafka-behaviour §7; org.apache.kafka.common.protocol.Errors.
"""

from __future__ import annotations

from typing import Final

NONE: Final = 0
UNSUPPORTED_VERSION: Final = 35
TOPIC_AUTHORIZATION_FAILED: Final = 29
UNKNOWN_TOPIC_ID: Final = 100

_NAMES: Final = {
    -1: "UNKNOWN_SERVER_ERROR",
    1: "OFFSET_OUT_OF_RANGE",
    2: "CORRUPT_MESSAGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    8: "BROKER_NOT_AVAILABLE",
    9: "REPLICA_NOT_AVAILABLE",
    13: "NETWORK_EXCEPTION",
    17: "INVALID_TOPIC_EXCEPTION",
    TOPIC_AUTHORIZATION_FAILED: "TOPIC_AUTHORIZATION_FAILED",
    31: "CLUSTER_AUTHORIZATION_FAILED",
    33: "UNSUPPORTED_SASL_MECHANISM",
    34: "ILLEGAL_SASL_STATE",
    UNSUPPORTED_VERSION: "UNSUPPORTED_VERSION",
    41: "NOT_CONTROLLER",
    42: "INVALID_REQUEST",
    43: "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    56: "KAFKA_STORAGE_ERROR",
    57: "LOG_DIR_NOT_FOUND",
    58: "SASL_AUTHENTICATION_FAILED",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    78: "OFFSET_NOT_AVAILABLE",
    UNKNOWN_TOPIC_ID: "UNKNOWN_TOPIC_ID",
    103: "INCONSISTENT_TOPIC_ID",
}


def name_of(number: int) -> str:
    """Return Kafka's name of an error number, and the number.

    >>> name_of(100), name_of(4711)
    ('UNKNOWN_TOPIC_ID (100)', 'error 4711')
    """
    name = _NAMES.get(number)
    return f"error {number}" if name is None else f"{name} ({number})"
