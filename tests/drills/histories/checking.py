"""The checks over a recorded history. Pure; every anomaly is found by looking at all sends and all polls.

A write counts as lost when something behind it in its source partition was seen on the target and it was not; as unseen when nothing
behind it was seen, but its partition should be complete. Records of unknown outcome may be seen or not, at most once, and those of one
transaction all or none. Readers are read_committed and start at the beginning of each partition. What the source's own log holds more than
once may be seen as often; only the order of such a record is not judged, as nobody can say which of them its producer meant. What that
log shows as committed must be copied, whatever the producer was told, and nothing else can be: a broker that is killed around EndTxn may
forget the markers of an abort or of a commit, and end those records with the producer's next transaction.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from tests.drills.histories.anomalies import Anomaly, Kind
from tests.drills.histories.model import History, Outcome, Place, RecordId, Send
from tests.drills.histories.target_log import TargetLog, put_together, read_in_order

Logs = Mapping[Place, TargetLog]
Sends = Mapping[RecordId, Send]


def check(history: History) -> list[Anomaly]:
    """Everything that is wrong, by kind and partition."""
    logs, found = put_together(history.polls)
    sends = {send.id: send for send in history.sends}
    assert len(sends) == len(history.sends), "two sends have one id"
    found += read_in_order(history.polls, logs, history.compacted)
    found += _records(history, sends, logs)
    found += _order(history, sends, logs)
    found += _producer_order(history, logs)
    found += _missing(history, sends, logs)
    found += _torn(history, logs)
    return sorted(found, key=lambda anomaly: (anomaly.kind, anomaly.topic, anomaly.partition))


def _records(history: History, sends: Sends, logs: Logs) -> Iterator[Anomaly]:
    """Each record by itself: who sent it, where to, whether it should be there, and how often it is."""
    for place, log in logs.items():
        first, times = log.first_offsets(), Counter[RecordId]()
        for seen in log.in_order():
            if seen.id is not None:
                times[seen.id] += 1
            if not seen.intact:
                yield Anomaly(Kind.ALTERED, *place, f"offset {seen.offset} holds {seen.id} with another content")
            elif seen.id is None or (send := sends.get(seen.id)) is None:
                yield Anomaly(Kind.NEVER_SENT, *place, f"offset {seen.offset} holds {seen.id}")
            elif not place == send.place == seen.sent_to:
                yield Anomaly(Kind.MISPLACED, *place, f"offset {seen.offset} holds {seen.id}, which was sent to {send.place}")
            elif times[seen.id] > max(1, history.source_times.get(seen.id, 1)):
                yield Anomaly(Kind.DUPLICATE, *place, f"{seen.id} stands at {first[seen.id]} and at {seen.offset}")
            elif history.outcome(send) is Outcome.FAILED and seen.id not in history.source_times:
                yield Anomaly(Kind.ABORTED, *place, f"offset {seen.offset} holds {seen.id} of transaction {send.transaction}")


def _order(history: History, sends: Sends, logs: Logs) -> Iterator[Anomaly]:
    """The first time that each record is seen, in order of target offsets, source offsets must increase."""
    for place, log in logs.items():
        highest, holder = -1, None
        for record, at in log.first_offsets().items():
            send = sends.get(record)
            if send is None or send.offset is None or send.place != place or history.source_times.get(record, 1) > 1:
                continue
            if send.offset < highest:
                text = f"{record} of source offset {send.offset} stands at {at}, behind {holder} of source offset {highest}"
                yield Anomaly(Kind.ORDER, *place, text)
            else:
                highest, holder = send.offset, record


def _producer_order(history: History, logs: Logs) -> Iterator[Anomaly]:
    """A producer's records in a partition stand in the order in which it sent them, also those without an acknowledged offset."""
    for place, log in logs.items():
        last: dict[int, int] = {}
        for (producer, sequence), at in log.first_offsets().items():
            if history.source_times.get((producer, sequence), 1) > 1:
                continue
            if sequence < last.get(producer, -1):
                text = f"{(producer, sequence)} stands at {at}, behind {(producer, last[producer])}"
                yield Anomaly(Kind.PRODUCER_ORDER, *place, text)
            last[producer] = max(sequence, last.get(producer, -1))


