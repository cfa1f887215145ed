"""Asks the source where the logs of partitions begin and end, and where a copy begins or ends by time."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from ferry import clock
from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.copying.request import RunRequest, epoch_milliseconds

# A new leader knows the log's end as soon as its replicas have fetched from it once.
LAG_SECONDS, LAG_PAUSE_SECONDS = 3.0, 0.2

Offsets = dict[TopicPartition, int]


class SourceOffsets(NamedTuple):
    """By partition; each has `starts`, `stable_ends` and `policy`, or one of `problems`."""

    starts: Mapping[TopicPartition, int]
    stable_ends: Mapping[TopicPartition, int]
    policy: Mapping[TopicPartition, int]  # where a partition without a head would begin
    until: Mapping[TopicPartition, int]  # a bound of the request, if it has it; so is `since`
    since: Mapping[TopicPartition, int]
    problems: Mapping[TopicPartition, str]
    at_rest: Collection[TopicPartition]  # partitions of which Ferry asked only for the end: it is their position


def read_source_offsets(  # noqa: PLR0917 - the request, the cluster, and the partitions
    flow: Flow,
    request: RunRequest,
    source: ClusterAdmin,
    first: Mapping[TopicPartition, int | None],
    headed: Collection[TopicPartition],
    positions: Mapping[TopicPartition, int],
    rest: Collection[TopicPartition],
) -> SourceOffsets:
    """The offsets of the partitions in `first`, which holds FlowState.first_offset of each.

    `headed`: partitions with a head, also of old topics. `positions`: of today's heads. `rest`: those of which Ferry asks for nothing more
    if the log ends there.
    """
    ends, problems = source.end_offsets(list(first))
    _await_lagging(source, ends, positions)
    at_rest = {key: ends[key] for key in first if key in rest and key in ends and ends[key] == positions.get(key)}
    starts, start_problems = source.earliest_offsets([key for key in first if key not in at_rest and key not in problems])
    problems |= start_problems
    usable = list(starts)
    # Since Kafka 4.0 a log can begin behind its last stable offset: DeleteRecords has removed the first records of an open transaction.
    ends |= {key: max(ends[key], start) for key, start in starts.items()}
    starts |= at_rest

    def at_time(moment_ms: int, keys: Iterable[TopicPartition]) -> Offsets:
        found, missing = source.offsets_for_time(keys, moment_ms)
        problems.update(missing)
        return {key: ends[key] if offset is None else offset for key, offset in found.items()}

    until = at_time(epoch_milliseconds(request.until), usable) if request.until else {}
    since = at_time(epoch_milliseconds(request.since), usable) if request.since and request.backfill else {}
    headless = {key: first[key] for key in usable if key not in headed}
    policy = starts | _first_offsets(flow, headless, starts, ends, at_time)
    return SourceOffsets(starts, ends, policy, until, since, problems, at_rest.keys())


def _first_offsets(
    flow: Flow,
    headless: Mapping[TopicPartition, int | None],
    starts: Offsets,
    ends: Offsets,
    at_time: Callable[[int, Iterable[TopicPartition]], Offsets],
) -> Offsets:
    """Where copies of partitions without a head begin, if not at the start of the log.

    That is where the flow or the topic began, but within today's log. If that is not known, the flow's start policy decides.
    """
    begun = {key: min(max(starts[key], offset), ends[key]) for key, offset in headless.items() if offset is not None}
    new = [key for key, offset in headless.items() if offset is None]
    if flow.start == "earliest":
        return begun
    return begun | ({key: ends[key] for key in new} if flow.start == "latest" else at_time(epoch_milliseconds(flow.start), new))


def _await_lagging(source: ClusterAdmin, ends: Offsets, positions: Mapping[TopicPartition, int]) -> None:
    """Ask again for LAG_SECONDS if a log seems to end before the position: a new leader may lag behind."""
    begun = clock.monotonic()
    while clock.monotonic() - begun < LAG_SECONDS:
        behind = [key for key, position in positions.items() if ends.get(key, position) < position]
        if not behind:
            return
        clock.sleep(LAG_PAUSE_SECONDS)
        ends.update(source.end_offsets(behind)[0])
