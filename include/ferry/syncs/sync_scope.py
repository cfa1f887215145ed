"""What the syncs of topics, configs and ACLs work on."""

from collections.abc import Mapping
from dataclasses import dataclass

from ferry.clusters.admin.describe import TopicDescription
from ferry.clusters.admin.likeness import likeness
from ferry.errors import ConfigError, NotAuthorized
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import Skipped
from ferry.ledger.state import FlowState
from ferry.ledger.sync_outcome import SyncFailure
from ferry.permissions.hidden import hidden_topics

Topics = Mapping[str, TopicDescription]
GONE = "it was deleted after it was copied to"  # why a sync leaves a remote topic alone


@dataclass(frozen=True)
class SyncScope:
    """The topics of both sides, as the syncs see them."""

    pairs: tuple[tuple[str, str], ...]  # (source topic, remote topic) that this flow writes, whether the remote topic exists or not
    source_topics: Topics
    target_topics: Topics
    state: FlowState
    skipped: tuple[Skipped, ...] = ()  # topics that the filters leave out
    claimed: tuple[Skipped, ...] = ()  # remote topics that other flows write
    failed: tuple[SyncFailure, ...] = ()  # topics that the flow names and the source hides

    @property
    def copied(self) -> frozenset[str]:
        """Source topics that were copied."""
        return frozenset(head.topic for head in self.state.heads.values())


def sync_scope(opened: OpenFlow) -> SyncScope:
    """Ask both clusters. ConfigError when they are the same one."""
    flow, source = opened.flow, opened.source.admin
    refuse_same_cluster(opened)
    target_topics = opened.target.admin.topics()
    state = opened.state_among(target_topics)
    source_topics = source.topics()  # after the state: what was copied was there
    selection = flow.topic_rules.select(source_topics)
    claims = opened.claims(target_topics, [remote for _, remote in selection.selected])
    skipped = [Skipped(f"topic {topic}", reason) for topic, reason, _ in selection.skipped]
    others = {remote: claims[remote] for _, remote in selection.selected if claims.get(remote, flow.name) != flow.name}
    claimed = tuple(Skipped(f"topic {remote}", f"flow {writer} writes to it") for remote, writer in others.items())
    copied = {head.topic for head in state.heads.values()}
    hidden = hidden_topics(flow, source, source_topics, copied)
    skipped += [Skipped(f"topic {entry.name}", entry.problem) for entry in hidden if not entry.needed]
    failed = tuple(SyncFailure(f"topic {entry.name}", NotAuthorized.__name__, entry.problem) for entry in hidden if entry.needed)
    pairs = tuple((topic, remote) for topic, remote in selection.selected if remote not in others)
    return SyncScope(pairs, source_topics, target_topics, state, tuple(skipped), claimed, failed)


def refuse_same_cluster(opened: OpenFlow) -> str:
    """ConfigError if nothing shows that the flow's clusters are two. Returns a warning if they are two with one id; otherwise empty."""
    alike = likeness(opened.source.admin, opened.target.admin)
    if alike is not None and alike.same:
        raise ConfigError(f"flow {opened.flow.name}: {alike.why}; {alike.remedy}")
    return alike.why if alike is not None else ""
