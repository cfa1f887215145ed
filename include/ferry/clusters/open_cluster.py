"""Clusters of a config, opened once and handed down: all questions to one of them use the same open cluster.

The code that has opened the clusters closes them, with all their clients. They belong to its thread, and have one event loop, so questions
to different clusters can be under way at the same time.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Self

from ferry.clusters.admin.acls import AclAdmin
from ferry.clusters.admin.cluster_admin import CONTACT_MILLISECONDS
from ferry.clusters.admin.config_changes import ConfigAdmin
from ferry.clusters.groups.consumer_groups import ConsumerGroups
from ferry.clusters.logs.internal_reader import InternalTopicReader
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.leaders import metadata_request
from ferry.clusters.net.shared_connection import ConnectedCluster
from ferry.config import Cluster

# A broker that is there answers a question about brokers at once. If it does not, Ferry connects anew.
HERE_MILLISECONDS = 5_000


class Administration(AclAdmin, ConfigAdmin):
    """Administration with ACLs and with configs of topics."""


class OpenCluster(ConnectedCluster):
    """One cluster."""

    @cached_property
    def admin(self) -> Administration:
        return Administration(self)

    def reader(self, *, committed: bool = True) -> InternalTopicReader:
        """Reads internal topics; `committed` as of InternalTopicReader."""
        return InternalTopicReader(self, committed=committed)

    def groups(self, *, to_write: bool = False) -> ConsumerGroups:
        """The consumer groups; a context manager. `to_write`: as of ConsumerGroups."""
        return ConsumerGroups(self, to_write=to_write)

    def require_contact(self) -> None:
        """Get an answer of a broker now, over a new connection if need be. ClusterUnreachable after ten more seconds without any answer."""
        try:
            self.ask(ClusterConnection.send, metadata_request([]), None, HERE_MILLISECONDS, milliseconds=CONTACT_MILLISECONDS)
        except (RequestNotSent, RequestLost):  # so the next user gets a new connection
            with self.connected(milliseconds=CONTACT_MILLISECONDS):
                pass

    def close(self) -> None:
        super().close()
        if "admin" in self.__dict__:
            self.admin.close()
            del self.admin


class OpenClusters:
    """The clusters that an entry point opens; a context manager."""

    def __init__(self) -> None:
        self._clusters: list[OpenCluster] = []
        self._loops = [EventLoop()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for close in [opened.close for opened in self._clusters] + [loop.close for loop in self._loops]:
            with suppress(Exception):  # their work is done, and the others must close too
                close()

    def of(self, cluster: Cluster) -> OpenCluster:
        """The open cluster for this config; the same one for equal configs."""
        found = next((opened for opened in self._clusters if opened.cluster == cluster), None)
        if found is None:
            found = OpenCluster(cluster, self._loop)
            self._clusters.append(found)
        return found

    def _loop(self) -> EventLoop:
        if self._loops[-1].interrupted:
            self._loops.append(EventLoop())
        return self._loops[-1]


@contextmanager
def open_cluster(cluster: Cluster) -> Iterator[OpenCluster]:
    """The cluster, for a caller that needs no other."""
    with OpenClusters() as clusters:
        yield clusters.of(cluster)
