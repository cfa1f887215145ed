"""Managed services that speak Kafka's protocol: how Ferry recognises one, and which of its limits a flow meets (pure).

A service is recognised by the addresses of its bootstrap servers, by the form of its cluster id, or by requests that only it offers. Some
products of a vendor cannot be told apart in this way: then all of them are found. Nothing depends on it: Ferry copies by what the cluster
answers. A name makes messages clearer, and limits that no answer tells are said beforehand.
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
    """What a service does not take, in words. `source`: the address where this was read.

    ferry: what this means for a flow. settings: without them the flow would fail; empty: it needs none. of_source: a flow meets it
    where it reads, otherwise where it writes. offered: the cluster itself shows it, by the requests that it offers.
    """

    what: str
    ferry: str
    source: str
    settings: tuple[Setting, ...] = ()
    of_source: bool = False
    offered: bool = False


@dataclass(frozen=True)
class ManagedService:
    """A service, as its documents describe it. Whatever they do not say is as in Kafka.

    hosts: regular expressions, found in a bootstrap address. cluster_ids: how its cluster ids begin. api_keys: requests that it alone has.

    The rest is what the words of `limits` mean, for programs. takes_configs: whether topic configs can be set. factors: replication
    factors of new topics; empty: all. most_topics: so many may exist; 0: no limit. access: what decides instead of Kafka's ACLs; empty:
    nothing.
    """

    name: str
    limits: tuple[Limit, ...]
    hosts: tuple[str, ...] = ()
    cluster_ids: str = ""
    api_keys: frozenset[int] = frozenset()
    takes_configs: bool = True
    factors: frozenset[int] = frozenset()
    transactions: bool = True
    most_topics: int = 0
    access: str = ""

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
