"""The keys ``ssl.*`` of a client properties file: which certificates are trusted, and which one is shown.

Stores are in PEM. A Java key store is refused with the commands that convert it, because OpenSSL does not read it.

Not here: reading the stores (``tls``), all other keys (``settings``).

Spec: org.apache.kafka.common.config.SslConfigs; KIP-651 (PEM stores).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from logdir.errors import Problem
from logdir.formats.kafka.java_properties import shown
from logdir.text import quoted
from logdir.wire.client.secret import Secret

KEYS: Final = (
    "ssl.enabled.protocols", "ssl.endpoint.identification.algorithm", "ssl.key.password",
    "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location", "ssl.keystore.type",
    "ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.type",
)  # fmt: skip
"""All keys that are read here."""

_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")


class Found:
    """The keys of a file, and the problems found in them so far, which show no value that may hold a secret."""

    def __init__(self, values: dict[str, str], path: str) -> None:
        self.values = values
        self.path = path
        self.problems: list[Problem] = []

    def problem(self, expected: str, found: str, fix: str = "") -> None:
        """Add a value that no Java client could use either."""
        self.problems.append(Problem("config-error", self.path, expected, shown(found), fix))

    def refuse(self, expected: str, found: str, fix: str) -> None:
        """Add a value that a Java client uses and this one cannot."""
        self.problems.append(Problem("client-properties-unsupported", self.path, expected, shown(found), fix))


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Certificates or a private key: a file, or the text itself."""

    path: str = ""
    """The file; empty if the text stands in the properties file."""
    text: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """How a broker proves who it is, and how this client does."""

    trusted: Store | None = None
    """Certificates of authorities; ``None``: those that the host trusts."""
    own: Store | None = None
    """The client's private key and certificate chain; ``None``: it shows none."""
    key_password: Secret | None = None
    is_host_checked: bool = True
    """Whether the certificate must be for the name under which the broker is reached."""
    versions: tuple[str, ...] = field(default=_VERSIONS)
    """Versions of TLS that may be used, at least one of ``TLSv1.2`` and ``TLSv1.3``."""


def parse(found: Found) -> TlsSettings:
    """Return the settings of TLS; problems are added to ``found``."""
    password = found.values.get("ssl.key.password")
    algorithm = found.values.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm.lower() not in ("https", ""):
        found.refuse(
            "ssl.endpoint.identification.algorithm https, or empty for no check of the host name",
            algorithm,
            "use https",
        )
    if found.values.get("ssl.cipher.suites"):
        found.refuse("no ssl.cipher.suites", "names of Java", "use a file without ssl.cipher.suites")
    return TlsSettings(
        trusted=_trusted(found),
        own=_own(found),
        key_password=Secret(password) if password else None,
        is_host_checked=bool(algorithm),
        versions=_versions(found),
    )


def _versions(found: Found) -> tuple[str, ...]:
    text = found.values.get("ssl.enabled.protocols")
    if text is None:
        return _VERSIONS
    named = {part.strip() for part in text.split(",")}
    versions = tuple(version for version in _VERSIONS if version in named)
    if not versions:
        found.refuse(f"{' or '.join(_VERSIONS)} in ssl.enabled.protocols", text, "older versions of TLS are not safe")
        return _VERSIONS
    return versions


def _trusted(found: Found) -> Store | None:
    location = found.values.get("ssl.truststore.location", "")
    text = found.values.get("ssl.truststore.certificates", "")
    if not location and not text:
        return None
    _require_pem(found, "ssl.truststore", location)
    if location and text:
        _two(found, "ssl.truststore.location", "ssl.truststore.certificates")
    return Store(text=Secret(text)) if text else Store(path=location)


def _own(found: Found) -> Store | None:
    location = found.values.get("ssl.keystore.location", "")
    chain = found.values.get("ssl.keystore.certificate.chain", "")
    key = found.values.get("ssl.keystore.key", "")
    if not location and not chain and not key:
        return None
    _require_pem(found, "ssl.keystore", location)
    if location and (chain or key):
        _two(found, "ssl.keystore.location", "ssl.keystore.key")
    if not location and not (chain and key):
        name, other = ("ssl.keystore.key", "ssl.keystore.certificate.chain")
        missing = other if key else name
        found.problem(f"{name} and {other}", f"no {missing}", f"add {missing}, or name a file in ssl.keystore.location")
    return Store(path=location) if location else Store(text=Secret(f"{key}\n{chain}"))


def _two(found: Found, one: str, other: str) -> None:
    found.problem(f"{one} or {other}", "both", "remove one of them")


def _require_pem(found: Found, store: str, location: str) -> None:
    kind = found.values.get(f"{store}.type")
    if kind is not None and kind.upper() == "PEM":
        return
    if not location:
        found.problem(f"{store}.type=PEM for certificates in the file itself", kind or "none, which is JKS")
        return
    shown = "JKS, which is the default" if kind is None else kind
    fix = _conversion(location, kind, is_key=store == "ssl.keystore")
    found.problems.append(
        Problem("store-not-pem", found.path, f"{store}.type=PEM", shown, f"{fix}; then set {store}.type=PEM")
    )


def _conversion(location: str, kind: str | None, *, is_key: bool) -> str:
    p12, pem = f"{location}.p12", f"{location}.pem"
    steps = []
    if kind is None or kind.upper() != "PKCS12":
        steps.append(
            f"keytool -importkeystore -srckeystore {quoted(location)} -destkeystore {quoted(p12)} -deststoretype PKCS12"
        )
    else:
        p12 = location
    only = "" if is_key else "-nokeys "
    steps.append(f"openssl pkcs12 {only}-in {quoted(p12)} -out {quoted(pem)}")
    name = "ssl.keystore.location" if is_key else "ssl.truststore.location"
    return f"convert it: {' && '.join(steps)}, and name {pem} in {name}"
