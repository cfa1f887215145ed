"""A command reads each record of a flow's state once, and never believes what the topic does not hold any more."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.conftest import Lab
from tests.opened import append_records, read_receipts, state_of
from tools.kafka import SandboxCluster
from tools.kafka.topics import delete_topics

from ferry.clusters.logs.internal_reader import InternalRecord, InternalTopicReader
from ferry.clusters.open_cluster import OpenClusters
from ferry.config import Flow
from ferry.errors import NewerFormat
from ferry.ledger import reading
from ferry.ledger.open_flow import OpenFlow, open_flow
from ferry.ledger.receipts import Receipt, ReceiptKind, decode_receipt, encode_receipt
from ferry.ledger.state import FLOW_KEY, Claim, FlowState, SyncDone, encode_state
from ferry.policy.naming import state_topic

pytestmark = pytest.mark.brokers

FlowFactory = Callable[..., Flow]
TopicFactory = Callable[..., str]


class _State:
    """The state topic of one flow, and how many records of it Ferry has read. `clusters`: all reads of a test share their connections."""

    def __init__(self, flow: Flow, cluster: SandboxCluster, clusters: OpenClusters) -> None:
        self.flow, self.cluster, self.clusters, self.read = flow, cluster, clusters, 0

    def write(self, *syncs: str, finished: int = 1) -> None:
        records = [encode_state(SyncDone(sync, finished, "run")) for sync in syncs]
        append_records(self.flow.target, {self.flow.state_topic: records})

    def remove(self, sync: str) -> None:
        append_records(self.flow.target, {self.flow.state_topic: [(encode_state(SyncDone(sync, 1, ""))[0], None)]})

    def times(self) -> dict[str, int]:
        """When each sync was done, and nothing else; ask_syncs_done must say the same."""
        found, done = OpenFlow(self.flow, self.clusters).ask_anew(stable=True).answer().state, self.syncs_done()
        assert found == FlowState(syncs=dict(done))
        return {sync: entry.finished for sync, entry in done.items()}

    def syncs_done(self) -> Mapping[str, SyncDone]:
        return reading.ask_syncs_done(OpenFlow(self.flow, self.clusters)).answer()


@pytest.fixture
def state(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[_State]:
    flow = lab.flow()
    lab.topic(lab.target, name=flow.state_topic)
    plain = InternalTopicReader.read

    def counted(
        reader: InternalTopicReader, topic: str, start: Mapping[int, int] | None = None, **options: Any
    ) -> Iterator[InternalRecord]:
        for record in plain(reader, topic, start, **options):
            found.read += 1
            yield record

    monkeypatch.setattr(InternalTopicReader, "read", counted)
    with OpenClusters() as clusters:
        found = _State(flow, lab.target, clusters)
        yield found


def test_a_record_is_read_once(state: _State) -> None:
    state.write("a", "b", "c")
    with open_flow(state.flow) as opened:
        for _ in range(2):
            assert opened.state.syncs.keys() == {"a", "b", "c"}
            assert opened.recovery == FlowState()
        assert state.read == 3
        state.write("b", finished=2)
        assert opened.state.syncs["b"].finished == 1
        opened.anew()
        assert opened.state.syncs["b"].finished == 2
        assert state.read == 7


def test_after_fencing_the_topic_is_read_from_its_start(state: _State) -> None:
    state.write("a", "b")
    with open_flow(state.flow) as opened:
        for seen in range(1, 3):
            assert opened.ask_anew(stable=True).answer().state.syncs.keys() == {"a", "b"}
            assert state.read == 2 * seen


def test_a_topic_that_was_missing_is_there_when_it_is_read_anew(lab: Lab) -> None:
    """The connection knows from its first look that there is no such topic."""
    flow = lab.flow()
    with open_flow(flow) as opened:
        assert opened.state == opened.state_among(opened.target.admin.topics()) == FlowState()
        lab.topic(lab.target, name=flow.state_topic)
        append_records(flow.target, {flow.state_topic: [encode_state(SyncDone("a", 1, "run"))]})
        assert opened.ask_anew(stable=True).answer().state.syncs.keys() == {"a"}


def test_a_reading_that_failed_is_read_again(state: _State, monkeypatch: pytest.MonkeyPatch) -> None:
    state.write("a")
    with open_flow(state.flow) as opened:
        with monkeypatch.context() as broken:
            broken.setattr(InternalTopicReader, "read", lambda *_, **__: {}["a defect"])
            for _ in range(2):
                with pytest.raises(KeyError):
                    _ = opened.state
        assert opened.state.syncs.keys() == {"a"}


def test_claims_of_other_flows_are_read_once_and_only_where_the_flow_has_none(state: _State, lab: Lab) -> None:
    other = lab.topic(lab.target, name=state_topic(f"c{secrets.token_hex(4)}"))
    topics = {state.flow.state_topic, other, "x.t"}

    def claim(topic: str, flow: str = "C->B", of: str = other) -> None:
        append_records(state.flow.target, {of: [encode_state(SyncDone("a", 1, "")), encode_state(Claim(topic, "id", flow))]})

    claim("x.t", state.flow.name, state.flow.state_topic)
    claim("x.u")
    with open_flow(state.flow) as opened:
        assert opened.claims(topics, ["x.t"]) == {"x.t": state.flow.name}
        assert state.read == 2
        for _ in range(2):
            assert opened.claims(topics, ["x.t", "x.u"]) == {"x.t": state.flow.name, "x.u": "C->B"}
            assert state.read == 4
        claim("x.v")
        opened.anew()
        assert opened.claims(topics, ["x.t", "x.v"]) == {"x.t": state.flow.name, "x.u": "C->B", "x.v": "C->B"}


def test_what_is_removed_is_not_known_any_more(state: _State) -> None:
    state.write("a", "b")
    assert state.times() == {"a": 1, "b": 1}
    state.remove("b")
    assert state.times() == {"a": 1}


@pytest.mark.parametrize("longer", [False, True], ids=["shorter", "longer"])
def test_another_topic_of_that_name_is_read_from_its_start(longer: bool, state: _State, topic_factory: TopicFactory) -> None:
    state.write("a", "b")
    assert state.times() == {"a": 1, "b": 1}
    delete_topics(state.cluster.client_settings(), state.flow.state_topic)
    topic_factory(state.cluster, name=state.flow.state_topic)
    assert state.times() == {}
    state.write("a", "b")
    assert state.times() == {"a": 1, "b": 1}
    delete_topics(state.cluster.client_settings(), state.flow.state_topic)
    topic_factory(state.cluster, name=state.flow.state_topic)
    state.write("c", *(["b", "d"] if longer else []))
    assert state.times() == ({"b": 1, "c": 1, "d": 1} if longer else {"c": 1})


def test_a_topic_whose_known_records_are_gone_is_read_from_its_start(state: _State) -> None:
    state.write("a", "b", "c")
    assert state.times() == {"a": 1, "b": 1, "c": 1}
    client = AdminClient(state.cluster.client_settings())
    for future in client.delete_records([TopicPartition(state.flow.state_topic, 0, 3)]).values():
        future.result(30)
    state.write("d")
    assert state.times() == {"d": 1}


def test_a_newer_ferry_is_noticed_while_its_transaction_is_open_and_nothing_else_of_it(state: _State) -> None:
    state.write("a")
    assert state.times() == {"a": 1}
    producer = Producer({**state.cluster.client_settings(), "transactional.id": state.flow.state_topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(state.flow.state_topic, b'{"version":99}', FLOW_KEY + b':"f"}')
    producer.produce(state.flow.state_topic, encode_state(SyncDone("b", 1, ""))[1], encode_state(SyncDone("b", 1, ""))[0])
    producer.flush(30)
    with pytest.raises(NewerFormat):
        state.syncs_done()
    assert state_of(state.flow, stable=False).syncs.keys() == {"a"}
    producer.abort_transaction(30)
    state.write("c")
    assert state_of(state.flow, stable=True).syncs.keys() == {"a", "c"}


@pytest.mark.parametrize("wanted", [None, [("t", 0)]])
def test_a_receipt_that_has_grown_is_decoded_once(wanted: list[tuple[str, int]] | None, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = lab.flow()
    lab.topic(lab.target, name=flow.ledger_topic)
    grown = [Receipt(ReceiptKind.COPIED, "t", 0, "s", "A.t", "r", 0, end) for end in range(10, 60, 10)]
    removed = Receipt(ReceiptKind.COPIED, "t", 0, "s", "A.t", "r", 100, 110)
    other = Receipt(ReceiptKind.COPIED, "u", 0, "s", "A.u", "r", 0, 10)
    written = [encode_receipt(receipt) for receipt in (*grown, removed, other)]
    append_records(flow.target, {flow.ledger_topic: [*written, (encode_receipt(removed)[0], None)]})
    decoded: list[bytes] = []

    def counting(key: bytes, value: bytes, where: str) -> Receipt:
        decoded.append(value)
        return decode_receipt(key, value, where)

    monkeypatch.setattr(reading, "decode_receipt", counting)
    assert read_receipts(flow, wanted) == [grown[-1], *([] if wanted else [other])]
    assert len(decoded) == (1 if wanted else 2)
