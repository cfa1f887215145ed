"""TLS for the two client libraries: trusted certificates and the client's own, from the stores of the Java properties."""

import secrets
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, load_pem_private_key

from ferry.config.client_settings import ClientSettings
from ferry.config.stores import Identity, client_identity, trusted_certificates


def librdkafka_tls(settings: ClientSettings) -> dict[str, object]:
    """Settings of librdkafka."""
    result: dict[str, object] = {
        "ssl.endpoint.identification.algorithm": settings.value("ssl.endpoint.identification.algorithm") or "none",
    }
    trusted = trusted_certificates(settings)
    if trusted is not None:
        result["ssl.ca.pem"] = trusted
    identity = client_identity(settings)
    if identity is not None:
        result["ssl.certificate.pem"] = identity.certificates
        result["ssl.key.pem"] = identity.key.reveal()
    return result


def tls_context(settings: ClientSettings) -> ssl.SSLContext:
    """A TLS client context: TLS 1.2 or newer, certificates always checked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.value("ssl.endpoint.identification.algorithm") == "https"
    trusted = trusted_certificates(settings)
    if trusted is None:
        context.load_default_certs()
    else:
        with _named(settings, "ssl.truststore.location", "ssl.truststore.certificates"):
            context.load_verify_locations(cadata=trusted)
    identity = client_identity(settings)
    if identity is not None:
        with _named(settings, "ssl.keystore.location", "ssl.keystore.key"):
            _load_identity(context, identity)
    return context


@contextmanager
def _named(settings: ClientSettings, *names: str) -> Iterator[None]:
    """What OpenSSL refuses (a key that is too short, a certificate of another key) is a problem of the property that it came from."""
    try:
        yield
    except ssl.SSLError as problem:
        name = next(name for name in names if settings.given(name))
        reason = (problem.reason or str(problem)).lower().replace("_", " ")
        raise settings.problem(name, f"holds what OpenSSL refuses: {reason}") from None


def _load_identity(context: ssl.SSLContext, identity: Identity) -> None:
    """Python's ssl reads keys from files only: the file lives for this call, and the key in it is encrypted with a passing password."""
    passphrase = secrets.token_hex(32)
    key = load_pem_private_key(identity.key.reveal().encode(), None)
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(passphrase.encode()))
    with tempfile.TemporaryDirectory(prefix="ferry-") as directory:
        path = Path(directory) / "identity.pem"
        path.write_bytes(encrypted + identity.certificates.encode())
        context.load_cert_chain(path, password=passphrase)
