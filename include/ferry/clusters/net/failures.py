"""Errors of both client libraries in Ferry's terms: which cluster, where, as whom, and what to change.

Ferry distinguishes a refused login from a broker that does not answer, because another try helps only with the second. A broker refuses a
login by SASL's own error or by a TLS alert about certificates. The client itself refuses it if it does not trust the broker's certificate,
or gets no token to log in with.
"""

import re
import socket
import ssl
from collections.abc import Callable, Iterable
from typing import TypeGuard, TypeVar

from confluent_kafka import KafkaError, KafkaException

from ferry.clusters.net.error_policy import ADMIN, SASL, Action
from ferry.config import ClientRole, Cluster
from ferry.errors import AuthenticationFailed, ChangeRefused, ClusterUnreachable, ConfigError, FerryError, NotAuthorized

T = TypeVar("T")

# A broker that stops in the middle of a login looks as if it refused it. It does not do so this many times in a row.
REFUSALS = 3
# For a second look at a certificate that was just refused: the broker is there.
LOOK_SECONDS = 5.0
# A client's last error may say less than an earlier one, so Ferry keeps this many.
ERRORS_KEPT = 20
NOT_ACCEPTED = "the broker does not accept the client's certificate, or there is none"
_ENCRYPTED_SERVER = re.compile(r"(?:sasl_)?ssl://(.+):(\d+)/")
# Codes that mean that nobody has answered.
_UNANSWERED = frozenset(
    getattr(KafkaError, name) for name in ("_TIMED_OUT", "_TIMED_OUT_QUEUE", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_DESTROY_BROKER")
)
_AUTHENTICATION = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL})  # noqa: SLF001 - public names
# A broker that does not accept the client's certificate says so after the handshake, and librdkafka reports a lost connection.
_CERTIFICATE_ALERT = re.compile(r"alert .*certificate|alert unknown ca", re.IGNORECASE)
# The login came when the broker had given up the connection: the next login may be in time.
_LATE_LOGIN = "not valid in current SASL state"
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token"  # noqa: S105 - the beginning of a message
# libcurl says this of an endpoint that it could not talk to; anything else is the endpoint's own answer.
_NO_ENDPOINT = re.compile(r"failed to connect|could not (connect|resolve)|timed? ?out|recv failure|empty reply", re.IGNORECASE)


def refused(cluster: Cluster, role: ClientRole, why: str, *, tls: bool) -> AuthenticationFailed:
    """The error for a refused login of a client of `role`."""
    hint = "ssl.* (certificates, their dates and host names)" if tls else "sasl.*"
    return AuthenticationFailed(f"{cluster.where} refuses the login of {cluster.login_of(role)}: {why}; check {hint} of {cluster.alias}")


def denied(cluster: Cluster, doing: str, grant: str, said: str = "") -> NotAuthorized:
    """The error for a missing right; `said` is the broker's own text."""
    what = f"{cluster.where} does not allow {doing}{': ' if said else ''}{said}"
    return NotAuthorized(f"{what}; {granting(cluster, grant)}" if grant else what)


def granting(cluster: Cluster, right: str) -> str:
    """What an administrator must do. `right`: for example `Read on topic orders`."""
    return f"grant {right} {recipient(cluster)}"


def recipient(cluster: Cluster) -> str:
    """Where rights are to be granted, and to whom."""
    return f"at cluster {cluster.alias} to {cluster.principal or f'the user of {cluster.alias}'}"


def is_refusal(problem: BaseException | None) -> bool:
    """Whether the failure of a connection of kafka-python is a refused login."""
    return SASL.action(_code(problem)) is Action.REFUSED or isinstance(problem, FerryError) or is_tls_refusal(problem)


def is_tls_refusal(problem: BaseException | None) -> bool:
    """Whether one side does not accept the other's certificate."""
    cause = _tls_error(problem)
    return isinstance(cause, ssl.SSLCertVerificationError) or (cause is not None and "ALERT" in (cause.reason or "").upper())


def reason(problem: BaseException) -> str:
    """Why a connection of kafka-python failed, for a message."""
    cause = _tls_error(problem)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the broker's certificate is not accepted: {cause.verify_message}"
    if cause is not None and is_tls_refusal(problem):
        return f"{NOT_ACCEPTED}: {cause.reason}"
    code = _code(problem)
    return SASL.told(code) if SASL.meaning(code).told else re.sub(rf"^(\[Error \d+\] |{type(problem).__name__}: )+", "", str(problem))


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


def most_telling(errors: Iterable[KafkaError]) -> KafkaError | None:
    """The connection error of a librdkafka client that says best why the cluster does not answer."""
    found = list(errors)
    return next(iter(reversed(_causes(found) or found)), None)


