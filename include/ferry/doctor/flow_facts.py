"""What both clusters say about a flow. Reads only."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ferry.clusters.admin.acl_binding import AclBinding, AclPattern, AclResource
from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.admin.likeness import Likeness, likeness
from ferry.clusters.open_cluster import OpenCluster
from ferry.config import Cluster, Flow
from ferry.doctor.cluster_checks import services_of
from ferry.doctor.cluster_facts import ClusterFacts, RightsFacts, read_rights_facts
from ferry.doctor.service_checks import policy_is_fixed
from ferry.errors import FerryError
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.runs_topic import since_last_run
from ferry.ledger.topics import POLICY, OwnTopic
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.status import whole_status
from ferry.permissions.required import required_rights, source_topics
from ferry.permissions.rights import Resource, Right
from ferry.pipeline.few_replicas import FewReplicas, few_replicas, wanted_on_target
from ferry.pipeline.wrong_topics import WrongTopic, names_on, wrong_topics
from ferry.syncs.config_differences import COMPARED, ConfigDifference, config_differences, tombstones_kept


@dataclass(frozen=True)
class FlowFacts:
    source: ClusterFacts
    target: ClusterFacts
    source_rights: RightsFacts
    target_rights: RightsFacts
    status: FlowHealth | None = None
    problem: FerryError | None = None  # why there is no `status`
    selected: int = 0  # how many topics of the source the flow copies
    compared: int = 0  # how many remote topics exist; `differences` are those from their source topics
    differences: tuple[ConfigDifference, ...] = ()
    few_replicas: tuple[FewReplicas, ...] = ()  # topics of the target with fewer replicas than the config wants
    brokers: frozenset[int] = frozenset()  # ids of the target's brokers
    wrong_topics: tuple[WrongTopic, ...] = ()  # internal topics of both clusters that are not as Ferry would create them
    missing_topics: frozenset[str] = frozenset()  # internal topics that the target lacks
    # Remote topics that the target lacks and that must be compacted, by name. Read only if the target's service lets nobody set this
    # through Kafka.
    compacted: Mapping[str, OwnTopic] = field(default_factory=dict)
    alike: Likeness | None = None  # whether the clusters are one, if their ids do not differ
    # By topic, as in config_differences.py; `since_last_run`: of the same topics.
    tombstones_kept: Mapping[str, float] = field(default_factory=dict)
    since_last_run: Mapping[str, float] = field(default_factory=dict)


def read_flow_facts(opened: OpenFlow, source_facts: ClusterFacts, target_facts: ClusterFacts) -> FlowFacts:
    """Read the facts that need both clusters, or the flow. FerryError when a cluster stops answering."""
    flow, needed = opened.flow, required_rights(opened.flow)
    source, target = opened.source.admin, opened.target.admin
    alike = likeness(source, target)
    source_names, target_names = source.topic_names(), frozenset(target.topic_names())
    selected = dict(flow.topic_rules.select(source_names).selected) if flow.copies else {}
    existing = {remote: topic for topic, remote in selected.items() if remote in target_names}
    here, _ = source.visible_configs(existing.values(), keys=COMPARED)
    there, _ = target.visible_configs(existing, keys=COMPARED)
    pairs = [(topic, remote) for remote, topic in existing.items() if topic in here and remote in there]
    found = [entry for topic, remote in pairs for entry in config_differences(flow, topic, remote, here[topic], there[remote])]
    kept = tombstones_kept(flow, {topic: here[topic] for topic, _ in pairs})
    wanted = wanted_on_target(flow, existing)
    brokers = target.brokers()
    topics = target.topics(wanted.keys() & target_names)
    few = few_replicas(wanted, topics, brokers, target_facts.config("default.replication.factor") or 1)
    fixed = policy_is_fixed(services_of(target_facts))
    compacted = _compacted(source, {topic: remote for topic, remote in selected.items() if fixed and remote not in existing})
    wrong = (*_wrong_topics(flow, flow.source, source, source_names), *_wrong_topics(flow, flow.target, target, target_names))
    status, problem = None, None
    try:
        status = whole_status(opened)
    except FerryError as refusal:
        problem = refusal
    return FlowFacts(
        source_facts,
        target_facts,
        source_rights(opened, needed.source),
        rights_of(opened.target, needed.target),
        status,
        problem,
        len(selected),
        len(pairs),
        tuple(found),
        few,
        brokers.known,
        wrong,
        names_on(flow, flow.target).difference(target_names),
        compacted,
        alike,
        kept,
        since_last_run(opened, kept) if kept else {},
    )


def _compacted(source: ClusterAdmin, topics: Mapping[str, str]) -> dict[str, OwnTopic]:
    """Width and cleanup policy by remote topic, of those whose source topic is compacted. `topics`: source to remote topics."""
    configs, _ = source.visible_configs(topics, keys=(POLICY,))
    policies = {topic: config[POLICY].value or "" for topic, config in configs.items() if POLICY in config}
    compacted = {topic: policy for topic, policy in policies.items() if "compact" in policy}
    return {topics[topic]: OwnTopic(found.partitions, compacted[topic]) for topic, found in source.topics(compacted).items()}


def _wrong_topics(flow: Flow, cluster: Cluster, admin: ClusterAdmin, visible: Iterable[str]) -> tuple[WrongTopic, ...]:
    topics = admin.topics(names_on(flow, cluster).intersection(visible))
    return wrong_topics(flow, cluster, topics, admin.visible_configs(topics, keys=(POLICY,))[0])


def source_rights(opened: OpenFlow, needed: tuple[Right, ...]) -> RightsFacts:
    """As of `rights_of`, for the source. ACLs of topics that the flow does not copy do not count, even if a right covers their names."""
    rules, copied = opened.flow.topic_rules, frozenset(source_topics(opened.flow))
    others = [right.resource for right in needed if right.resource.kind is AclResource.TOPIC and right.resource not in copied]

    def counts(name: str) -> bool:
        return rules.why_not(name) is None or any(resource.covers(Resource(AclResource.TOPIC, name)) for resource in others)

    return rights_of(opened.source, needed, counts)


def rights_of(opened: OpenCluster, needed: tuple[Right, ...], counts: Callable[[str], bool] = bool) -> RightsFacts:
    """What the cluster says about the user's `needed` rights, without topics that `counts` refuses. FerryError when it does not answer."""
    names = opened.admin.topic_names()
    topics = [right.resource for right in needed if right.resource.kind is AclResource.TOPIC]
    existing = [name for name in names if counts(name) and any(resource.covers(Resource(AclResource.TOPIC, name)) for resource in topics)]
    literal = {found.name for found in topics if found.pattern is AclPattern.LITERAL and not found.is_everything}
    facts = read_rights_facts(opened, existing, literal - set(existing))
    return facts if facts.acls is None else replace(facts, acls=frozenset(entry for entry in facts.acls if not _idle(entry, counts)))


def _idle(entry: AclBinding, counts: Callable[[str], bool]) -> bool:
    """Whether an ACL does nothing but deny access to one topic that `counts` refuses."""
    one = entry.resource is AclResource.TOPIC and entry.pattern is AclPattern.LITERAL and entry.name != "*"
    return one and entry.permission == "DENY" and not counts(entry.name)
