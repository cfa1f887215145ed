"""Kafka's Java client properties as settings of librdkafka (confluent-kafka)."""

from __future__ import annotations

from ferry.config.client_settings import ClientSettings
from ferry.config.login import ClientCredentials, Login, Password, TokenFile, UnsecuredToken, read_login
from ferry.config.sources import ClientRole
from ferry.config.stores import client_identity, trusted_certificates
from ferry.config.tokens import TokenFileCallback
from ferry.errors import AuthenticationFailed

# Java name -> librdkafka name and the range that librdkafka takes (it refuses others where Java does not).
_NUMBERS: dict[str, tuple[str, int, int]] = {
    "request.timeout.ms": ("socket.timeout.ms", 10, 300_000),
    "metadata.max.age.ms": ("metadata.max.age.ms", 1, 86_400_000),
    "connections.max.idle.ms": ("connections.max.idle.ms", 0, 2**31 - 1),
    "reconnect.backoff.ms": ("reconnect.backoff.ms", 0, 3_600_000),
    "reconnect.backoff.max.ms": ("reconnect.backoff.max.ms", 0, 3_600_000),
    "retry.backoff.ms": ("retry.backoff.ms", 1, 300_000),
    "retry.backoff.max.ms": ("retry.backoff.max.ms", 1, 300_000),
    "socket.connection.setup.timeout.ms": ("socket.connection.setup.timeout.ms", 1_000, 2**31 - 1),
    # Java's -1 (leave it to the system) is librdkafka's 0.
    "send.buffer.bytes": ("socket.send.buffer.bytes", 0, 100_000_000),
    "receive.buffer.bytes": ("socket.receive.buffer.bytes", 0, 100_000_000),
}
_PRODUCER_NUMBERS: dict[str, tuple[str, int, int]] = {
    "max.request.size": ("message.max.bytes", 1_000, 1_000_000_000),
    "delivery.timeout.ms": ("delivery.timeout.ms", 0, 2**31 - 1),
}
_TEXTS = ("client.id", "client.dns.lookup")


def librdkafka_settings(settings: ClientSettings, role: ClientRole) -> dict[str, object]:
    """Settings for a client of `role`; only properties that are set are given, so that librdkafka's defaults hold for the others."""
    login = read_login(settings)
    result: dict[str, object] = {
        "bootstrap.servers": ",".join(settings.value("bootstrap.servers")),
        "client.id": settings.value("client.id"),
        "security.protocol": login.protocol.lower(),
    }
    numbers = {**_NUMBERS, **(_PRODUCER_NUMBERS if role is ClientRole.PRODUCER else {})}
    for name, (own_name, low, high) in numbers.items():
        if settings.given(name):
            result[own_name] = min(max(settings.value(name), low), high)
    result.update({name: settings.value(name) for name in _TEXTS if settings.given(name)})
    if login.encrypted:
        result.update(_encryption(settings))
    try:
        result.update(_credentials(login))
    except AuthenticationFailed as problem:
        raise AuthenticationFailed(f"cluster {settings.alias}: {problem}") from None
    if isinstance(login.credentials, ClientCredentials):
        # As in Java, the token endpoint is checked against the same trust store as the brokers, whatever protocol these speak.
        trusted = trusted_certificates(settings)
        result.update({"https.ca.pem": trusted} if trusted is not None else {})
    return result


def _encryption(settings: ClientSettings) -> dict[str, object]:
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


def _credentials(login: Login) -> dict[str, object]:
    if login.mechanism is None:
        return {}
    result: dict[str, object] = {"sasl.mechanism": login.mechanism}
    match login.credentials:
        case Password(user=user, password=password):
            result.update({"sasl.username": user, "sasl.password": password.reveal()})
        case UnsecuredToken():
            result.update({"enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": _unsecured(login.credentials)})
        case TokenFile():
            result["oauth_cb"] = TokenFileCallback(login.credentials)
        case ClientCredentials():
            result.update(_client_credentials(login.credentials))
    return result


def _unsecured(credentials: UnsecuredToken) -> str:
    parts = [
        f"principalClaimName={credentials.principal_claim}",
        f"principal={credentials.principal}",
        f"lifeSeconds={credentials.lifetime_seconds}",
    ]
    if credentials.scopes:
        parts.append(f"scope={','.join(credentials.scopes)}")
    parts.extend(f"extension_{name}={value}" for name, value in credentials.extensions.items())
    return " ".join(parts)


def _client_credentials(credentials: ClientCredentials) -> dict[str, object]:
    result: dict[str, object] = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": credentials.url,
        "sasl.oauthbearer.client.id": credentials.client_id,
        "sasl.oauthbearer.client.secret": credentials.client_secret.reveal(),
    }
    if credentials.scope:
        result["sasl.oauthbearer.scope"] = credentials.scope
    if credentials.extensions:
        result["sasl.oauthbearer.extensions"] = ",".join(f"{name}={value}" for name, value in credentials.extensions.items())
    return result
