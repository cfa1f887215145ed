"""Findings about the limits of managed services that a flow meets (pure)."""

from collections.abc import Collection, Iterator, Sequence

from ferry.clusters.service_profiles import named
from ferry.clusters.services import Limit, ManagedService, Setting, Side
from ferry.config import ClientRole, Flow
from ferry.config.mm2_topics import mm2_topics
from ferry.config.registry.clients import CLIENTS
from ferry.doctor.cluster_checks import services_of
from ferry.doctor.cluster_facts import ClusterFacts
from ferry.doctor.finding import Finding, failure, ok, warning
from ferry.ledger.topics import POLICY, OwnTopic, own_topics

_OF_CLIENTS = frozenset(known.name for known in CLIENTS)


def service_findings(flow: Flow, source: ClusterFacts, target: ClusterFacts) -> Iterator[Finding]:
    """One for each limit of a service that the flow reads from or writes to.

    Where a setting is missing, it is a failure; a warning if the cluster may be of a service that does not need it. What a cluster does not
    offer is found without this.
    """
    for side, facts in ((Side.SOURCE, source), (Side.TARGET, target)):
        services = services_of(facts)
        for limit in dict.fromkeys(limit for service in services for limit in service.limits if limit.side is side and not limit.offered):
            yield _finding(flow, facts.alias, limit, services)


def _finding(flow: Flow, alias: str, limit: Limit, services: Sequence[ManagedService]) -> Finding:
    having = [service for service in services if limit in service.limits]
    surely = len(having) == len(services)
    told = f"{alias} {'is' if surely else 'may be'} {named(having)}: {limit.what} {_sentence(limit.ferry)}"
    unset = [setting for setting in limit.settings if not _is_set(flow, setting)]
    if not unset:
        return ok(f"flow {flow.name}", "service", told)
    fix = f"write in mm2.properties: {'; '.join(_line(flow, setting) for setting in unset)}"
    condition = "" if surely else f"only if {alias} is {named(having)}: "
    suits_none = all(
        any(other.key == setting.key and not _is_set(flow, other) for other in service.settings)
        for setting in unset
        for service in services
    )
    return (failure if suits_none else warning)(f"flow {flow.name}", "service", told, f"{condition}{fix}")


def topics_beforehand(flow: Flow, target: ClusterFacts, missing: Collection[str]) -> Iterator[Finding]:
    """A failure if the target is a service that does not let Ferry create the flow's internal topics, and some are `missing`."""
    services = services_of(target)
    if not missing or not services or any(service.topic_configs is None or POLICY in service.topic_configs for service in services):
        return
    mm2 = {topic.name: OwnTopic(1, "compact") for topic in mm2_topics(flow) if topic.cluster is flow.target}
    wanted = {name: own for name, own in {**own_topics(flow), **mm2}.items() if name in missing}
    told = ", ".join(f"{name} ({own.partitions}, {own.policy})" for name, own in sorted(wanted.items()))
    found = f"{target.alias} is {named(services)}: Ferry cannot set {POLICY} there. These topics are missing (partitions, {POLICY}): {told}"
    yield failure(
        f"flow {flow.name}",
        "internal topics",
        found,
        f"create them at {target.alias} with the tools of the service before the first run; remote topics that are compacted too",
    )


def _is_set(flow: Flow, setting: Setting) -> bool:
    if setting.key in _OF_CLIENTS:
        written = flow.target.written(ClientRole.PRODUCER)
        return written.given(setting.key) and bool(written.value(setting.key) <= int(setting.values[0]))
    return str(flow.setting(setting.key)).lower() in setting.values


def _line(flow: Flow, setting: Setting) -> str:
    owner = f"{flow.target.alias}.producer" if setting.key in _OF_CLIENTS else flow.name
    return f"{owner}.{setting}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
