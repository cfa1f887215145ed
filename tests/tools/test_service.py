"""The proxy plays a service: real clients meet its limits before a real broker, and what it takes reaches the broker."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kafka.admin import KafkaAdminClient
from tests.proxied import proxied_cluster
from tools.kafka import SandboxCluster, read_all
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.rules import CREATE_TOPICS, INIT_PRODUCER_ID
from tools.proxy.service import NOT_OFFERED, WITHOUT_TOPIC_IDS, Service

from ferry.clusters.net.error_codes import CODES
from ferry.wire.compression import GZIP, NONE

pytestmark = pytest.mark.brokers

Make = Callable[..., str]
DENIED = CODES["CLUSTER_AUTHORIZATION_FAILED"]


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SandboxCluster, BrokerProxy]]:
    """A cluster, and the proxy before its second listener."""
    with proxied_cluster(tmp_path_factory.mktemp("service")) as pair:
        yield pair


@contextmanager
def playing(proxy: BrokerProxy, service: Service) -> Iterator[AdminClient]:
    """A client of the service."""
    proxy.service = service
    try:
        yield AdminClient({"bootstrap.servers": proxy.bootstrap, "log_level": 0})
    finally:
        proxy.service = None


def test_lowered_versions_are_told_and_held(proxied: tuple[SandboxCluster, BrokerProxy], topic_factory: Make) -> None:
    cluster, proxy = proxied
    topic = topic_factory(cluster)
    lowered = {**WITHOUT_TOPIC_IDS, INIT_PRODUCER_ID: NOT_OFFERED, 18: 2}
    with playing(proxy, Service(newest=lowered, features=False, cluster_id="lkc-1")) as admin:
        assert admin.list_topics(timeout=10).cluster_id == "lkc-1"
        client = KafkaAdminClient(bootstrap_servers=proxy.bootstrap)
        try:
            offered = client._manager.broker_version_data.api_versions
        finally:
            client.close()
        assert {key: offered[key][1] for key in WITHOUT_TOPIC_IDS} == WITHOUT_TOPIC_IDS
        assert INIT_PRODUCER_ID not in offered
        producer = Producer({"bootstrap.servers": proxy.bootstrap})
        producer.produce(topic, b"1", partition=0)
        assert producer.flush(10) == 0
        with pytest.raises(KafkaException) as refused:
            transactional(proxy).init_transactions(3)
        assert refused.value.args[0].code() in {KafkaError._UNSUPPORTED_FEATURE, KafkaError._TIMED_OUT}
    assert [record.value for record in read_all(cluster.bootstrap, topic)[0]] == [b"1"]


def test_transactions_are_refused_and_other_producers_are_not(proxied: tuple[SandboxCluster, BrokerProxy], topic_factory: Make) -> None:
    cluster, proxy = proxied
    topic = topic_factory(cluster)
    with playing(proxy, Service(transactions=CODES["TRANSACTIONAL_ID_AUTHORIZATION_FAILED"])):
        with pytest.raises(KafkaException) as refused:
            transactional(proxy).init_transactions(10)
        assert refused.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        idempotent = Producer({"bootstrap.servers": proxy.bootstrap, "enable.idempotence": True})
        idempotent.produce(topic, b"1", partition=0)
        assert idempotent.flush(10) == 0
    begun = transactional(proxy)
    begun.init_transactions(10)
    begun.begin_transaction()
    with playing(proxy, Service(transactions=CODES["INVALID_TXN_STATE"])):
        begun.produce(topic, b"2", partition=0)
        with pytest.raises(KafkaException) as refused:
            begun.flush(10)
        assert refused.value.args[0].code() == KafkaError.INVALID_TXN_STATE
    assert [record.value for record in read_all(cluster.bootstrap, topic)[0]] == [b"1"]


def test_codecs_are_refused_by_name(proxied: tuple[SandboxCluster, BrokerProxy], topic_factory: Make) -> None:
    cluster, proxy = proxied
    topic = topic_factory(cluster)
    with playing(proxy, Service(codecs=frozenset({NONE, GZIP}))):
        for codec, error in (("gzip", None), ("none", None), ("lz4", KafkaError.UNSUPPORTED_COMPRESSION_TYPE)):
            producer = Producer({"bootstrap.servers": proxy.bootstrap, "compression.type": codec})
            told: list[KafkaError | None] = []
            producer.produce(topic, codec.encode() * 100, partition=0, on_delivery=lambda problem, _, told=told: told.append(problem))
            assert producer.flush(10) == 0
            assert [problem and problem.code() for problem in told] == [error]
    assert len(read_all(cluster.bootstrap, topic)[0]) == 2


def test_a_request_that_is_too_large_closes_the_connection(proxied: tuple[SandboxCluster, BrokerProxy], topic_factory: Make) -> None:
    cluster, proxy = proxied
    topic = topic_factory(cluster)
    with playing(proxy, Service(request_bytes=50_000)):
        settings = {"bootstrap.servers": proxy.bootstrap, "message.timeout.ms": 2_000, "log_level": 0}
        for size in (40_000, 60_000):
            producer = Producer(settings)
            told: list[KafkaError | None] = []
            producer.produce(topic, bytes(size), partition=0, on_delivery=lambda problem, _, told=told: told.append(problem))
            assert producer.flush(20) == 0
            assert bool(told[0]) is (size > 50_000)
    assert [len(record.value or b"") for record in read_all(cluster.bootstrap, topic)[0]] == [40_000]


def test_topics_and_configs_are_refused_one_by_one(proxied: tuple[SandboxCluster, BrokerProxy]) -> None:
    cluster, proxy = proxied
    free, stamped, thin = (f"t-{secrets.token_hex(3)}" for _ in range(3))
    service = Service(topic_configs=frozenset({"cleanup.policy"}), config_error=CODES["POLICY_VIOLATION"], factors=frozenset({-1, 3}))
    with playing(proxy, service) as admin:
        wanted = [
            NewTopic(free, 1, 3, config={"cleanup.policy": "compact"}),
            NewTopic(stamped, 1, 3, config={"message.timestamp.type": "CreateTime", "cleanup.policy": "delete"}),
            NewTopic(thin, 1, 1),
        ]
        answers = {topic: future.exception(20) for topic, future in admin.create_topics(wanted, request_timeout=10).items()}
        assert answers.pop(free) is None
        codes = {topic: problem.args[0].code() for topic, problem in answers.items()}
        assert codes == {stamped: KafkaError.POLICY_VIOLATION, thin: KafkaError.INVALID_REPLICATION_FACTOR}
        assert "message.timestamp.type" in answers[stamped].args[0].str()
        assert alter(admin, free, "segment.bytes", "2000000") == KafkaError.POLICY_VIOLATION
        assert alter(admin, free, "cleanup.policy", "delete") is None
    names = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=10).topics
    assert free in names
    assert not {stamped, thin} & set(names)


def test_configs_of_brokers_are_hidden_in_part_or_whole(proxied: tuple[SandboxCluster, BrokerProxy]) -> None:
    _, proxy = proxied
    broker = ConfigResource(ResourceType.BROKER, "1")
    with playing(proxy, Service(broker_configs=frozenset({"num.partitions"}))) as admin:
        assert set(admin.describe_configs([broker], request_timeout=10)[broker].result(20)) == {"num.partitions"}
    with playing(proxy, Service(broker_error=DENIED)) as admin:
        with pytest.raises(KafkaException) as refused:
            admin.describe_configs([broker], request_timeout=10)[broker].result(20)
        assert refused.value.args[0].code() == DENIED


def test_a_request_may_be_refused_whole(proxied: tuple[SandboxCluster, BrokerProxy]) -> None:
    _, proxy = proxied
    with playing(proxy, Service(errors={CREATE_TOPICS: DENIED})) as admin:
        refused = admin.create_topics([NewTopic("any", 1)], request_timeout=10)["any"].exception(20)
        assert refused.args[0].code() == DENIED


def alter(admin: AdminClient, topic: str, name: str, value: str) -> int | None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    problem = admin.incremental_alter_configs([resource], request_timeout=10)[resource].exception(20)
    return problem and problem.args[0].code()


def transactional(proxy: BrokerProxy) -> Producer:
    return Producer({"bootstrap.servers": proxy.bootstrap, "transactional.id": f"t-{secrets.token_hex(3)}", "log_level": 0})
