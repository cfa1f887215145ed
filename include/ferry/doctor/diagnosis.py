"""The whole diagnosis: the machine, then each cluster of an enabled flow, then each flow whose clusters both answer."""

from collections.abc import Iterator
from pathlib import Path

from ferry.clusters.open_cluster import OpenClusters
from ferry.config import FerryConfig, Flow, load_config
from ferry.doctor.airflow_checks import airflow_findings
from ferry.doctor.airflow_facts import read_airflow_facts
from ferry.doctor.cluster_checks import cluster_findings
from ferry.doctor.cluster_facts import ClusterFacts, read_cluster_facts
from ferry.doctor.finding import Finding, failure, ok, warning
from ferry.doctor.flow_checks import flow_findings
from ferry.doctor.flow_facts import read_flow_facts
from ferry.doctor.machine import MachineFacts, read_machine_facts
from ferry.doctor.machine_checks import machine_findings
from ferry.doctor.registries import registry_findings
from ferry.errors import ConfigError, FerryError
from ferry.ledger.open_flow import OpenFlow
from ferry.monitoring.schedule import longest_pause


def diagnose(config: Path | None, only: str | None = None) -> Iterator[Finding]:
    """All findings, one after the other; without a config those about the machine. ArgumentError for an unknown flow `only`."""
    machine = read_machine_facts()
    yield from machine_findings(machine, config)
    if config is None:
        return
    try:
        loaded = load_config(config)
    except ConfigError as problem:
        for text in str(problem).splitlines():
            yield failure("config", "mm2.properties", text, problem.next_step, problem.exit_code)
        return
    flows = loaded.flows if only is None else (loaded.flow(only),)
    yield from config_findings(loaded, flows)
    with OpenClusters() as clusters:
        yield from _of_flows(flows, clusters, machine)


def _of_flows(flows: tuple[Flow, ...], clusters: OpenClusters, machine: MachineFacts) -> Iterator[Finding]:
    """The findings about the clusters of these flows, then about each flow."""
    sources, targets = {flow.source.alias: flow.source for flow in flows}, {flow.target.alias: flow.target for flow in flows}
    facts = {alias: read_cluster_facts(clusters.of(cluster)) for alias, cluster in (sources | targets).items()}
    for alias, found in facts.items():
        transactions = any(flow.exactly_once for flow in flows if flow.target.alias == alias)
        yield from cluster_findings(found, source=alias in sources, target=alias in targets, transactions=transactions)
    for flow in flows:
        yield from _of_flow(OpenFlow(flow, clusters), facts[flow.source.alias], facts[flow.target.alias], machine)


def _of_flow(opened: OpenFlow, source: ClusterFacts, target: ClusterFacts, machine: MachineFacts) -> Iterator[Finding]:
    """The findings about one flow, if both of its clusters answer."""
    flow = opened.flow
    yield from registry_findings(flow)
    where = f"flow {flow.name}"
    if dead := ", ".join(found.alias for found in (source, target) if found.problem is not None):
        yield warning(where, "everything else", f"not checked: {dead} does not answer", f"see cluster {dead} above")
        return
    longest = longest_pause(flow.schedule)
    pause = None if longest is None else max(0.0, longest - flow.follow_seconds)
    try:
        facts = read_flow_facts(opened, source, target)
        yield from flow_findings(flow, facts, machine, pause)
    except FerryError as problem:
        yield failure(where, "asked", str(problem), problem.next_step, problem.exit_code)


def diagnose_airflow(config: Path | None, only: str | None = None) -> Iterator[Finding]:
    """The findings about the Airflow of this Python."""
    yield from airflow_findings(read_airflow_facts(), config, only)


def config_findings(loaded: FerryConfig, flows: tuple[Flow, ...]) -> Iterator[Finding]:
    """The findings from loading the file (pure)."""
    yield ok("config", "mm2.properties", f"{loaded.path}: {', '.join(flow.name for flow in flows)}")
    for text in loaded.warnings:
        yield warning("config", "mm2.properties", text, "correct or remove the key; docs/properties.md says what each does")
