"""The proxy does what it is told, between real clients and a real broker."""

from __future__ import annotations

import random
import secrets
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient
from tests.proxied import proxied_cluster
from tests.waiting import until
from tools.kafka import SandboxCluster, read_all
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.rules import END_TXN, INIT_PRODUCER_ID, METADATA, PRODUCE, Action, Link, Rule, Way

pytestmark = pytest.mark.brokers

Make = Callable[..., str]


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SandboxCluster, BrokerProxy]]:
    """A cluster, and the proxy before its second listener."""
    with proxied_cluster(tmp_path_factory.mktemp("proxied"), seed=1) as pair:
        yield pair


def test_clients_stay_on_it_and_it_knows_what_they_ask(proxied: tuple[SandboxCluster, BrokerProxy], topic_factory: Make) -> None:
    cluster, proxy = proxied
    topic = topic_factory(cluster)
    told = AdminClient({"bootstrap.servers": proxy.bootstrap}).list_topics(topic, timeout=10)
    assert [broker.port for broker in told.brokers.values()] == [proxy.port]
    before = proxy.seen
    producer = transactional(proxy)
    committed(producer, topic, b"1")
    assert proxy.seen[END_TXN] == before[END_TXN] + 1
    assert proxy.seen[PRODUCE] > before[PRODUCE]
    until(lambda: values(cluster, topic) == [b"1"])  # markers are written behind the answer to EndTxn


def test_a_delayed_link_is_slow_both_ways_and_a_narrow_one_as_narrow(
    proxied: tuple[SandboxCluster, BrokerProxy], topic_factory: Make
) -> None:
    cluster, proxy = proxied
    topic = topic_factory(cluster)
    producer = Producer({"bootstrap.servers": proxy.bootstrap, "linger.ms": 0})
    send(producer, topic, b"warm")
    proxy.link = Link(delay=0.15, jitter=0.05)
    assert 0.3 <= seconds(lambda: send(producer, topic, b"slow")) < 3
    proxy.link = {Way.REQUESTS: Link(bytes_per_second=200_000), Way.ANSWERS: Link()}
    assert 0.9 <= seconds(lambda: send(producer, topic, b"x" * 200_000)) < 5
    proxy.link = Link()
    assert seconds(lambda: send(producer, topic, b"quick")) < 0.3
    assert len(values(cluster, topic)) == 4


def test_what_is_held_arrives_later_and_what_is_dropped_never(proxied: tuple[SandboxCluster, BrokerProxy], topic_factory: Make) -> None:
    cluster, proxy = proxied
    topic = topic_factory(cluster)
    producer = Producer({"bootstrap.servers": proxy.bootstrap, "linger.ms": 0, "retries": 0, "enable.idempotence": False})
    send(producer, topic, b"0")
    proxy.hold(Way.REQUESTS)
    producer.produce(topic, b"held", partition=0)
    assert producer.flush(1) == 1
    assert values(cluster, topic) == [b"0"]
    proxy.release()
    assert producer.flush(10) == 0
    assert values(cluster, topic) == [b"0", b"held"]
    proxy.drop()
    with socket.create_connection(("127.0.0.1", proxy.port), 0.3) as accepted:
        accepted.sendall(metadata(b"dropped"))
        with pytest.raises(TimeoutError):
            accepted.recv(1)
    producer.produce(topic, b"dropped", partition=0)
    producer.flush(1)
    proxy.restore()
    assert producer.flush(10) == 0
    assert values(cluster, topic) == [b"0", b"held"]
    send(producer, topic, b"again")
    assert values(cluster, topic) == [b"0", b"held", b"again"]


def test_connections_are_cut_half_closed_and_refused(proxied: tuple[SandboxCluster, BrokerProxy]) -> None:
    _, proxy = proxied
    address = ("127.0.0.1", proxy.port)
    with connected(proxy) as one:
        assert proxy.cut() >= 1
        with pytest.raises(ConnectionResetError):
            one.recv(1)
    with connected(proxy) as other:
        assert proxy.half_close(Way.ANSWERS) >= 1
        assert other.recv(1) == b""
        before = proxy.seen[METADATA]
        other.sendall(metadata(b"other"))  # its own direction is open
        until(lambda: proxy.seen[METADATA] > before)
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, 5).close()
        assert proxy.connections >= 1
    proxy.accept()
    assert AdminClient({"bootstrap.servers": proxy.bootstrap}).list_topics(timeout=10).brokers


