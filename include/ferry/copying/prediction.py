"""Where the batches in flight of a lane that follows will be in its remote partitions, so that receipts need not wait for the answers.

A receipt names target offsets, which the answer to a Produce gives. To wait for it costs a round trip for each commit. But the lane is the
only writer of its remote partitions, and each commit adds one marker. So after its first commit of a partition, the lane predicts where the
next batches will be. Their cursors take them for accepted there, and the lane writes receipts, heads and positions at once.

When all are answered, a cursor whose prediction was wrong takes them again, at the right offsets: somebody else wrote to the partition, or
a batch was halved. Its receipts are written once more in the same transaction, with the same keys. If a predicted batch is not accepted, or
if a receipt would get another key, the transaction is given up (OutcomeUnknown). After that nothing is predicted until the next commit.

Where topics keep their names nothing is predicted: the flow in the other direction takes every receipt for true, also a wrong one.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from ferry.clusters.groups.coordination import OutcomeUnknown
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.appender import Accepted
from ferry.copying.cursor import PartitionCursor
from ferry.wire.produce_batch import ProduceBatch

Placed = tuple[ProduceBatch, int]
Cursors = Mapping[TopicPartition, PartitionCursor]


class Prediction:
    """`predicted`: the batches of the open transaction that were in flight, and where they will be."""

    def __init__(self) -> None:
        self._ends: dict[TopicPartition, int] = {}  # where the next batch of each remote partition will be
        self._written = set[TopicPartition]()  # with records in the open transaction
        self.predicted: dict[TopicPartition, list[Placed]] = {}
        self._found: dict[TopicPartition, list[Placed]] = {}

    def predict(self, in_flight: Mapping[TopicPartition, Sequence[ProduceBatch]], cursors: Cursors) -> bool:
        """Let the cursors take the batches in flight, if it is known of all where they will be. Whether they have."""
        known = all(key in self._ends and cursors[key].is_predictable for key in in_flight)
        for key, batches in in_flight.items() if known else ():
            places = accumulate((batch.count for batch in batches), initial=self._ends[key])
            self.predicted[key], self._found[key] = list(zip(batches, places, strict=False)), []
            cursors[key].take_early(self.predicted[key])
        return bool(self.predicted)

    def take(self, answered: Accepted) -> bool:
        """Note where a batch is. Whether its cursor has taken it already."""
        key, batch, base_offset = answered
        self._ends[key] = base_offset + batch.count
        self._written.add(key)
        if key in self.predicted:
            self._found[key].append((batch, base_offset))
        return key in self.predicted

    def correct(self, cursors: Cursors) -> dict[TopicPartition, PartitionCursor]:
        """Those of `cursors` whose prediction was wrong, corrected."""
        wrong = {}
        for key, predicted in self.predicted.items():
            found = self._found[key]
            if sum(batch.count for batch, _ in found) != sum(batch.count for batch, _ in predicted):
                raise OutcomeUnknown(f"{key.topic}-{key.partition} has not accepted what receipts name", key)
            if [place for _, place in found] != [place for _, place in predicted]:
                cursors[key].take_again(found)
                wrong[key] = cursors[key]
        return wrong

    def committed(self) -> None:
        """The transaction is over: each partition with records has a marker behind them."""
        self._ends |= {key: self._ends[key] + 1 for key in self._written}
        self._written.clear()
        self.predicted.clear()
