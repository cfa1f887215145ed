"""librdkafka's errors in Ferry's terms: which cluster, where, as whom, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError

from ferry.errors import AuthenticationFailed, ClusterUnreachable, FerryError, NotAuthorized

if TYPE_CHECKING:
    from ferry.config import Cluster

_AUTHENTICATION = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL})  # noqa: SLF001 - public names
_AUTHORIZATION = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


def explained(cluster: Cluster, doing: str, error: KafkaError, earlier: KafkaError | None = None) -> FerryError:
    """The Ferry error for `error`, met while `doing` something; `earlier` is the last connection error that the client reported."""
    where = f"cluster {cluster.alias} ({cluster.bootstrap})"
    cause = earlier if earlier is not None and earlier.code() in _AUTHENTICATION else error
    if cause.code() in _AUTHENTICATION:
        return AuthenticationFailed(f"{where} refuses the credentials: {cause.str()}; check sasl.* and ssl.* of {cluster.alias}")
    if cause.code() in _AUTHORIZATION:
        return NotAuthorized(f"{where} does not allow {doing}: {cause.str()}")
    reason = f"{cause.str()} ({earlier.str()})" if earlier is not None and earlier is not cause else cause.str()
    return ClusterUnreachable(f"{where}: {doing} failed: {reason}; check {cluster.alias}.bootstrap.servers and security.protocol")
