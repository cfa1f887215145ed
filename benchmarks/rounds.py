"""The rounds of one shape: the produce-only limit, Ferry and MM2 in an order that changes, and the limit again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ferry_side, mm2
from benchmarks.counting import count_records
from benchmarks.flow import Clusters, Flow
from benchmarks.measure import Job, Sample, measure
from benchmarks.progress import CopyFailed
from benchmarks.results import FERRY, FERRY_BESIDE, FERRY_FOLLOWS, MM2_DEFAULTS, MM2_TUNED, ShapeResult
from benchmarks.shapes import Shape
from benchmarks.sources import produce_limit, source_topics
from benchmarks.topics import Ends

# A broker's JVM doubles its speed over the first seconds of work.
WARM_SECONDS = 5.0


@dataclass(frozen=True)
class Plan:
    """How to measure: `copiers` by name, `directory` for configs and logs, `say` for progress lines.

    `beside` is the `ferry` of the copier FERRY_BESIDE.
    """

    clusters: Clusters
    directory: Path
    rounds: int
    copiers: tuple[str, ...]
    master: str
    say: Callable[[str], None]
    beside: Path = ferry_side.HERE


def run_shape(plan: Plan, shape: Shape) -> ShapeResult:
    """All rounds of one shape. A copier that fails is left out of that round and named in the result."""
    result = ShapeResult(shape)
    with source_topics(plan.clusters, shape) as topics:
        _warm(plan.clusters, shape, topics)
        _warm_by_copying(plan, shape, topics)
        for number in range(plan.rounds):
            plan.say(f"{shape.name}, round {number + 1}")
            _limit(plan, result)
            for copier in rotated(plan.copiers, number):
                _measure(plan, result, copier, topics)
            _limit(plan, result)
    return result


def rotated(copiers: tuple[str, ...], number: int) -> tuple[str, ...]:
    """The copiers of round `number` (from 0): each is first in turn, so that none always meets the warmer brokers."""
    at = number % len(copiers)
    return copiers[at:] + copiers[:at]


def _limit(plan: Plan, result: ShapeResult) -> None:
    result.limits.append(produce_limit(plan.clusters, result.shape))
    plan.say(f"  produce-only: {result.limits[-1]:,.0f} records/s")


def _measure(plan: Plan, result: ShapeResult, copier: str, topics: tuple[str, ...]) -> None:
    flow = Flow.fresh(plan.clusters, topics, result.shape.partitions)
    try:
        sample = measure(_job(plan, flow, copier, result.shape), result.shape.records)
    except CopyFailed as failure:
        result.failures.append(f"{copier}: {failure}")
        plan.say(f"  {copier}: FAILED: {failure}")
    else:
        result.add(copier, sample)
        plan.say(f"  {copier}: {_line(sample, result.shape)}")
    finally:
        flow.remove()


def _job(plan: Plan, flow: Flow, copier: str, shape: Shape) -> Job:
    if copier in {FERRY, FERRY_BESIDE, FERRY_FOLLOWS}:
        ferry = plan.beside if copier == FERRY_BESIDE else ferry_side.HERE
        return ferry_side.job(flow, plan.directory, plan.master, follows=copier == FERRY_FOLLOWS, ferry=ferry)
    return mm2.job(flow, shape.codec, plan.directory, tuned={MM2_TUNED: True, MM2_DEFAULTS: False}[copier])


def _warm(clusters: Clusters, shape: Shape, topics: tuple[str, ...]) -> None:
    """Append and read before anything counts: the brokers' code is compiled, and the source's pages are in memory for all."""
    until = time.monotonic() + WARM_SECONDS
    while time.monotonic() < until:
        produce_limit(clusters, shape)
    with Ends(clusters.source, [(topic, number) for topic in topics for number in range(shape.partitions)]) as ends:
        count_records(clusters.source, ends.read())


def _warm_by_copying(plan: Plan, shape: Shape, topics: tuple[str, ...]) -> None:
    """One round of each that does not count, but for MM2's defaults, which do nothing that tuned MM2 does not: transactions and fetches are
    other code in the brokers than plain appends."""
    for copier in plan.copiers:
        if copier != MM2_DEFAULTS:
            flow = Flow.fresh(plan.clusters, topics, shape.partitions)
            try:
                sample = measure(_job(plan, flow, copier, shape), shape.records)
                plan.say(f"  warming up, {copier}: {_line(sample, shape)}")
            except CopyFailed as failure:
                plan.say(f"  warming up, {copier}: FAILED: {failure}")
            finally:
                flow.remove()


def _line(sample: Sample, shape: Shape) -> str:
    per_gigabyte = sample.cpu_seconds / shape.gigabytes
    text = f"{sample.records_per_second:,.0f} records/s, caught up after {sample.caught_up_seconds:.1f} s, {per_gigabyte:.1f} CPU s/GB"
    worker = f", Python worker {sample.worker_peak_mib:.0f} MiB" if sample.worker_peak_mib else ""
    return f"{text}, {sample.peak_mib:.0f} MiB{worker}"
