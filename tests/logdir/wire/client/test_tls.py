"""TLS: who is trusted, for which host, and the client's own certificate; no error shows a key or its password."""

from __future__ import annotations

import os
import re
import socket
import ssl
import traceback
from pathlib import Path

import pytest

from logdir.errors import ConfigError
from logdir.wire.client.cluster_client import ClusterClient
from logdir.wire.client.errors import AskError
from logdir.wire.client.settings import parse
from tests.logdir.wire.client.authority import KEY_PASSWORD, Authority, make
from tests.logdir.wire.client.fake_broker import CLUSTER_ID, FakeBroker


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make(tmp_path_factory.mktemp("certificates"))


def server(authority: Authority, name: str = "here", *, asks_client: bool = False) -> FakeBroker:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.server(name))
    if asks_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.trusted)
    return FakeBroker(context=context)


def text(port: int, *lines: str, host: str = "localhost") -> bytes:
    return "\n".join(
        (f"bootstrap.servers={host}:{port}", "security.protocol=SSL", "request.timeout.ms=9000", *lines)
    ).encode()


def trust(path: Path) -> tuple[str, ...]:
    return "ssl.truststore.type=PEM", f"ssl.truststore.location={path}"


def inline(path: Path) -> str:
    """Return PEM as it stands in a properties file: on one line, or on several that are continued."""
    return " ".join(path.read_text().split("\n")).strip()


def asked(broker: FakeBroker, *lines: str, host: str = "localhost") -> str:
    with broker, ClusterClient(parse(text(broker.port, *lines, host=host))) as client:
        return client.cluster().cluster_id


def failed(broker: FakeBroker, *lines: str) -> str:
    with broker, ClusterClient(parse(text(broker.port, *lines))) as client, pytest.raises(AskError) as caught:
        client.cluster()
    assert len(str(caught.value).splitlines()) == 1
    return re.sub(r"localhost:\d+", "BROKER", str(caught.value))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_broker_whose_certificate_is_trusted(authority: Authority, host: str) -> None:
    assert asked(server(authority), *trust(authority.trusted), host=host) == CLUSTER_ID


@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3", "TLSv1.3,TLSv1.2"])
def test_versions_of_tls(authority: Authority, versions: str) -> None:
    assert asked(server(authority), *trust(authority.trusted), f"ssl.enabled.protocols={versions}") == CLUSTER_ID


def test_a_certificate_in_the_properties_file(authority: Authority) -> None:
    lines = ("ssl.truststore.type=PEM", f"ssl.truststore.certificates={inline(authority.trusted)}")
    assert asked(server(authority), *lines) == CLUSTER_ID


def test_a_broker_of_another_authority_is_refused(authority: Authority) -> None:
    line = failed(server(authority), *trust(authority.stranger))
    assert line.startswith(
        "tls-failed: BROKER: expected a certificate that is trusted, for this host, found unable to get"
    )


def test_by_default_the_authorities_of_the_host_are_trusted_and_no_others(authority: Authority) -> None:
    assert failed(server(authority)).startswith("tls-failed: BROKER: expected a certificate that is trusted")


def test_a_certificate_for_another_host_is_refused_unless_the_name_is_not_checked(authority: Authority) -> None:
    line = failed(server(authority, "elsewhere"), *trust(authority.trusted))
    assert "Hostname mismatch" in line
    unchecked = "ssl.endpoint.identification.algorithm="
    assert asked(server(authority, "elsewhere"), *trust(authority.trusted), unchecked) == CLUSTER_ID
    # The authority still counts.
    assert "tls-failed" in failed(server(authority, "elsewhere"), *trust(authority.stranger), unchecked)


def own(authority: Authority, folder: Path) -> tuple[str, ...]:
    certificate, key = authority.client()
    both = folder / "own.pem"
    both.write_text(f"Bag Attributes: a\n{key.read_text()}{certificate.read_text()}")
    return "ssl.keystore.type=PEM", f"ssl.keystore.location={both}"


