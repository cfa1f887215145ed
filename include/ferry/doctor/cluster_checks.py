"""Findings about one cluster (pure): reachable, version, clock, missing features of its release, and needs of transactions on a target."""

from collections.abc import Iterator

from ferry.clusters.admin.api_versions import (
    SOURCE_NEEDS,
    SOURCE_WISHES,
    Feature,
    lack,
    mending,
    missing,
    target_features,
    tells_time,
    unfulfilled,
)
from ferry.clusters.admin.service_profiles import READ, named, services_at
from ferry.clusters.admin.services import ManagedService
from ferry.clusters.groups.coordination import TRANSACTION_MILLISECONDS
from ferry.doctor.cluster_facts import SEGMENT, SMALLEST_SEGMENT, ClusterFacts
from ferry.doctor.finding import Finding, failure, ok, warning
from ferry.errors import count_of, some_of

# A smaller skew does not matter for ages and headroom. With a skew of an hour or more, brokers refuse records from the future
# (message.timestamp.after.max.ms).
NOTICED_SKEW, REFUSED_SKEW = 5_000, 3_600_000
# From MetadataVersion of Kafka 4.3: the first feature level of each release.
_RELEASES = {31: "4.4", 30: "4.3", 28: "4.2", 26: "4.1", 22: "4.0", 21: "3.9", 20: "3.8", 15: "3.7", 12: "3.6", 9: "3.5", 8: "3.4"}
OLDEST_KRAFT = "3.3"


def cluster_findings(facts: ClusterFacts, *, source: bool, target: bool, transactions: bool = True) -> Iterator[Finding]:
    """All findings about one cluster. `source`: a flow reads from it; `target`: a flow writes to it, perhaps with `transactions`."""
    where = f"cluster {facts.alias}"
    if facts.problem is not None:
        yield failure(where, "reachable", f"{facts.problem}", facts.problem.next_step, facts.problem.exit_code)
        return
    brokers = count_of(facts.brokers, "broker")
    yield ok(where, "reachable", f"{facts.bootstrap}, {brokers}, id {facts.cluster_id or 'none'}, as {facts.login}")
    services = services_of(facts)
    profile = f"{named(services)}; Ferry knows its limits as of {READ}"
    yield ok(
        where,
        "service",
        profile if services else "not recognised: Ferry treats it as Apache Kafka, and goes by the requests that it offers",
    )
    yield _version(where, facts)
    yield _clock(where, facts)
    newest = facts.capabilities.newest
    target_needs, target_wishes = target_features(transactions=transactions)
    needs = missing([*(SOURCE_NEEDS if source else ()), *(target_needs if target else ())], newest)
    for need in needs:
        yield failure(where, "release", *_lack(need, facts))
    wishes = [*(SOURCE_WISHES if source else ()), *(target_wishes if target else ())]
    for wish in unfulfilled(wishes, newest, without_ids=facts.without_ids):
        yield warning(where, "release", *_lack(wish, facts))
    yield from _upgrades(where, facts, target=target)
    if not target or needs:
        return
    if not transactions:
        yield ok(where, "exactly-once", "off (transaction.producer=false): after a failure, records may be copied twice")
        return
    if all(service.transactions for service in services):  # otherwise the limits of the service say so
        yield _protocol(where, facts)
    if facts.configs:
        yield from _transaction_log(where, facts)
    else:
        fix = f"grant DescribeConfigs on the cluster at cluster {facts.alias}"
        yield warning(where, "broker configs", f"hidden, so Ferry could not check limits: {facts.no_configs}", fix)


def _upgrades(where: str, facts: ClusterFacts, *, target: bool) -> Iterator[Finding]:
    """Problems that an upgrade of the brokers would meet, or solve."""
    if facts.small_segments:
        found = f"{SEGMENT} is below {SMALLEST_SEGMENT:,} on {some_of(facts.small_segments)}"
        fix = f"raise it there to {SMALLEST_SEGMENT} or more before you upgrade the brokers"
        yield warning(where, "upgrade", f"{found}: brokers of Kafka 4.1 or newer do not start with such a topic", fix)
    if target and release(facts) == "4.2" and facts.capabilities.features.get("streams.version"):
        found = "brokers of 4.2.0 may fail to load a group that was synced and is now a streams group (KAFKA-20254)"
        yield warning(where, "upgrade", found, "upgrade them to 4.2.1 or newer before an application with group.protocol=streams uses one")


def release(facts: ClusterFacts) -> str:
    """The Kafka release by the cluster's metadata.version; empty: it has none (ZooKeeper)."""
    level = facts.capabilities.features.get("metadata.version")
    if level is None:
        return ""
    return next((name for first, name in _RELEASES.items() if level >= first), OLDEST_KRAFT)


