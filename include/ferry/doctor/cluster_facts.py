"""What a cluster says about itself and about the user's rights. Reads only, bounded in time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ferry.clusters.admin.acl_binding import AclBinding
from ferry.clusters.admin.acls import read_acls
from ferry.clusters.admin.api_versions import Capabilities, ask_capabilities
from ferry.clusters.admin.cluster_admin import HIDDEN, ClusterAdmin
from ferry.clusters.admin.describe import ConfigOrigin
from ferry.clusters.open_cluster import OpenCluster
from ferry.config import ClientRole
from ferry.errors import FerryError, NotAuthorized

NOTHING = Capabilities({})
# Until 4.0 a topic may have a smaller one (LogConfig, KIP-1030).
SEGMENT, SMALLEST_SEGMENT = "segment.bytes", 1 << 20
# Configs that decide which name a certificate's owner has, and the values with which the name is the subject.
_NAMING = {
    "ssl.principal.mapping.rules": ("", "DEFAULT"),
    "principal.builder.class": ("", "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"),
}


@dataclass(frozen=True)
class ClusterFacts:
    """One cluster."""

    alias: str
    bootstrap: str
    login: str
    # Why it did not answer.
    problem: FerryError | None = None
    cluster_id: str = ""
    # How many of the `known_brokers` are up.
    brokers: int = 0
    known_brokers: int = 0
    capabilities: Capabilities = NOTHING
    # A broker's configs; if they are empty, `no_configs` says why.
    configs: Mapping[str, str] = field(default_factory=dict, hash=False)
    no_configs: str = ""
    # Whether a topic has no topic id.
    without_ids: bool = False
    # Topics with which brokers of newer releases do not start.
    small_segments: tuple[str, ...] = ()

    def config(self, name: str) -> int | None:
        """A numeric config of the broker; None: not known."""
        text = self.configs.get(name)
        return int(text) if text is not None and text.lstrip("-").isdigit() else None


@dataclass(frozen=True)
class RightsFacts:
    """What a cluster says about the user's rights."""

    # Whether there is an authorizer (None: not known).
    enforced: bool | None
    # All ACLs that matter; None: the user may not see them.
    acls: frozenset[AclBinding] | None
    # What the user may do to the cluster (KIP-430, names of AclOperation); None: the broker does not say.
    operations: frozenset[str] | None
    # What the user may do to existing topics.
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)
    # Topics that the user may not even describe.
    hidden: frozenset[str] = frozenset()
    # Whether brokers may know the user by another name than the certificate's.
    renamed: bool = False


def read_cluster_facts(opened: OpenCluster) -> ClusterFacts:
    """Ask the cluster. An error is a fact too."""
    alias, bootstrap, login = opened.alias, opened.cluster.bootstrap, opened.cluster.login_of(ClientRole.ADMIN)
    try:
        opened.first_contact()
        admin = opened.admin
        cluster_id, topics = admin.cluster_id(), admin.topics()
        brokers, segments = admin.brokers(topics), admin.visible_configs(topics, keys=(SEGMENT,))[0]
        try:
            configs = {name: entry.value for name, entry in admin.broker_configs().items() if entry.value is not None}
            no_configs = ""
        except FerryError as problem:
            configs, no_configs = {}, str(problem)
        capabilities = ask_capabilities(opened)
    except FerryError as problem:
        return ClusterFacts(alias, bootstrap, login, problem)
    no_ids = any(topic.topic_id is None for topic in topics.values())
    own = {name: entry.value for name, found in segments.items() for entry in found.values() if entry.origin is ConfigOrigin.TOPIC}
    small = tuple(sorted(name for name, value in own.items() if value is not None and int(value) < SMALLEST_SEGMENT))
    up, known = len(brokers.up), len(brokers.known)
    return ClusterFacts(alias, bootstrap, login, None, cluster_id, up, known, capabilities, configs, no_configs, no_ids, small)


def read_rights_facts(opened: OpenCluster, existing: Iterable[str], named: Iterable[str]) -> RightsFacts:
    """What the user may do to `existing` topics, and which of `named` the user may not describe. FerryError if the cluster is away."""
    try:
        acls = read_acls(opened)
        enforced = acls is not None
    except NotAuthorized:
        acls, enforced = None, True
    admin = opened.admin
    operations = admin.cluster_operations()
    topics = admin.topic_operations(existing) if enforced else {}
    hidden = frozenset(admin.topics_that(HIDDEN, named)) if enforced else frozenset[str]()
    renamed = enforced and opened.cluster.by_certificate and _may_rename(admin)
    return RightsFacts(enforced, acls, operations, topics, hidden, renamed)


def names_certificates(configs: Mapping[str, str | None]) -> bool:
    """Whether brokers with these configs (or those of a listener) give certificates other names than their subjects."""
    return any(
        value not in defaults
        for name, value in configs.items()
        for ending, defaults in _NAMING.items()
        # A null means that a listener's value is hidden.
        if (name == ending and value is not None) or name.endswith(f".{ending}")
    )


def _may_rename(admin: ClusterAdmin) -> bool:
    try:
        return names_certificates({name: entry.value for name, entry in admin.broker_configs().items()})
    except FerryError:
        return True
