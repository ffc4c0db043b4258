"""Certificates and private keys in PEM, as Kafka reads them: what stands between the blocks is ignored.

In a properties file a block may stand on one line, with spaces in place of line ends. Files are read alike.

Not here: stores and their settings (``settings``), TLS (``tls``).

Spec: KIP-651; org.apache.kafka.common.security.ssl.DefaultSslEngineFactory.PemParser.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_BLOCK: Final = re.compile(
    r"-----BEGIN\s+(?P<label>[A-Z0-9 ]*?)\s*-----\s+(?P<headers>(?:[^\r\n:]+:[^\r\n]*[\r\n]+)*)"
    r"(?P<data>[A-Za-z0-9/+=\s]*)-----END\s+(?P=label)\s*-----"
)
_WIDTH: Final = 64


class PemBlocks(NamedTuple):
    """The blocks of a store, each a text that OpenSSL reads."""

    certificates: tuple[str, ...]
    private_keys: tuple[str, ...]

    def __repr__(self) -> str:
        return f"PemBlocks({len(self.certificates)} certificates, {len(self.private_keys)} private keys)"

    @property
    def is_key_encrypted(self) -> bool:
        """Whether a password is needed to read the private key."""
        return any("BEGIN ENCRYPTED " in key for key in self.private_keys)


def parse(text: str) -> PemBlocks:
    """Return the certificates and the private keys in a text, in their order; empty if there are none.

    >>> parse("a -----BEGIN CERTIFICATE----- AAAA BBBB -----END CERTIFICATE-----")
    PemBlocks(1 certificates, 0 private keys)
    """
    certificates, private_keys = [], []
    for found in _BLOCK.finditer(text):
        label = found["label"]
        data = "".join(found["data"].split())
        lines = [data[start : start + _WIDTH] for start in range(0, len(data), _WIDTH)]
        block = "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))
        if label.endswith("CERTIFICATE"):
            certificates.append(block)
        elif label.endswith("PRIVATE KEY"):
            private_keys.append(block)
    return PemBlocks(tuple(certificates), tuple(private_keys))
