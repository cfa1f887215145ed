"""The state topic: heads, flow record, claims, acknowledged losses, when syncs were done, ACLs that Ferry created, schemas, failovers.

It is one compacted partition of small JSON records; the newest of each key counts. Heads are written in the lane transactions, the flow
record and claims under the run's transactional id. So every record that decides about data has one fenced writer at a time. A failover
writes its records under an id of its own. A flow without transactions has writers instead of transactional ids: this topic holds their
producer ids (copying/plain_coordinator.py).

If a release of Ferry ignored a failover, it would move groups back. If it did not know writers, it could not fence them. So the records
about failovers, and those of flows without transactions, have versions of their own, which an older Ferry refuses.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, NamedTuple

from ferry.clusters.admin.acl_binding import AclBinding
from ferry.clusters.net.partitions import TopicPartition
from ferry.errors import UnreadableRecord
from ferry.ledger.formats import FORMAT_VERSION, compact, require_version
from ferry.ledger.loss_index import LossIndex
from ferry.ledger.topic_ids import TopicIds
from ferry.wire.strict_json import read_as, read_document

RECOVERY_VERSION = 2
# The version of writers, and of the flow record of a flow that copies without transactions.
PLAIN_VERSION = 3
# An older Ferry would begin a topic that is newer than the flow at the topic's end.
START_VERSION = 4
# An older Ferry would leave subjects of the target's schema registry in the mode IMPORT.
SCHEMAS_VERSION = 5


@dataclass(frozen=True)
class Head:
    """The position of a source partition: the next upstream offset to copy, and the ids of both topics and of the ledger.

    The group's offset is written after a head without a transaction, and may be lower.
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
    series: str = ""  # the run whose seed set the position, as in Receipt
    record_bytes: int = 0  # average size of the records that were copied last (0: not known)
    # In a head that was written without a transaction: the end of the remote records that receipts explain. -1: it was written in one.
    remote_end: int = -1

    @property
    def key(self) -> TopicPartition:
        """The source partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def topic_ids(self) -> TopicIds:
        """The ids of both topics when the position was written."""
        return TopicIds(self.source_topic_id, self.remote_topic_id)


@dataclass(frozen=True)
class FlowRecord:
    """What a flow has used so far."""

    flow: str
    lanes: int  # every lane id below it may have an open transaction of an older run
    tidied: int = 0  # how many records the ledger had ever held at its last compaction
    exactly_once: bool = True  # whether the last run copied so. The flow in the other direction relies on it
    receipts: int = 0  # how many receipts the ledger held at its last compaction
    losses: LossIndex | None = None  # where the ledger had losses, by the last run
    tells_start: bool = False  # the flow's first run writes a Start without a topic


@dataclass(frozen=True)
class Start:
    """Where the first run begins to copy a source topic, by partition (-1: at the log's start). It is written before the first copy.

    A Start without a topic says that the flow's first run has decided this.
    """

    topic: str = ""
    topic_id: str = ""
    offsets: tuple[int, ...] = ()


@dataclass(frozen=True)
class Writer:
    """The producer id of the writer that holds a name. In flows with transactions the name is a transactional id."""

    writer: str
    producer_id: int


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


@dataclass(frozen=True)
class ImportMode:
    """A sync of schemas puts a subject of the target's registry into IMPORT. `mode`: the subject's own before; empty: it had none."""

    subject: str
    mode: str


@dataclass(frozen=True)
class LevelsRead:
    """The sync of schemas has compared the settings of subjects up to this one, and goes on behind it. `context`: always empty."""

    subject: str
    context: str = ""


@dataclass(frozen=True)
class NewId:
    """A schema with this id in a context of the source has another id in a context of the target (`target`). GUIDs: empty if not known."""

    context: str
    target_context: str
    id: int
    target: int
    guid: str = ""
    target_guid: str = ""


@dataclass(frozen=True)
class RecoveryRecord:
    """The stage of the flow in a recovery."""

    flow: str
    recovery: str  # the name of the failover or cut-over; its failback belongs to it
    phase: str  # the name of the current or last movement of groups
    stage: str  # a ferry.ledger.recovery_record.Stage
    step: str  # the last finished step; `at` (ms): when
    at: int
    since: int  # when groups began to move to the target, in ms
    run_id: str = ""
    confirmed_by: str = ""
    source_cluster: str = ""  # the source's cluster id, if it answered


@dataclass(frozen=True)
class GroupTaken:
    """A phase of a recovery is about to write the group, or has written it (`done`). From then on its consumers may move it."""

    group: str
    phase: str
    back: tuple[tuple[str, int, int], ...] = ()  # (topic, partition, offset before) of partitions that go back
    done: bool = False


@dataclass(frozen=True)
class CutEnds:
    """Where a topic of the target ended when the flow was failed over, by partition. The flow in the other direction begins there."""

    topic: str
    recovery: str
    ends: tuple[int, ...]
    topic_id: str = ""  # of the topic then; empty for clusters without topic ids. The ends hold only for a topic with this id


# How the keys of some records begin.
FLOW_KEY = b'{"flow"'
CLAIM_KEY = b'{"claim"'
WRITER_KEY = b'{"writer"'
HEAD_KEY = b'{"head"'
SYNC_KEY = b'{"sync"'
LOSS_KEY = b'{"ack"'
RECOVERY_KEYS = (b'{"cut"', b'{"recovery"', b'{"taken"')

RecoveryEntry = RecoveryRecord | GroupTaken | CutEnds
SchemaEntry = ImportMode | LevelsRead | NewId
StateEntry = Head | FlowRecord | Start | Writer | Claim | LossAcknowledged | SyncDone | OwnedAcl | SchemaEntry | RecoveryEntry


@dataclass(frozen=True)
class FlowState:
    """The content of a flow's state topic."""

    heads: dict[TopicPartition, Head] = field(default_factory=dict)
    flow: FlowRecord | None = None
    starts: dict[str, Start] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    acknowledged: frozenset[LossAcknowledged] = frozenset()
    syncs: dict[str, SyncDone] = field(default_factory=dict)
    acls: dict[AclBinding, OwnedAcl] = field(default_factory=dict)
    imports: dict[str, ImportMode] = field(default_factory=dict)
    levels_read: str = ""
    schema_ids: tuple[NewId, ...] = ()
    recovery: RecoveryRecord | None = None
    taken: dict[str, GroupTaken] = field(default_factory=dict)
    cut: dict[str, CutEnds] = field(default_factory=dict)

    def new_ids(self, contexts: tuple[str, str]) -> dict[int | str, int | str]:
        """The target's ids and GUIDs of schemas, by the source's. `contexts`: the source's, and the target's."""
        found = [entry for entry in self.schema_ids if (entry.context, entry.target_context) == contexts]
        ids: dict[int | str, int | str] = {entry.id: entry.target for entry in found}
        return ids | {entry.guid: entry.target_guid for entry in found if entry.guid and entry.target_guid}

    @property
    def begun(self) -> bool:
        """Whether the flow's first run has begun: ferry.start is only for that run. A seed counts only if it is of every partition."""
        return "" in self.starts or bool(self.heads and not (self.flow and self.flow.tells_start))

    def first_offset(self, key: TopicPartition, topic_id: str) -> int | None:
        """The offset where the first run begins to copy the partition (-1: at the log's start). None: this run is still to come."""
        found = self.starts.get(key.topic)
        if found is None or found.topic_id != topic_id:
            return -1 if self.begun else None
        return found.offsets[key.partition] if key.partition < len(found.offsets) else -1


class _Form(NamedTuple):
    """How one kind of record is written."""

    kind: type[Any]
    key: str  # the name in the record's key
    fields: tuple[str, ...]  # the fields in the key; several fields are a list there
    rare: tuple[str, ...] = ()  # fields that are written only if they do not have their usual value
    optional: tuple[str, ...] = ()  # fields that a record may lack, beside the rare ones
    version: int = FORMAT_VERSION  # of the format; of a flow record see `_version`


_FORMS = (
    _Form(Head, "head", ("topic", "partition"), rare=("series", "record_bytes", "remote_end")),
    _Form(FlowRecord, "flow", ("flow",), rare=("receipts", "losses", "tells_start"), optional=("exactly_once",)),
    _Form(Start, "start", ("topic",), version=START_VERSION),
    _Form(Writer, "writer", ("writer", "producer_id"), version=PLAIN_VERSION),
    _Form(Claim, "claim", ("remote_topic",)),
    _Form(SyncDone, "sync", ("sync",)),
    _Form(OwnedAcl, "acl", ("binding",)),
    _Form(ImportMode, "import", ("subject",), version=SCHEMAS_VERSION),
    _Form(LevelsRead, "levels", ("context",), version=SCHEMAS_VERSION),
    _Form(NewId, "schema", ("context", "target_context", "id"), rare=("guid", "target_guid"), version=SCHEMAS_VERSION),
    _Form(LossAcknowledged, "ack", ("source_topic_id", "partition", "upstream_start"), rare=("topic",)),
    _Form(RecoveryRecord, "recovery", ("flow",), optional=("run_id", "confirmed_by", "source_cluster"), version=RECOVERY_VERSION),
    _Form(GroupTaken, "taken", ("group",), version=RECOVERY_VERSION),
    _Form(CutEnds, "cut", ("topic",), optional=("topic_id",), version=RECOVERY_VERSION),
)
_BY_KIND, _BY_KEY = {form.kind: form for form in _FORMS}, {form.key: form for form in _FORMS}
_VALUES = {form.kind: tuple(known.name for known in fields(form.kind) if known.name not in form.fields) for form in _FORMS}
_USUAL = {(form.kind, known.name): known.default for form in _FORMS for known in fields(form.kind) if known.name in form.rare}
# The names of some fields in JSON.
_NAMES = {
    "source_topic_id": "source_id",
    "remote_topic_id": "remote_id",
    "ledger_topic_id": "ledger_id",
    "run_id": "run",
    "confirmed_by": "by",
    "source_cluster": "source",
    "topic_id": "id",
}


def _version(key: str, *, exactly_once: bool) -> int:
    """The version of a kind of record. `exactly_once`: the field of a flow record."""
    return PLAIN_VERSION if key == "flow" and not exactly_once else _BY_KEY[key].version if key in _BY_KEY else FORMAT_VERSION


def encode_state(entry: StateEntry) -> tuple[bytes, bytes]:
    """Key and value of a state record."""
    form = _BY_KIND[type(entry)]
    named = [getattr(entry, name) for name in form.fields]
    key = {form.key: named if len(named) > 1 else named[0]}
    value: dict[str, Any] = {"version": _version(form.key, exactly_once=getattr(entry, "exactly_once", True))}
    for name in _VALUES[form.kind]:
        content = getattr(entry, name)
        if name not in form.rare or content != _USUAL[form.kind, name]:
            # Acknowledged losses with and without a topic are different losses, so the topic is in the key.
            (key if form.kind is LossAcknowledged else value)[_NAMES.get(name, name)] = content
    return compact(key), compact(value)


def decode_state(key: bytes, value: bytes, where: str = "the state topic") -> StateEntry:
    """The inverse of `encode_state`; NewerFormat or UnreadableRecord for anything else. `where`: as of formats.place_of."""
    try:
        name, what = read_document(key), read_document(value)
        exactly_once = what.get("exactly_once") is not False
        require_version(what, where, max((_version(word, exactly_once=exactly_once) for word in name), default=FORMAT_VERSION))
        (word,) = _BY_KEY.keys() & name.keys()
        form = _BY_KEY[word]
        named = name[word] if len(form.fields) > 1 else [name[word]]
        in_key = zip((_NAMES.get(field, field) for field in form.fields), named, strict=True)
        entry: StateEntry = read_as(form.kind, {**name, **what, **dict(in_key)}, names=_NAMES, optional=form.rare + form.optional)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise UnreadableRecord(f"{where}: record {key!r} is not readable: {problem}") from problem
    return entry


# Entries of a flow's newest state. A command, and each sync of a run that follows, reads all of it again, and little has changed.
DECODED_KEPT = 1 << 15
_decoded = lru_cache(DECODED_KEPT)(decode_state)


def fold_state(records: Iterable[tuple[bytes, bytes | None]], where: str = "the state topic") -> FlowState:
    """The newest of every key; `records` in log order, a null value removes its key. Errors as of `decode_state`."""
    newest: dict[bytes, bytes | None] = dict(records)
    # Only the newest records are decoded, because the topic holds many versions of a head until it is compacted.
    found = defaultdict[type[Any], list[Any]](list)
    for key, value in newest.items():
        if value is not None:
            entry = _decoded(key, value, where)
            found[type(entry)].append(entry)
    return FlowState(
        heads={entry.key: entry for entry in found[Head]},
        flow=next(reversed(found[FlowRecord]), None),
        starts={entry.topic: entry for entry in found[Start]},
        claims={entry.remote_topic: entry for entry in found[Claim]},
        acknowledged=frozenset(found[LossAcknowledged]),
        syncs={entry.sync: entry for entry in found[SyncDone]},
        acls={entry.binding: entry for entry in found[OwnedAcl]},
        imports={entry.subject: entry for entry in found[ImportMode]},
        levels_read=next((entry.subject for entry in found[LevelsRead]), ""),
        schema_ids=tuple(found[NewId]),
        recovery=next(iter(found[RecoveryRecord]), None),
        taken={entry.group: entry for entry in found[GroupTaken]},
        cut={entry.topic: entry for entry in found[CutEnds]},
    )
