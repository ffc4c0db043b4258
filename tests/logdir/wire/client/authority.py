"""Certificates that a test makes by ``openssl``: authorities, servers, a client with an encrypted key."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

KEY_PASSWORD = "key-secret"


@dataclass(frozen=True)
class Authority:
    """Files in PEM."""

    folder: Path

    @property
    def trusted(self) -> Path:
        """The authority's certificate."""
        return self.folder / "ca.pem"

    @property
    def stranger(self) -> Path:
        """Another authority's certificate."""
        return self.folder / "other.pem"

    def server(self, name: str = "here") -> tuple[Path, Path]:
        """Return certificate and key of a server: ``here`` is localhost and 127.0.0.1, ``elsewhere`` is not."""
        return self.folder / f"{name}.pem", self.folder / f"{name}.key"

    def client(self) -> tuple[Path, Path]:
        """Return certificate and key of a client; the key is encrypted with ``KEY_PASSWORD``."""
        return self.folder / "client.pem", self.folder / "client.key"


def make(folder: Path) -> Authority:
    """Make all of them; skips the test without ``openssl``."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl: install it (Debian: apt install openssl)")
    for name in ("ca", "other"):
        _openssl(
            folder,
            "req",
            "-x509",
            *_NEW_KEY,
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.pem",
            "-subj",
            f"/CN={name}",
            "-days",
            "2",
        )
    for name, names in (
        ("here", "DNS:localhost,IP:127.0.0.1"),
        ("elsewhere", "DNS:elsewhere"),
        ("client", "DNS:client"),
    ):
        _openssl(folder, "req", *_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext")
        _openssl(folder, "x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")
    sealed = ("-topk8", "-v2", "aes-256-cbc", "-passout", f"pass:{KEY_PASSWORD}")
    _openssl(folder, "pkcs8", *sealed, "-in", "client.key", "-out", "sealed.key")
    (folder / "sealed.key").replace(folder / "client.key")
    return Authority(folder)


_NEW_KEY = ("-newkey", "rsa:2048", "-nodes", "-sha256")


def _openssl(folder: Path, *words: str) -> None:
    done = subprocess.run(["openssl", *words], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
