"""Two clusters behind proxies that play a managed service: by what the product knows of it, and what its documents say of requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from kafka.protocol.admin import (
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.consumer import FetchRequest, OffsetFetchRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest
from tests.both_clusters import FOREVER, both_clusters
from tools.kafka import SandboxCluster
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.listener import proxied_properties
from tools.proxy.rules import DESCRIBE_ACLS
from tools.proxy.service import NOT_OFFERED, Service

from ferry.clusters.admin.service_profiles import (
    AIVEN,
    AUTOMQ,
    CONFLUENT_CLOUD,
    EVENT_HUBS_PREMIUM,
    EVENT_HUBS_STANDARD,
    MSK_EXPRESS,
    MSK_PROVISIONED,
    MSK_SERVERLESS,
    REDPANDA,
    SERVICES,
    WARPSTREAM,
)
from ferry.clusters.admin.services import ManagedService
from ferry.clusters.net.error_codes import CODES
from ferry.sandbox.ports import free_ports
from ferry.wire.compression import CODEC_NAMES

# Newest versions of requests, as far as they are not Kafka's.
NEWEST = {
    REDPANDA.name: {
        ProduceRequest.API_KEY: 7,
        FetchRequest.API_KEY: 11,
        MetadataRequest.API_KEY: 8,
        OffsetFetchRequest.API_KEY: 7,
        CreateTopicsRequest.API_KEY: 6,
        InitProducerIdRequest.API_KEY: 3,
        DescribeQuorumRequest.API_KEY: NOT_OFFERED,
    },
    WARPSTREAM.name: {
        IncrementalAlterConfigsRequest.API_KEY: NOT_OFFERED,
        DescribeProducersRequest.API_KEY: NOT_OFFERED,
        DeleteRecordsRequest.API_KEY: NOT_OFFERED,
        OffsetForLeaderEpochRequest.API_KEY: NOT_OFFERED,
        DescribeQuorumRequest.API_KEY: NOT_OFFERED,
    },
}
# Topic configs that may be set; others take all. Which ones Express takes was not found: those of Serverless.
_MSK_CONFIGS = frozenset(
    {
        "cleanup.policy",
        "compression.type",
        "max.message.bytes",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "retention.bytes",
        "retention.ms",
    }
)
TOPIC_CONFIGS = {
    CONFLUENT_CLOUD.name: frozenset(
        {
            "cleanup.policy",
            "delete.retention.ms",
            "max.message.bytes",
            "max.compaction.lag.ms",
            "message.timestamp.difference.max.ms",
            "message.timestamp.type",
            "min.compaction.lag.ms",
            "min.insync.replicas",
            "retention.bytes",
            "retention.ms",
            "segment.bytes",
            "segment.ms",
        }
    ),
    MSK_EXPRESS.name: _MSK_CONFIGS,
    MSK_SERVERLESS.name: _MSK_CONFIGS,
    **dict.fromkeys((service.name for service in SERVICES if not service.takes_configs), frozenset()),
}
# Of record batches; others take all.
CODECS = {EVENT_HUBS_STANDARD.name: ("none",), EVENT_HUBS_PREMIUM.name: ("none", "gzip")}
# Of the largest request.
REQUEST_BYTES = dict.fromkeys(CODECS, 1_046_528)
# Those that run Apache Kafka tell its finalized features.
KAFKA = {service.name for service in (CONFLUENT_CLOUD, MSK_PROVISIONED, MSK_EXPRESS, MSK_SERVERLESS, AUTOMQ, AIVEN)}
# No document names these errors: Confluent's is seen in reports of users, the others are what Kafka answers in such a case.
POLICY = {CONFLUENT_CLOUD.name}
WITHOUT_ACLS = {MSK_SERVERLESS.name}


def played(service: ManagedService, role: str) -> Service:
    """How a proxy plays it before the cluster of this role."""
    return Service(
        newest=NEWEST.get(service.name, {}),
        errors={DESCRIBE_ACLS: CODES["SECURITY_DISABLED"]} if service.name in WITHOUT_ACLS else {},
        transactions=0 if service.transactions else CODES["TRANSACTIONAL_ID_AUTHORIZATION_FAILED"],
        codecs=frozenset(map(CODEC_NAMES.index, CODECS[service.name])) if service.name in CODECS else None,
        topic_configs=TOPIC_CONFIGS.get(service.name),
        config_error=CODES["POLICY_VIOLATION" if service.name in POLICY else "INVALID_CONFIG"],
        factors=service.factors or None,
        request_bytes=REQUEST_BYTES.get(service.name, 0),
        cluster_id=f"{service.cluster_ids}{role}" if service.cluster_ids else "",
        features=service.name in KAFKA,
    )


class Stage(NamedTuple):
    """Source and target, and the proxies before them."""

    clusters: tuple[SandboxCluster, SandboxCluster]
    proxies: tuple[BrokerProxy, BrokerProxy]

    @property
    def addresses(self) -> tuple[str, str]:
        return self.proxies[0].bootstrap, self.proxies[1].bootstrap

    def play(self, service: ManagedService) -> None:
        """From now on both are clusters of `service`."""
        for proxy, role in zip(self.proxies, ("source", "target"), strict=True):
            proxy.service = played(service, role)
            proxy.cut()


@contextmanager
def started(directory: Path) -> Iterator[Stage]:
    """Everybody may do everything, and ACLs are kept."""
    ports = free_ports(2), free_ports(2)
    files = [{**FOREVER, "allow.everyone.if.no.acl.found": "true", **proxied_properties(*pair)} for pair in ports]
    with both_clusters(directory, files[0], files[1], authorizer=True) as clusters, ExitStack() as running:
        yield Stage(clusters, (running.enter_context(BrokerProxy(*ports[0])), running.enter_context(BrokerProxy(*ports[1]))))
