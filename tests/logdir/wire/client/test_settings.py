"""The client properties file: what is read, what is refused, and that no error shows a secret."""

from __future__ import annotations

import pickle
import re
import traceback
from pathlib import Path

import pytest

from logdir.errors import ConfigError
from logdir.wire.client import jaas, pem
from logdir.wire.client.secret import Secret
from logdir.wire.client.settings import READ_KEYS, REFUSED_KEYS, Address, ClientSettings, Protocol, parse
from logdir.wire.client.stores import Store

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="alice-secret";'
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="alice-secret";'

OVER_TLS = ("security.protocol=SASL_SSL",)
IN_FILE = ("ssl.truststore.type=PEM", "ssl.truststore.certificates=CA")
TOKEN = f"{SCRAM[:-1]} tokenauth=true;"


def read(*lines: str) -> ClientSettings:
    return parse("\n".join(("bootstrap.servers=one:9092", *lines)).encode("latin-1"), "client.properties")


def refused(*lines: str) -> list[str]:
    """Return the lines of the problems; no secret is anywhere in the error."""
    with pytest.raises(ConfigError) as caught:
        read(*lines)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.problems)
    assert "alice-secret" not in shown
    return [problem.line() for problem in caught.value.problems]


def test_the_defaults_are_those_of_kafka() -> None:
    settings = parse(b"bootstrap.servers = one:9092 , [::1]:19092,SSL://three:1\nanother.key=1\n")
    assert settings.bootstrap == (Address("one", 9092), Address("::1", 19092), Address("three", 1))
    assert [str(address) for address in settings.bootstrap] == ["one:9092", "[::1]:19092", "three:1"]
    assert settings.protocol is Protocol.PLAINTEXT
    assert (settings.sasl, settings.tls) == (None, None)
    assert (settings.request_timeout_ms, settings.setup_timeout_ms, settings.client_id) == (30_000, 10_000, "")


def test_what_a_scram_user_over_tls_sets() -> None:
    settings = read(
        "security.protocol=sasl_ssl", "sasl.mechanism=SCRAM-SHA-512", f"sasl.jaas.config={SCRAM}",
        "ssl.truststore.type=PEM", "ssl.truststore.location=/etc/ca.pem", "ssl.keystore.type=PEM",
        "ssl.keystore.location=/etc/own.pem", "ssl.key.password=k-secret", "request.timeout.ms=5000",
        "socket.connection.setup.timeout.ms=700", "client.id=me", "ssl.enabled.protocols=TLSv1.2",
    )  # fmt: skip
    assert settings.protocol is Protocol.SASL_SSL
    assert settings.sasl is not None
    assert settings.tls is not None
    assert (settings.sasl.mechanism, settings.sasl.username) == ("SCRAM-SHA-512", "alice")
    assert settings.sasl.password.reveal() == "alice-secret"
    assert settings.tls.trusted == Store(path="/etc/ca.pem")
    assert settings.tls.own == Store(path="/etc/own.pem")
    assert settings.tls.key_password == Secret("k-secret")
    assert settings.tls.versions == ("TLSv1.2",)
    assert settings.tls.is_host_checked
    assert (settings.request_timeout_ms, settings.setup_timeout_ms, settings.client_id) == (5000, 700, "me")
    for shown in (repr(settings), str(settings)):
        assert "secret" not in shown


def test_an_empty_algorithm_leaves_the_host_name_unchecked() -> None:
    settings = read("security.protocol=SSL", "ssl.endpoint.identification.algorithm=")
    assert settings.tls is not None
    assert not settings.tls.is_host_checked


def test_stores_in_the_file_itself() -> None:
    settings = read(
        "security.protocol=SSL", "ssl.truststore.type=PEM", "ssl.truststore.certificates=CA", "ssl.keystore.type=PEM",
        "ssl.keystore.certificate.chain=CHAIN", "ssl.keystore.key=KEY",
    )  # fmt: skip
    assert settings.tls is not None
    assert settings.tls.trusted == Store(text=Secret("CA"))
    assert settings.tls.own == Store(text=Secret("KEY\nCHAIN"))


