"""Trust and key stores of Java clients, turned into PEM in memory.

PEM, PKCS12 and JKS, from files or (PEM) from the properties themselves. As in Java, a store's content decides between JKS and PKCS12,
whatever its type says. Passwords never reach a message.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)

from ferry.config.client_settings import ClientSettings
from ferry.config.problems import PropertyError
from ferry.config.secret import Secret

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_TRUSTED_PEM = "ssl.truststore.certificates"
_OWN_PEM = ("ssl.keystore.key", "ssl.keystore.certificate.chain")
_JKS_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")


@dataclass(frozen=True)
class Identity:
    """The client's certificate, issuers' certificates behind it, and private key (PKCS#8, not encrypted), as PEM."""

    certificates: str
    key: Secret
    subject: str


@dataclass(frozen=True)
class _Content:
    """What a binary store holds: DER of trusted certificates, and of key entries as (alias, key PEM, chain)."""

    trusted: list[bytes]
    keys: list[tuple[str, bytes, list[bytes]]] = field(repr=False)


def store_problems(settings: ClientSettings) -> list[PropertyError]:
    """What the properties of stores say against each other; opens none."""
    own = [name for name in _OWN_PEM if settings.given(name)]
    found = [] if not settings.given(_TRUSTED_PEM) else _misplaced_pem(settings, "truststore", _TRUSTED_PEM)
    if own:
        found += _misplaced_pem(settings, "keystore", own[0])
    if len(own) == 1:
        missing = next(name for name in _OWN_PEM if name not in own)
        found.append(settings.problem(own[0], f"needs {missing} beside it"))
    return found


def _misplaced_pem(settings: ClientSettings, store: str, name: str) -> list[PropertyError]:
    found = []
    if settings.value(f"ssl.{store}.type") != "PEM":
        found.append(settings.problem(name, f"is read only with ssl.{store}.type=PEM: set it"))
    if settings.given(f"ssl.{store}.location"):
        found.append(settings.problem(name, f"and ssl.{store}.location exclude each other: remove one"))
    return found


def _require_consistent(settings: ClientSettings) -> None:
    for problem in store_problems(settings):
        raise problem


def trusted_certificates(settings: ClientSettings) -> str | None:
    """Certificates to trust, as PEM; None for the system's."""
    inline = settings.text(_TRUSTED_PEM)
    _require_consistent(settings)
    if inline is not None:
        return _certificates(settings, _TRUSTED_PEM, inline)
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
    return "".join(_pem(certificate) for certificate in certificates)


def client_identity(settings: ClientSettings) -> Identity | None:
    """The client's certificate and key; None when there is no key store."""
    password = settings.text("ssl.key.password")
    _require_consistent(settings)
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
    _, key, chain_der = content.keys[0]
    if not key:
        raise settings.problem("ssl.keystore.location", "needs ssl.keystore.password or ssl.key.password to read its private key")
    return _identity(settings, "ssl.keystore.location", key.decode(), [x509.load_der_x509_certificate(der) for der in chain_der])


def _read(settings: ClientSettings, name: str, location: str) -> bytes:
    try:
        return Path(location.strip()).read_bytes()
    except (OSError, ValueError) as problem:  # ValueError: the path holds a NUL
        raise settings.problem(name, f"{location.strip()} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None


def _blocks(text: str) -> list[tuple[str, str]]:
    """PEM blocks by label, with their lines as they should be: Kafka also takes them in one line with blanks."""
    return [
        (label, f"-----BEGIN {label}-----\n" + "\n".join(textwrap.wrap("".join(body.split()), 64)) + f"\n-----END {label}-----\n")
        for label, body in _BLOCK.findall(text)
    ]


def _certificates(settings: ClientSettings, name: str, text: str) -> str:
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in _parsed_certificates(settings, name, text))


def _parsed_certificates(settings: ClientSettings, name: str, text: str) -> list[x509.Certificate]:
    found = [block for label, block in _blocks(text) if label == "CERTIFICATE"]
    try:
        certificates = [x509.load_pem_x509_certificate(block.encode()) for block in found]
    except ValueError:
        raise settings.problem(name, "holds a certificate that cannot be read") from None
    if not certificates:
        raise settings.problem(name, "holds no PEM certificate")
    return certificates


def _pem_identity(settings: ClientSettings, name: str, key_text: str, chain_text: str, password: str | None) -> Identity:
    keys = [block for label, block in _blocks(key_text) if label.endswith("PRIVATE KEY")]
    if len(keys) != 1:
        raise settings.problem(name, f"must hold exactly one PEM private key, and holds {len(keys)}")
    try:
        key = load_pem_private_key(keys[0].encode(), password.encode() if password else None)
    except (ValueError, TypeError):
        raise settings.problem(name, "holds a private key that cannot be read with ssl.key.password as given") from None
    chain_name = "ssl.keystore.certificate.chain" if name == "ssl.keystore.key" else name
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return _identity(settings, name, plain, _parsed_certificates(settings, chain_name, chain_text))


def _identity(settings: ClientSettings, name: str, key: str, chain: list[x509.Certificate]) -> Identity:
    if not chain:
        raise settings.problem(name, "holds no certificate for its private key")
    text = "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in chain)
    return Identity(text, Secret(key), chain[0].subject.rfc4514_string())


def _pem(der: bytes) -> str:
    return x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM).decode()


def _open(settings: ClientSettings, store: str, data: bytes) -> _Content:
    password = settings.text(f"ssl.{store}.password")
    try:
        if data[:4] in _JKS_MAGIC:
            own = settings.text("ssl.key.password")
            return _open_jks(data, password, None if store == "truststore" else (own if own is not None else password))
        return _open_pkcs12(data, password)
    except _Unreadable as problem:
        raise settings.problem(f"ssl.{store}.location", str(problem)) from None


class _Unreadable(Exception):
    """A store cannot be opened; the text says why, without the password."""


def _open_pkcs12(data: bytes, password: str | None) -> _Content:
    try:
        store = pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError:
        raise _Unreadable("is no JKS or PKCS12 store, or its password is wrong") from None
    trusted = [entry.certificate.public_bytes(Encoding.DER) for entry in store.additional_certs]
    if store.key is None:
        return _Content(([store.cert.certificate.public_bytes(Encoding.DER)] if store.cert else []) + trusted, [])
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    own = [store.cert.certificate.public_bytes(Encoding.DER)] if store.cert else []
    name = store.cert.friendly_name.decode(errors="replace") if store.cert and store.cert.friendly_name else "1"
    # PKCS12 keeps a key's issuers as plain certificates.
    return _Content(trusted, [(name, key, own + trusted)])


def _open_jks(data: bytes, password: str | None, key_password: str | None) -> _Content:
    """Private keys are decrypted only when there is a password for them."""
    import jks  # noqa: PLC0415 - slow to import, and few clusters have a JKS store

    try:
        store: Any = jks.KeyStore.loads(data, password, try_decrypt_keys=False)
        keys = [(alias, _jks_key(entry, key_password), [der for _, der in entry.cert_chain]) for alias, entry in store.private_keys.items()]
    except (jks.KeystoreException, ValueError, TypeError):
        raise _Unreadable("cannot be opened: the store is damaged, or the password of the store or of its key is wrong") from None
    return _Content([entry.cert for entry in store.certs.values()], keys)


def _jks_key(entry: Any, password: str | None) -> bytes:
    if password is None:
        return b""
    entry.decrypt(password)
    return load_der_private_key(entry.pkey_pkcs8, None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