@pytest.mark.parametrize(
    ("action", "arrives"),
    [
        (Action.SWALLOW_REQUEST, False),
        (Action.CUT_BEFORE, False),
        (Action.DELAY_REQUEST, False),
        (Action.SWALLOW_ANSWER, True),
        (Action.CUT_AFTER, True),
        (Action.DELAY_ANSWER, True),
    ],
)
def test_around_the_end_of_a_transaction(
    action: Action, arrives: bool, proxied: tuple[SandboxCluster, BrokerProxy], topic_factory: Make
) -> None:
    """Whether the broker has committed while the client does not know; in the end all is settled."""
    cluster, proxy = proxied
    topic = topic_factory(cluster)
    other, producer = transactional(proxy), transactional(proxy, name := f"t-{secrets.token_hex(3)}")
    # A client that is cut off tries again at once: as long as the broker must not hear of it, so is that.
    times = None if action is Action.CUT_BEFORE else 1
    rule = proxy.add(Rule(END_TXN, action, seconds=1.5, containing=name.encode(), times=times))
    producer.begin_transaction()
    producer.produce(topic, b"1", partition=0)
    assert producer.flush(10) == 0
    committed(other, topic, b"other")  # only the named one is met
    assert rule.hits == 0
    known = False
    with suppress(KafkaException):  # the end of librdkafka's patience with one call: it goes on behind it
        producer.commit_transaction(0.8)
        known = True
    assert not known or action is Action.CUT_AFTER  # asked again at once, it learns what it missed
    assert rule.wait(0)
    if arrives:
        until(lambda: b"1" in values(cluster, topic))
    else:
        assert isolated(cluster, topic) == []
    proxy.remove(rule)
    if action in {Action.SWALLOW_REQUEST, Action.SWALLOW_ANSWER}:  # its client waits for a minute
        transactional(proxy, name)
    elif not known:
        producer.commit_transaction(20)
    wanted = [b"other"] if action is Action.SWALLOW_REQUEST else [b"1", b"other"]
    until(lambda: sorted(values(cluster, topic)) == wanted)
    assert rule.hits >= 1


def test_a_delayed_request_outlives_its_client(proxied: tuple[SandboxCluster, BrokerProxy]) -> None:
    """It reaches the broker when its sender has long gone: what a plain cut can not do."""
    cluster, proxy = proxied
    transactional(proxy)  # the coordinator is there
    name = f"late-{secrets.token_hex(3)}"
    late = proxy.add(Rule(INIT_PRODUCER_ID, Action.DELAY_REQUEST, seconds=1, client="gone"))
    body = struct.pack(">hhih4sh", INIT_PRODUCER_ID, 1, 1, 4, b"gone", len(name)) + name.encode() + struct.pack(">i", 10_000)
    with socket.create_connection(("127.0.0.1", proxy.port), 5) as client:
        client.sendall(struct.pack(">i", len(body)) + body)
        assert late.wait(5)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        assert name not in transactional_ids(admin)
        until(lambda: name in transactional_ids(admin))
    finally:
        admin.close()


@pytest.mark.unit
def test_the_same_seed_gives_the_same_weather() -> None:
    link = Link(delay=0.1, jitter=0.1, loss=0.1)
    first, second = ([link.lag(dice) for _ in range(1_000)] for dice in (random.Random(5), random.Random(5)))
    assert first == second
    late = sum(lag >= 0.3 for lag in first)
    assert 70 <= late <= 130
    assert min(first) >= 0.1


def transactional(proxy: BrokerProxy, name: str | None = None) -> Producer:
    name = name or f"t-{secrets.token_hex(3)}"
    producer = Producer({"bootstrap.servers": proxy.bootstrap, "transactional.id": name, "linger.ms": 0, "log_level": 0})
    producer.init_transactions(20)
    return producer


def committed(producer: Producer, topic: str, value: bytes) -> None:
    producer.begin_transaction()
    producer.produce(topic, value, partition=0)
    producer.commit_transaction(20)


def send(producer: Producer, topic: str, value: bytes) -> None:
    producer.produce(topic, value, partition=0)
    assert producer.flush(20) == 0


def values(cluster: SandboxCluster, topic: str) -> list[bytes | None]:
    return [record.value for record in read_all(cluster.bootstrap, topic)[0]]


def isolated(cluster: SandboxCluster, topic: str) -> list[bytes]:
    """What a read_committed consumer gets within a moment; nothing behind an open transaction."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "x", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [message.value() for message in consumer.consume(10, 0.3) if message.error() is None]
    consumer.close()
    return found


def transactional_ids(admin: KafkaAdminClient) -> set[str]:
    return {entry.transactional_id for listing in admin.list_transactions().values() for entry in listing}


def metadata(client: bytes) -> bytes:
    body = b"\0\3" + b"\0\1" + b"\0\0\0\1" + len(client).to_bytes(2) + client + b"\0\0\0\0"
    return len(body).to_bytes(4) + body


def connected(proxy: BrokerProxy) -> socket.socket:
    """A connection that has been answered."""
    client = socket.create_connection(("127.0.0.1", proxy.port), 5)
    client.sendall(metadata(b"one"))
    length = int.from_bytes(client.recv(4, socket.MSG_WAITALL))
    assert len(client.recv(length, socket.MSG_WAITALL)) == length
    return client


def seconds(action: Callable[[], None]) -> float:
    started = time.monotonic()
    action()
    return time.monotonic() - started