REFUSED = {
    "no server": (["bootstrap.servers="], "config-error: client.properties: expected bootstrap.servers, found none"),
    "a server without a port": (["bootstrap.servers=one"], "expected host:port in bootstrap.servers, found one"),
    "a port that is none": (["bootstrap.servers=one:65536"], "host:port in bootstrap.servers, found one:65536"),
    "only commas": (["bootstrap.servers=,"], "expected host:port in bootstrap.servers, found ,"),
    "another protocol": (
        ["security.protocol=TLS"],
        "expected security.protocol one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, found TLS",
    ),
    "a time of no length": (["request.timeout.ms=0"], "expected request.timeout.ms in milliseconds, above 0, found 0"),
    "Kerberos by default": (
        ["security.protocol=SASL_PLAINTEXT"],
        ("client-properties-unsupported: client.properties: expected sasl.mechanism one of PLAIN, SCRAM-SHA-256, "
        "SCRAM-SHA-512, found GSSAPI, which is the default; use a listener"),
    ),
    "OAuth": (["security.protocol=SASL_SSL", "sasl.mechanism=OAUTHBEARER"], "found OAUTHBEARER; use a listener"),
    "no login": (
        ["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN"],
        'expected sasl.jaas.config=…PlainLoginModule required username="…" password="…";, found none; add it',
    ),
    "the login of another mechanism": (
        ["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", f"sasl.jaas.config={SCRAM}"],
        "found another login module",
    ),
    "a login without password": (
        [*OVER_TLS, "sasl.mechanism=PLAIN", "sasl.jaas.config=PlainLoginModule optional username=a;"],
        "found no password",
    ),
    "half a character in a password": (
        [*OVER_TLS, "sasl.mechanism=PLAIN", f"sasl.jaas.config={PLAIN}".replace("-secret", "-\\uD800")],
        "expected a username and a password in Unicode without the character 0, found another text",
    ),
    "a client id beyond what a request holds": (
        [f"client.id={'x' * 32768}"],
        "expected client.id in at most 32767 bytes, found 32768 characters",
    ),
    "a delegation token": (
        ["security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-256", f"sasl.jaas.config={TOKEN}"],
        "found tokenauth, a delegation token",
    ),
    "a login without its semicolon": (
        ["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", f"sasl.jaas.config={PLAIN[:-1]}"],
        "expected in sasl.jaas.config a semicolon at the end, found another text",
    ),
    "a password without its first quote": (
        ["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN",
         'sasl.jaas.config=a.PlainLoginModule required username="alice" password=1-alice-secret";'],
        "expected in sasl.jaas.config every value of an option in double quotes, found another text",
    ),
    "an escape that is none, in a line with a password": (
        ["sasl.jaas.config=alice-secret \\u12"],
        "expected four hexadecimal digits after every \\u, found another text in line 2, sasl.jaas.config; write",
    ),
    "a backslash that joins a line with a password": (
        ["security.protocol=SSL\\", "ssl.key.password=alice-secret"], "found SSLssl.key.password=…"
    ),
    "an address that a backslash joins with a password": (
        ["bootstrap.servers=one:9092,\\", "ssl.key.password=alice-secret"],
        "expected host:port in bootstrap.servers, found ssl.key.password=…",
    ),
    "a trust store of Java": (
        ["security.protocol=SSL", "ssl.truststore.location=/etc/ca.jks"],
        ("store-not-pem: client.properties: expected ssl.truststore.type=PEM, found JKS, which is the default; convert "
        "it: keytool -importkeystore -srckeystore /etc/ca.jks -destkeystore /etc/ca.jks.p12 -deststoretype PKCS12 && "
        "openssl pkcs12 -nokeys -in /etc/ca.jks.p12 -out /etc/ca.jks.pem, and name /etc/ca.jks.pem in "
        "ssl.truststore.location; then set ssl.truststore.type=PEM"),
    ),
    "a key store of PKCS12": (
        ["security.protocol=SSL", "ssl.keystore.type=PKCS12", "ssl.keystore.location=/etc/own.p12"],
        ("found PKCS12; convert it: openssl pkcs12 -in /etc/own.p12 -out /etc/own.p12.pem, and name /etc/own.p12.pem "
        "in ssl.keystore.location; then set ssl.keystore.type=PEM"),
    ),
    "certificates of no type": (
        ["security.protocol=SSL", "ssl.truststore.certificates=CA"],
        "expected ssl.truststore.type=PEM for certificates in the file itself, found none, which is JKS",
    ),
    "two trust stores": (
        ["security.protocol=SSL", *IN_FILE, "ssl.truststore.location=/etc/ca.pem"],
        "expected ssl.truststore.location or ssl.truststore.certificates, found both",
    ),
    "a key without its chain": (
        ["security.protocol=SSL", "ssl.keystore.type=PEM", "ssl.keystore.key=alice-secret"],
        "found no ssl.keystore.certificate.chain",
    ),
    "only old versions of TLS": (
        ["security.protocol=SSL", "ssl.enabled.protocols=TLSv1,TLSv1.1"],
        "expected TLSv1.2 or TLSv1.3 in ssl.enabled.protocols, found TLSv1,TLSv1.1",
    ),
    "cipher suites": (
        ["security.protocol=SSL", "ssl.cipher.suites=TLS_AES_128_GCM_SHA256"], "expected no ssl.cipher.suites"
    ),
    "another check of the host name": (
        ["security.protocol=SSL", "ssl.endpoint.identification.algorithm=LDAPS"], "found LDAPS; use https"
    ),
    "code of Java": (
        ["sasl.client.callback.handler.class=a.B"],
        "expected no sasl.client.callback.handler.class: this client runs no Java code, found one",
    ),
    "a password that stands elsewhere": (
        ["config.providers=file", "security.protocol=SASL_SSL", "sasl.mechanism=PLAIN",
         "sasl.jaas.config=${file:/etc/secrets:jaas}"],
        "expected sasl.jaas.config without a variable, found a variable of config.providers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    lines, expected = REFUSED[case]
    problems = refused(*lines)
    assert any(expected in line for line in problems), problems
    assert all(len(line.splitlines()) == 1 for line in problems)


def test_all_problems_are_reported_at_once() -> None:
    assert (
        len(
            refused(
                "bootstrap.servers=x", "security.protocol=SSL", "ssl.truststore.location=/a", "request.timeout.ms=x"
            )
        )
        == 3
    )


def test_a_secret_is_not_written_to_a_stream() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret("x"))


LOGINS = {
    "words need no quotes": ("a.B required username=alice password=secret;", "secret"),
    "single quotes": ("a.B required password='se\"cret';", 'se"cret'),
    "escapes": (r'a.B required password="a\"b\\c\t\101\q";', 'a"b\\c\tAq'),
    "an escape of two digits": (r'a.B required password="\418";', "!8"),
    "comments": ('/* a */ a.B // b\n required password="/* */ //"; # c'.replace(" # c", ""), "/* */ //"),
    "beyond ASCII": ('a.B optional password="pässwörd€";', "pässwörd€"),
    "an empty password": ('a.B required password="";', ""),
    "a text ends with its line": ('a.B required password="ab\n;', "ab"),
    "no blanks": ('a.B required password="a"user="b";', "a"),
}


@pytest.mark.parametrize("case", LOGINS)
def test_a_login_is_quoted_as_java_reads_it(case: str) -> None:
    value, password = LOGINS[case]
    login = jaas.parse(value)
    assert login.module == "B"
    assert login.options["password"].reveal() == password


@pytest.mark.parametrize(
    "value",
    [
        "", "a.B", "a.B needed;", "a.B required", "a.B required x;", "a.B required x=;", "a.B required x=5;",
        "a.B required; c.D required;",
    ],
)  # fmt: skip
def test_what_is_no_login(value: str) -> None:
    with pytest.raises(jaas.JaasError):
        jaas.parse(value)


def test_pem_on_one_line_and_with_text_around_it() -> None:
    text = (
        "Bag: a\n-----BEGIN CERTIFICATE----- QUJD REVG -----END CERTIFICATE-----\n"
        "-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----"
    )
    blocks = pem.parse(text)
    assert blocks.certificates == ("-----BEGIN CERTIFICATE-----\nQUJDREVG\n-----END CERTIFICATE-----\n",)
    assert blocks.private_keys == ("-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----\n",)
    assert not blocks.is_key_encrypted
    assert "QUJD" not in repr(blocks)


def test_the_page_lists_every_key_that_is_read_and_every_key_that_is_refused() -> None:
    page = (Path(__file__).parents[4] / "docs" / "client.md").read_text()
    read_table, _, refused_table = page.partition("## What is refused")
    listed = {key for line in read_table.splitlines() for key in re.findall(r"^\| `([a-z.]+)`", line)}
    assert listed == READ_KEYS
    for key in REFUSED_KEYS:
        assert f"`{key}`" in refused_table
