r"""The client properties file: the keys of a Java client that decide how a broker is reached, and who asks.

A file is shared by many tools, so keys that concern no connection are ignored. What would have to be honoured and
cannot be is refused. No error shows a value that may be a secret.

Not here: the stores themselves (``tls``, ``pem``), the login module's text (``jaas``).

Spec: org.apache.kafka.clients.CommonClientConfigs; org.apache.kafka.common.config.{SslConfigs,SaslConfigs}; KIP-651.

>>> settings = parse(b"bootstrap.servers=one:9092, two\n", "c.properties")
Traceback (most recent call last):
logdir.errors.ConfigError: config-error: c.properties: expected host:port in bootstrap.servers, found two
>>> parse(b"bootstrap.servers=one:9092, two:9093\n").bootstrap[1].port
9093
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from logdir.errors import ConfigError, MalformedFileError
from logdir.formats.kafka import java_properties
from logdir.java_number import parse_java_int
from logdir.wire.client import jaas, stores
from logdir.wire.client.scram import HASHES
from logdir.wire.client.secret import Secret
from logdir.wire.client.stores import Found, TlsSettings

MAX_BYTES: Final = 1 << 20
"""Of a client properties file."""
PLAIN: Final = "PLAIN"
DEFAULT_REQUEST_TIMEOUT_MS: Final = 30 * 1000
DEFAULT_SETUP_TIMEOUT_MS: Final = 10 * 1000
"""Both as in Kafka."""

_ADDRESS: Final = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9_]*://)?(?:\[(?P<six>[0-9A-Fa-f:.%]+)\]|(?P<name>[^\s:\[\]/]+)):(?P<port>\d{1,5})"
)
_MAX_CLIENT_ID_BYTES: Final = 0x7FFF
_MODULES: Final = {PLAIN: "PlainLoginModule"} | dict.fromkeys(HASHES, "ScramLoginModule")
_TRIMMED: Final = "".join(map(chr, range(0x21)))
_VARIABLE: Final = re.compile(r"\$\{[^}]*?:[^}]*?\}")
_CLASSES: Final = (
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "ssl.engine.factory.class",
    "ssl.provider",
    "security.providers",
)
"""Keys that name Java code to be run."""
REFUSED_KEYS: Final = (*_CLASSES, "ssl.cipher.suites", "config.providers")
"""Keys that are refused where they are set, the last one where a value uses it."""
READ_KEYS: Final = frozenset((
    "bootstrap.servers", "client.id", "request.timeout.ms", "sasl.jaas.config", "sasl.mechanism", "security.protocol",
    "socket.connection.setup.timeout.ms", *stores.KEYS,
))  # fmt: skip
"""Keys that decide something here; all others are ignored."""


class Protocol(StrEnum):
    """The value of ``security.protocol``."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self in (Protocol.SSL, Protocol.SASL_SSL)

    @property
    def is_sasl(self) -> bool:
        """Whether a user is authenticated by SASL."""
        return self in (Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL)


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """Who asks, and how that is proven."""

    mechanism: str
    """``PLAIN`` or a key of ``scram.HASHES``."""
    username: str
    password: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How a cluster is asked."""

    bootstrap: tuple[Address, ...]
    """At least one."""
    protocol: Protocol = Protocol.PLAINTEXT
    sasl: SaslSettings | None = None
    """Set if and only if the protocol is one of SASL."""
    tls: TlsSettings | None = None
    """Set if and only if the protocol is one of TLS."""
    client_id: str = ""
    request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS
    """Time for a whole call: connections, authentication, the request and its answer."""
    setup_timeout_ms: int = DEFAULT_SETUP_TIMEOUT_MS
    """Time for the TCP connection to one address."""


def parse(data: bytes, path: str = "") -> ClientSettings:
    """Parse a client properties file.

    Args:
        data: The whole file.
        path: Where it lies, for the errors.

    Raises:
        ConfigError: the file is not in its format, lacks what is needed, or requires what this client cannot do; all
            problems at once.
    """
    try:
        properties = java_properties.parse(data, path)
    except MalformedFileError as error:
        raise ConfigError((error.problem()._replace(slug=ConfigError.code),)) from None
    found = Found({key: text.strip(_TRIMMED) for key, text in properties.items()}, path)
    _refuse_code(found)
    protocol = _protocol(found)
    settings = ClientSettings(
        bootstrap=_bootstrap(found),
        protocol=protocol,
        sasl=_sasl(found) if protocol.is_sasl else None,
        tls=stores.parse(found) if protocol.is_tls else None,
        client_id=_client_id(found),
        request_timeout_ms=_milliseconds(found, "request.timeout.ms", DEFAULT_REQUEST_TIMEOUT_MS),
        setup_timeout_ms=_milliseconds(found, "socket.connection.setup.timeout.ms", DEFAULT_SETUP_TIMEOUT_MS),
    )
    if found.problems:
        raise ConfigError(tuple(found.problems))
    return settings


def _refuse_code(found: Found) -> None:
    for key in _CLASSES:
        if found.values.get(key):
            found.refuse(f"no {key}: this client runs no Java code", "one", f"use a file without {key}")
    # Without config.providers Kafka takes "${…}" literally.
    if not found.values.get("config.providers"):
        return
    for key in sorted(READ_KEYS & found.values.keys()):
        if _VARIABLE.search(found.values[key]):
            found.refuse(
                f"{key} without a variable", "a variable of config.providers", f"write the value of {key} into the file"
            )


def _bootstrap(found: Found) -> tuple[Address, ...]:
    text = found.values.get("bootstrap.servers", "")
    addresses = []
    for part in filter(None, (part.strip(_TRIMMED) for part in text.split(","))):
        match = _ADDRESS.fullmatch(part)
        if match is None or not 0 < int(match["port"]) <= 0xFFFF:
            found.problem("host:port in bootstrap.servers", part)
        else:
            addresses.append(Address(match["six"] or match["name"], int(match["port"])))
    if not text:
        found.problem("bootstrap.servers", "none", "add bootstrap.servers=HOST:PORT of one or two brokers")
    elif not addresses and not found.problems:
        found.problem("host:port in bootstrap.servers", text)
    return tuple(addresses)


def _protocol(found: Found) -> Protocol:
    text = found.values.get("security.protocol", Protocol.PLAINTEXT)
    try:
        return Protocol(text.upper())
    except ValueError:
        found.problem(f"security.protocol one of {', '.join(Protocol)}", text)
        return Protocol.PLAINTEXT


def _milliseconds(found: Found, key: str, default: int) -> int:
    text = found.values.get(key)
    if text is None:
        return default
    number = parse_java_int(text)
    if number is None or number <= 0:
        found.problem(f"{key} in milliseconds, above 0", text)
        return default
    return number


def _client_id(found: Found) -> str:
    text = found.values.get("client.id", "")
    if not _is_utf8(text) or len(text.encode()) > _MAX_CLIENT_ID_BYTES:
        found.problem(f"client.id in at most {_MAX_CLIENT_ID_BYTES} bytes", f"{len(text)} characters")
        return ""
    return text


def _is_utf8(text: str) -> bool:
    # An escape of a properties file may be half a character.
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _sasl(found: Found) -> SaslSettings | None:
    mechanism = found.values.get("sasl.mechanism", "GSSAPI")
    if mechanism not in _MODULES:
        default = "" if "sasl.mechanism" in found.values else ", which is the default"
        fix = "use a listener and a user of one of these mechanisms"
        found.refuse(f"sasl.mechanism one of {', '.join(_MODULES)}", f"{mechanism}{default}", fix)
        return None
    text = found.values.get("sasl.jaas.config")
    wanted = f'sasl.jaas.config=…{_MODULES[mechanism]} required username="…" password="…";'
    if not text:
        found.problem(wanted, "none", "add it to the file: no login configuration of the JVM is read")
        return None
    try:
        login = jaas.parse(text)
    except jaas.JaasError as error:
        found.problem(f"in sasl.jaas.config {error.expected}", "another text")
        return None
    return _login(found, mechanism, login, wanted)


def _login(found: Found, mechanism: str, login: jaas.Login, wanted: str) -> SaslSettings | None:
    if login.module != _MODULES[mechanism]:
        found.problem(wanted, "another login module")
        return None
    if login.options.get("tokenauth", Secret("")).reveal().lower() == "true":
        found.refuse("a user with a password", "tokenauth, a delegation token", "give the name and password of a user")
        return None
    missing = [name for name in ("username", "password") if name not in login.options]
    if missing:
        found.problem(wanted, f"no {' and no '.join(missing)}")
        return None
    username, password = login.options["username"].reveal(), login.options["password"]
    if "\0" in username + password.reveal() or not _is_utf8(username) or not _is_utf8(password.reveal()):
        found.problem("a username and a password in Unicode without the character 0", "another text")
        return None
    return SaslSettings(mechanism=mechanism, username=username, password=password)
