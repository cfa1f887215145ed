"""What the syncs of one run or one command share.

Each part is read when the first sync needs it, and kept for the syncs after it. A part that cannot be read is read again by the next sync.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.admin.describe import TopicDescription
from ferry.clusters.admin.likeness import likeness
from ferry.config import Flow
from ferry.errors import ConfigError, NotAuthorized
from ferry.ledger.reading import read_claims, read_state
from ferry.ledger.run_report import Skipped
from ferry.ledger.state import FlowState
from ferry.ledger.sync_outcome import SyncFailure
from ferry.permissions.hidden import hidden_topics

if TYPE_CHECKING:
    from ferry.syncs.translated_groups import TranslatedGroups


@dataclass
class SyncContext:
    """The flow, and whether its syncs only say what they would write (`dry_run`). Each property raises ClusterUnreachable or a subclass."""

    flow: Flow
    dry_run: bool = False

    @cached_property
    def translated_groups(self) -> TranslatedGroups:
        """Where every group of the source stands on the target, for checkpoints and group offsets.

        A position that is older than the sync that writes it makes consumers read records again. It makes them skip none.
        """
        from ferry.syncs.translated_groups import translated_groups  # noqa: PLC0415 - slow to load, and often no sync needs it

        return translated_groups(self.flow)

    @cached_property
    def state(self) -> FlowState:
        """What the flow keeps on the target."""
        with ClusterAdmin(self.flow.target) as target:
            return read_state(self.flow, target.topics(), stable=False)


@dataclass(frozen=True)
class SyncScope:
    """What the syncs of topics, configs and ACLs work on."""

    # (source topic, remote topic) that this flow writes, whether the remote topic exists or not.
    pairs: tuple[tuple[str, str], ...]
    source_topics: Mapping[str, TopicDescription]
    target_topics: Mapping[str, TopicDescription]
    state: FlowState
    # Topics that the filters leave out.
    skipped: tuple[Skipped, ...] = ()
    # Remote topics that other flows write.
    claimed: tuple[Skipped, ...] = ()
    # Topics that the flow names and the source hides.
    failed: tuple[SyncFailure, ...] = ()


def sync_scope(context: SyncContext, source: ClusterAdmin, target: ClusterAdmin) -> SyncScope:
    """Ask both clusters. ConfigError when they are the same one."""
    flow = context.flow
    refuse_same_cluster(flow, source, target)
    state = context.state
    source_topics, target_topics = source.topics(), target.topics()
    selection = flow.topic_rules.select(source_topics)
    claims = read_claims(flow, target_topics, state.claims, (remote for _, remote in selection.selected))
    skipped = [Skipped(f"topic {topic}", reason) for topic, reason, _ in selection.skipped]
    others = {remote: claims[remote] for _, remote in selection.selected if claims.get(remote, flow.name) != flow.name}
    claimed = tuple(Skipped(f"topic {remote}", f"flow {writer} writes to it") for remote, writer in others.items())
    copied = {head.topic for head in state.heads.values()}
    hidden = hidden_topics(flow, source, source_topics, copied)
    skipped += [Skipped(f"topic {entry.name}", entry.problem) for entry in hidden if not entry.needed]
    failed = tuple(SyncFailure(f"topic {entry.name}", NotAuthorized.__name__, entry.problem) for entry in hidden if entry.needed)
    pairs = tuple((topic, remote) for topic, remote in selection.selected if remote not in others)
    return SyncScope(pairs, source_topics, target_topics, state, tuple(skipped), claimed, failed)


def refuse_same_cluster(flow: Flow, source: ClusterAdmin, target: ClusterAdmin) -> str:
    """ConfigError if nothing shows that the flow's clusters are two. A warning if they are two with one id; else empty."""
    alike = likeness(source, target)
    if alike is not None and alike.same:
        raise ConfigError(f"flow {flow.name}: {alike.why}; {alike.remedy}")
    return alike.why if alike is not None else ""
