"""Effects of a remote topic's config on copied records that the source topic's config does not have (pure).

Plan, run and doctor check this before the first write. One difference would change records: Ferry does not copy to a remote topic that
replaces timestamps. With the others the copy is right at first, but the target may refuse a record, or delete records that the source
keeps. An entry that one side does not show is not compared.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ferry.clusters.admin.describe import ConfigOrigin, ConfigValue
from ferry.clusters.net.partitions import grouped
from ferry.config import Flow
from ferry.errors import some_of, span
from ferry.ledger.lost_records import REPARTITION, STREAMS_DELETES
from ferry.syncs.config_plan import BATCH_LIMIT, EMPTY, STAMPS, TIMESTAMP_TYPE, Entries

CLEANUP, RETENTION, RETENTION_BYTES = "cleanup.policy", "retention.ms", "retention.bytes"
DELETE_RETENTION = "delete.retention.ms"
TIMESTAMP_BEFORE, TIMESTAMP_AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
# Until Kafka 3.6 the only limit, in both directions; until 4.0 it counts where the newer one is not set.
TIMESTAMP_DIFFERENCE = "message.timestamp.difference.max.ms"
COMPARED = (
    CLEANUP,
    BATCH_LIMIT,
    TIMESTAMP_AFTER,
    TIMESTAMP_BEFORE,
    TIMESTAMP_DIFFERENCE,
    TIMESTAMP_TYPE,
    RETENTION_BYTES,
    RETENTION,
    DELETE_RETENTION,
)
NO_LIMIT = (1 << 63) - 1  # Java's largest long


@dataclass(frozen=True)
class ConfigDifference:
    """An entry by which a remote topic treats records differently."""

    topic: str
    remote_topic: str
    name: str
    here: str  # the source topic's value
    there: str  # the remote topic's value
    effect: str  # it completes "the target …"
    remedy: str
    refused: bool = False  # Ferry does not copy to such a topic


def config_differences(flow: Flow, topic: str, remote_topic: str, source: Entries, remote: Entries) -> list[ConfigDifference]:
    """The differences of one remote topic, by its effective config and that of its source topic."""
    here, there = _told(source), _told(remote)
    effects = (*_refusals(here, there), *_deletions(here, there))
    found = [(name, effect, _remedy(flow, name, source.get(name), remote.get(name))) for name, effect in effects]
    differences = []
    for name, effect, remedy in (*found, *_lost(flow, topic, here)):
        values = here.get(name, "not known"), there.get(name, "not known")
        differences.append(ConfigDifference(topic, remote_topic, name, *values, effect, remedy, refused=name == TIMESTAMP_TYPE))
    return differences


def by_kind(differences: Iterable[ConfigDifference]) -> list[tuple[str, ConfigDifference]]:
    """All topics with the same difference, for people, and the difference; those that Ferry does not copy to come first."""
    alike = grouped((replace(entry, topic="", remote_topic=""), entry.remote_topic) for entry in differences)
    found = []
    for kind, topics in sorted(alike.items(), key=lambda pair: not pair[0].refused):
        values = f"{kind.name}={kind.there or EMPTY} of {some_of(sorted(topics))}, {kind.here or EMPTY} at the source"
        found.append((f"{values}: the target {kind.effect}", kind))
    return found


def told(differences: Iterable[ConfigDifference]) -> tuple[str, ...]:
    """One line for people about all topics with the same difference."""
    return tuple(f"{found}; {kind.remedy}" for found, kind in by_kind(differences))


def tombstones_kept(flow: Flow, configs: Mapping[str, Entries]) -> dict[str, float]:
    """For how many seconds compacted topics of the source keep tombstones at least. Nobody deletes heartbeats."""
    is_heartbeats = flow.is_heartbeats
    known = ((topic, _told(entries)) for topic, entries in configs.items() if not is_heartbeats(topic))
    compacted = {topic: config for topic, config in known if _has(config, CLEANUP, DELETE_RETENTION) and _compacts(config)}
    return {topic: int(config[DELETE_RETENTION]) / 1000 for topic, config in compacted.items()}


def tombstones_lost(kept: Mapping[str, float], since: Mapping[str, float]) -> str:
    """What may happen if the seconds in `since` are between two runs of a topic, and what to do. `kept`: as of tombstones_kept."""
    short = sorted(topic for topic, least in kept.items() if least <= since[topic])
    if not short:
        return ""
    dropped = f"the source drops tombstones after {span(min(kept[topic] for topic in short))} ({DELETE_RETENTION})"
    pause = span(max(since[topic] for topic in short))
    return (
        f"{some_of(short)}: {dropped}, and {pause} are between two runs: keys that were deleted meanwhile may stay on the "
        f"target; raise {DELETE_RETENTION} at the source or run more often; ferry verify names such keys"
    )


def _told(entries: Entries) -> dict[str, str]:
    return {name: entry.value for name, entry in entries.items() if entry.value is not None}


def _remedy(flow: Flow, name: str, here: ConfigValue | None, there: ConfigValue | None) -> str:
    """What a person has to do. The config sync would undo a change of the remote topic alone."""
    rule = flow.config_property_filter
    if name == TIMESTAMP_TYPE:
        return "set CreateTime there, with kafka-configs.sh --alter or the tools of the service"
    if here is None or there is None or not flow.mirroring.sync_topic_configs_enabled or rule.why_not(name) is not None:
        return "change it there, with kafka-configs.sh --alter or the tools of the service"
    removed = here.origin is ConfigOrigin.DEFAULT and (there.origin is ConfigOrigin.TOPIC or rule.should_replicate_source_default(name))
    if removed or name == BATCH_LIMIT or here.origin not in {ConfigOrigin.DEFAULT, ConfigOrigin.BROKER_FILE}:
        return f"ferry sync {flow.source.path} --flow '{flow.name}' configs changes that; a run does it only after its copy"
    return "set the value on the source topic itself: then the config sync sets it on the remote topic too"


def _refusals(here: Mapping[str, str], there: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What the target would change or refuse at once: (name, effect)."""
    stamps = there.get(TIMESTAMP_TYPE) == STAMPS
    if stamps:
        yield TIMESTAMP_TYPE, "would replace the timestamps of records"
    if BATCH_LIMIT in here and int(there.get(BATCH_LIMIT, NO_LIMIT)) < int(here[BATCH_LIMIT]):
        yield BATCH_LIMIT, "refuses a record that is larger, and the source may have one"
    if stamps:
        return  # such a topic has no limits of timestamps
    name, past = _timestamp_limit(there, TIMESTAMP_BEFORE)
    if name and _has(here, CLEANUP, RETENTION) and past < _kept(here):
        yield name, f"refuses records that are older than {span(past / 1000)}, and the source may have some"
    name, future = _timestamp_limit(there, TIMESTAMP_AFTER)
    if name and future < _timestamp_limit(here, TIMESTAMP_AFTER)[1]:
        yield name, f"refuses records whose timestamp is more than {span(future / 1000)} in the future, and the source may have some"


