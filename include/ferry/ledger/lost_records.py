"""What to do about records that the source deleted before they were copied (pure)."""

from collections.abc import Iterable

from ferry.errors import SourceDataLost, some_of

# How the names of Kafka Streams' repartition topics end, and why records of these are lost.
REPARTITION = "-repartition"
STREAMS_DELETES = "Kafka Streams deletes the records of its repartition topics when it has read them, whatever their retention"


def remedy(topics: Iterable[str]) -> str:
    """What to do so that no more records of these topics are lost."""
    named = set(topics)
    streams = sorted(name for name in named if name.endswith(REPARTITION))
    told = [] if len(streams) == len(named) and streams else ["run more often, or raise the source's retention"]
    told += [f"exclude {some_of(streams)}: {STREAMS_DELETES}"] if streams else []
    return ", and ".join(told)


def data_lost(problem: str, topics: Iterable[str]) -> SourceDataLost:
    """The error, with the next step for the loss of records of these topics."""
    found = SourceDataLost(problem)
    found.next_step = SourceDataLost.next_step.replace(remedy(()), remedy(topics))
    return found
