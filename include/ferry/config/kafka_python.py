"""Kafka's Java client properties as settings of kafka-python's connection manager, which the data path stands on."""

from __future__ import annotations

import secrets
import socket
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, load_pem_private_key

from ferry.config.client_settings import ClientSettings
from ferry.config.login import Login, Password, read_login
from ferry.config.stores import Identity, client_identity, trusted_certificates

_NUMBERS = {
    "request.timeout.ms": "request_timeout_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "connections.max.idle.ms": "connections_max_idle_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "socket.connection.setup.timeout.ms": "socket_connection_setup_timeout_ms",
    "socket.connection.setup.timeout.max.ms": "socket_connection_setup_timeout_max_ms",
}
_BUFFERS = {"send.buffer.bytes": socket.SO_SNDBUF, "receive.buffer.bytes": socket.SO_RCVBUF}


def kafka_python_settings(settings: ClientSettings) -> dict[str, object]:
    """Arguments of KafkaConnectionManager; properties that are not set are left to its defaults."""
    login = read_login(settings)
    result: dict[str, object] = {
        "bootstrap_servers": list(settings.value("bootstrap.servers")),
        "client_id": settings.value("client.id"),
        "security_protocol": login.protocol,
        "socket_options": _socket_options(settings),
    }
    result.update({own_name: settings.value(name) for name, own_name in _NUMBERS.items() if settings.given(name)})
    if settings.given("client.dns.lookup"):
        result["client_dns_lookup"] = settings.value("client.dns.lookup")
    if login.encrypted:
        result["ssl_context"] = _context(settings)
    result.update(_credentials(settings, login))
    return result


def _socket_options(settings: ClientSettings) -> list[tuple[int, int, int]]:
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    sizes = {option: settings.value(name) for name, option in _BUFFERS.items() if settings.given(name)}
    return options + [(socket.SOL_SOCKET, option, size) for option, size in sizes.items() if size >= 0]


def _credentials(settings: ClientSettings, login: Login) -> dict[str, object]:
    if login.mechanism is None or login.credentials is None:
        return {}
    result: dict[str, object] = {"sasl_mechanism": login.mechanism}
    if isinstance(login.credentials, Password):
        user = login.credentials.user
        if login.mechanism.startswith("SCRAM"):  # kafka-python leaves out what RFC 5802 (5.1, saslname) asks for
            user = user.replace("=", "=3D").replace(",", "=2C")
        result.update({"sasl_plain_username": user, "sasl_plain_password": login.credentials.password.reveal()})
    else:
        from ferry.config.token_provider import TokenProvider  # noqa: PLC0415 - see there

        # Java checks the token endpoint against the client's trust store, whatever protocol the brokers speak.
        result["sasl_oauth_token_provider"] = TokenProvider(login.credentials, _context(settings))
    return result


def _context(settings: ClientSettings) -> ssl.SSLContext:
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
