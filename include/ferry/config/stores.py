"""Trust and key stores of Java clients, turned into PEM in memory, and TLS for the two client libraries with them.

The stores are PEM, PKCS12 and JKS files; PEM may also be in the properties themselves. As in Java, the content of a store decides between
JKS and PKCS12, not its type. Messages never contain passwords.
"""

import re
import secrets
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)

from ferry.config.client_settings import TRUSTED_PEM, ClientSettings, require_consistent
from ferry.config.jks import MAGIC as JKS_MAGIC
from ferry.config.jks import Unreadable, read_jks, uncovered
from ferry.config.secret import Secret
from ferry.config.tls_policy import SUITES, TLS_1_2, TLS_1_3, read_tls_policy
from ferry.ending import temporary_directory

_VERSIONS = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}
_CERTIFICATE = re.compile("-----END ([A-Z0-9 ]*CERTIFICATE)-----")
_CERTIFICATES_READ = frozenset({"CERTIFICATE", "X509 CERTIFICATE"})
_PRIVATE_KEY = re.compile("-----END [A-Z0-9 ]*PRIVATE KEY-----")
# Empty lines, except the one after headers (`Proc-Type: …`). Java takes no notice of them; cryptography looks for headers before them.
_EMPTY_LINES = re.compile(r"^([^:\n]*\n)(?:[^\S\n]*\n)+", re.MULTILINE)
_JCEKS_MAGIC = b"\xce\xce\xce\xce"
# Object identifiers in a PKCS12 store. The list of keys is not encrypted, only each key is. A symmetric key of Java has both.
_PKCS12_KEY, _PKCS12_SECRET = bytes.fromhex("060b2a864886f70d010c0a0102"), bytes.fromhex("060b2a864886f70d010c0a0105")


@dataclass(frozen=True)
class Identity:
    """The client's certificate, followed by its issuers', and the private key (PKCS#8, not encrypted), as PEM."""

    certificates: str
    key: Secret
    subject: str


@dataclass(frozen=True)
class _Content:
    """The content of a binary store: trusted certificates as DER, and key entries as (alias, key PEM, chain)."""

    trusted: list[bytes]
    keys: list[tuple[str, bytes, list[bytes]]] = field(repr=False)


def trusted_certificates(settings: ClientSettings) -> str | None:
    """The certificates to trust, as PEM; None for those of the system."""
    inline = settings.text(TRUSTED_PEM)
    require_consistent(settings)
    if inline is not None:
        return _certificates(settings, TRUSTED_PEM, inline)
    location = settings.text("ssl.truststore.location")
    if location is None:
        return None
    data = _read(settings, "ssl.truststore.location", location)
    if settings.value("ssl.truststore.type") == "PEM":
        return _certificates(settings, "ssl.truststore.location", data.decode("latin-1"))
    content = _open(settings, "truststore", data)
    # Java trusts the certificates of key entries in a trust store as well.
    certificates = [*content.trusted, *(chain[0] for _, _, chain in content.keys if chain)]
    if not certificates:
        raise settings.problem("ssl.truststore.location", "holds no certificate")
    return "".join(ssl.DER_cert_to_PEM_cert(certificate) for certificate in certificates)


def client_identity(settings: ClientSettings) -> Identity | None:
    """The client's certificate and key; None if there is no key store."""
    password = settings.text("ssl.key.password")
    require_consistent(settings)
    if settings.given("ssl.keystore.key"):
        chain = settings.text("ssl.keystore.certificate.chain") or ""
        return _pem_identity(settings, "ssl.keystore.key", settings.text("ssl.keystore.key") or "", chain, password)
    location = settings.text("ssl.keystore.location")
    if location is None:
        return None
    data = _read(settings, "ssl.keystore.location", location)
    if settings.value("ssl.keystore.type") == "PEM":
        text = data.decode("latin-1")
        return _pem_identity(settings, "ssl.keystore.location", text, text, password)
    content = _open(settings, "keystore", data)
    if len(content.keys) != 1:
        held = ", ".join(sorted(alias for alias, _, _ in content.keys)) or "none"
        raise settings.problem("ssl.keystore.location", f"must hold exactly one private key (holds: {held})")
    _, key, certificates = content.keys[0]
    if not key:
        raise settings.problem("ssl.keystore.location", "needs ssl.keystore.password or ssl.key.password to read its private key")
    try:
        return _identity(settings, "ssl.keystore.location", key.decode(), [x509.load_der_x509_certificate(der) for der in certificates])
    except ValueError:
        raise settings.problem("ssl.keystore.location", "holds a certificate that cannot be read") from None


