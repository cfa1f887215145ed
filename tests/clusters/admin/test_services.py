"""Which managed service a cluster is of, by what it says of itself."""

from __future__ import annotations

import re
from datetime import date

import pytest

from ferry.clusters.admin.service_profiles import READ, SERVICES, named, services_at

pytestmark = pytest.mark.unit

KAFKA = range(93)


@pytest.mark.parametrize(
    ("bootstrap", "cluster_id", "more", "names"),
    [
        ("pkc-4nym6.us-east-1.aws.confluent.cloud:9092", "", (), "Confluent Cloud"),
        ("10.0.0.1:9092", "lkc-devc80", (), "Confluent Cloud"),
        ("b-1.demo.2f1x.c2.kafka.eu-central-1.amazonaws.com:9098", "", (), "Amazon MSK (Standard brokers or Express brokers)"),
        ("b-1.demo.2f1x.c2.kafka.cn-north-1.amazonaws.com.cn:9098", "", (), "Amazon MSK (Standard brokers or Express brokers)"),
        ("boot-2cd.c1.kafka-serverless.us-east-1.amazonaws.com:9098", "", (), "Amazon MSK Serverless"),
        (
            "shop.servicebus.windows.net:9093",
            "",
            (),
            "Azure Event Hubs (Standard or Premium or Dedicated)",
        ),
        ("kafka:9092", "redpanda.6c4ec3bd", (), "Redpanda"),
        ("seed-0.demo.fmc.prd.cloud.redpanda.com:9092", "", (), "Redpanda"),
        ("serverless.kafka.discoveryv2.prod-z.us-east-1.warpstream.com:9092", "", (), "WarpStream"),
        ("kafka:9092", "", (515,), "AutoMQ"),
        ("other:1, KAFKA-1.c.AIVENCLOUD.com:26036", "", (), "Aiven for Apache Kafka"),
        ("kafka.confluent.cloud.example:9092, b1.example", "MkU3OEVBNTcwNTJENDM2Qk", (), ""),
        ("kafka.eu-central-1.amazonaws.com.example:9092", "", (), ""),
    ],
)
def test_a_service_is_recognised(bootstrap: str, cluster_id: str, more: tuple[int, ...], names: str) -> None:
    assert named(services_at(bootstrap, cluster_id, [*KAFKA, *more])) == names


def test_every_limit_has_a_source_and_a_date() -> None:
    for service in SERVICES:
        for limit in service.limits:
            assert re.fullmatch(r"https://\S+", limit.source)
            assert limit.what.endswith(".")
            assert not limit.ferry.endswith(".")
    assert date.fromisoformat(READ)
    assert len({service.name for service in SERVICES}) == len(SERVICES) >= 8