def refused_login(errors: Iterable[KafkaError]) -> KafkaError | None:
    """The last connection error of a librdkafka client, if it is clear that no further attempt succeeds."""
    found = _causes(errors)
    if found and found[-1].str().startswith(_NO_TOKEN):  # asked for again only after ten seconds
        return found[-1]
    last = found[-REFUSALS:]
    return last[-1] if len(last) == REFUSALS and all(_refuses(error) for error in last) else None


def _refuses(error: KafkaError) -> bool:
    if _LATE_LOGIN in error.str():
        return False
    return error.code() in _AUTHENTICATION or (error.code() < 0 and _CERTIFICATE_ALERT.search(error.str()) is not None)


def _causes(errors: Iterable[KafkaError]) -> list[KafkaError]:
    return [error for error in errors if error.code() != KafkaError._ALL_BROKERS_DOWN]  # noqa: SLF001 - a public name


def explained(
    cluster: Cluster,
    doing: str,
    error: KafkaError,
    earlier: KafkaError | None = None,
    *,
    grant: str = "",
    role: ClientRole = ClientRole.ADMIN,
) -> FerryError:
    """The Ferry error for `error` of librdkafka. `doing`: what Ferry tried; `earlier`: the client's connection error before that.

    `grant`: the permission that `doing` needs. `role`: the client's.
    """
    if error.code() >= 0:  # a broker's own answer; negative codes are the client's: nobody has answered
        earlier = None
    cause = earlier if earlier is not None and _refuses(earlier) else error
    if _refuses(cause):
        return _no_login(cluster, role, cause)
    if ADMIN.action(cause.code()) is Action.DENIED:
        return denied(cluster, doing, grant, cause.str().rstrip("."))
    why = f"{cause.str()} ({earlier.str()})" if earlier is not None and earlier is not cause else cause.str()
    hint = f"; check {cluster.alias}.bootstrap.servers and security.protocol" if cause.code() < 0 else ""
    return ClusterUnreachable(f"{cluster.where}: {doing} failed: {why}{hint}")


def is_passing(answer: object) -> TypeGuard[KafkaError]:
    """Whether another attempt may succeed: nobody has answered, or the broker cannot handle the request now."""
    if not isinstance(answer, KafkaError):
        return False
    known = ADMIN.meanings.get(answer.code())
    return answer.code() in _UNANSWERED or (known is not None and known.action is Action.AGAIN)


def refusal(cluster: Cluster, doing: str, error: KafkaError, earlier: KafkaError | None = None, *, grant: str = "") -> FerryError:
    """The error for a failed change: ChangeRefused if the cluster refuses the change for every user, TooFewBrokers, or as `explained`."""
    action, _, kind = ADMIN.meaning(error.code())
    if error.code() == KafkaError._UNSUPPORTED_FEATURE:  # noqa: SLF001 - a public name
        action, kind = Action.REFUSED, ChangeRefused
    if action is Action.REFUSED:
        return kind(f"{cluster.where} refuses {doing}: {error.str().rstrip('.')}")
    return explained(cluster, doing, error, earlier, grant=grant)


def made(cluster: Cluster, client: Callable[[], T]) -> T:
    """The client that `client` makes. A Ferry error if librdkafka refuses to make it (no token in time, settings that it does not take)."""
    try:
        return client()
    except KafkaException as problem:
        error: KafkaError = problem.args[0]
        if error.code() == KafkaError._INVALID_ARG:  # noqa: SLF001 - a public name
            raise ConfigError(f"cluster {cluster.alias}: the Kafka client refuses its settings: {error.str()}") from problem
        raise explained(cluster, "logging in", error) from problem


def _no_login(cluster: Cluster, role: ClientRole, cause: KafkaError) -> FerryError:
    text = cause.str()
    if text.startswith(_NO_TOKEN) and _NO_ENDPOINT.search(text):
        return ClusterUnreachable(
            f"{cluster.where}: no token for {cluster.login_of(role)}: {text}; check sasl.oauthbearer.* of {cluster.alias}"
        )
    if _CERTIFICATE_ALERT.search(text):
        return refused(cluster, role, f"{NOT_ACCEPTED}: {text}", tls=True)
    tls = cause.code() == KafkaError._SSL  # noqa: SLF001 - a public name
    return refused(cluster, role, (_certificate_problem(cluster, role, text) if tls else None) or text, tls=tls)


def _certificate_problem(cluster: Cluster, role: ClientRole, told: str) -> str | None:
    """Why librdkafka does not accept a broker's certificate; None if a second look accepts it. `told`: librdkafka's message.

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