def test_a_client_shows_its_own_certificate(authority: Authority, tmp_path: Path) -> None:
    password = f"ssl.key.password={KEY_PASSWORD}"
    lines = (*trust(authority.trusted), *own(authority, tmp_path), password)
    assert asked(server(authority, asks_client=True), *lines) == CLUSTER_ID
    certificate, key = authority.client()
    parts = (f"ssl.keystore.certificate.chain={inline(certificate)}", f"ssl.keystore.key={inline(key)}")
    lines = (*trust(authority.trusted), "ssl.keystore.type=PEM", *parts, password)
    assert asked(server(authority, asks_client=True), *lines) == CLUSTER_ID


def test_a_client_without_certificate_is_refused_by_a_broker_that_asks_for_one(authority: Authority) -> None:
    line = failed(server(authority, asks_client=True), *trust(authority.trusted))
    assert line.startswith(("tls-failed: BROKER", "cluster-unreachable: BROKER"))


def unusable(*lines: str) -> str:
    settings = parse(text(1, *lines))
    with pytest.raises(ConfigError) as caught:
        ClusterClient(settings)
    shown = "".join(traceback.format_exception(caught.value))
    assert "secret" not in shown
    assert "PRIVATE KEY-----" not in shown
    return str(caught.value)


def test_a_store_that_cannot_be_used(authority: Authority, tmp_path: Path) -> None:
    _, key = authority.client()
    certificate, other_key = authority.server()[0], authority.server("elsewhere")[1]
    keys = own(authority, tmp_path)
    fits = "expected a private key that fits its certificate and ssl.key.password"
    assert fits in unusable(*keys, "ssl.key.password=another-secret")
    assert "expected ssl.key.password for an encrypted private key, found none" in unusable(*keys)
    (tmp_path / "mixed.pem").write_text(certificate.read_text() + other_key.read_text())
    mixed = ("ssl.keystore.type=PEM", f"ssl.keystore.location={tmp_path}/mixed.pem")
    assert f"{fits}, found key values mismatch" in unusable(*mixed)
    alone = ("ssl.keystore.type=PEM", f"ssl.keystore.location={key}")
    assert "expected one private key and its certificate chain in PEM, found 1 and 0" in unusable(*alone)
    assert "found No such file or directory" in unusable(*trust(tmp_path / "none.pem"))
    assert "found Is a directory" in unusable(*trust(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    assert "found no regular file" in unusable(*trust(tmp_path / "pipe"))
    (tmp_path / "java.jks").write_bytes(b"\xfe\xed\xfe\xed" + bytes(500))
    assert "expected at least one certificate in PEM, found none" in unusable(*trust(tmp_path / "java.jks"))
    broken = "ssl.truststore.certificates=-----BEGIN CERTIFICATE----- AAAA -----END CERTIFICATE-----"
    assert "expected certificates in PEM" in unusable("ssl.truststore.type=PEM", broken)


def test_a_broker_without_tls_and_a_client_with_it(authority: Authority) -> None:
    line = failed(FakeBroker(), *trust(authority.trusted), "request.timeout.ms=800")
    assert line.startswith(("tls-failed: BROKER", "cluster-timeout: BROKER", "cluster-unreachable: BROKER"))


def test_a_broker_with_tls_and_a_client_without_it(authority: Authority) -> None:
    broker = server(authority)
    with broker:
        settings = parse(f"bootstrap.servers={broker.address}\nrequest.timeout.ms=5000\n".encode())
        with ClusterClient(settings) as client, pytest.raises(AskError) as caught:
            client.cluster()
    assert caught.value.slug in ("answer-too-large", "cluster-unreachable")


def test_a_server_that_stalls_in_the_handshake(authority: Authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        settings = parse(text(port, *trust(authority.trusted), "request.timeout.ms=400"))
        with ClusterClient(settings) as client, pytest.raises(AskError, match="cluster-timeout"):
            client.cluster()
