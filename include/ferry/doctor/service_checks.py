"""Findings about the limits of managed services that a flow meets (pure)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ferry.clusters.admin.service_profiles import named
from ferry.clusters.admin.services import Limit, ManagedService, Setting
from ferry.clusters.net.partitions import grouped
from ferry.config import ClientRole, Flow
from ferry.config.mm2_topics import mm2_topics
from ferry.config.registry.clients import CLIENTS
from ferry.doctor.cluster_checks import services_of
from ferry.doctor.cluster_facts import ClusterFacts
from ferry.doctor.finding import Finding, failure, ok, warning
from ferry.errors import count_of
from ferry.ledger.topics import POLICY, OwnTopic, own_topics
from ferry.pipeline.wrong_topics import names_on

_OF_CLIENTS = frozenset(known.name for known in CLIENTS)


def service_findings(flow: Flow, source: ClusterFacts, target: ClusterFacts) -> Iterator[Finding]:
    """One finding for each limit of a service that the flow reads from or writes to; limits with the same fix are one finding.

    A missing setting is a failure, or a warning if the cluster may be of a service that does not need it. If the cluster may be of several
    services that need the setting, the value is one that suits them all. Other checks find requests that a cluster does not offer.
    """
    for facts in (source, target):
        services = services_of(facts)
        met = (limit for service in services for limit in service.limits if limit.of_source is (facts is source) and not limit.offered)
        findings = [_finding(flow, facts.alias, limit, services) for limit in dict.fromkeys(met)]
        for found in grouped((entry.fix or entry.found, entry) for entry in findings).values():
            yield replace(found[0], found=" ".join(entry.found for entry in found))


def _finding(flow: Flow, alias: str, limit: Limit, services: Sequence[ManagedService]) -> Finding:
    having = [service for service in services if limit in service.limits]
    surely = len(having) == len(services)
    told = f"{alias} {'is' if surely else 'may be'} {named(having)}: {limit.what} {limit.ferry[0].upper()}{limit.ferry[1:]}."
    unset = [setting for setting in limit.settings if not _is_set(flow, setting)]
    if not unset:
        settled = f" {', '.join(setting.key for setting in limit.settings)} is set as needed." if limit.settings else ""
        return ok(f"flow {flow.name}", "service", f"{told}{settled}")
    suits_none = all(_needs(service, setting, flow) for setting in unset for service in services)
    common = [found for setting in unset if (found := _for_all(setting, services)) is not None]
    if suits_none and len(common) == len(unset):
        return failure(f"flow {flow.name}", "service", told, _write(flow, common))
    condition = f"only if {alias} is {named(having)} (look it up in the service's console): "
    return (failure if suits_none else warning)(f"flow {flow.name}", "service", told, f"{condition}{_write(flow, unset)}")


def _needs(service: ManagedService, setting: Setting, flow: Flow) -> bool:
    """Whether the service needs this property too, with a value that the flow has not."""
    return any(other.key == setting.key and not _is_set(flow, other) for other in service.settings)


def _for_all(setting: Setting, services: Sequence[ManagedService]) -> Setting | None:
    """The setting with the values that suit each of `services`; None: there are none."""
    wanted = [next((other.values for other in service.settings if other.key == setting.key), ()) for service in services]
    values = tuple(value for value in wanted[0] if all(value in others for others in wanted))
    return Setting(setting.key, values) if values else None


def _write(flow: Flow, settings: Sequence[Setting]) -> str:
    return f"write in mm2.properties: {'; '.join(_line(flow, setting) for setting in settings)}"


def too_many_topics(flow: Flow, target: ClusterFacts, copied: int) -> Iterator[Finding]:
    """A finding if the target is, or may be, of a service that holds fewer topics than the flow needs. `copied`: remote topics."""
    services = services_of(target)
    limited = [service for service in services if service.most_topics]
    own = len(names_on(flow, flow.target))
    if not limited or copied + own <= limited[0].most_topics:
        return
    surely = len(limited) == len(services)
    needs = f"the flow alone needs {count_of(copied + own, 'topic')} there: {count_of(copied, 'remote topic')} and {own} of Ferry's own"
    found = f"{target.alias} {'is' if surely else 'may be'} {named(limited)}, which holds at most {limited[0].most_topics} topics; {needs}"
    condition = "" if surely else f"if {target.alias} is {named(limited)}: "
    fix = f"{condition}before you create topics: copy fewer ({flow.name}.topics), or choose a kind of the service that holds more"
    yield (failure if surely else warning)(f"flow {flow.name}", "service", found, fix)


def policy_is_fixed(services: Sequence[ManagedService]) -> bool:
    """Whether none of the services that a cluster may be of lets Ferry set the cleanup policy of a topic."""
    return bool(services) and not any(service.takes_configs for service in services)


def topics_beforehand(flow: Flow, target: ClusterFacts, missing: Collection[str], compacted: Mapping[str, OwnTopic]) -> Iterator[Finding]:
    """A failure if the target is a service that does not let Ferry create compacted topics, and some that the flow needs are missing.

    `missing`: internal topics. `compacted`: remote topics that are missing and must be compacted.
    """
    services = services_of(target)
    if not policy_is_fixed(services) or not (missing or compacted):
        return
    mm2 = {topic.name: OwnTopic(1, "compact") for topic in mm2_topics(flow) if topic.cluster is flow.target}
    wanted = {name: own for name, own in {**own_topics(flow), **mm2}.items() if name in missing}
    wanted |= compacted
    told = ", ".join(f"{name} ({own.partitions}, {own.policy})" for name, own in sorted(wanted.items()))
    found = f"{target.alias} is {named(services)}: Ferry cannot set {POLICY} there. These topics are missing (partitions, {POLICY}): {told}"
    fix = f"create them at {target.alias} with the service's own tools, then run this again; Ferry creates all others itself"
    yield failure(f"flow {flow.name}", "topics to create", found, fix)


def _is_set(flow: Flow, setting: Setting) -> bool:
    if setting.key in _OF_CLIENTS:
        written = flow.target.written(ClientRole.PRODUCER)
        return written.given(setting.key) and bool(written.value(setting.key) <= int(setting.values[0]))
    return str(flow.setting(setting.key)).lower() in setting.values


def _line(flow: Flow, setting: Setting) -> str:
    owner = f"{flow.target.alias}.producer" if setting.key in _OF_CLIENTS else flow.name
    return f"{owner}.{setting}"
