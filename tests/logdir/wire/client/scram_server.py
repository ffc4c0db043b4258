"""The server's side of SASL in a fake broker: PLAIN and SCRAM, and ways to lie in it."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable

from tests.logdir.wire.client.fake_broker import Reply, Talk

USER, PASSWORD = "alice", "alice-secret"


def handshake(talk: Talk) -> None:
    """Offer every mechanism."""
    known = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    talk.answer({"errorCode": 0 if talk.body["mechanism"] in known else 33, "mechanisms": known})


def refusing(error_code: int) -> Reply:
    """Refuse every token, with the password in the text of the error."""

    def reply(talk: Talk) -> None:
        talk.answer({"errorCode": error_code, "errorMessage": f"no {PASSWORD} {talk.body}", "authBytes": b""})

    return reply


def plain(talk: Talk) -> None:
    """Accept the one user."""
    is_right = talk.body["authBytes"] == f"\0{USER}\0{PASSWORD}".encode()
    talk.answer({"errorCode": 0 if is_right else 58, "errorMessage": PASSWORD, "authBytes": b""})


class ScramServer:
    """One authentication by SCRAM."""

    def __init__(
        self,
        *,
        hash_name: str = "sha512",
        iterations: int = 4096,
        nonce: Callable[[str], str] = lambda ours: f"{ours}server",
        signature: Callable[[bytes], bytes] = lambda right: right,
    ) -> None:
        self._hash, self._iterations, self._nonce, self._signature = hash_name, iterations, nonce, signature
        self._first = ""
        self._server_first = ""

    def __call__(self, talk: Talk) -> None:
        text = talk.body["authBytes"].decode()
        if not self._first:
            self._first = text.removeprefix("n,,")
            nonce = self._nonce(self._first.partition(",r=")[2])
            self._server_first = f"r={nonce},s={base64.b64encode(b'salt').decode()},i={self._iterations}"
            talk.answer({"errorMessage": None, "authBytes": self._server_first.encode()})
            return
        without_proof, _, proof = text.rpartition(",p=")
        signed = f"{self._first},{self._server_first},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, PASSWORD.encode(), b"salt", self._iterations)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        mask = hmac.digest(hashlib.new(self._hash, client_key).digest(), signed, self._hash)
        if base64.b64decode(proof) != bytes(a ^ b for a, b in zip(client_key, mask, strict=True)):
            talk.answer({"errorCode": 58, "errorMessage": None, "authBytes": b""})
            return
        right = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), signed, self._hash)
        told = b"v=" + base64.b64encode(self._signature(right))
        talk.answer({"errorMessage": None, "authBytes": told})
