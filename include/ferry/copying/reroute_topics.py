"""The topics that a message handler may choose (`ferry.handler.reroute`), checked before the first write (pure).

No ledger explains what is in them. So a topic is refused if something else relies on the ledger: remote topics of any flow, and topics of
Ferry and MirrorMaker 2.
"""

from collections.abc import Collection, Mapping

from ferry.clusters.admin.describe import TopicDescription
from ferry.config import Flow
from ferry.config.settings import REROUTE
from ferry.errors import ConfigError
from ferry.policy.naming import is_ferry_topic
from ferry.policy.selection import Selection


def rerouted_topics(
    flow: Flow, selection: Selection, target_topics: Mapping[str, TopicDescription], claims: Collection[str]
) -> dict[str, int]:
    """Their numbers of partitions. `claims`: remote topics of all flows. ConfigError for a topic that the handler must not choose."""
    if not flow.handling.message_handler:
        return {}
    sources, remotes = (set(names) for names in (dict(selection.selected), dict(selection.selected).values()))
    for name in flow.handling.reroute:
        if is_ferry_topic(name) or flow.policy.is_internal_topic(name):
            problem = "is an internal topic"
        elif name in remotes or name in claims:
            problem = "is a remote topic, whose offsets the ledger must explain"
        elif name in sources:
            problem = f"has the name of a topic that is copied from {flow.source.alias}: with this topic a record goes to its remote topic"
        elif name not in target_topics:
            problem = f"does not exist on {flow.target.alias}, or the user may not see it: create it, or grant Write"
        else:
            continue
        raise ConfigError(f"flow {flow.name}: {REROUTE}: topic {name} {problem}")
    return {name: target_topics[name].partitions for name in flow.handling.reroute}