def _version(where: str, facts: ClusterFacts) -> Finding:
    found = release(facts)
    if found:
        return ok(where, "version", f"Kafka {found} (metadata.version {facts.capabilities.features['metadata.version']})")
    told = facts.configs.get("inter.broker.protocol.version")
    if told is None:
        return ok(where, "version", "the cluster does not tell it; Ferry goes by the requests that the cluster offers")
    return ok(where, "version", f"Kafka {told}, with ZooKeeper")


def _lack(feature: Feature, facts: ClusterFacts) -> tuple[str, str]:
    offered, service = facts.capabilities.newest, named(services_of(facts))
    return f"{feature.without}; cluster {facts.alias} {lack(feature, offered, service)}", mending(feature, offered, service)


def services_of(facts: ClusterFacts) -> tuple[ManagedService, ...]:
    """The managed services that the cluster may be of."""
    return services_at(facts.bootstrap, facts.cluster_id, facts.capabilities.newest)


def _clock(where: str, facts: ClusterFacts) -> Finding:
    clock = facts.capabilities.clock
    if isinstance(clock, str):
        if not tells_time(facts.capabilities.newest):
            return ok(where, "clock", f"not known: {clock}; keep NTP running on this machine")
        fix = f"grant Describe on the cluster at cluster {facts.alias}, or let NTP (chrony, systemd-timesyncd) set the clock here"
        return warning(where, "clock", f"not known: {clock}", fix)
    surely = max(0, abs(clock.ahead_ms) - clock.within_ms)
    where_to = "ahead of" if clock.ahead_ms > 0 else "behind"
    told = f"{abs(clock.ahead_ms) / 1000:.3f} s {where_to} this machine (to within {clock.within_ms} ms)"
    fix = f"let NTP (chrony, systemd-timesyncd) set the clocks here and on {facts.bootstrap}"
    if surely >= REFUSED_SKEW:
        return failure(where, "clock", f"{told}: brokers refuse records of the future", fix)
    if surely >= NOTICED_SKEW:
        return warning(where, "clock", f"{told}: ages, headroom and bounds by time are off by as much", fix)
    return ok(where, "clock", told)


def _protocol(where: str, facts: ClusterFacts) -> Finding:
    features = facts.capabilities.features
    level = features.get("transaction.version", 0)
    if level >= 2:
        return ok(where, "exactly-once", f"yes: Ferry copies in transactions (transaction.version {level}, KIP-890)")
    if features.get("metadata.version", 0) >= 22:
        servers = facts.bootstrap.replace(" ", "")
        fix = f"kafka-features.sh --bootstrap-server {servers} upgrade --feature transaction.version=2"
        return warning(where, "exactly-once", f"transaction.version {level}: the older protocol can leave hanging transactions", fix)
    return ok(where, "exactly-once", "yes: Ferry copies in transactions (by their protocol before Kafka 4.0)")


def _transaction_log(where: str, facts: ClusterFacts) -> Iterator[Finding]:
    copies, least = facts.config("transaction.state.log.replication.factor"), facts.config("transaction.state.log.min.isr")
    brokers = count_of(facts.brokers, "broker")
    if copies is not None and copies > facts.brokers:
        found = f"transaction.state.log.replication.factor={copies} with {brokers}: no transaction can begin on a new cluster"
        yield failure(where, "transaction log", found, f"{_more(copies - facts.brokers)}, or lower it in server.properties")
    elif least is not None and least > facts.brokers:
        found = f"transaction.state.log.min.isr={least} with {brokers}: no transaction can be committed"
        yield failure(where, "transaction log", found, f"{_more(least - facts.brokers)}, or lower it in server.properties")
    elif copies == 1 and facts.brokers > 1:
        found = "transaction.state.log.replication.factor=1: transactions stop while that broker is down"
        fix = "set it to 3 in server.properties before the first transaction, or reassign the topic"
        yield warning(where, "transaction log", found, fix)
    else:
        yield ok(where, "transaction log", f"replication factor {copies}, min.isr {least}")
    longest = facts.config("transaction.max.timeout.ms")
    if longest is not None and longest < TRANSACTION_MILLISECONDS:
        found = f"transaction.max.timeout.ms={longest}: Ferry asks for {TRANSACTION_MILLISECONDS}"
        fix = f"set transaction.max.timeout.ms={TRANSACTION_MILLISECONDS} or more in server.properties"
        yield failure(where, "transaction time", found, fix)


def _more(brokers: int) -> str:
    return f"start {count_of(brokers, 'more broker')}"
