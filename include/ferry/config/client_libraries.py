"""Kafka's Java client properties as settings of the two client libraries: librdkafka (confluent-kafka) and kafka-python.

kafka-python's connection manager carries data and questions, librdkafka's admin client changes. Properties that are not set are left to the
libraries' defaults.
"""

import socket
from typing import TYPE_CHECKING

from ferry.config.client_settings import ClientSettings
from ferry.config.credentials import ClientCredentials, Kerberos, Password, Tokens, UnsecuredToken
from ferry.config.login import Login, read_login
from ferry.errors import AuthenticationFailed, ClusterUnreachable

if TYPE_CHECKING:
    from ferry.config.tokens import TokenProvider

# Java name -> librdkafka name and the range that librdkafka takes (it refuses others where Java does not).
_LIBRDKAFKA_NUMBERS: dict[str, tuple[str, int, int]] = {
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
# kafka-python's names are Java's with underscores.
_KAFKA_PYTHON = (
    "client.dns.lookup",
    "request.timeout.ms",
    "metadata.max.age.ms",
    "connections.max.idle.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "socket.connection.setup.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
)
# Also where the properties name AWS_MSK_IAM: see aws_iam.py.
_BEARER = "OAUTHBEARER"
_BUFFERS = {"send.buffer.bytes": socket.SO_SNDBUF, "receive.buffer.bytes": socket.SO_RCVBUF}


def librdkafka_settings(settings: ClientSettings) -> dict[str, object]:
    login = read_login(settings)
    result: dict[str, object] = {
        "bootstrap.servers": ",".join(settings.value("bootstrap.servers")),
        "client.id": settings.value("client.id"),
        "security.protocol": login.protocol.lower(),
    }
    for name, (library_name, low, high) in _LIBRDKAFKA_NUMBERS.items():
        if settings.given(name):
            result[library_name] = min(max(settings.value(name), low), high)
    if settings.given("client.dns.lookup"):
        result["client.dns.lookup"] = settings.value("client.dns.lookup")
    if login.encrypted:
        from ferry.config.stores import librdkafka_tls  # noqa: PLC0415 - loads cryptography, which only encrypted connections need

        result.update(librdkafka_tls(settings))
    try:
        result.update(_librdkafka_login(settings, login))
    except (AuthenticationFailed, ClusterUnreachable) as problem:
        raise type(problem)(f"cluster {settings.alias} ({result['bootstrap.servers']}): {problem}") from None
    if isinstance(login.credentials, ClientCredentials):
        from ferry.config.stores import trusted_certificates  # noqa: PLC0415 - as above

        # As in Java, the token endpoint is checked against the trust store of the brokers, even if these use no TLS.
        trusted = trusted_certificates(settings)
        result.update({"https.ca.pem": trusted} if trusted is not None else {})
    return result


def _librdkafka_login(settings: ClientSettings, login: Login) -> dict[str, object]:
    match login.credentials:
        case None:
            return {}
        case Password(user=user, password=password):
            return {"sasl.mechanism": login.mechanism, "sasl.username": user, "sasl.password": password.reveal()}
        case Kerberos():
            from ferry.config.kerberos import librdkafka_kerberos  # noqa: PLC0415 - an extra that need not be installed

            return {"sasl.mechanism": login.mechanism, **librdkafka_kerberos(login.credentials)}
        case UnsecuredToken():
            options = {
                "principalClaimName": login.credentials.principal_claim,
                "principal": login.credentials.principal,
                "lifeSeconds": login.credentials.lifetime_seconds,
                **({"scope": ",".join(login.credentials.scopes)} if login.credentials.scopes else {}),
                **{f"extension_{name}": value for name, value in login.credentials.extensions.items()},
            }
            config = " ".join(f"{name}={value}" for name, value in options.items())
            own: dict[str, object] = {"enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": config}
        case ClientCredentials():
            oidc = {
                "method": "oidc",
                "token.endpoint.url": login.credentials.url,
                "client.id": login.credentials.client_id,
                "client.secret": login.credentials.client_secret.reveal(),
                "scope": login.credentials.scope,
                "extensions": ",".join(f"{name}={value}" for name, value in login.credentials.extensions.items()),
            }
            own = {f"sasl.oauthbearer.{name}": value for name, value in oidc.items() if value}
        case _:
            from ferry.config.tokens import TokenCallback  # noqa: PLC0415 - see there

            own = {"oauth_cb": TokenCallback(_token_provider(settings, login.credentials))}
    return {"sasl.mechanism": _BEARER, **own}


def _token_provider(settings: ClientSettings, credentials: Tokens) -> "TokenProvider":
    from ferry.config.stores import tls_context  # noqa: PLC0415 - loads cryptography
    from ferry.config.tokens import TokenProvider  # noqa: PLC0415 - see there

    # Java checks the token endpoint against the client's trust store, even if the brokers use no TLS.
    return TokenProvider(credentials, tls_context(settings))


def kafka_python_settings(settings: ClientSettings) -> dict[str, object]:
    login = read_login(settings)
    sizes = {option: settings.value(name) for name, option in _BUFFERS.items() if settings.given(name)}
    buffers = [(socket.SOL_SOCKET, option, size) for option, size in sizes.items() if size >= 0]
    result: dict[str, object] = {
        "bootstrap_servers": list(settings.value("bootstrap.servers")),
        "client_id": settings.value("client.id"),
        "security_protocol": login.protocol,
        "socket_options": [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *buffers],
    }
    result.update({name.replace(".", "_"): settings.value(name) for name in _KAFKA_PYTHON if settings.given(name)})
    if login.encrypted:
        from ferry.config.stores import tls_context  # noqa: PLC0415 - as above

        result["ssl_context"] = tls_context(settings)
    result.update(_kafka_python_login(settings, login))
    return result


def _kafka_python_login(settings: ClientSettings, login: Login) -> dict[str, object]:
    if login.mechanism is None or login.credentials is None:
        return {}
    if isinstance(login.credentials, Password):
        user = login.credentials.user
        if login.mechanism.startswith("SCRAM"):  # kafka-python leaves out what RFC 5802 (5.1, saslname) asks for
            user = user.replace("=", "=3D").replace(",", "=2C")
        password = login.credentials.password.reveal()
        return {"sasl_mechanism": login.mechanism, "sasl_plain_username": user, "sasl_plain_password": password}
    if isinstance(login.credentials, Kerberos):
        from ferry.config.kerberos import kafka_python_kerberos  # noqa: PLC0415 - as above

        return {"sasl_mechanism": login.mechanism, **kafka_python_kerberos(login.credentials)}
    return {"sasl_mechanism": _BEARER, "sasl_oauth_token_provider": _token_provider(settings, login.credentials)}
