"""Checks the ends that a run has from ListOffsets against what its fetches answer: some brokers name an end before the last records."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from ferry import clock
from ferry.clusters.logs.fetching import FetchPosition, fetched_partitions, stable_ends
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.leaders import Leaders
from ferry.copying.cursor import PartitionCursor
from ferry.errors import FerryError, PartitionUnavailable

# A cluster may take this long until ListOffsets names the end that a fetch has answered. With Kafka the next answer has it.
LAG_SECONDS, PAUSE_SECONDS = 3.0, 0.2


class PlannedEnds:
    def __init__(
        self, loop: EventLoop, connection: ClusterConnection, leaders: Leaders, cursors: Mapping[tuple[str, int], PartitionCursor]
    ) -> None:
        self._loop, self._connection, self._leaders, self._cursors = loop, connection, leaders, cursors
        self._right: set[tuple[str, int]] = set()

    def passed(self, asked: Iterable[FetchPosition], answer: Any) -> dict[tuple[str, int], int]:
        """Last stable offsets of a Fetch response that are behind the planned ends, for partitions whose end is not known to be right."""
        if self._right.issuperset(position[:2] for position in asked):
            return {}
        found = {part.asked[:2]: part.last_stable_offset for part in fetched_partitions(answer, asked, self._leaders)}
        segments = {key: self._cursors[key].segment for key in found.keys() - self._right}
        return {key: found[key] for key, segment in segments.items() if segment is not None and segment.end < found[key]}

    async def confirm(self, passed: dict[tuple[str, int], int], node: int) -> None:
        """Ask broker `node` again: an end is right if it grows with the log. Stop the partitions where it stays before the records."""
        begun = clock.monotonic()
        while True:
            led = {key: leader.epoch for key in passed if (leader := self._leaders.of(*key)).node == node}
            ends: Mapping[tuple[str, int], int] = {}
            with suppress(RequestNotSent, RequestLost, FerryError):  # the next fetch meets it too
                ends = await stable_ends(self._connection, node, led)
            self._right |= {key for key, end in ends.items() if end >= passed[key]}
            passed = {key: offset for key, offset in passed.items() if ends.get(key, offset) < offset}
            if not passed or clock.monotonic() - begun > LAG_SECONDS:
                break
            await self._loop.sleep(PAUSE_SECONDS)
        for key, offset in passed.items():
            what = f"its ListOffsets ends at offset {ends[key]:,}, its Fetch at offset {offset:,}: nobody can tell what is left to copy"
            self._cursors[key].stop(PartitionUnavailable, f"cluster {self._connection.alias} contradicts itself: {what}")
