"""Files, certificates and stores for the tests of this room."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from ferry.config import FerryConfig, load_config
from ferry.errors import ConfigError

with warnings.catch_warnings():
    # kafka-python reads its schemas by a deprecated call when it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.net.manager  # noqa: F401

TWO_CLUSTERS = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""

Load = Callable[..., FerryConfig]
Problems = Callable[..., list[str]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads two clusters and a flow A->B, with more lines behind; `whole=True`: these lines only."""

    def from_text(more: str = "", *, whole: bool = False, **arguments: object) -> FerryConfig:
        path = tmp_path / "mm2.properties"
        path.write_text(more if whole else TWO_CLUSTERS + more, encoding="latin-1")
        return load_config(path, **arguments)  # type: ignore[arg-type]

    return from_text


@pytest.fixture
def problems(load: Load, tmp_path: Path) -> Problems:
    """The problems of a file, without its path in front: `5: key: what`."""

    def from_text(more: str = "", **arguments: object) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load(more, **arguments)
        prefix = f"{tmp_path / 'mm2.properties'}:"
        lines = str(caught.value).split("\n")
        assert all(line.startswith(prefix) for line in lines)
        return [line.removeprefix(prefix).strip() for line in lines]

    return from_text


@dataclass(frozen=True)
class Certified:
    """A key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def certificate_der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def key_der(self) -> bytes:
        return self.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())

    def key_pem(self, password: str | None = None) -> str:
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


@dataclass(frozen=True)
class Authority:
    """A root, an intermediate below it, and certificates below that: of a broker elsewhere, of one on this machine, of a client."""

    root: Certified
    intermediate: Certified
    broker: Certified
    local_broker: Certified
    client: Certified


def certified(name: str, issuer: Certified | None, *, authority: bool) -> Certified:
    """A fresh certificate of `name`, also valid for that host name."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    )
    return Certified(key, builder.sign(issuer.key if issuer else key, hashes.SHA256()))


@cache
def _authority() -> Authority:
    root = certified("root", None, authority=True)
    intermediate = certified("intermediate", root, authority=True)
    return Authority(
        root,
        intermediate,
        certified("broker.test", intermediate, authority=False),
        certified("localhost", intermediate, authority=False),
        certified("client", intermediate, authority=False),
    )


@pytest.fixture
def authority() -> Authority:
    """Certificates, made once."""
    return _authority()
