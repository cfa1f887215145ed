"""What is copied: the shapes of the source topics.

A shape fixes the size of a record, the codec, how many records one batch holds, and how many topics and partitions there are. How much is
copied is given in MB of record values before compression, so that shapes and codecs compare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

BATCHED_MEGABYTES = 400.0
# The comparison of CPU seconds needs a backlog in which the start of Spark and of MM2's JVM weigh little.
BACKLOG_MEGABYTES = 2_000.0
# `--quick`: every piece runs once; the numbers are no measurement.
QUICK_DIVISOR = 10


@dataclass(frozen=True)
class Shape:
    """`megabytes` (10^6 bytes) is the default amount of record values over all topics, before compression."""

    name: str
    title: str
    record_bytes: int
    codec: str
    records_per_batch: int
    megabytes: float
    topics: int = 1
    partitions: int = 2
    batched: bool = True

    @property
    def batches_per_partition(self) -> int:
        """Whole batches that come nearest to the amount, at least one."""
        batch_bytes = self.record_bytes * self.records_per_batch
        return max(1, round(self.megabytes * 1e6 / (batch_bytes * self.topics * self.partitions)))

    @property
    def records_per_partition(self) -> int:
        """Records in each partition of each topic."""
        return self.batches_per_partition * self.records_per_batch

    @property
    def records(self) -> int:
        """Records over all topics."""
        return self.records_per_partition * self.topics * self.partitions

    @property
    def gigabytes(self) -> float:
        """10^9 bytes of record values, before compression."""
        return self.records * self.record_bytes / 1e9

    def of_size(self, megabytes: float) -> Shape:
        """The same shape with another amount."""
        return replace(self, megabytes=megabytes)


SHAPES = (
    Shape("100b-lz4", "100 B, lz4, 1,100-record batches", 100, "lz4", 1_100, BATCHED_MEGABYTES),
    Shape("1kb-lz4", "1 KB, lz4, 110-record batches", 1_000, "lz4", 110, BATCHED_MEGABYTES),
    Shape("1kb-none", "1 KB, uncompressed, 110-record batches", 1_000, "none", 110, BATCHED_MEGABYTES),
    Shape("10kb-zstd", "10 KB, zstd, 11-record batches", 10_000, "zstd", 11, BATCHED_MEGABYTES),
    Shape("100b-ten", "100 B, uncompressed, ten-record batches", 100, "none", 10, 200.0, batched=False),
    Shape("100b-one", "100 B, uncompressed, one-record batches", 100, "none", 1, 50.0, batched=False),
    Shape("many-topics", "200 topics of 5 partitions, 100 B, lz4", 100, "lz4", 100, 20.0, topics=200, partitions=5, batched=False),
)
BACKLOG_SHAPES = tuple(shape.name for shape in SHAPES if shape.batched)


def choose(names: list[str], megabytes: float | None, *, quick: bool, backlog: bool) -> list[Shape]:
    """The shapes to run. ValueError names an unknown one."""
    known = {shape.name: shape for shape in SHAPES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no shape called {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [known[name] for name in names] or list(SHAPES)
    if backlog:
        chosen = [known[name] for name in names or BACKLOG_SHAPES]
        return [shape.of_size(megabytes or BACKLOG_MEGABYTES) for shape in chosen]
    if megabytes is not None:
        return [shape.of_size(megabytes) for shape in chosen]
    return [shape.of_size(shape.megabytes / QUICK_DIVISOR) for shape in chosen] if quick else chosen
