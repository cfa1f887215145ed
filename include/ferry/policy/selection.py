"""Which topics of a source a flow copies (pure): filters, internal topics, cycles, heartbeats.

Rules from MirrorSourceConnector.shouldReplicateTopic: `(filter or heartbeats) and not internal and not cycle`, as in Kafka 4.4, where
`A.x` on cluster A is a cycle too.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ferry.errors import ConfigError
from ferry.policy.filters import NameRule
from ferry.policy.naming import MOST_HOPS, TOPIC_CHARACTERS, ReplicationPolicy, is_ferry_topic, is_never_copied, origins


class LeftOut(NamedTuple):
    """A topic that is not copied. `expected`: as of ferry.ledger.run_report.Skipped."""

    topic: str
    reason: str
    expected: bool | None = False


@dataclass(frozen=True)
class Selection:
    """Topics to copy as (source topic, remote topic), and the others."""

    selected: tuple[tuple[str, str], ...]
    skipped: tuple[LeftOut, ...]


# A name, or a Java expression that matches exactly one name.
PLAIN_NAME = re.compile(rf"(?:{TOPIC_CHARACTERS}|\\\.)+")


def named(elements: Iterable[str]) -> frozenset[str]:
    """The topics that the elements of a filter name one by one."""
    return frozenset(name.replace("\\.", ".") for name in "|".join(elements).split("|") if PLAIN_NAME.fullmatch(name))


@dataclass(frozen=True)
class TopicRules:
    """The rules for topics of one flow. `heartbeats`: heartbeats topics are copied even if the filter leaves them out (KIP-1089)."""

    source: str
    target: str
    policy: ReplicationPolicy
    filter: NameRule
    heartbeats: bool = True
    separator: str = "."
    policy_class: str = ""

    def why_not(self, name: str) -> str | None:
        """Why `name` is not copied; None if it is. The topic need not exist, because ACLs may name any topic."""
        if is_ferry_topic(name):
            return "Ferry's own topic"
        if is_never_copied(name, self.separator) or self.policy.is_internal_topic(name):
            return "internal topic"
        if why := self.why_back(name):
            return why
        if self.heartbeats and self.policy.is_heartbeats_topic(name):
            return None
        return self.filter.why_not(name)

    def why_back(self, name: str) -> str | None:
        """Why a copy of `name` would go back to where it came from (MirrorSourceConnector.isCycle); None if it would not."""
        over = list(origins(self.policy, name))
        if self.target in over or (self.policy.renames and self.source in over) or len(over) == MOST_HOPS:
            return f"cycle: its name says that it came from {self.target} or {self.source}"
        return None

    def remote_topic(self, name: str) -> str:
        """The name of `name` on the target."""
        return self.policy.format_remote_topic(self.source, name)

    def select(self, names: Iterable[str]) -> Selection:
        """Decide for each topic. ConfigError if the policy gives two topics one remote name, or says that it renames but keeps a name."""
        selected: dict[str, str] = {}
        skipped = []
        for name in sorted(names):
            reason = self.why_not(name)
            if reason is not None:
                skipped.append(LeftOut(name, reason))
                continue
            remote = self.remote_topic(name)
            if remote == name and self.policy.renames:
                raise ConfigError(
                    f"flow {self.source}->{self.target}: {self.policy_class} keeps the name {name}: then its renames must be "
                    "False, because otherwise the opposite direction would copy the records back"
                )
            if remote in selected:
                raise ConfigError(
                    f"flow {self.source}->{self.target}: {self.policy_class} calls both {selected[remote]} and {name} {remote}: "
                    "a remote topic has one source topic; correct the policy or leave one of them out with topics.exclude"
                )
            selected[remote] = name
        return Selection(tuple((name, remote) for remote, name in selected.items()), tuple(skipped))
