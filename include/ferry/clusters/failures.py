"""librdkafka's errors in Ferry's terms: which cluster, where, as whom, and what to change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError

from ferry.errors import AuthenticationFailed, ChangeRefused, ClusterUnreachable, FerryError, NotAuthorized

if TYPE_CHECKING:
    from ferry.config import Cluster

_AUTHENTICATION = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL})  # noqa: SLF001 - public names
# What a client complains of may be said by an earlier error than the last one.
ERRORS_KEPT = 20
# A broker that stops in the middle of a login looks for once as if it refused it.
REFUSALS = 3
_AUTHORIZATION = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
# A change that is asked for again as it is would be answered the same. An old broker lacks the request altogether.
_REFUSED = frozenset(
    {
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_REPLICA_ASSIGNMENT,
        KafkaError.INVALID_REQUEST,
        KafkaError.POLICY_VIOLATION,
        KafkaError.SECURITY_DISABLED,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001 - a public name
    }
)


def most_telling(errors: Iterable[KafkaError]) -> KafkaError | None:
    """The one of a client's connection errors that says why the cluster does not answer."""
    found = list(errors)
    return next(iter(reversed(_causes(found) or found)), None)


def refused_login(errors: Iterable[KafkaError]) -> KafkaError | None:
    """The last of a client's connection errors when it is clear that no further attempt gets in."""
    last = _causes(errors)[-REFUSALS:]
    return last[-1] if len(last) == REFUSALS and all(error.code() in _AUTHENTICATION for error in last) else None


def _causes(errors: Iterable[KafkaError]) -> list[KafkaError]:
    return [error for error in errors if error.code() != KafkaError._ALL_BROKERS_DOWN]  # noqa: SLF001 - a public name


def explained(cluster: Cluster, doing: str, error: KafkaError, earlier: KafkaError | None = None, *, grant: str = "") -> FerryError:
    """The Ferry error for `error`, met while `doing` something; `earlier` is the connection error that the client reported before.

    `grant`: the permission that `doing` needs.
    """
    where = f"cluster {cluster.alias} ({cluster.bootstrap})"
    if error.code() >= 0:  # a broker's own answer; negative codes are the client's: nobody has answered
        earlier = None
    cause = earlier if earlier is not None and earlier.code() in _AUTHENTICATION else error
    if cause.code() in _AUTHENTICATION:
        return AuthenticationFailed(f"{where} refuses the credentials: {cause.str()}; check sasl.* and ssl.* of {cluster.alias}")
    if cause.code() in _AUTHORIZATION:
        hint = f"; grant {grant} to the user of {cluster.alias}" if grant else ""
        return NotAuthorized(f"{where} does not allow {doing}: {cause.str().rstrip('.')}{hint}")
    reason = f"{cause.str()} ({earlier.str()})" if earlier is not None and earlier is not cause else cause.str()
    hint = f"; check {cluster.alias}.bootstrap.servers and security.protocol" if cause.code() < 0 else ""
    return ClusterUnreachable(f"{where}: {doing} failed: {reason}{hint}")


def refusal(cluster: Cluster, doing: str, error: KafkaError, earlier: KafkaError | None = None, *, grant: str = "") -> FerryError:
    """As `explained`, for a change: ChangeRefused when the cluster will not have it, now or later."""
    if error.code() in _REFUSED:
        return ChangeRefused(f"cluster {cluster.alias} ({cluster.bootstrap}) refuses {doing}: {error.str().rstrip('.')}")
    return explained(cluster, doing, error, earlier, grant=grant)
