"""The course of events: one source, MirrorMaker 2 and Ferry beside each other, records all along, groups that commit at five moments.

MM2 runs while records come, but for one restart; Ferry runs now and then. Groups commit once each. Positions are translated at the end:
MM2 has had all the time that it uses, Ferry has not yet copied the last records. Then everything is copied and read.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic, ResourceType
from tests.drills.exactness.following import Follower, Reader
from tests.drills.exactness.places import Chooser, Group, Marks, Moment, deal
from tests.drills.exactness.replicators import (
    FERRY,
    MM2,
    SETTLING_SECONDS,
    Positions,
    ferry_flow,
    mm2_properties,
    read_checkpoints,
    run_ferry,
    wait_for_checkpoints,
    write_checkpoints,
)
from tests.opened import translated_groups
from tests.translation.histories import COMPACTED, SOME_DAY, Content, Histories, commit
from tools.kafka import RecordSeen, SandboxCluster
from tools.kafka.mirror_maker import MirrorMaker

from ferry.translation.translated import Translation

TOPICS = {"plain": 2, "transactional": 1, "compacted": 1, "empty": 1, "expired": 1, "gone": 1, "lossy": 1, "late": 1}
# Time-based retention would delete the records, which have old timestamps.
FOREVER = {"log.retention.ms": "-1"}
LIVE_ROUNDS = 5
ROUND_SECONDS = 1.0
# Enough for MM2 to see new groups and to emit for them.
NOTICE_SECONDS = 6.0
Place = tuple[str, int]


@dataclass(frozen=True)
class Ending:
    """What is there at the end, to be judged.

    `wanted`: by group, what it would have read next at the source. `translations`: by group, what Ferry says. `checkpoints`: by replicator,
    group, remote topic and partition, what stands in the checkpoints topic. `copies`: by replicator, remote topic and partition.
    `later_translations` and `later_checkpoints`: Ferry's after its last run; `ends`: where Ferry's remote partitions end then.
    """

    groups: list[Group]
    wanted: dict[str, list[Content]]
    translations: dict[str, Translation | None]
    checkpoints: dict[str, Positions]
    copies: dict[str, Mapping[Place, list[RecordSeen]]]
    later_translations: dict[str, Translation | None]
    later_checkpoints: Positions
    ends: dict[Place, int]


class Course:
    """One course over clusters of its own. A context manager; afterwards nothing runs."""

    def __init__(self, directory: Path, seed: int, count: int, say: Callable[[str], None]) -> None:
        self._directory, self._say = directory, say
        self._chance = random.Random(seed)
        self._dealt = deal(count, self._chance)
        self._running = ExitStack()
        self._groups: list[Group] = []
        self._marks = Marks()
        self._mirror: MirrorMaker

    def __enter__(self) -> Course:
        names = ("source", "mm2", "ferry")
        with ThreadPoolExecutor(len(names)) as pool:
            starting = [pool.submit(SandboxCluster.start, self._directory / name, name, properties=FOREVER) for name in names]
            for future in starting:
                if future.exception() is None:
                    self._running.enter_context(future.result())
        self.source, self.mm2_target, self.ferry_target = (future.result() for future in starting)
        self._histories = Histories(source=self.source, topics={name: name for name in TOPICS})
        self._chooser = Chooser(self._histories, self._marks, self._chance)
        path = self._directory / "ferry.properties"
        self._late = ferry_flow(path, self.source, self.ferry_target, ["late"], "latest")
        self._flow = ferry_flow(path, self.source, self.ferry_target, TOPICS, "earliest")
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def run(self) -> Ending:
        """Everything, from the first record to the last translation."""
        self._set_out()
        self._commit(Moment.BEFORE)
        run_ferry(self._late)
        run_ferry(self._flow)
        self._start_mirror()
        copies = self._running.enter_context(closing(Follower(self.mm2_target, self._remote_places(), self._check_mirror)))
        self._catch_up(copies)
        self._rounds(LIVE_ROUNDS)
        self._commit(Moment.LIVE)
        time.sleep(NOTICE_SECONDS)
        self._rounds(LIVE_ROUNDS - 2)
        self._catch_up(copies)
        self._backfill()
        self._stop_mirror()
        self._lose_records()
        self._commit(Moment.STOPPED)
        self._start_mirror()
        self._catch_up(copies)
        self._rounds(LIVE_ROUNDS)
        self._commit(Moment.AGAIN)
        run_ferry(self._flow)
        self._marks.run = self._ends()
        self._histories.fill("plain", 160, partitions=2)
        self._commit(Moment.LAST)
        return self._finish(copies)

    def _set_out(self) -> None:
        client = AdminClient(self.source.client_settings())
        wanted = [NewTopic(name, width, 1, config=COMPACTED if name == "compacted" else {}) for name, width in TOPICS.items()]
        for future in client.create_topics(wanted).values():
            future.result(30)
        self._histories.configure(ResourceType.BROKER, "1", "log.cleaner.backoff.ms", "100")
        for name, count in {"plain": 4000, "gone": 800, "lossy": 600, "late": 1500, "expired": 200}.items():
            self._histories.fill(name, count, partitions=TOPICS[name], **{"batch.num.messages": 50})
        self._histories.in_transactions("transactional", 45, 7)
        self._histories.in_transactions("transactional", 15, 60)
        for _ in range(25):  # holes all over the log
            self._histories.fill("compacted", 40)
            self._histories.fill("compacted", 60, keys=50)
        self._histories.compact("compacted", 2500)
        self._histories.expire("expired", 200)
        self._histories.look()
        left, end = len(self._histories.logs["compacted", 0].records), self._histories.logs["compacted", 0].end
        self._say(f"the source is filled; compaction has left {left} of {end} records")

    def _rounds(self, count: int) -> None:
        """Records into every topic, a few at a time."""
        for _ in range(count):
            began = time.monotonic()
            self._histories.fill("plain", 80, partitions=2)
            self._histories.in_transactions("transactional", 4, self._chance.randint(1, 30))
            for name in ("compacted", "late", "lossy"):
                self._histories.fill(name, 30)
            time.sleep(max(0.0, began + ROUND_SECONDS - time.monotonic()))

    def _backfill(self) -> None:
        """Ferry copies what came since, then what lay before its start in `late`; then `gone` expires at the source."""
        run_ferry(self._flow)
        run_ferry(self._late, since=SOME_DAY, until=SOME_DAY + timedelta(days=1))
        self._marks.backfilled = self._ends()["late", 0]
        self._histories.expire("gone", self._ends()["gone", 0])
        self._say(f"backfilled to {self._marks.backfilled}")

    def _lose_records(self) -> None:
        """While nobody copies, records come into every topic, and some of `lossy` are gone before anybody does."""
        self._marks.stopped = self._ends()
        self._histories.fill("lossy", 60)
        self._histories.expire("lossy", self._marks.stopped["lossy", 0] + 40)
        self._rounds(2)

    def _commit(self, moment: Moment) -> None:
        """The groups of this moment commit."""
        self._histories.look()
        with closing(Reader(self.source, "read_uncommitted")) as reader:
            seen = {offset for offset, _, _ in reader.read(("transactional", 0))}
        self._marks.in_transactions = sorted(seen)
        self._marks.markers = sorted(set(range(self._ends()["transactional", 0])) - seen)
        chosen = [self._chooser.group(number, kind, moment) for number, kind in self._dealt[moment]]
        commit(self._flow.source, {group.name: {group.place: group.offset} for group in chosen})
        self._groups += chosen
        if moment is not Moment.BEFORE:  # by then there are remote topics
            write_checkpoints(self._flow)
        self._say(f"{len(chosen)} groups commit {moment.value}")

    def _ends(self) -> dict[Place, int]:
        self._histories.look()
        return {place: log.end for place, log in self._histories.logs.items()}

    def _start_mirror(self) -> None:
        properties = mm2_properties(self.source, self.mm2_target, TOPICS)
        self._mirror = self._running.enter_context(MirrorMaker.start(properties, self._directory / "mm2.properties"))

    def _stop_mirror(self) -> None:
        wait_for_checkpoints(self.mm2_target, self._check_mirror, quiet=3.0)
        self._mirror.stop()
        self._say("MirrorMaker 2 is stopped")

    def _check_mirror(self) -> None:
        self._mirror.check()

    def _remote_places(self) -> list[Place]:
        return [(f"A.{topic}", partition) for topic, partition in self._histories.logs]

    def _catch_up(self, copies: Follower) -> None:
        """Until everything is at the target."""
        self._histories.look()
        counts = {(f"A.{topic}", partition): len(log.records) for (topic, partition), log in self._histories.logs.items()}
        copies.wait_for(counts, SETTLING_SECONDS)
        self._say(f"{sum(counts.values())} records are copied")

    def _finish(self, copies: Follower) -> Ending:
        translations = self._translations()
        self._catch_up(copies)
        wait_for_checkpoints(self.mm2_target, self._check_mirror)
        self._say("MirrorMaker 2 emits no more checkpoints")
        checkpoints = {FERRY: read_checkpoints(self.ferry_target), MM2: read_checkpoints(self.mm2_target)}
        self._stop_mirror()
        run_ferry(self._flow)
        write_checkpoints(self._flow)
        mine = self._running.enter_context(closing(Follower(self.ferry_target, self._remote_places(), lambda: None)))
        self._catch_up(mine)
        copies.drain()
        self._histories.look(copied=True)
        logs = self._histories.logs
        return Ending(
            self._groups,
            {group.name: logs[group.place].from_offset(group.offset) for group in self._groups},
            translations,
            checkpoints,
            {FERRY: mine.records, MM2: copies.records},
            self._translations(),
            read_checkpoints(self.ferry_target),
            self._remote_ends(),
        )

    def _translations(self) -> dict[str, Translation | None]:
        """What Ferry says of the groups' positions."""
        names = [group.name for group in self._groups]
        positions = translated_groups(self._flow, names).positions
        found = {entry.group: entry.translation for entry in positions if entry.upstream_offset is not None}
        return {name: found.get(name) for name in names}

    def _remote_ends(self) -> dict[Place, int]:
        with closing(Reader(self.ferry_target, "read_committed")) as reader:
            return {place: reader.end(place) for place in self._remote_places()}
