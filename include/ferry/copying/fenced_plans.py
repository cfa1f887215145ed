"""Plans of a try that holds the flow, and the failures that they name.

A plan may be made again while lanes copy: for lanes that were lost, and for new partitions. Then it replaces the failures that an older
plan named. But what a lane of a run that follows has stopped may fail in the next lane again: it counts as failed until some is copied.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ferry.clusters.net.partitions import TopicPartition, grouped
from ferry.copying.fencing import RunLease
from ferry.copying.partition_plan import PartitionFacts, PartitionPlan, plan_partitions, stopped_without_topic
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import FlowSnapshot, rules_of, take_snapshot
from ferry.errors import SourceMissing
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import PartitionFailure, Skipped
from ferry.ledger.state import Start, encode_state
from ferry.syncs.topics import lasting, plan_topics, without_refused
from ferry.wire.schema_ids import SchemaId

Decide = Callable[[FlowSnapshot], Iterable[PartitionPlan]]


class FencedPlans:
    """`failures`: by source partition (-1: of a whole topic; without a topic: of the run). `skipped`: what the newest plan leaves out."""

    def __init__(self, opened: OpenFlow, request: RunRequest) -> None:
        self._opened, self._flow, self._request = opened, opened.flow, request
        self.failures: dict[tuple[str, int], PartitionFailure] = {}
        self.skipped: tuple[Skipped, ...] = ()
        self.schema_ids: Mapping[SchemaId, SchemaId] | None = None  # as of LaneTask, when the newest plan was made
        self._stopped: set[TopicPartition] = set()

    def decide(self, seen: FlowSnapshot) -> list[PartitionPlan]:
        return plan_partitions(seen.facts, rules_of(self._flow, self._request))

    def plan(self, lease: RunLease, decide: Decide, **look: Any) -> tuple[FlowSnapshot, list[PartitionPlan]]:
        """Take a snapshot (`look`: options of take_snapshot), and plan. Failures are noted.

        Superseded if there are some and a newer run has taken over: it may have changed what looks like a failure here.
        """
        seen = take_snapshot(self._opened, self._request, stable=True, **look)
        plans = self._without_topic(decide(seen), seen)
        self.skipped = seen.skipped
        if self._flow.rewriting is not None:
            self.schema_ids = seen.state.new_ids(self._flow.schemas.contexts[0])
        if seen.begins:
            starts = starts_of(seen.facts, seen.state.starts)[: -1 if self._request.topics else None]
            lease.write({TopicPartition(self._flow.state_topic, 0): [encode_state(start) for start in starts]})
        planned = [plan.failure for plan in plans if plan.failure is not None]
        for plan in plans:  # an older plan may have named failures
            if plan.facts.key not in self._stopped:
                self.failures.pop(plan.facts.key, None)
            self.failures.pop((plan.facts.topic, -1), None)
        if planned:
            lease.confirm()
        self.failures.update(((failure.topic, failure.partition), failure) for failure in (*planned, *seen.unavailable, *seen.denied))
        return seen, plans

    def _without_topic(self, plans: Iterable[PartitionPlan], seen: FlowSnapshot) -> list[PartitionPlan]:
        """The plans, where partitions fail whose remote topic was not created. The target is asked for the reason."""
        found = list(plans)
        missing = {
            (plan.facts.topic, plan.facts.remote_topic) for plan in found if plan.failure is None and plan.facts.remote_topic_id is None
        }
        if not missing:
            return found
        topics = plan_topics(self._opened, sorted(missing), seen.source_topics, seen.target_topics)
        nothing = dict.fromkeys((topic for topic, _ in missing), "it was not created in time; run again")
        return stopped_without_topic(found, nothing | lasting(without_refused(self._opened, topics)[1]))

    def name_missing(self, keys: Iterable[TopicPartition], plans: Iterable[PartitionPlan]) -> None:
        """Fail those of these partitions that the clusters no longer show: the report would not name them otherwise.

        If a failure names their topic (partition -1), that is reason enough.
        """
        named = {plan.facts.key for plan in plans} | self.failures.keys()
        for key in keys:
            if not named & {key, (key.topic, -1)}:
                self.fail(*key, SourceMissing.__name__, "the source no longer had it when its lane was planned again")

    def stop(self, key: TopicPartition, error: str, problem: str) -> None:
        """A lane has stopped the partition."""
        self.fail(*key, error, problem)
        if self._request.follow_until is not None:
            self._stopped.add(key)

    def forget(self, key: TopicPartition) -> None:
        """A lane has copied some of the partition since it failed."""
        self.failures.pop(key, None)
        self._stopped.discard(key)

    def fail(self, topic: str, partition: int, error: str, problem: str) -> None:
        self.failures[topic, partition] = PartitionFailure(topic, partition, error, problem)


def starts_of(facts: Iterable[PartitionFacts], known: Mapping[str, Start]) -> list[Start]:
    """Where the first run begins each topic that is not `known`; last, the Start that says that the first run has decided this (pure)."""
    sources = {start.topic: start.topic_id for start in known.values()}
    new = (entry for entry in facts if sources.get(entry.topic) != entry.topic_ids.source)
    found = grouped(((entry.topic, entry.topic_ids.source), (entry.partition, -1 if entry.head else entry.start)) for entry in new)
    offsets = {topic: dict(begun) for topic, begun in found.items()}
    starts = (Start(*topic, tuple(begun.get(number, -1) for number in range(max(begun) + 1))) for topic, begun in offsets.items())
    return [*starts, Start()]
