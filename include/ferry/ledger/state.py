"""The state topic: heads, flow record, claims, acknowledged losses, when each sync was last done, which ACLs Ferry created, and failovers.

It is one compacted partition of small JSON records; the newest of each key counts. Heads are written in the lane transactions, the flow
record and claims under the run's transactional id. So every record that decides about data has one fenced writer at a time. A failover
writes its records under an id of its own.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from ferry.clusters.acl_binding import AclBinding
from ferry.errors import UnreadableRecord
from ferry.ledger.formats import FORMAT_VERSION, require_version
from ferry.ledger.loss_index import LossIndex, read_index
from ferry.ledger.recovery_entries import (
    KINDS,
    RECOVERY_VERSION,
    CutEnds,
    GroupTaken,
    RecoveryEntry,
    RecoveryRecord,
    read_recovery_fields,
    recovery_fields,
)
from ferry.ledger.topic_ids import TopicIds
from ferry.wire.documents import number, read_document, text

PartitionKey = tuple[str, int]  # source topic, partition


@dataclass(frozen=True)
class Head:
    """The position of a source partition: the next upstream offset to copy, and the ids of both topics and of the ledger.

    `series`: as of Receipt.series. `record_bytes`: average size of the records that were copied last (0: not known).
    """

    topic: str
    partition: int
    position: int
    source_topic_id: str
    remote_topic: str
    remote_topic_id: str
    ledger_topic_id: str = ""
    source_epoch: int = -1
    run_id: str = ""
    series: str = ""
    record_bytes: int = 0

    @property
    def topic_ids(self) -> TopicIds:
        """Of both topics when the position was written."""
        return TopicIds(self.source_topic_id, self.remote_topic_id)


@dataclass(frozen=True)
class FlowRecord:
    """What a flow has used so far. `lanes`: every lane id below it may have an open transaction of an older run.

    `tidied`: how many records the ledger had ever held at its last compaction; `receipts`: how many receipts it held then. `exactly_once`:
    whether the last run copied so; the flow in the other direction relies on it. `losses`: where the ledger has losses, as of that run.
    """

    flow: str
    lanes: int
    tidied: int = 0
    exactly_once: bool = True
    receipts: int = 0
    losses: LossIndex | None = None


@dataclass(frozen=True)
class Claim:
    """`flow` writes to `remote_topic`; no other flow may."""

    remote_topic: str
    remote_topic_id: str
    flow: str


@dataclass(frozen=True)
class LossAcknowledged:
    """An operator has seen the loss that starts at `upstream_start`. `topic`: only on clusters without topic ids."""

    source_topic_id: str
    partition: int
    upstream_start: int
    topic: str = ""


@dataclass(frozen=True)
class SyncDone:
    """A sync was last done at `finished` (ms)."""

    sync: str
    finished: int
    run_id: str = ""


@dataclass(frozen=True)
class OwnedAcl:
    """An ACL of the target that Ferry created, because the source has (or last had) the ACLs `sources`."""

    binding: AclBinding
    sources: tuple[AclBinding, ...] = ()


# How the keys of some records begin.
FLOW_KEY = b'{"flow"'
CLAIM_KEY = b'{"claim"'
HEAD_KEY = b'{"head"'
SYNC_KEY = b'{"sync"'

StateEntry = Head | FlowRecord | Claim | LossAcknowledged | SyncDone | OwnedAcl | RecoveryEntry


@dataclass(frozen=True)
class FlowState:
    """The state topic of a flow, read."""

    heads: dict[PartitionKey, Head] = field(default_factory=dict)
    flow: FlowRecord | None = None
    claims: dict[str, Claim] = field(default_factory=dict)
    acknowledged: frozenset[LossAcknowledged] = frozenset()
    syncs: dict[str, SyncDone] = field(default_factory=dict)
    acls: dict[AclBinding, OwnedAcl] = field(default_factory=dict)
    recovery: RecoveryRecord | None = None
    taken: dict[str, GroupTaken] = field(default_factory=dict)
    cut: dict[str, CutEnds] = field(default_factory=dict)


def state_key(entry: StateEntry) -> bytes:
    """The key of a state record, for the tombstone that removes it."""
    return encode_state(entry)[0]


def encode_state(entry: StateEntry) -> tuple[bytes, bytes]:
    """Key and value of a state record."""
    key: dict[str, object]
    value: dict[str, object]
    if isinstance(entry, RecoveryEntry):
        key, value = recovery_fields(entry)
        return _compact(key), _compact({"version": RECOVERY_VERSION, **value})
    match entry:
        case Head():
            key = {"head": [entry.topic, entry.partition]}
            value = {
                "position": entry.position,
                "source_id": entry.source_topic_id,
                "remote_topic": entry.remote_topic,
                "remote_id": entry.remote_topic_id,
                "ledger_id": entry.ledger_topic_id,
                "source_epoch": entry.source_epoch,
                "run": entry.run_id,
                **({"series": entry.series} if entry.series else {}),
                **({"record_bytes": entry.record_bytes} if entry.record_bytes else {}),
            }
        case FlowRecord():
            key = {"flow": entry.flow}
            value = {"lanes": entry.lanes, "tidied": entry.tidied, "exactly_once": entry.exactly_once}
            value |= {"receipts": entry.receipts} if entry.receipts else {}
            value |= {"losses": entry.losses.document()} if entry.losses is not None else {}
        case Claim():
            key, value = {"claim": entry.remote_topic}, {"flow": entry.flow, "remote_id": entry.remote_topic_id}
        case SyncDone():
            key, value = {"sync": entry.sync}, {"finished": entry.finished, "run": entry.run_id}
        case OwnedAcl():
            key, value = {"acl": entry.binding.as_list()}, {"sources": [source.as_list() for source in entry.sources]}
        case LossAcknowledged():
            key, value = {"ack": [entry.source_topic_id, entry.partition, entry.upstream_start]}, {}
            key |= {"topic": entry.topic} if entry.topic else {}
    return _compact(key), _compact({"version": FORMAT_VERSION, **value})


def decode_state(key: bytes, value: bytes, where: str = "the state topic") -> StateEntry:
    """The inverse of `encode_state`; NewerFormat or UnreadableRecord for anything else. `where`: as of formats.place_of."""
    try:
        name, what = read_document(key), read_document(value)
        if not KINDS.isdisjoint(name):
            require_version(what, where, RECOVERY_VERSION)
            return read_recovery_fields(name, what)
        require_version(what, where)
        if "head" in name:
            topic, partition = name["head"]
            return Head(
                text(topic),
                number(partition),
                number(what["position"]),
                text(what["source_id"]),
                text(what["remote_topic"]),
                text(what["remote_id"]),
                text(what["ledger_id"]),
                number(what["source_epoch"]),
                text(what["run"]),
                text(what.get("series", "")),
                number(what.get("record_bytes", 0)),
            )
        if "flow" in name:
            exactly_once, receipts = bool(what.get("exactly_once", True)), number(what.get("receipts", 0))
            losses = read_index(what.get("losses"))
            return FlowRecord(text(name["flow"]), number(what["lanes"]), number(what["tidied"]), exactly_once, receipts, losses)
        if "claim" in name:
            return Claim(text(name["claim"]), text(what["remote_id"]), text(what["flow"]))
        if "sync" in name:
            return SyncDone(text(name["sync"]), number(what["finished"]), text(what["run"]))
        if "acl" in name:
            return OwnedAcl(AclBinding.from_list(name["acl"]), tuple(AclBinding.from_list(source) for source in what["sources"]))
        topic_id, partition, start = name["ack"]
        return LossAcknowledged(text(topic_id), number(partition), number(start), text(name.get("topic", "")))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise UnreadableRecord(f"{where}: record {key!r} is not readable: {problem}") from problem


def fold_state(records: Iterable[tuple[bytes, bytes | None]], where: str = "the state topic") -> FlowState:
    """The newest of every key; `records` in log order, a null value removes its key. Errors as of `decode_state`."""
    newest: dict[bytes, bytes | None] = dict(records)
    # Only the newest records are decoded, because the topic holds many versions of a head until it is compacted.
    entries = [decode_state(key, value, where) for key, value in newest.items() if value is not None]
    flows = [entry for entry in entries if isinstance(entry, FlowRecord)]
    return FlowState(
        heads={(entry.topic, entry.partition): entry for entry in entries if isinstance(entry, Head)},
        flow=flows[-1] if flows else None,
        claims={entry.remote_topic: entry for entry in entries if isinstance(entry, Claim)},
        acknowledged=frozenset(entry for entry in entries if isinstance(entry, LossAcknowledged)),
        syncs={entry.sync: entry for entry in entries if isinstance(entry, SyncDone)},
        acls={entry.binding: entry for entry in entries if isinstance(entry, OwnedAcl)},
        recovery=next((entry for entry in entries if isinstance(entry, RecoveryRecord)), None),
        taken={entry.group: entry for entry in entries if isinstance(entry, GroupTaken)},
        cut={entry.topic: entry for entry in entries if isinstance(entry, CutEnds)},
    )


def _compact(document: dict[str, object]) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