def _read(settings: ClientSettings, name: str, location: str) -> bytes:
    try:
        return Path(location.strip()).read_bytes()
    except (OSError, ValueError) as problem:  # ValueError: the path holds a NUL
        raise settings.problem(name, f"{location.strip()} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None


def _pem(text: str) -> bytes:
    return _EMPTY_LINES.sub(r"\1", text).encode()


def _certificates(settings: ClientSettings, name: str, text: str) -> str:
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in _parsed_certificates(settings, name, text))


def _parsed_certificates(settings: ClientSettings, name: str, text: str) -> list[x509.Certificate]:
    labels = _CERTIFICATE.findall(text)
    if not labels:
        raise settings.problem(name, "holds no PEM certificate")
    for label in labels:
        if label not in _CERTIFICATES_READ:
            raise settings.problem(name, f"holds a {label}, which Ferry does not read: convert it with openssl x509")
    try:
        return x509.load_pem_x509_certificates(_pem(text))
    except ValueError:
        raise settings.problem(name, "holds a certificate that cannot be read") from None


def _pem_identity(settings: ClientSettings, name: str, key_text: str, chain_text: str, password: str | None) -> Identity:
    keys = len(_PRIVATE_KEY.findall(key_text))
    if keys != 1:
        raise settings.problem(name, f"must hold exactly one PEM private key, and holds {keys}")
    try:
        key = load_pem_private_key(_pem(key_text), password.encode() if password else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise settings.problem(name, "holds a private key that is damaged, or ssl.key.password is not its password") from None
    chain_name = "ssl.keystore.certificate.chain" if name == "ssl.keystore.key" else name
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return _identity(settings, name, plain, _parsed_certificates(settings, chain_name, chain_text))


def _identity(settings: ClientSettings, name: str, key: str, chain: list[x509.Certificate]) -> Identity:
    if not chain:
        raise settings.problem(name, "holds no certificate for its private key")
    text = "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in chain)
    return Identity(text, Secret(key), chain[0].subject.rfc4514_string())


def _open(settings: ClientSettings, store: str, data: bytes) -> _Content:
    password = settings.text(f"ssl.{store}.password")
    own = settings.text("ssl.key.password")
    if data.startswith(_JCEKS_MAGIC):
        what = "is a JCEKS store, which Ferry does not read: make a PKCS12 store of it with keytool -importkeystore"
        raise settings.problem(f"ssl.{store}.location", what)
    try:
        if data.startswith(JKS_MAGIC):
            return _open_jks(data, password, None if store == "truststore" else (own if own is not None else password))
        return _open_pkcs12(data, password, alone=store == "keystore")
    except Unreadable as problem:
        raise settings.problem(f"ssl.{store}.location", str(problem)) from None
    except (ValueError, UnsupportedAlgorithm):
        raise settings.problem(f"ssl.{store}.location", "holds a certificate or a private key that cannot be read") from None


def _open_pkcs12(data: bytes, password: str | None, *, alone: bool) -> _Content:
    """`alone`: whether the key must be the only one, because cryptography gives only one of several."""
    try:
        store = pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError as problem:  # also for certificates that do not follow their standard exactly
        password_is = "missing" if password is None else "wrong"
        raise Unreadable(f"is no JKS or PKCS12 store, or its password is {password_is} ({problem})") from None
    if alone and (held := data.count(_PKCS12_KEY) - data.count(_PKCS12_SECRET)) > 1:
        raise Unreadable(f"must hold exactly one private key, and holds {held}")
    others = [entry.certificate for entry in store.additional_certs]
    own = store.cert.certificate if store.cert else None
    trusted = [_der(certificate) for certificate in others]
    if store.key is None:
        return _Content(trusted if own is None else [_der(own), *trusted], [])
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    name = (store.cert.friendly_name if store.cert else None) or b"1"
    chain = [] if own is None else [_der(certificate) for certificate in _chain(own, others)]
    return _Content(trusted, [(name.decode(errors="replace"), key, chain)])


def _chain(own: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """A certificate and its issuers, found by name as in Java: PKCS12 holds certificates in any order."""
    chain = [own]
    while issuer := next((other for other in others if other.subject == chain[-1].issuer and other not in chain), None):
        chain.append(issuer)
    return chain


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)


def _open_jks(data: bytes, password: str | None, key_password: str | None) -> _Content:
    """Decrypts the private key if it is the only one and there is a password for it."""
    trusted, keys = read_jks(data, password)
    plain = b""
    if len(keys) == 1 and key_password is not None:
        key = load_der_private_key(uncovered(keys[0], key_password), None)
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return _Content(trusted, [(key.alias, plain, key.chain) for key in keys])


def librdkafka_tls(settings: ClientSettings) -> dict[str, object]:
    result: dict[str, object] = {"ssl.endpoint.identification.algorithm": settings.value("ssl.endpoint.identification.algorithm") or "none"}
    if ciphers := read_tls_policy(settings).ciphers:
        result["ssl.cipher.suites"] = ":".join(ciphers)
    if trusted := trusted_certificates(settings):
        result["ssl.ca.pem"] = trusted
    if identity := client_identity(settings):
        result["ssl.certificate.pem"] = identity.certificates
        result["ssl.key.pem"] = identity.key.reveal()
    return result


def tls_context(settings: ClientSettings) -> ssl.SSLContext:
    """A TLS client context with the versions and suites that are allowed; certificates are always checked."""
    policy = read_tls_policy(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = min(map(_VERSIONS.__getitem__, policy.versions))
    context.maximum_version = max(map(_VERSIONS.__getitem__, policy.versions))
    if policy.ciphers:
        with _named(settings, SUITES):
            context.set_ciphers(":".join(policy.ciphers))
    context.check_hostname = settings.value("ssl.endpoint.identification.algorithm") == "https"
    trusted = trusted_certificates(settings)
    if trusted is None:
        context.load_default_certs()
    else:
        with _named(settings, "ssl.truststore.location", "ssl.truststore.certificates"):
            context.load_verify_locations(cadata=trusted)
    if identity := client_identity(settings):
        with _named(settings, "ssl.keystore.location", "ssl.keystore.key"):
            # Python's ssl reads keys from files only: the file lives for this call, and the key in it is encrypted with a passing password.
            passphrase = secrets.token_hex(32)
            key = load_pem_private_key(identity.key.reveal().encode(), None)
            encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(passphrase.encode()))
            with temporary_directory("ferry-") as directory:
                path = directory / "identity.pem"
                path.write_bytes(encrypted + identity.certificates.encode())
                context.load_cert_chain(path, password=passphrase)
    return context


@contextmanager
def _named(settings: ClientSettings, *names: str) -> Iterator[None]:
    """Turn an error of OpenSSL into a ConfigError with the property of the key or certificate that OpenSSL refuses."""
    try:
        yield
    except ssl.SSLError as problem:
        name = next(name for name in names if settings.given(name))
        reason = (problem.reason or str(problem)).lower().replace("_", " ")
        raise settings.problem(name, f"OpenSSL refuses its content: {reason}") from None
