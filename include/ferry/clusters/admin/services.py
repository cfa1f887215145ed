"""Managed services that speak Kafka's protocol: how Ferry recognises one, and which of its limits a flow meets (pure).

Ferry recognises a service by the addresses of its bootstrap servers, by the form of its cluster id, or by requests that only it offers. If
this does not distinguish some products of a vendor, Ferry finds all of them. The copy does not depend on it: that uses only the cluster's
answers. But with a name messages are clearer, and Ferry can warn in advance of limits that no answer shows.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """A property of the flow, and its values with which the flow stays within a limit. The first one is recommended."""

    key: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.key} = {self.values[0]}"


@dataclass(frozen=True)
class Limit:
    """What a service does not take, in words."""

    what: str
    ferry: str  # what this means for a flow
    source: str  # the address where this was read
    settings: tuple[Setting, ...] = ()  # without these settings the flow would fail; empty: it needs none
    of_source: bool = False  # a flow meets the limit where it reads; otherwise where it writes
    offered: bool = False  # the cluster itself shows the limit, by the requests that it offers


@dataclass(frozen=True)
class ManagedService:
    """A service, as its documents describe it. If they say nothing about something, it is as in Kafka."""

    name: str
    limits: tuple[Limit, ...]  # say in words what the fields from `takes_configs` on say for programs
    hosts: tuple[str, ...] = ()  # regular expressions, found in a bootstrap address
    cluster_ids: str = ""  # how its cluster ids begin
    api_keys: frozenset[int] = frozenset()  # requests that only this service has
    takes_configs: bool = True  # whether topic configs can be set
    factors: frozenset[int] = frozenset()  # replication factors of new topics; empty: all
    transactions: bool = True
    most_topics: int = 0  # at most this many topics may exist; 0: no limit
    access: str = ""  # what decides instead of Kafka's ACLs; empty: nothing

    def is_at(self, bootstrap: str, cluster_id: str, offered: Iterable[int]) -> bool:
        """Whether a cluster that says this of itself is one of the service. `offered`: the API keys of its requests."""
        return (
            any(re.search(host, server.strip().lower()) for host in self.hosts for server in bootstrap.split(","))
            or bool(self.cluster_ids and cluster_id.startswith(self.cluster_ids))
            or bool(self.api_keys & frozenset(offered))
        )

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The properties that a flow to it needs."""
        return tuple(dict.fromkeys(setting for limit in self.limits for setting in limit.settings))
