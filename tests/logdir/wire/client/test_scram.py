"""SCRAM: the vectors of the RFCs, and servers that lie."""

from __future__ import annotations

import base64

import pytest

from logdir.wire.client.scram import ScramClient, ScramError
from logdir.wire.client.secret import Secret

# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
FIRST = f"r={SERVER_NONCE},s={SALT},i=4096"
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def client(mechanism: str = "SCRAM-SHA-256") -> ScramClient:
    return ScramClient(mechanism, "user", Secret("pencil"), NONCE)


def test_the_exchange_of_rfc_7677() -> None:
    one = client()
    assert one.first() == f"n,,n=user,r={NONCE}".encode()
    final = one.final(FIRST.encode())
    assert final.message == f"c=biws,r={SERVER_NONCE},p={PROOF}".encode()
    one.verify(final, f"v={SIGNATURE}".encode())


def test_the_exchange_with_sha_512() -> None:
    """No RFC has a vector; ``openssl kdf`` and ``openssl dgst`` computed these."""
    one = client("SCRAM-SHA-512")
    final = one.final(FIRST.encode())
    proof = "gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ=="
    assert final.message == f"c=biws,r={SERVER_NONCE},p={proof}".encode()
    one.verify(final, b"v=ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4+5ZxXnJq199RVG2rR7N7Zw==")


def test_a_user_name_with_a_comma_and_an_equals_sign() -> None:
    assert ScramClient("SCRAM-SHA-256", "a,b=c", Secret("x"), "n").first() == b"n,,n=a=2Cb=3Dc,r=n"


FIRSTS = {
    "another nonce": (f"r=other,s={SALT},i=4096", "a nonce that begins with that of the client"),
    "no nonce of the server": (f"r={NONCE},s={SALT},i=4096", "a nonce that begins with that of the client"),
    "too few iterations": (f"r={SERVER_NONCE},s={SALT},i=4095", "4096 to 262144 iterations, found 4095"),
    "too many iterations": (f"r={SERVER_NONCE},s={SALT},i=262145", "4096 to 262144 iterations, found 262145"),
    "hours of iterations": (f"r={SERVER_NONCE},s={SALT},i=2147483647", "found 2147483647"),
    "a number that is none": (f"r={SERVER_NONCE},s={SALT},i=4_096", "a number of iterations"),
    "a number beyond all bounds": (f"r={SERVER_NONCE},s={SALT},i={'9' * 5000}", "a number of iterations"),
    "no salt": (f"r={SERVER_NONCE},s=,i=4096", "a salt in base64"),
    "a salt that is no base64": (f"r={SERVER_NONCE},s=?,i=4096", "a salt in base64"),
    "a mandatory extension": (f"m=x,r={SERVER_NONCE},s={SALT},i=4096", "a first message of a SCRAM server"),
    "an error": ("e=unknown-user", "a first message of a SCRAM server"),
    "nothing": ("", "a first message of a SCRAM server"),
}


@pytest.mark.parametrize("case", FIRSTS)
def test_a_first_message_that_is_refused(case: str) -> None:
    message, expected = FIRSTS[case]
    with pytest.raises(ScramError) as caught:
        client().final(message.encode())
    assert expected in str(caught.value)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ScramError, match="UTF-8"):
        client().final(b"\xff")


FINALS = {
    "a wrong signature": b"v=" + base64.b64encode(bytes(32)),
    "an empty signature": b"v=",
    "no base64": b"v=?",
    "an error": b"e=invalid-proof",
    "nothing": b"",
}


@pytest.mark.parametrize("case", FINALS)
def test_a_server_that_does_not_know_the_password_is_refused(case: str) -> None:
    one = client()
    final = one.final(FIRST.encode())
    with pytest.raises(ScramError, match="signature"):
        one.verify(final, FINALS[case])


def test_nothing_secret_is_shown() -> None:
    one = client()
    final = one.final(FIRST.encode())
    for text in (repr(one), repr(final), str(final), repr(Secret("pencil")), f"{Secret('pencil')}"):
        assert "pencil" not in text
        assert PROOF not in text
