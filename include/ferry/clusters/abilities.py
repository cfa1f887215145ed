"""What the brokers of a cluster can do, by the versions of the requests that they offer, and what a flow has to do without.

kafka-python leaves fields out of a request that the broker's version of it does not have. So what correctness stands on is asked for by
name here, before anything is written: a target without it is refused. What a cluster merely cannot tell is listed in plan, status and
report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafka.protocol.admin import DescribeProducersRequest, ListTransactionsRequest
from kafka.protocol.consumer import FetchRequest, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from ferry.clusters.connections import ClusterConnection, EventLoop, RequestLost, RequestNotSent
from ferry.errors import BrokerTooOld, ClusterUnreachable

if TYPE_CHECKING:
    from ferry.config import ClientRole, Cluster


class Ability(NamedTuple):
    """A request in a version, the release of Kafka that brought it, and what is not so without it."""

    request: type
    version: int
    since: str
    without: str


class Lack(NamedTuple):
    """What a cluster cannot do, as it stands in a report."""

    what: str
    reason: str


TARGET_NEEDS = (
    Ability(InitProducerIdRequest, 3, "2.5", "a writer that was superseded cannot be told from its successor (KIP-360)"),
    Ability(OffsetFetchRequest, 7, "2.5", "a position may be read while its transaction is undecided (KIP-447)"),
)
# What survives a broker that restarts at this very moment.
ATTEMPTS = 5
WAIT = wait_exponential(multiplier=0.1, max=2)
NO_ANSWER = (RequestNotSent, RequestLost)
SOURCE_NEEDS = (Ability(FetchRequest, 4, "0.11", "aborted transactions would be copied (KIP-98)"),)
SOURCE_WISHES = (
    Ability(MetadataRequest, 10, "2.8", "topics that are deleted and created again are not recognised: there are no topic ids (KIP-516)"),
    Ability(FetchRequest, 12, "2.7", "a log that lost its end and grew again is not recognised (KIP-320)"),
    Ability(
        FetchRequest, 13, "3.1", "a topic that is created again while it is copied is recognised a moment later, by metadata (KIP-516)"
    ),
    Ability(DescribeProducersRequest, 0, "2.8", "which producer holds an open transaction is not known (KIP-664)"),
    Ability(ListTransactionsRequest, 0, "3.0", "which transactional id holds an open transaction is not known (KIP-664)"),
)
TARGET_WISHES = (
    Ability(MetadataRequest, 10, "2.8", "remote topics that are deleted and created again are not recognised (KIP-516)"),
    Ability(DescribeProducersRequest, 0, "2.8", "transactions of the flow that a broker forgot to end are not looked for (KIP-664)"),
)


def lacking(cluster: Cluster, role: ClientRole, *, needs: Iterable[Ability], wishes: Iterable[Ability]) -> tuple[Lack, ...]:
    """What of `wishes` the cluster cannot do; BrokerTooOld where it lacks one of `needs`."""
    loop = EventLoop()
    connection = ClusterConnection(loop, cluster, role)

    async def ask() -> dict[int, int]:
        await connection.open()
        return {int(entry.api_key): int(entry.max_version) for entry in (await connection.offers()).api_keys}

    try:
        # A broker that goes away just now is as good as one that answers a moment later.
        for attempt in Retrying(retry=retry_if_exception_type(NO_ANSWER), stop=stop_after_attempt(ATTEMPTS), wait=WAIT, reraise=True):
            with attempt:
                offered = loop.run(ask)
    except NO_ANSWER as problem:
        raise ClusterUnreachable(f"cluster {cluster.alias} ({cluster.bootstrap}) does not say what it can do: {problem}") from problem
    finally:
        connection.close()
        loop.close()
    for need in missing(needs, offered):
        raise BrokerTooOld(f"cluster {cluster.alias} ({cluster.bootstrap}) is older than Kafka {need.since}: {need.without}; upgrade it")
    return tuple(Lack(f"cluster {cluster.alias} is older than Kafka {wish.since}", wish.without) for wish in missing(wishes, offered))


def missing(abilities: Iterable[Ability], offered: Mapping[int, int]) -> list[Ability]:
    """Those that brokers lack which offer these requests: newest version by API key (pure)."""
    return [ability for ability in abilities if offered.get(ability.request.API_KEY, -1) < ability.version]  # type: ignore[attr-defined]
