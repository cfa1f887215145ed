"""State records survive their topic unchanged; the newest of a key counts; what is damaged or newer is refused by name."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.admin.acl_binding import AclBinding, AclPattern, AclResource
from ferry.clusters.net.partitions import TopicPartition
from ferry.errors import NewerFormat, UnreadableRecord
from ferry.ledger.formats import FORMAT_VERSION
from ferry.ledger.loss_index import IndexedShare, LossIndex
from ferry.ledger.state import (
    PLAIN_VERSION,
    START_VERSION,
    Claim,
    FlowRecord,
    Head,
    ImportMode,
    LevelsRead,
    LossAcknowledged,
    OwnedAcl,
    Start,
    StateEntry,
    SyncDone,
    Writer,
    decode_state,
    encode_state,
    fold_state,
)

pytestmark = pytest.mark.unit

NAMES, NUMBERS = st.text(max_size=8), st.integers(0, 2**62)
ACLS = st.builds(AclBinding, st.sampled_from(AclResource), NAMES, st.sampled_from(AclPattern), NAMES, NAMES, NAMES, NAMES)
OFFSETS = st.sets(st.integers(0, 2**62), max_size=4).map(lambda found: tuple(sorted(found)))
INDEXES = st.builds(
    LossIndex, st.uuids().map(str), NUMBERS, st.lists(st.builds(IndexedShare, NUMBERS, NUMBERS, NUMBERS, OFFSETS), max_size=3).map(tuple)
)
ENTRIES: st.SearchStrategy[StateEntry] = st.one_of(
    st.builds(Head, NAMES, st.integers(0, 9), NUMBERS, NAMES, NAMES, NAMES, NAMES, st.integers(-1, 99), NAMES, NAMES, NUMBERS),
    st.builds(FlowRecord, NAMES, st.integers(0, 500), NUMBERS, st.booleans(), NUMBERS, st.one_of(st.none(), INDEXES)),
    st.builds(FlowRecord, NAMES, st.integers(0, 500), tells_start=st.booleans()),
    st.builds(Start, NAMES, NAMES, st.lists(st.integers(-1, 2**62), max_size=3).map(tuple)),
    st.builds(Claim, NAMES, NAMES, NAMES),
    st.builds(LossAcknowledged, NAMES, st.integers(0, 9), NUMBERS, NAMES),
    st.builds(SyncDone, NAMES, NUMBERS, NAMES),
    st.builds(OwnedAcl, ACLS, st.lists(ACLS, max_size=2).map(tuple)),
    st.builds(ImportMode, NAMES, NAMES),
    st.builds(LevelsRead, NAMES),
)
HEAD = Head("t", 0, 5, "s", "A.t", "r", "l", 1, "run")


@given(ENTRIES)
def test_round_trip(entry: StateEntry) -> None:
    assert decode_state(*encode_state(entry)) == entry


@given(ENTRIES, ENTRIES)
def test_kinds_never_share_a_key(first: StateEntry, second: StateEntry) -> None:
    if type(first) is not type(second):
        assert encode_state(first)[0] != encode_state(second)[0]


@given(ENTRIES)
def test_a_newer_version_is_refused(entry: StateEntry) -> None:
    key, value = encode_state(entry)
    newer = json.dumps({**json.loads(value), "version": json.loads(value)["version"] + 1}).encode()
    with pytest.raises(UnreadableRecord, match="upgrade this one"):
        decode_state(key, newer)


@pytest.mark.parametrize("field", ["version", "position", "source_id", "remote_topic", "remote_id", "ledger_id", "source_epoch", "run"])
def test_a_head_that_lacks_something_is_refused(field: str) -> None:
    key, value = encode_state(HEAD)
    rest = {name: content for name, content in json.loads(value).items() if name != field}
    with pytest.raises(UnreadableRecord):
        decode_state(key, json.dumps(rest).encode())


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"{}", b'{"version":1}'), (b"", b""), (b'{"head":["t"]}', encode_state(HEAD)[1]), (b'{"ack":[1]}', b'{"version":1}'), (b"[]", b"[]")],
)
def test_what_is_no_state_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        decode_state(key, value)


def test_what_cannot_be_read_is_named_with_its_place() -> None:
    where = "cluster B: topic mm2-ferry-state.A"
    with pytest.raises(UnreadableRecord, match=rf"^{where}: record b'\{{\}}' is not readable"):
        decode_state(b"{}", b'{"version":1}', where)
    for value in (b"{}", b'{"version":1}'):
        with pytest.raises(UnreadableRecord, match=f"^{where}"):
            fold_state([(b"{}", value)], where)
    with pytest.raises(UnreadableRecord, match=r"^the state topic holds a record without"):
        fold_state([(b"{}", b"{}")])


def test_the_newest_counts_and_a_tombstone_removes() -> None:
    newer = Head("t", 0, 9, "s", "A.t", "r", "l", 1, "run-2")
    other = Head("t", 1, 3, "s", "A.t", "r", "l")
    claim, flow, seen = Claim("A.t", "r", "A->B"), FlowRecord("A->B", 8, 4), LossAcknowledged("s", 0, 7)
    records = [encode_state(entry) for entry in (HEAD, other, claim, flow, seen, newer)]
    state = fold_state([*records, (encode_state(other)[0], None), (b"never written", None)])
    assert state.heads == {("t", 0): newer}
    assert (state.claims, state.flow, state.acknowledged) == ({"A.t": claim}, flow, frozenset({seen}))


def test_every_kind_of_record_has_a_field_of_the_state() -> None:
    binding = AclBinding(next(iter(AclResource)), "t", next(iter(AclPattern)), "User:a", "*", "READ", "ALLOW")
    acl, sync = OwnedAcl(binding, (binding,)), SyncDone("topics", 7, "run")
    state = fold_state([encode_state(acl), encode_state(sync)])
    assert (state.acls, state.syncs) == ({binding: acl}, {"topics": sync})


def test_when_a_flow_has_begun() -> None:
    new, old, head = FlowRecord("A->B", 8, tells_start=True), FlowRecord("A->B", 8), encode_state(HEAD)
    for records, begun in (
        ((), False),
        ((encode_state(old),), False),  # killed before it had copied anything
        ((encode_state(old), head), True),
        ((head,), True),
        ((encode_state(new), head), False),  # of a seed, or of a run of one topic
        ((encode_state(new), encode_state(Start())), True),
    ):
        assert fold_state(records).begun is begun
    key, value = encode_state(Start("t", "id", (5, -1)))
    assert json.loads(value) == {"version": START_VERSION, "id": "id", "offsets": [5, -1]}
    places = [("t", 0, "id"), ("t", 1, "id"), ("t", 2, "id"), ("t", 0, "again"), ("u", 0, "id")]
    for more, other in (((), None), ((encode_state(Start()),), -1)):
        state = fold_state([(key, value), *more])
        found = [state.first_offset(TopicPartition(topic, number), known) for topic, number, known in places]
        assert found == [5, -1, -1, other, other]


def test_older_releases_refuse_what_a_flow_without_transactions_writes() -> None:
    """They cannot fence it. What it writes beside these records may be ignored."""
    writer, flow = Writer("ferry-A->B-run", 7), FlowRecord("A->B", 8, exactly_once=False)
    for entry in (writer, flow):
        key, value = encode_state(entry)
        assert json.loads(value)["version"] == PLAIN_VERSION
        assert decode_state(key, value) == entry
    assert json.loads(encode_state(replace(flow, exactly_once=True))[1])["version"] == FORMAT_VERSION
    key, value = encode_state(FlowRecord("A->B", 8))
    with pytest.raises(NewerFormat):
        decode_state(key, json.dumps({**json.loads(value), "version": PLAIN_VERSION}).encode())
    assert fold_state([encode_state(writer), (encode_state(writer)[0], None)]) == fold_state([])
    for end in (0, 7):
        flushed = replace(HEAD, remote_end=end)
        assert decode_state(*encode_state(flushed)) == flushed
    assert b"remote_end" not in encode_state(HEAD)[1]


def test_what_older_releases_did_not_write() -> None:
    key, value = encode_state(FlowRecord("A->B", 8))
    assert b"receipts" not in value
    tidied = FlowRecord("A->B", 8, 7, receipts=5)
    assert decode_state(*encode_state(tidied)) == tidied
    again = Head("t", 0, 5, "s", "A.t", "r", series="run-7")
    assert decode_state(*encode_state(again)) == again
    older = {name: content for name, content in json.loads(value).items() if name != "exactly_once"}
    assert decode_state(key, json.dumps(older).encode()) == FlowRecord("A->B", 8, exactly_once=True)
    assert b"series" not in encode_state(HEAD)[1]
    with pytest.raises(UnreadableRecord, match=r"the state topic: record b'\{\}' is not readable"):
        decode_state(b"{}", b'{"version":1}')


def test_the_same_record_has_the_same_bytes() -> None:
    """A tombstone must meet its record, whichever release wrote it."""
    assert encode_state(Claim("A.t", "r", "A->B")) == (b'{"claim":"A.t"}', b'{"flow":"A->B","remote_id":"r","version":1}')


def test_an_empty_topic_is_an_empty_state() -> None:
    state = fold_state([])
    assert (state.heads, state.claims, state.flow, state.acknowledged) == ({}, {}, None, frozenset())
