"""Keys and certificates for tests: an authority with an intermediate below it, and whatever it signs."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

DAY = datetime.timedelta(days=1)


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


def certified(name: str, issuer: Certified | None, *, authority: bool, ended: bool = False) -> Certified:
    """A fresh certificate of `name`, also valid for that host name (localhost: for 127.0.0.1 too), or one that `ended` an hour ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    names: list[x509.GeneralName] = [x509.DNSName(name)]
    if name == "localhost":
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now - DAY / 24 if ended else now + DAY)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )
    return Certified(key, builder.sign(issuer.key if issuer else key, hashes.SHA256()))


@cache
def authority_of_tests() -> Authority:
    """Certificates, made once a process."""
    root = certified("root", None, authority=True)
    intermediate = certified("intermediate", root, authority=True)
    return Authority(
        root,
        intermediate,
        certified("broker.test", intermediate, authority=False),
        certified("localhost", intermediate, authority=False),
        certified("client", intermediate, authority=False),
    )
