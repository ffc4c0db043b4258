"""Errors of asking a cluster: each is one line that names the broker, and never holds a secret.

What a broker writes as the text of an error is left out everywhere: a broker that was given a password could put it
there. Its error number has the same meaning.

Not here: errors of the client properties file (``settings``), of bytes in general (``errors`` of ``logdir.wire``).

Spec: design §2 law 8; style §5.6.
"""

from __future__ import annotations

from typing import ClassVar

from logdir.errors import LogDirError


class AskError(LogDirError):
    """A broker gave no usable answer, so nothing is known from it."""

    code: ClassVar[str] = "cluster-not-asked"


class ClusterUnreachableError(AskError):
    """No connection to a broker, or one that the broker closed before its answer was complete."""

    code: ClassVar[str] = "cluster-unreachable"


class ClusterTimeoutError(AskError):
    """A broker did not answer completely before the deadline of the call."""

    code: ClassVar[str] = "cluster-timeout"


class TlsFailedError(AskError):
    """The TLS handshake failed, or the certificate of the broker is not trusted."""

    code: ClassVar[str] = "tls-failed"


class AuthenticationFailedError(AskError):
    """A broker refused the user or the SASL mechanism, or did not prove that it knows the password."""

    code: ClassVar[str] = "authentication-failed"


class AnswerTooLargeError(AskError):
    """The length that a broker sent before an answer is above the limit; the answer was not read."""

    code: ClassVar[str] = "answer-too-large"


class MalformedAnswerError(AskError):
    """The bytes of an answer are not in its format, or do not belong to what was asked."""

    code: ClassVar[str] = "malformed-answer"


class ApiNotSupportedError(AskError):
    """A broker supports no version of a request that this client can use."""

    code: ClassVar[str] = "api-not-supported"


class BrokerAnswerError(AskError):
    """A broker answered a request as a whole with an error number."""

    code: ClassVar[str] = "cluster-answered-error"

    def __init__(self, path: str, *, number: int, name: str, expected: str, fix: str = "") -> None:
        """Create the error.

        Args:
            path: The broker.
            number: Kafka's error number, such as 31.
            name: The text of this number, from ``error_codes.name_of``.
            expected: The expected answer.
            fix: What the operator should do; empty: nothing is known.
        """
        self.number = number
        super().__init__(path, expected=expected, found=name, fix=fix)
