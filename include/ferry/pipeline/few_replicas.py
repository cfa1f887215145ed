"""Topics that have fewer replicas than the config wants, and the command that adds them (pure).

If the config changes, a topic keeps the number of replicas that it was created with. Ferry names it until its partitions are reassigned.
"""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ferry.clusters.admin.describe import Brokers, TopicDescription
from ferry.config import Flow
from ferry.config.mm2_topics import mm2_topics
from ferry.config.settings import OWN_TOPICS, REMOTE_TOPICS, WantedReplicas
from ferry.errors import count_of, some_of
from ferry.ledger.topics import own_topics

# Keeps the command short enough to paste. With more partitions, run the doctor again after it.
PARTITIONS_A_COMMAND = 20
REASSIGNMENT = "replicas.json"


@dataclass(frozen=True)
class FewReplicas:
    topic: str
    key: str
    has: int
    wanted: int
    replicas: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        return f"topic {self.topic} has {count_of(self.has, 'replica')}, and {self.key} wants {self.wanted}"


def wanted_on_target(flow: Flow, remote_topics: Iterable[str]) -> dict[str, WantedReplicas]:
    """The replicas that the config wants for every topic of the target that the flow writes to, whether the topic exists or not."""
    wanted = dict.fromkeys(remote_topics, flow.wanted_replicas(REMOTE_TOPICS))
    wanted |= dict.fromkeys(own_topics(flow), flow.wanted_replicas(OWN_TOPICS))
    return wanted | {topic.name: topic.replicas for topic in mm2_topics(flow) if topic.cluster is flow.target}


def few_replicas(
    wanted: Mapping[str, WantedReplicas], topics: Mapping[str, TopicDescription], brokers: Brokers, broker_default: int
) -> tuple[FewReplicas, ...]:
    """The topics that have fewer replicas than the config wants, by key and name."""
    found = []
    for name, replicas in wanted.items():
        least = replicas.on(len(brokers.known), broker_default)
        if name in topics and 0 < topics[name].replication_factor < least:
            found.append(FewReplicas(name, replicas.key, topics[name].replication_factor, least, topics[name].replicas))
    return tuple(sorted(found, key=lambda entry: (entry.key, entry.topic)))


def reassignment(bootstrap: str, found: Sequence[FewReplicas], brokers: Iterable[int]) -> str:
    """The command that adds replicas. Each partition keeps its brokers in their order, and gets further brokers by turns."""
    everybody, turn = sorted(brokers), 0
    parts: list[dict[str, object]] = []
    for entry in found:
        for number, held in enumerate(entry.replicas[: PARTITIONS_A_COMMAND - len(parts)]):
            others = [node for node in everybody[turn:] + everybody[:turn] if node not in held]
            parts.append({"topic": entry.topic, "partition": number, "replicas": [*held, *others][: max(entry.wanted, len(held))]})
            turn = (turn + 1) % max(1, len(everybody))
    plan = json.dumps({"version": 1, "partitions": parts}, separators=(",", ":"))
    servers = bootstrap.replace(" ", "")
    execute = f"kafka-reassign-partitions.sh --bootstrap-server {servers} --reassignment-json-file {REASSIGNMENT} --execute"
    left = sum(len(entry.replicas) for entry in found) - len(parts)
    more = f" (and again for {count_of(left, 'more partition')})" if left else ""
    return f"echo {shlex.quote(plan)} > {REASSIGNMENT}; {execute}{more}"


def told(found: Sequence[FewReplicas]) -> str:
    """A line for people about topics of one config key that have too few replicas. It names the first of them."""
    named = some_of([f"{entry.topic} ({entry.has})" for entry in found])
    return f"fewer replicas than {found[0].key} wants ({found[0].wanted}): {named}"
