"""The client's side of SCRAM: three messages to send or judge, no input or output.

Kafka prepares no text (SASLprep): a user name or password is its UTF-8 bytes, and so it is here.

Not here: how the messages travel (``sasl``).

Spec: RFC 5802 §3, §5, §7; RFC 7677 §4 (at least 4,096 iterations);
org.apache.kafka.common.security.scram.internals.{ScramFormatter,ScramMechanism}.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final, NamedTuple

from logdir.wire.client.secret import Secret

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Names of the hash function in ``hashlib``, by the name of the mechanism."""

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 262_144
"""16 times what a broker accepts for a credential: more would only keep this process busy."""
MAX_SALT_BYTES: Final = 1024

_NO_CHANNEL_BINDING: Final = "n,,"


class ScramError(Exception):
    """A message of the server is not as it must be; ``expected`` and ``found`` show no secret."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"expected {expected}, found {found}")
        self.expected = expected
        self.found = found


class ClientFinal(NamedTuple):
    """The last message of the client, and what the server must prove."""

    message: bytes
    server_signature: bytes

    def __repr__(self) -> str:
        return "ClientFinal(hidden)"


class ScramClient:
    """One authentication: ``first``, then ``final`` with the server's answer, then ``verify`` with the next one."""

    def __init__(self, mechanism: str, username: str, password: Secret, nonce: str) -> None:
        """Prepare an authentication.

        Args:
            mechanism: A key of :data:`HASHES`.
            username: As the broker knows it.
            password: As the broker knows it.
            nonce: Printable ASCII without comma; random, and used once.
        """
        self._hash = HASHES[mechanism]
        self._password = password
        self._nonce = nonce
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={nonce}"

    def first(self) -> bytes:
        """Return the client's first message."""
        return (_NO_CHANNEL_BINDING + self._first_bare).encode()

    def final(self, server_first: bytes) -> ClientFinal:
        """Return the client's final message for the server's first one. Takes less than a second.

        Raises:
            ScramError: the message is malformed, its nonce does not extend ours, or its iterations are out of bounds.
        """
        text = _text(server_first)
        nonce, salt, iterations = _parse_first(text)
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise ScramError("a nonce that begins with that of the client and continues", "another nonce")
        binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        without_proof = f"c={binding},r={nonce}"
        signed = f"{self._first_bare},{text},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.reveal().encode(), salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        message = f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
        return ClientFinal(message, self._hmac(self._hmac(salted, b"Server Key"), signed))

    def verify(self, final: ClientFinal, server_final: bytes) -> None:
        """Check that the server's final message proves that the server knows the credential.

        Raises:
            ScramError: the server reports an error, or its signature is wrong.
        """
        first = _text(server_final).split(",")[0]
        if first.startswith("e="):
            raise ScramError("the signature of the server", "an error of the server")
        signature = _decoded(first[2:]) if first.startswith("v=") else None
        if signature is None:
            raise ScramError("the signature of the server", "another message")
        if not hmac.compare_digest(signature, final.server_signature):
            raise ScramError("the signature of a server that knows the password", "another signature")

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, self._hash).digest()


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("a SCRAM message in UTF-8", "other bytes") from None


def _parse_first(text: str) -> tuple[str, bytes, int]:
    expected = "a first message of a SCRAM server: r=, s= and i="
    parts = text.split(",")
    # A mandatory extension (m=) stands before the nonce; none is known.
    if len(parts) < 3 or [part[:2] for part in parts[:3]] != ["r=", "s=", "i="]:
        raise ScramError(expected, "another message")
    salt = _decoded(parts[1][2:])
    if not salt or len(salt) > MAX_SALT_BYTES:
        raise ScramError("a salt in base64", "another text")
    digits = parts[2][2:]
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10):
        raise ScramError("a number of iterations", "another text")
    iterations = int(digits)
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise ScramError(f"{MIN_ITERATIONS} to {MAX_ITERATIONS} iterations", str(iterations))
    return parts[0][2:], salt, iterations


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
