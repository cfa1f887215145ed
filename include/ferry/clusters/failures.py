"""librdkafka's errors in Ferry's terms: which cluster, where, as whom, and what to change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from confluent_kafka import KafkaError, KafkaException

from ferry.clusters.answers import ADMIN, Action
from ferry.clusters.refusals import NOT_ACCEPTED, REFUSALS, certificate_problem, refused
from ferry.errors import ChangeRefused, ClusterUnreachable, ConfigError, FerryError, NotAuthorized

if TYPE_CHECKING:
    from ferry.config import ClientRole, Cluster

T = TypeVar("T")

_AUTHENTICATION = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL})  # noqa: SLF001 - public names
# What a client complains of may be said by an earlier error than the last one.
ERRORS_KEPT = 20
# A broker that does not accept the client's certificate says so after the handshake, and librdkafka reports a lost connection.
_CERTIFICATE_ALERT = re.compile(r"alert .*certificate|alert unknown ca", re.IGNORECASE)
# A login that a broker met too late, when it had given the connection up: the next one may be in time.
_LATE_LOGIN = "not valid in current SASL state"
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token"  # noqa: S105 - the beginning of a message
# What libcurl says of an endpoint that it could not talk to; anything else is the endpoint's own answer.
_NO_ENDPOINT = re.compile(r"failed to connect|could not (connect|resolve)|timed? ?out|recv failure|empty reply", re.IGNORECASE)


def most_telling(errors: Iterable[KafkaError]) -> KafkaError | None:
    """The one of a client's connection errors that says why the cluster does not answer."""
    found = list(errors)
    return next(iter(reversed(_causes(found) or found)), None)


def refused_login(errors: Iterable[KafkaError]) -> KafkaError | None:
    """The last of a client's connection errors when it is clear that no further attempt gets in."""
    found = _causes(errors)
    if found and found[-1].str().startswith(_NO_TOKEN):  # asked for again only after ten seconds
        return found[-1]
    last = found[-REFUSALS:]
    return last[-1] if len(last) == REFUSALS and all(_is_refusal(error) for error in last) else None


def _is_refusal(error: KafkaError) -> bool:
    if _LATE_LOGIN in error.str():
        return False
    return error.code() in _AUTHENTICATION or (error.code() < 0 and _CERTIFICATE_ALERT.search(error.str()) is not None)


def _causes(errors: Iterable[KafkaError]) -> list[KafkaError]:
    return [error for error in errors if error.code() != KafkaError._ALL_BROKERS_DOWN]  # noqa: SLF001 - a public name


def explained(
    cluster: Cluster, doing: str, error: KafkaError, earlier: KafkaError | None = None, *, grant: str = "", role: ClientRole | None = None
) -> FerryError:
    """The Ferry error for `error`, met while `doing` something; `earlier` is the connection error that the client reported before.

    `grant`: the permission that `doing` needs. `role`: the client's, administration by default.
    """
    where = f"cluster {cluster.alias} ({cluster.bootstrap})"
    if error.code() >= 0:  # a broker's own answer; negative codes are the client's: nobody has answered
        earlier = None
    cause = earlier if earlier is not None and _is_refusal(earlier) else error
    if _is_refusal(cause):
        return _no_login(cluster, role, cause)
    if ADMIN.action(cause.code()) is Action.DENIED:
        return denied(cluster, doing, grant, cause.str().rstrip("."))
    reason = f"{cause.str()} ({earlier.str()})" if earlier is not None and earlier is not cause else cause.str()
    hint = f"; check {cluster.alias}.bootstrap.servers and security.protocol" if cause.code() < 0 else ""
    return ClusterUnreachable(f"{where}: {doing} failed: {reason}{hint}")


def made(cluster: Cluster, role: ClientRole, client: Callable[[], T]) -> T:
    """What `client` makes; librdkafka's refusal to make it (no token in time, settings that it does not take) as a Ferry error."""
    try:
        return client()
    except KafkaException as problem:
        error: KafkaError = problem.args[0]
        if error.code() == KafkaError._INVALID_ARG:  # noqa: SLF001 - a public name
            raise ConfigError(f"cluster {cluster.alias}: the Kafka client refuses its settings: {error.str()}") from problem
        raise explained(cluster, "logging in", error, role=role) from problem


def _no_login(cluster: Cluster, role: ClientRole | None, cause: KafkaError) -> FerryError:
    from ferry.config import ClientRole  # noqa: PLC0415 - see InternalTopicReader

    role, text = role or ClientRole.ADMIN, cause.str()
    if text.startswith(_NO_TOKEN) and _NO_ENDPOINT.search(text):
        where = f"cluster {cluster.alias} ({cluster.bootstrap})"
        return ClusterUnreachable(f"{where}: no token for {cluster.login_of(role)}: {text}; check sasl.oauthbearer.* of {cluster.alias}")
    if _CERTIFICATE_ALERT.search(text):
        return refused(cluster, role, f"{NOT_ACCEPTED}: {text}", tls=True)
    tls = cause.code() == KafkaError._SSL  # noqa: SLF001 - a public name
    return refused(cluster, role, (certificate_problem(cluster, role, text) if tls else None) or text, tls=tls)


def denied(cluster: Cluster, doing: str, grant: str, said: str = "") -> NotAuthorized:
    """The error for a missing right; `said` is the broker's own text."""
    what = f"cluster {cluster.alias} ({cluster.bootstrap}) does not allow {doing}{': ' if said else ''}{said}"
    return NotAuthorized(f"{what}; {granting(cluster, grant)}" if grant else what)


def granting(cluster: Cluster, right: str) -> str:
    """What an administrator is to do; `right` as `Read on topic orders`."""
    return f"grant {right} {recipient(cluster)}"


def recipient(cluster: Cluster) -> str:
    """Where rights are to be granted, and to whom."""
    return f"at cluster {cluster.alias} to {cluster.principal or f'the user of {cluster.alias}'}"


def refusal(cluster: Cluster, doing: str, error: KafkaError, earlier: KafkaError | None = None, *, grant: str = "") -> FerryError:
    """As `explained`, for a change: ChangeRefused when the cluster will not have it, now or later; TooFewBrokers."""
    action, _, kind = ADMIN.meaning(error.code())
    if error.code() == KafkaError._UNSUPPORTED_FEATURE:  # noqa: SLF001 - a public name
        action, kind = Action.REFUSED, ChangeRefused
    if action is Action.REFUSED:
        return kind(f"cluster {cluster.alias} ({cluster.bootstrap}) refuses {doing}: {error.str().rstrip('.')}")
    return explained(cluster, doing, error, earlier, grant=grant)
