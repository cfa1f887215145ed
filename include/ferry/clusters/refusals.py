"""Logins that are refused, told from brokers that do not answer: the first cannot be helped by trying again.

A broker says so by SASL's own error or by a TLS alert about certificates; the client itself says so when it does not trust the broker's
certificate, or when it gets no token to log in with.
"""

from __future__ import annotations

import re
import socket
import ssl
from typing import TYPE_CHECKING

from ferry.clusters.answers import SASL, Action
from ferry.errors import AuthenticationFailed, FerryError

if TYPE_CHECKING:
    from ferry.config import ClientRole, Cluster

# A broker that stops in the middle of a login looks for once as if it refused it.
REFUSALS = 3
# A look at a certificate that was just refused: the broker is there.
LOOK_SECONDS = 5.0
NOT_ACCEPTED = "the broker does not accept the client's certificate, or there is none"
_ENCRYPTED_SERVER = re.compile(r"(?:sasl_)?ssl://(.+):(\d+)/")


def is_refusal(problem: BaseException | None) -> bool:
    """Whether the failure of a connection of the data path is a refused login."""
    return SASL.action(_code(problem)) is Action.REFUSED or isinstance(problem, FerryError) or is_tls_refusal(problem)


def is_tls_refusal(problem: BaseException | None) -> bool:
    """Whether one side does not accept the other's certificate."""
    cause = _tls_error(problem)
    return isinstance(cause, ssl.SSLCertVerificationError) or (cause is not None and "ALERT" in (cause.reason or "").upper())


def reason(problem: BaseException) -> str:
    """What a failed connection says about itself, for a message."""
    cause = _tls_error(problem)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the broker's certificate is not accepted: {cause.verify_message}"
    if cause is not None and is_tls_refusal(problem):
        return f"{NOT_ACCEPTED}: {cause.reason}"
    code = _code(problem)
    return SASL.told(code) if SASL.meaning(code).told else str(problem)


def refused(cluster: Cluster, role: ClientRole, why: str, *, tls: bool) -> AuthenticationFailed:
    """The error for a refused login of a client of `role`."""
    hint = "ssl.* (certificates, their dates and host names)" if tls else "sasl.*"
    where = f"cluster {cluster.alias} ({cluster.bootstrap})"
    return AuthenticationFailed(f"{where}: no login as {cluster.login_of(role)}: {why}; check {hint} of {cluster.alias}")


def certificate_problem(cluster: Cluster, role: ClientRole, told: str) -> str | None:
    """Why the certificate of the broker that librdkafka's message `told` of is not accepted; None when a second look accepts it.

    librdkafka says the same of expired certificates, other host names and unknown authorities.
    """
    context, server = cluster.kafka_python(role).get("ssl_context"), _ENCRYPTED_SERVER.match(told)
    if server is None or not isinstance(context, ssl.SSLContext):
        return None
    host = server[1].strip("[]")
    try:
        with socket.create_connection((host, int(server[2])), LOOK_SECONDS) as plain, context.wrap_socket(plain, server_hostname=host):
            return None
    except ssl.SSLCertVerificationError as problem:
        return reason(problem)
    except OSError:
        return None


def _code(problem: BaseException | None) -> int:
    """The broker's error code that `problem` stands for; 0: none.

    Not by kafka-python's classes: importing it takes a quarter of a second, and this module serves librdkafka's errors too.
    """
    code = getattr(type(problem), "errno", None)
    return code if isinstance(code, int) else 0


def _tls_error(problem: BaseException | None) -> ssl.SSLError | None:
    while problem is not None and not isinstance(problem, ssl.SSLError):
        problem = problem.__cause__
    return problem
