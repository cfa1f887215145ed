"""One cluster of a config, opened once and handed down: all questions to it use the same open cluster.

It connects at the first question. The code that has opened it closes it, with all its clients. It belongs to the thread that has opened it.
"""

from contextlib import ExitStack
from functools import cached_property
from typing import Any, Self

from ferry.clusters.admin.acls import AclAdmin
from ferry.clusters.admin.cluster_admin import CONTACT_MILLISECONDS, require_contact
from ferry.clusters.admin.config_changes import ConfigAdmin
from ferry.clusters.groups.consumer_groups import ConsumerGroups
from ferry.clusters.logs.internal_reader import InternalTopicReader
from ferry.clusters.net.client_cache import kept_clients
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.leaders import metadata_request
from ferry.clusters.net.shared_connection import ask_cluster
from ferry.config import Cluster

# A broker that is there answers a question about brokers at once. If it does not, Ferry connects anew.
HERE_MILLISECONDS = 5_000


class Administration(AclAdmin, ConfigAdmin):
    """Administration with ACLs and with configs of topics."""


class OpenCluster:
    """A context manager around the clients of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._scope = ExitStack()

    def __enter__(self) -> Self:
        self._scope.enter_context(kept_clients())
        return self

    def __exit__(self, *failure: Any) -> None:
        self.__dict__.pop("admin", None)
        self._scope.__exit__(*failure)

    @property
    def alias(self) -> str:
        return self.cluster.alias

    @cached_property
    def admin(self) -> Administration:
        return self._scope.enter_context(Administration(self.cluster))

    def reader(self, *, committed: bool = True) -> InternalTopicReader:
        """Reads internal topics; `committed` as of InternalTopicReader."""
        return InternalTopicReader(self.cluster, committed=committed)

    def groups(self, *, to_write: bool = False) -> ConsumerGroups:
        """The consumer groups; a context manager. `to_write`: as of ConsumerGroups."""
        return ConsumerGroups(self.cluster, to_write=to_write)

    def require_contact(self) -> None:
        """Get an answer of a broker now, over a new connection if need be. ClusterUnreachable as of cluster_admin.require_contact."""
        try:
            ask_cluster(
                self.cluster, ClusterConnection.send, metadata_request([]), None, HERE_MILLISECONDS, milliseconds=CONTACT_MILLISECONDS
            )
        except (RequestNotSent, RequestLost):
            require_contact(self.cluster)
