"""Groups at many random positions of logs of every kind: what a consumer reads at the translated position is what it would have read next.

Each log is read once by librdkafka, with offsets, and suffixes are compared; at a sample of the positions real consumers are started.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
from confluent_kafka.admin import ResourceType
from tests.conftest import Lab
from tests.opened import translated_groups
from tests.translation.histories import COMPACTED, SOME_DAY, Histories, commit, contents, delete_before
from tools.kafka import RecordSeen, SandboxCluster, read_all
from tools.kafka.reading import partition_bounds, read_partition

from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.ledger.run_report import RunReport
from ferry.translation.translated import Inexact, TranslatedPosition

pytestmark = pytest.mark.brokers

GROUPS = 120
BACK_GROUPS = 40
SAMPLE = 24
# The ends of the logs, and beyond.
BEYOND = 12
RunFlow = Callable[..., RunReport]


@dataclass(kw_only=True)
class CopiedHistories(Histories):
    """The same with the flow that copies them, and where to."""

    flow: Flow
    target: SandboxCluster

    def copies(self) -> dict[tuple[str, int], list[RecordSeen]]:
        found = {}
        for topic in self.topics.values():
            partitions = read_all(self.target.bootstrap, f"{self.flow.source.alias}.{topic}")
            found.update({(topic, partition): records for partition, records in enumerate(partitions)})
        return found


@pytest.fixture
def histories(lab: Lab) -> Iterator[CopiedHistories]:
    widths = {"plain": 2, "transactional": 1, "compacted": 1, "empty": 1, "expired": 1, "gone": 1, "lossy": 1, "shrunk": 1, "late": 1}
    topics = {
        name: lab.topic(lab.source, partitions=width, config=COMPACTED if name == "compacted" else None) for name, width in widths.items()
    }
    early = lab.flow(f"A->B.topics = {','.join(topics.values())}")
    late = lab.flow(f"A->B.topics = {topics['late']}", "A->B.ferry.start = latest")
    made = CopiedHistories(source=lab.source, topics=topics, flow=early, target=lab.target)
    made.configure(ResourceType.BROKER, "1", "log.cleaner.backoff.ms", "100")
    for name in ("plain", "expired", "gone", "lossy", "shrunk", "late"):
        made.fill(name, 60, partitions=widths[name], **{"batch.num.messages": 11})
    made.in_transactions("transactional", 10)
    made.fill("compacted", 400, keys=40)
    made.compact("compacted", 400)
    made.expire("expired", 60)
    lab.run(late)
    lab.run(early)
    made.look()
    for name in ("plain", "compacted", "gone", "shrunk", "late"):
        made.fill(name, 40, partitions=widths[name])
    made.in_transactions("transactional", 10)
    made.fill("lossy", 40)
    made.expire("lossy", 80)
    made.look()
    lab.run(early)
    lab.run(late, since=SOME_DAY, until=SOME_DAY + timedelta(days=1))  # by now all of `late` is history: what lay before its start
    made.look(copied=True)
    made.expire("gone", 100)
    delete_before(lab.target, f"{early.source.alias}.{topics['shrunk']}", 47)
    for name in ("plain", "transactional"):  # not copied
        made.fill(name, 9, partitions=widths[name])
    made.look()
    yield made
    made.configure(ResourceType.BROKER, "1", "log.cleaner.backoff.ms", "15000")


def test_a_consumer_goes_on_exactly_where_it_was_in_both_directions(histories: CopiedHistories) -> None:
    check_forward(histories)
    check_back(histories)


def check_forward(histories: CopiedHistories) -> None:
    flow, logs, copies = histories.flow, histories.logs, histories.copies()
    chance = random.Random(20261121)
    named = {topic: name for name, topic in histories.topics.items()}
    places = [TopicPartition(*key) for key in sorted(logs)]

    def position(number: int, key: TopicPartition) -> int:
        log = logs[key]
        return (0, log.copied_to, log.end, log.end + 1)[number] if number < 4 else chance.randrange(log.end + BEYOND)

    groups = {f"{flow.source.alias}-{number}": {key: position(number, key) for key in places} for number in range(GROUPS)}
    commit(flow.source, groups)
    found = translated_groups(flow, groups)
    assert len(found.positions) == GROUPS * len(places)

    reasons: dict[str, Counter[Inexact | None]] = {name: Counter() for name in histories.topics}
    for entry in found.positions:
        key, translation = (entry.topic, entry.partition), entry.translation
        assert translation is not None, entry
        offset = groups[entry.group][TopicPartition(*key)]
        wanted = logs[key].from_offset(offset)
        ahead = contents(record for record in copies[key] if record.offset >= translation.image)
        on_target = {record.content for record in copies[key]}
        assert {content for content in wanted if content in on_target} <= set(ahead)
        assert translation.exact == (ahead == wanted and offset <= logs[key].copied_to), (named[entry.topic], entry)
        reasons[named[entry.topic]][translation.reason] += 1
    # Where nothing went wrong, all that was copied is exact.
    for name in ("plain", "transactional", "compacted", "empty", "expired", "gone", "lossy"):
        assert set(reasons[name]) == {None, Inexact.AHEAD}, name
    assert set(reasons["shrunk"]) == {None, Inexact.AHEAD, Inexact.TARGET_EXPIRED}
    assert set(reasons["late"]) == {None, Inexact.AHEAD, Inexact.BACKFILLED}
    assert sum(count[None] for count in reasons.values()) > 500
    _start_consumers(histories, chance.sample(found.positions, SAMPLE))


def _start_consumers(histories: CopiedHistories, sample: Iterable[TranslatedPosition]) -> None:
    """Real consumers at both positions; the source's only where its log still holds what was copied."""
    for entry in sample:
        key, translation = (entry.topic, entry.partition), entry.translation
        assert translation is not None
        assert entry.upstream_offset is not None
        _, end = partition_bounds(histories.target.bootstrap, entry.remote_topic)[entry.partition]
        read = contents(read_partition(histories.target.bootstrap, entry.remote_topic, entry.partition, (translation.image, end)))
        if translation.exact:
            assert read == histories.logs[key].from_offset(entry.upstream_offset)
        start, _ = partition_bounds(histories.source.bootstrap, entry.topic)[entry.partition]
        if start <= entry.upstream_offset and translation.exact:
            bounds = (entry.upstream_offset, histories.logs[key].copied_to)
            assert read == contents(read_partition(histories.source.bootstrap, entry.topic, entry.partition, bounds))


