"""A target that does not take every codec: the flow is told so by name, or encodes its batches anew. A proxy plays the target."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from tests.behind_a_proxy import behind_a_proxy, playing
from tests.conftest import Lab
from tests.opened import sync_groups, translated_groups, verify
from tools.kafka import SandboxCluster, compare_topics, read_all
from tools.kafka.groups import commit_offsets
from tools.proxy.broker_proxy import BrokerProxy

from ferry.config import Flow
from ferry.errors import ExitCode
from ferry.ledger.run_report import RunReport
from ferry.verify.range_runner import verify_inline
from ferry.verify.request import VerifyRequest
from ferry.wire.compression import CODEC_NAMES, GZIP, NONE

pytestmark = pytest.mark.brokers

FlowFactory = Callable[..., Flow]
TopicFactory = Callable[..., str]
RunFlow = Callable[..., RunReport]
PARTITIONS = 2


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SandboxCluster, BrokerProxy]]:
    with behind_a_proxy(tmp_path_factory.mktemp("codecs")) as both:
        yield both


def fill(cluster: SandboxCluster, topic: str, count: int) -> None:
    """Batches of every codec, some of them large and easy to compress, and a transaction that is aborted."""
    for codec in CODEC_NAMES:
        settings = {**cluster.client_settings(), "linger.ms": 20, "compression.type": codec, "batch.size": 1 << 20}
        _append(Producer(settings), topic, count)
        producer = Producer({**settings, "transactional.id": secrets.token_hex(4)})
        producer.init_transactions(30)
        producer.begin_transaction()
        _append(producer, topic, 3)
        producer.abort_transaction(30)


def _append(producer: Producer, topic: str, count: int) -> None:
    for number in range(count):
        value = None if number % 50 == 7 else b"%d" % number * 800
        producer.produce(topic, value, b"%d" % number, partition=number % PARTITIONS, headers=[("h", b"1"), ("h", None)])
        producer.poll(0)
    assert producer.flush(60) == 0


@pytest.mark.long
@pytest.mark.parametrize("wanted", ["gzip", "none"])
def test_batches_are_encoded_anew_for_a_target_that_takes_few_codecs(
    wanted: str, service: tuple[SandboxCluster, BrokerProxy], lab: Lab
) -> None:
    behind, proxy = service
    topic, group = lab.topic(lab.source, partitions=PARTITIONS), f"g-{secrets.token_hex(4)}"
    fill(lab.source, topic, 1_000)
    lines = [f"A->B.topics = {topic}", f"A->B.groups = {group}", f"A->B.ferry.compression.type = {wanted}", *lab.copy_only]
    flow = lab.flow(*lines, "A->B.sync.group.offsets.enabled = true", target=proxy)
    remote = f"{flow.source.alias}.{topic}"
    with playing(proxy, codecs=frozenset({NONE, GZIP})):
        assert lab.run(flow).exit_code is ExitCode.DONE
        fill(lab.source, topic, 40)
        assert lab.run(flow).exit_code is ExitCode.DONE
        assert compare_topics(lab.source.bootstrap, behind.bootstrap, {topic: remote}).equal
        proof = verify(flow, VerifyRequest(flow.name, "proof"), verify_inline, lambda _: None)
        assert (proof.exit_code, proof.equal, proof.not_covered) == (ExitCode.DONE, True, ())

        here, there = read_all(lab.source.bootstrap, topic), read_all(behind.bootstrap, remote)
        for index in (0, 1, 700, 1_301, len(here[0]) - 1):
            commit_offsets(lab.source.client_settings(), group, {(topic, number): here[number][index].offset for number in (0, 1)})
            found = translated_groups(flow)
            assert {entry.partition for entry in found.positions} == {0, 1}
            for entry in found.positions:
                assert entry.translation is not None
                assert entry.translation.exact
                read_next = next(record for record in there[entry.partition] if record.offset >= entry.translation.image)
                assert read_next == there[entry.partition][index]
        assert sync_groups(flow).failed == ()


def test_the_refusal_names_the_topic_and_the_property(service: tuple[SandboxCluster, BrokerProxy], lab: Lab) -> None:
    behind, proxy = service
    packed = lab.topic(lab.source)
    lab.produce(lab.source, packed, [(0, b"k", b"v" * 1_000)] * 200, **{"compression.type": "zstd"})
    lines = (f"A->B.topics = {packed}", *lab.copy_only)
    flow = lab.flow(*lines, target=proxy)
    with playing(proxy, codecs=frozenset({NONE, GZIP})):
        report = lab.run(flow)
        assert report.exit_code is ExitCode.PARTLY_FAILED
        (failure,) = report.failed
        assert failure.topic == packed
        assert "UNSUPPORTED_COMPRESSION_TYPE" in failure.problem
        assert "set ferry.compression.type to gzip or none" in failure.problem
        again = lab.flow(*lines, "A->B.ferry.compression.type = gzip", target=proxy)
        assert lab.run(again).exit_code is ExitCode.DONE
    assert compare_topics(lab.source.bootstrap, behind.bootstrap, {packed: f"{flow.source.alias}.{packed}"}).equal
