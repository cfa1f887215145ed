"""Findings about the limits of managed services that a flow meets (pure)."""

from collections.abc import Iterator

from ferry.clusters.services import Limit, Setting, Side
from ferry.config import ClientRole, Flow
from ferry.config.registry.clients import CLIENTS
from ferry.doctor.cluster_checks import services_of
from ferry.doctor.cluster_facts import ClusterFacts
from ferry.doctor.finding import Finding, ok, warning

_OF_CLIENTS = frozenset(known.name for known in CLIENTS)


def service_findings(flow: Flow, source: ClusterFacts, target: ClusterFacts) -> Iterator[Finding]:
    """One for each limit of a service that the flow reads from or writes to; a warning where a setting is missing."""
    for side, facts in ((Side.SOURCE, source), (Side.TARGET, target)):
        services = services_of(facts)
        for service in services:
            # What cannot be told apart is told of all.
            cluster = f"{facts.alias} {'is' if len(services) == 1 else 'may be'} {service.name}"
            yield from (_finding(flow, cluster, limit) for limit in service.limits if limit.side is side)


def _finding(flow: Flow, cluster: str, limit: Limit) -> Finding:
    where, told = f"flow {flow.name}", f"{cluster}: {limit.what} {_sentence(limit.ferry)}"
    unset = [setting for setting in limit.settings if not _is_set(flow, setting)]
    if not unset:
        return ok(where, "service", told)
    return warning(where, "service", told, f"set {', '.join(_line(flow, setting) for setting in unset)}")


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
