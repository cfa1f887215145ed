"""One verify: read the evidence, plan ranges, compare those that no earlier try has compared, report. Writes only results."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from ferry import clock
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.committed import Committed
from ferry.copying.progress import INTERVAL_SECONDS
from ferry.errors import PartitionUnavailable, count_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import time_now
from ferry.verify.comparison import PartitionEvidence, RangeResult, VerifyRange
from ferry.verify.evidence import read_evidence
from ferry.verify.range_runner import CompareRanges
from ferry.verify.request import VerifyRequest
from ferry.verify.results_topic import read_finished
from ferry.verify.undeleted import verified_keys
from ferry.verify.verify_plan import plan_partition
from ferry.verify.verify_report import VerifyReport, summed

# If a worker dies, another one compares its ranges; but a range that kills every worker must not do so forever.
TRIES = 3
WORKER_LOST = f"the worker that compared a part of it died {TRIES} times"

Compare = Callable[[Sequence[VerifyRange]], Iterable[RangeResult]]


def verify(opened: OpenFlow, request: VerifyRequest, compare: CompareRanges, say: Callable[[str], None]) -> VerifyReport:
    """Compare both sides. FerryError if nothing could be compared at all; other problems are in the report."""
    started, begun, cpu = time_now(), clock.monotonic(), clock.process_time()
    flow, evidence = opened.flow, read_evidence(opened, request)
    planned = [plan_partition(entry) for entry in evidence.partitions]
    not_covered = (*evidence.not_covered, *(entry for plan in planned for entry in plan.not_covered))
    ranges = [replace(wanted, digest=request.digest) for plan in planned for wanted in plan.ranges]
    finished = read_finished(opened, request.run_id) if ranges else {}
    results = {wanted.identity: finished[wanted.identity] for wanted in ranges if wanted.identity in finished}
    resumed = len(results)
    weight = sum(wanted.weight for wanted in ranges)
    what = f"{count_of(len(ranges), 'range')} of {count_of(len(evidence.partitions), 'partition')}"
    say(f"{flow.name}: verify {request.run_id} compares {what}, about {weight / 1e6:,.0f} MB")
    if resumed:
        say(f"an earlier try of {request.run_id} has compared {resumed} of them")
    elsewhere = _compare_rest(ranges, results, partial(compare, opened, request.run_id), say)
    keys = _keys_of_undeleted(opened, evidence.partitions, results.values())
    left = [wanted for wanted in ranges if wanted.identity not in results]
    lost = [RangeResult.of_problem(wanted.identity, wanted, PartitionUnavailable(*wanted.key, WORKER_LOST)) for wanted in left]
    here = clock.process_time() - cpu
    return VerifyReport(
        flow=flow.name,
        run_id=request.run_id,
        started=started,
        finished=time_now(),
        resumed=resumed,
        seconds=round(clock.monotonic() - begun, 3),
        cpu_seconds=round(here + elsewhere, 3),
        **summed([*results.values(), *keys, *lost], not_covered, evidence.failed),
    )


def _compare_rest(ranges: Iterable[VerifyRange], results: dict[str, RangeResult], compare: Compare, say: Callable[[str], None]) -> float:
    """Compare the ranges that have no result, and those of workers that died again. Returns the CPU seconds of the workers."""
    elsewhere = 0.0
    for attempt in range(TRIES):
        todo = [wanted for wanted in ranges if wanted.identity not in results]
        if not todo:
            break
        if attempt:
            say(f"no result of {count_of(len(todo), 'range')} yet: Ferry compares again")
        for result in _told(compare(todo), todo, say):
            results[result.key] = result
            elsewhere += result.cpu_seconds
    return elsewhere


def _keys_of_undeleted(opened: OpenFlow, partitions: Iterable[PartitionEvidence], results: Iterable[RangeResult]) -> list[RangeResult]:
    """What the keys say of compacted partitions that have more records on the target: the source may have deleted them."""
    with_more = {(result.topic, result.partition) for result in results if result.only_target}
    found = (verified_keys(opened, entry) for entry in partitions if entry.key in with_more and not entry.narrowed)
    return [result for result in found if result is not None]


def _told(results: Iterable[RangeResult], todo: Collection[VerifyRange], say: Callable[[str], None]) -> Iterator[RangeResult]:
    """The `results`. Meanwhile it says how far the comparison of `todo` is."""
    sizes, left = {wanted.identity: wanted.upstream[1] - wanted.upstream[0] for wanted in todo}, Counter[TopicPartition]()
    for wanted in todo:
        left[TopicPartition(*wanted.key)] += sizes[wanted.identity]
    compared, told_at = Committed(left), clock.monotonic()
    for result in results:
        compared.count(TopicPartition(result.topic, result.partition), sizes[result.key], result.bytes, clock.time())
        if clock.monotonic() - told_at > INTERVAL_SECONDS:
            say(compared.progress(clock.time()).text)
            told_at = clock.monotonic()
        yield result