def check_back(histories: CopiedHistories) -> None:
    flow, copies = histories.flow, histories.copies()
    chance = random.Random(7)
    remote = {f"{flow.source.alias}.{topic}": topic for topic in histories.topics.values()}
    places = {
        TopicPartition(name, partition): bounds
        for name in remote
        for partition, bounds in partition_bounds(histories.target.bootstrap, name).items()
    }
    begins = {
        (topic, partition): bounds[0]
        for topic in remote.values()
        for partition, bounds in partition_bounds(histories.source.bootstrap, topic).items()
    }
    groups = {
        f"{flow.target.alias}-{number}": {key: chance.randint(*bounds) if number else bounds[1] for key, bounds in places.items()}
        for number in range(BACK_GROUPS)
    }
    commit(flow.target, groups)
    found = translated_groups(flow, groups, reverse=True)
    reasons: dict[str, Counter[Inexact | None]] = {topic: Counter() for topic in remote.values()}
    for entry in found.positions:
        translation, key = entry.translation, (remote[entry.topic], entry.partition)
        assert translation is not None
        assert entry.remote_topic == key[0]
        offset = groups[entry.group][TopicPartition(entry.topic, entry.partition)]
        wanted = contents(record for record in copies[key] if record.offset >= offset)
        ahead = histories.logs[key].from_offset(translation.image)
        reasons[key[0]][translation.reason] += 1
        assert translation.image >= begins[key]
        assert translation.exact == (ahead == wanted), entry
        gone = {content for at, content in histories.logs[key].records.items() if at < begins[key]}
        assert set(wanted) <= set(ahead) | gone
    topics = histories.topics
    for name in ("plain", "transactional", "compacted", "empty", "expired"):
        assert set(reasons[topics[name]]) == {None}, name
    assert set(reasons[topics["gone"]]) == {None, Inexact.TARGET_EXPIRED}
