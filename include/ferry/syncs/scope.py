"""What a sync of topics, configs or ACLs is about: both listings, and which topics the flow copies under which names. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ferry.clusters.describe import TopicDescription
from ferry.errors import ConfigError
from ferry.ledger.reading import read_state
from ferry.ledger.run_report import Skipped
from ferry.ledger.state import FlowState
from ferry.ledger.sync_outcome import SyncFailure
from ferry.permissions.hidden import Hidden, hidden_topics

if TYPE_CHECKING:
    from ferry.clusters.admin import ClusterAdmin
    from ferry.config import Flow


@dataclass(frozen=True)
class SyncScope:
    """`pairs` are (source topic, remote topic) that this flow writes, whether the remote topic exists or not.

    `lost` are those whose remote topic was deleted after it was copied to. `skipped`: what the filters leave out. `claimed`: remote topics
    of other flows. `failed`: topics that the flow names and the source hides.
    """

    pairs: tuple[tuple[str, str], ...]
    source_topics: Mapping[str, TopicDescription]
    target_topics: Mapping[str, TopicDescription]
    state: FlowState
    lost: frozenset[tuple[str, str]] = frozenset()
    skipped: tuple[Skipped, ...] = ()
    claimed: tuple[Skipped, ...] = ()
    failed: tuple[SyncFailure, ...] = ()


def sync_scope(flow: Flow, source: ClusterAdmin, target: ClusterAdmin) -> SyncScope:
    """Ask both clusters. ConfigError when they are the same one."""
    refuse_same_cluster(flow, source, target)
    source_topics, target_topics = source.topics(), target.topics()
    state, claims = read_state(flow, target_topics, settled=False)
    selection = flow.select_topics(source_topics)
    skipped = [Skipped(f"topic {topic}", reason) for topic, reason in selection.skipped]
    others = {remote: claims[remote] for _, remote in selection.selected if claims.get(remote, flow.name) != flow.name}
    claimed = tuple(Skipped(f"topic {remote}", f"flow {writer} writes to it") for remote, writer in others.items())
    hidden = hidden_topics(flow, source, source_topics, {head.topic for head in state.heads.values()})
    skipped += [Skipped(f"topic {entry.name}", entry.problem) for entry in hidden if not entry.needed]
    pairs = tuple((topic, remote) for topic, remote in selection.selected if remote not in others)
    copied = {head.topic for head in state.heads.values()}
    lost = frozenset((topic, remote) for topic, remote in pairs if topic in copied and remote not in target_topics)
    return SyncScope(pairs, source_topics, target_topics, state, lost, tuple(skipped), claimed, _failures(hidden))


def _failures(hidden: Iterable[Hidden]) -> tuple[SyncFailure, ...]:
    return tuple(SyncFailure(f"topic {entry.name}", "NotAuthorized", entry.problem) for entry in hidden if entry.needed)


def refuse_same_cluster(flow: Flow, source: ClusterAdmin, target: ClusterAdmin) -> None:
    """ConfigError when both aliases lead to one cluster."""
    identity = source.cluster_id()
    if identity == target.cluster_id():
        raise ConfigError(
            f"flow {flow.name}: {flow.source.alias} ({flow.source.bootstrap}) and {flow.target.alias} ({flow.target.bootstrap}) "
            f"are the same cluster {identity}: correct bootstrap.servers"
        )