def _missing(history: History, sends: Sends, logs: Logs) -> Iterator[Anomaly]:
    """Acknowledged and committed, and never seen."""
    seen = {place: log.first_offsets() for place, log in logs.items()}
    highest = {
        place: max((send.offset for record in found if (send := sends.get(record)) and send.offset is not None), default=-1)
        for place, found in seen.items()
    }
    newest, lost_before = _newest_of_keys(history, seen), lost_at_source(history)
    for send in history.sends:
        place = send.place
        if send.offset is None or send.id in lost_before or send.id in seen.get(place, {}) or history.outcome(send) is not Outcome.OK:
            continue
        if place[0] in history.compacted and newest.get((place, send.key), -1) > send.offset:
            continue
        if send.offset < highest.get(place, -1):
            yield Anomaly(Kind.LOST, *place, f"{send.id} of source offset {send.offset}, transaction {send.transaction}")
        elif send.offset < history.complete.get(place, 0):
            yield Anomaly(Kind.UNSEEN, *place, f"{send.id} of source offset {send.offset}, transaction {send.transaction}")


def _newest_of_keys(history: History, seen: Mapping[Place, Mapping[RecordId, int]]) -> dict[tuple[Place, bytes | None], int]:
    """In compacted topics, the highest source offset seen of each key."""
    newest: dict[tuple[Place, bytes | None], int] = {}
    for send in history.sends:
        if send.place[0] in history.compacted and send.offset is not None and send.id in seen.get(send.place, {}):
            where = (send.place, send.key)
            newest[where] = max(send.offset, newest.get(where, -1))
    return newest


def revived_at_source(history: History) -> int:
    """Records that were refused or aborted, and that the source's own log shows as committed."""
    return sum(send.id in history.source_times and history.outcome(send) is Outcome.FAILED for send in history.sends)


def lost_at_source(history: History) -> frozenset[RecordId]:
    """Records that were acknowledged and committed, and that the source's own log does not show, although it shows later ones.

    Without those of compacted topics, and of topics that are gone.
    """
    shown: dict[Place, int] = {}
    for send in history.sends:
        if send.offset is not None and send.id in history.source_times:
            shown[send.place] = max(send.offset, shown.get(send.place, -1))
    return frozenset(
        send.id
        for send in history.sends
        if send.offset is not None
        and send.id not in history.source_times
        and send.place[0] not in history.compacted
        and send.offset < history.complete.get(send.place, 0)
        and send.offset < shown.get(send.place, -1)
        and history.outcome(send) is Outcome.OK
    )


def torn_at_source(history: History) -> list[str]:
    """Transactions of unknown outcome of which the source's own log holds only a part."""
    if not history.source_times:
        return []
    return [
        name
        for name, sent in _unknown(history).items()
        if len({send.id in history.source_times for send in sent}) > 1  # some are there and some are not
    ]


def _torn(history: History, logs: Logs) -> Iterator[Anomaly]:
    """Transactions of unknown outcome whose acknowledged records were copied in part, where everything should be copied.

    A committed transaction that is copied in part shows as lost or unseen writes, an aborted one as aborted reads. Of one that the source
    tore, the same part must be there.
    """
    seen = {place: log.first_offsets() for place, log in logs.items()}
    torn = set(torn_at_source(history))
    for name, sent in _unknown(history).items():
        wanted = [send for send in sent if name not in torn or send.id in history.source_times]
        missing = [send for send in wanted if send.id not in seen.get(send.place, {})]
        others = [send for send in sent if send not in wanted and send.id in seen.get(send.place, {})]
        if others or (missing and (name in torn or len(missing) < len(wanted))):
            place = (others or missing)[0].place
            yield Anomaly(
                Kind.TORN, *place, f"{len(missing)} of {len(wanted)} records of {name} are not there, and {len(others)} others are"
            )


def _unknown(history: History) -> dict[str, list[Send]]:
    """Acknowledged records of each transaction of unknown outcome, where all was copied and nothing compacted."""
    parts: defaultdict[str, list[Send]] = defaultdict(list)
    for send in history.sends:
        name = send.transaction
        if name is None or name in history.torn_at_source or send.place[0] in history.compacted:
            continue
        whole = send.offset is not None and send.offset < history.complete.get(send.place, 0)
        if whole and history.outcome(send) is Outcome.UNKNOWN:
            parts[name].append(send)
    return dict(parts)
