"""Finds flows in the config that would copy records in a circle, before anything runs (pure).

Remote names that contain the source's alias prevent loops. If topics keep their names, only the flow in the opposite direction can leave
out the records that a flow wrote (ferry.copying.loop_guard). So two rules hold for every topic:

1. Flows that keep its name may form pairs, but no ring of three or more clusters.
2. Both flows of a pair copy exactly once: only then their ledgers name every record.

Chains of pairs would not loop. But claims allow only one writer for each remote topic, so the plan of a run refuses such chains.

The topics are not known here. So each literal name is checked by itself; regular expressions and custom filters count as if all of them
matched the same topic.
"""

from collections.abc import Iterable, Mapping

from ferry.config.flow import Flow
from ferry.policy.custom_classes import is_custom
from ferry.policy.selection import PLAIN_NAME

ANY_TOPIC = ""

Edge = tuple[str, str]  # aliases of source and target
LoopProblem = tuple[Flow, str, str]  # the flow and the property that cause a problem, and what it is


def find_loops(flows: Iterable[Flow]) -> list[LoopProblem]:
    """All problems of these flows, each ring and each pair once."""
    keeping = [flow for flow in flows if not flow.policy.renames]
    found: dict[tuple[str, frozenset[str]], LoopProblem] = {}
    for topic in (ANY_TOPIC, *sorted({topic for flow in keeping for topic in flow.named_topics})):
        edges = {(flow.source.alias, flow.target.alias): flow for flow in keeping if _copies(flow, topic)}
        for edge, flow in edges.items():
            if ring := _ring(edge, edges):
                which = f"topic {topic}" if topic else "topics that all of them match"
                what = (
                    f"keeps topic names, and so do all flows of the ring {', '.join(ring)}: records of {which} would go round for ever; "
                    "disable one of these flows, leave the topics out of one with topics.exclude, or use DefaultReplicationPolicy"
                )
                found.setdefault(("ring", frozenset(ring)), (flow, "replication.policy.class", what))
            if (other := edges.get((edge[1], edge[0]))) and not flow.exactly_once:
                which = f"topic {topic}" if topic else "the same topics"
                what = (
                    f"is false, but {other.name} copies {which} back under the same names: records that {flow.name} copied but that are in "
                    f"no ledger would come back; set {flow.name}.transaction.producer = true, or disable {other.name}"
                )
                found.setdefault(("pair", frozenset({flow.name})), (flow, "transaction.producer", what))
    return list(found.values())


def _copies(flow: Flow, topic: str) -> bool:
    """Whether the flow copies this topic under the same name. For ANY_TOPIC: whether it may copy topics that no flow names literally."""
    if topic == ANY_TOPIC:
        custom_filter = is_custom(flow.mirroring.topic_filter_class)
        return custom_filter or any(not PLAIN_NAME.fullmatch(entry) for entry in flow.topics)
    return flow.topic_rules.select([topic]).selected == ((topic, topic),)


def _ring(edge: Edge, edges: Mapping[Edge, Flow]) -> tuple[str, ...]:
    """Names of the flows of a shortest ring that begins with `edge` and does not go straight back; empty if there is none."""
    waiting: list[tuple[Edge, ...]] = [(edge,)]
    reached = {edge[1]}
    while waiting:
        way = waiting.pop(0)
        for source, target in edges:
            if source == way[-1][1] and target not in reached and (source, target) != edge[::-1]:
                longer = (*way, (source, target))
                if target == edge[0]:
                    return tuple(edges[one].name for one in longer)
                reached.add(target)
                waiting.append(longer)
    return ()