def _deletions(here: Mapping[str, str], there: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What the target would delete later, and the source keeps: (name, effect)."""
    if not (_has(here, CLEANUP) and _has(there, CLEANUP)):
        return
    if _compacts(there) and not _compacts(here):
        yield CLEANUP, "keeps only the newest record of each key, and refuses records without a key"
    if not _deletes(there):
        return
    bounded = [name for name in (RETENTION, RETENTION_BYTES) if int(there.get(name, -1)) >= 0]
    if not _deletes(here):
        if bounded:
            limits = " and ".join(f"{name}={there[name]}" for name in bounded)
            yield CLEANUP, f"deletes old records (by {limits}), and the source deletes none"
        return
    for name in bounded:
        kept = int(here.get(name, there[name]))
        if kept < 0 or kept > int(there[name]):
            measure = span(int(there[name]) / 1000) if name == RETENTION else f"{int(there[name]):,} bytes of a partition"
            yield name, f"keeps records only for {measure}" if name == RETENTION else f"keeps only {measure}"


def _lost(flow: Flow, topic: str, here: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Kafka Streams' InternalTopicManager gives repartition topics an endless retention, because it deletes their records itself."""
    if topic.endswith(REPARTITION) and _has(here, CLEANUP, RETENTION) and not _compacts(here) and int(here[RETENTION]) < 0:
        remedy = f"set {flow.name}.topics.exclude = {', '.join((*flow.topics_exclude, f'.*{REPARTITION}'))}: Streams makes them anew there"
        yield RETENTION, f"gets only some of the records, and runs report the others as lost: {STREAMS_DELETES}", remedy


def _timestamp_limit(config: Mapping[str, str], name: str) -> tuple[str, int]:
    """The name of the entry that limits timestamps in this direction, and its value in ms; an empty name: there is no limit."""
    for entry in (name, TIMESTAMP_DIFFERENCE):
        if int(config.get(entry, NO_LIMIT)) < NO_LIMIT:
            return entry, int(config[entry])
    return "", NO_LIMIT


def _kept(config: Mapping[str, str]) -> int:
    """For how many ms a topic keeps records."""
    milliseconds = int(config[RETENTION])
    return milliseconds if _deletes(config) and milliseconds >= 0 else NO_LIMIT


def _has(config: Mapping[str, str], *names: str) -> bool:
    return all(name in config for name in names)


def _compacts(config: Mapping[str, str]) -> bool:
    return "compact" in config[CLEANUP]


def _deletes(config: Mapping[str, str]) -> bool:
    return "delete" in config[CLEANUP]
