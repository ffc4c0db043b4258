"""The TLS context of a client: trusted certificates, and its own private key and chain. Reads the files of the stores.

OpenSSL takes a private key from a file only; a key is given to it through a file in memory, never through a disk.

Not here: the settings (``stores``), connections (``connection``).

Spec: KIP-651; memfd_create(2).
"""

from __future__ import annotations

import os
import ssl
import stat
from typing import Final

from logdir.errors import ConfigError, Problem
from logdir.wire.client import pem
from logdir.wire.client.pem import PemBlocks
from logdir.wire.client.stores import Store, TlsSettings

MAX_STORE_BYTES: Final = 4 << 20
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_OPEN: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


def context_of(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context for connections with these settings. Reads the files of the stores.

    Raises:
        ConfigError: a store cannot be read, is not PEM, or its key does not fit its certificate or password.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.is_host_checked
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = _VERSIONS[settings.versions[0]]
    context.maximum_version = _VERSIONS[settings.versions[-1]]
    if settings.trusted is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _trust(context, settings.trusted)
    if settings.own is not None:
        _show(context, settings.own, settings)
    return context


def _trust(context: ssl.SSLContext, store: Store) -> None:
    where, blocks = _blocks(store, "ssl.truststore")
    if not blocks.certificates:
        raise _unusable(where, "at least one certificate in PEM", "none")
    try:
        context.load_verify_locations(cadata="".join(blocks.certificates))
    except ssl.SSLError as error:
        raise _unusable(where, "certificates in PEM", _reason(error)) from None


def _show(context: ssl.SSLContext, store: Store, settings: TlsSettings) -> None:
    where, blocks = _blocks(store, "ssl.keystore")
    if len(blocks.private_keys) != 1 or not blocks.certificates:
        found = f"{len(blocks.private_keys)} and {len(blocks.certificates)}"
        raise _unusable(where, "one private key and its certificate chain in PEM", found)
    password = settings.key_password
    if blocks.is_key_encrypted and password is None:
        raise _unusable(where, "ssl.key.password for an encrypted private key", "none")
    text = "".join((*blocks.private_keys, *blocks.certificates))
    descriptor = os.memfd_create("key", os.MFD_CLOEXEC)
    with open(descriptor, "wb") as file:
        file.write(text.encode())
        file.flush()
        try:
            # An empty password, in place of none, keeps OpenSSL from asking for one on the terminal.
            context.load_cert_chain(
                f"/proc/self/fd/{descriptor}", password=lambda: "" if password is None else password.reveal()
            )
        except (ssl.SSLError, ValueError) as error:
            expected = "a private key that fits its certificate and ssl.key.password"
            raise _unusable(where, expected, _reason(error)) from None


def _blocks(store: Store, key: str) -> tuple[str, PemBlocks]:
    if store.text is not None:
        return key, pem.parse(store.text.reveal())
    try:
        data = _read(store.path)
    except OSError as error:
        expected = f"a file that can be read, named by {key}.location"
        raise _unusable(store.path, expected, error.strerror or type(error).__name__) from error
    return store.path, pem.parse(data.decode("latin-1"))


def _read(path: str) -> bytes:
    with open(path, "rb", opener=lambda name, _: os.open(name, _OPEN)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "no regular file")
        data = file.read(MAX_STORE_BYTES + 1)
    if len(data) > MAX_STORE_BYTES:
        raise OSError(0, f"more than {MAX_STORE_BYTES} bytes")
    return data


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason).lower().replace("_", " ") if reason else type(error).__name__


def _unusable(where: str, expected: str, found: str) -> ConfigError:
    return ConfigError((Problem("config-error", where, expected, found, "see docs/client.md"),))
