"""The ages of the first uncopied records, read from the source, bounded in time.

It never raises for a slow broker. The age is -1 if the record could not be read in time or has no time, or if the partition holds only
control records and holes.
"""

import time
from collections.abc import Mapping

from ferry.clusters.internal_reader import UNBOUNDED, InternalRecord, InternalTopicReader
from ferry.clusters.partitions import TopicPartition
from ferry.config import Flow
from ferry.errors import AuthenticationFailed, ClusterUnreachable

# A slow broker must not hang the command.
READ_SECONDS = 15.0


def first_ages(flow: Flow, wanted: Mapping[tuple[str, int], int], seconds: float = READ_SECONDS) -> dict[tuple[str, int], float]:
    """Age in seconds of the first record at or after each partition's offset; -1: not known."""
    ages = dict.fromkeys(wanted, -1.0)
    try:
        with InternalTopicReader(flow.source) as reader:
            firsts = reader.first_records({TopicPartition(*key): (offset, UNBOUNDED) for key, offset in wanted.items()}, seconds)
    except (AuthenticationFailed, ClusterUnreachable):
        return ages
    # A time of -1: the record has none. A time in the future gives the age 0.
    times = {key: first.timestamp for key, first in firsts.items() if isinstance(first, InternalRecord) and first.timestamp >= 0}
    return ages | {key: max(0.0, time.time() - moment / 1000) for key, moment in times.items()}
