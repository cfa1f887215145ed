"""Records that are not on the other cluster yet, and their copy after producers have stopped.

Ferry counts the records that are left in each partition. If the source does not answer, it only knows when records were last copied. Ferry
measures that producers have stopped, and that nothing is left.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ferry import clock
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.errors import ClusterUnreachable, RecoveryStopped, TargetRecreated, count_of, offsets_of, some_of
from ferry.ledger.formats import place_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import RunReport
from ferry.ledger.state import HEAD_KEY, fold_state
from ferry.pipeline.run_plan import RunPlan, plan_run
from ferry.recovery.options import RecoveryOptions

Copy = Callable[[OpenFlow, RunRequest], RunReport]  # one run of a flow; its report
# The second run copies what arrived during the first. If records still arrive then, a producer has not stopped.
DRAIN_RUNS = 3


@dataclass(frozen=True)
class NotCopied:
    """Source offsets `[start, end)` of a partition that are not on the other cluster."""

    topic: str
    partition: int
    remote_topic: str
    start: int
    end: int | None  # None if the source does not answer
    offsets: int | None  # how many they are, without those that had come from the other cluster. None if the source does not answer
    reason: str = ""  # empty if the only reason is that no run has copied them yet


def not_copied(planned: RunPlan, flow: Flow) -> tuple[NotCopied, ...]:
    """The rest of each partition by the plan of a run of the flow (pure). Partitions that are copied completely are left out."""
    # Where names stay as they are, the remote partition has the same name, and its open transactions do not matter here.
    lags = (entry for entry in planned.last_stable_lags if entry.cluster == flow.source.alias)
    open_at = {(entry.topic, entry.partition): entry for entry in lags}
    found = []
    for plan in planned.partitions:
        facts = plan.facts
        held = open_at.get(facts.key)
        reason = "" if held is None else f"a transaction is open from {held.stable_end} on, and the log ends at {held.high_watermark}"
        position = plan.position
        if plan.failure is not None:
            # What was copied is gone with the remote topic.
            position = facts.log_start if plan.failure.error == TargetRecreated.__name__ else facts.position
            reason = f"{plan.failure.error}: {plan.failure.problem}"
        rest = plan.offsets if plan.failure is None else max(0, facts.end - position)
        if facts.topic not in planned.heartbeats and (rest or reason):
            found.append(NotCopied(facts.topic, facts.partition, facts.remote_topic, position, facts.end, rest, reason))
    return tuple(found)


def perhaps_not_copied(opened: OpenFlow) -> tuple[tuple[NotCopied, ...], int | None]:
    """The position of each partition, and when (ms) records were last copied; None: not known. For a source that does not answer."""
    flow = opened.flow
    records = list(opened.target.reader().read(flow.state_topic))
    heads = fold_state(((record.key, record.value) for record in records), place_of(flow.target, flow.state_topic)).heads
    is_heartbeats = flow.is_heartbeats
    copied = [head for _, head in sorted(heads.items()) if not is_heartbeats(head.topic)]
    rest = tuple(NotCopied(*head.key, head.remote_topic, head.position, None, None) for head in copied)
    # When a position last moved. Records of runs do not show it, because failed runs write them too.
    return rest, max((record.timestamp for record in records if record.key.startswith(HEAD_KEY)), default=None)


def refuse_active_producers(opened: OpenFlow, seconds: float) -> None:
    """RecoveryStopped when a log of the source grows within `seconds`: a producer that still runs writes then, or has nothing to write."""
    before = source_ends(opened)
    clock.sleep(seconds)
    moved = grown(before, source_ends(opened))
    if moved:
        named = some_of([f"{key.topic}-{key.partition}" for key in sorted(moved)])
        raise RecoveryStopped(
            f"records still arrive on {opened.source.alias}: {named} grew within {seconds:.0f} s; stop every producer there, "
            "end open transactions, then run this again"
        )


def grown(before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int]) -> list[TopicPartition]:
    """Partitions whose end has moved, and new partitions that hold records (pure)."""
    return [key for key, end in after.items() if before.get(key, 0) != end]


def source_ends(opened: OpenFlow) -> dict[TopicPartition, int]:
    """High watermarks of all topics that the flow copies, without heartbeats. ClusterUnreachable when one is not known."""
    flow, source = opened.flow, opened.source.admin
    is_heartbeats, topics = flow.is_heartbeats, source.topics()
    wanted = [topic for topic, _ in flow.topic_rules.select(topics).selected if not is_heartbeats(topic)]
    keys = [TopicPartition(topic, number) for topic in wanted for number in range(topics[topic].partitions)]
    ends, problems = source.end_offsets(keys, committed=False)
    for (topic, partition), problem in problems.items():
        raise ClusterUnreachable(f"cluster {flow.source.alias}: {topic}-{partition}: {problem}")
    return ends


def drain(opened: OpenFlow, options: RecoveryOptions, copy: Copy, say: Callable[[str], object]) -> int:
    """Copy until nothing is left, and say so; the number of records. RecoveryStopped with what failed, or is left after DRAIN_RUNS."""
    flow, records = opened.flow, 0
    for number in range(DRAIN_RUNS):
        report = copy(opened, RunRequest(flow.name, options.part(f"drain{number}")))
        opened.anew()
        records += report.records
        problems = report.problems()
        if problems:
            told = "; ".join(problem.named for problem in problems)
            raise RecoveryStopped(f"{flow.name} could not copy everything: {told}")
        if not left(opened, options.run_id):
            break
    else:
        refuse_rest(opened, options.run_id)
    say(f"{flow.name}: {count_of(records, 'record')} drained, nothing is left")
    return records


def refuse_rest(opened: OpenFlow, run_id: str) -> None:
    """RecoveryStopped, with what is not on the target, when something is left to copy."""
    flow, found = opened.flow, left(opened, run_id)
    if found:
        raise RecoveryStopped(f"{flow.name}: not everything is on {flow.target.alias}: {some_of(found, between='; ')}; run this again")


def left(opened: OpenFlow, run_id: str) -> list[str]:
    """What a run would still do, in words. Positions that only have to pass records of the other cluster count too."""
    opened.anew()
    planned = plan_run(opened, RunRequest(opened.flow.name, run_id))
    waiting = not_copied(planned, opened.flow)
    rest = [f"{entry.topic}-{entry.partition} {offsets_of(entry.start, entry.end)} {entry.reason}".strip() for entry in waiting]
    rest += [str(failure) for failure in planned.failed]
    rest += [
        f"{plan.facts.topic}-{plan.facts.partition}: position {plan.position} of {plan.facts.end}"
        for plan in planned.partitions
        if plan.failure is None and plan.segments and not plan.offsets and plan.facts.topic not in planned.heartbeats
    ]
    return rest
