"""Lineage: what a copy read and wrote, as datasets for Airflow's OpenLineage provider. Only what that provider calls imports this.

A dataset has OpenLineage's name for a Kafka topic: the namespace is `kafka://` and the first bootstrap server. Counts and offsets come from
the run's receipts, as in the asset events. So a failed try has them too, and they count all tries of the run so far.
"""

import logging
import threading
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from airflow.providers.openlineage import conf
from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import Dataset, InputDataset, OutputDataset
from openlineage.client.facet_v2 import InputDatasetFacet, OutputDatasetFacet, RunFacet
from openlineage.client.facet_v2 import base_subset_dataset as subset
from openlineage.client.facet_v2 import input_statistics_input_dataset as input_statistics
from openlineage.client.facet_v2 import output_statistics_output_dataset as output_statistics

from ferry.airflow.connections import connection_fields
from ferry.airflow.flows import FlowReference, flow_for_running
from ferry.config import Cluster, Flow, load_config
from ferry.config.flow import named_configs
from ferry.errors import FerryError
from ferry.pipeline.refreshed import PARTITIONS_TOLD, RefreshedTopic, read_refreshed

Lineage: TypeAlias = OperatorLineage[Dataset, RunFacet]

# After its time-out the provider sends no event at all. Ferry reads for at most this share of that time.
READING_SHARE = 0.6

log = logging.getLogger(__name__)


def started(flow: FlowReference, planned: Mapping[str, Any]) -> Lineage | None:
    """The datasets of the START event. None if the task will be skipped."""
    return planned_lineage(flow_for_running(flow), planned) if planned["needs_copy"] else None


def ended(flow: FlowReference, planned: Mapping[str, Any], run_id: str) -> Lineage | None:
    """The datasets of the COMPLETE or FAIL event: the topics that all tries of the run have copied so far.

    If the target does not answer in time: the topics of the plan. None if the task was skipped.
    """
    if not planned["needs_copy"]:
        return None
    settings = flow_for_running(flow)
    copied = _read_in_time(settings, run_id)
    return planned_lineage(settings, planned) if copied is None else copied_lineage(settings, copied)


def planned_lineage(flow: Flow, planned: Mapping[str, Any]) -> Lineage:
    """The topics that a plan names, without counts."""
    pairs = planned["topics"]
    return OperatorLineage(
        inputs=[InputDataset(namespace(flow.source), topic) for topic in sorted({topic for topic, _ in pairs})],
        outputs=[OutputDataset(namespace(flow.target), remote) for remote in sorted({remote for _, remote in pairs})],
    )


def copied_lineage(flow: Flow, copied: Iterable[RefreshedTopic]) -> Lineage:
    """What a run copied, with records, bytes and ranges of offsets (pure)."""
    found: Lineage = OperatorLineage()
    for topic in copied:
        size = sum(entry.bytes for entry in topic.partitions)
        # Ferry counts bytes as the target stores them. It does not know how many bytes it read.
        counted = input_statistics.InputStatisticsInputDatasetFacet(rowCount=sum(entry.read for entry in topic.partitions))
        stored = output_statistics.OutputStatisticsOutputDatasetFacet(rowCount=topic.records, size=size)
        read: dict[str, InputDatasetFacet] = {"inputStatistics": counted}
        written: dict[str, OutputDatasetFacet] = {"outputStatistics": stored}
        if len(topic.partitions) <= PARTITIONS_TOLD:  # a part of the ranges would name another subset
            upstream = [(entry.partition, entry.upstream_start, entry.upstream_end) for entry in topic.partitions]
            downstream = [(entry.partition, entry.downstream_start, entry.downstream_end) for entry in topic.partitions]
            read["subset"] = subset.InputSubsetInputDatasetFacet(_ranges(upstream))
            written["subset"] = subset.OutputSubsetOutputDatasetFacet(_ranges(downstream))
        found.inputs.append(InputDataset(namespace(flow.source), topic.topic, inputFacets=read))
        found.outputs.append(OutputDataset(namespace(flow.target), topic.remote_topic, outputFacets=written))
    return found


def _ranges(ranges: Iterable[tuple[int, int, int]]) -> subset.PartitionSubsetCondition:
    """`ranges`: partition, start offset, end offset (exclusive)."""
    named = (subset.Partition({"partition": number, "startOffset": start, "endOffset": end}, str(number)) for number, start, end in ranges)
    return subset.PartitionSubsetCondition(list(named))


def namespace(cluster: Cluster) -> str:
    """OpenLineage's namespace for the topics of this cluster."""
    return f"kafka://{cluster.bootstrap.split(',')[0].strip().rpartition('://')[2]}"


def dataset_of_asset(asset: Any, lineage_context: object) -> Dataset | None:  # noqa: ARG001 - the provider calls it so
    """The dataset of the asset `ferry://<target>/topics/<remote topic>`; None for any other.

    Airflow calls it for assets of this scheme. The flow must be in a file that FERRY_CONFIG names.
    """
    parts = urlsplit(asset.uri)
    kind, _, topic = parts.path.strip("/").partition("/")
    targets = (flow.target for config in named_configs() for flow in load_config(config, connections=connection_fields).flows)
    cluster = next((target for target in targets if target.alias == parts.netloc), None)
    return Dataset(namespace(cluster), topic) if cluster is not None and kind == "topics" and topic else None


def _read_in_time(flow: Flow, run_id: str) -> tuple[RefreshedTopic, ...] | None:
    found: list[tuple[RefreshedTopic, ...]] = []

    def read() -> None:
        try:
            found.append(read_refreshed(flow, run_id))
        except FerryError as problem:
            log.warning("the lineage event has no counts: %s", problem.named)

    seconds = READING_SHARE * conf.execution_timeout()
    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(seconds)
    if reading.is_alive():
        log.warning("the lineage event has no counts: %s did not answer within %.0f s", flow.target.alias, seconds)
    return found[0] if found else None
