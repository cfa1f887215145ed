"""What a cluster says about itself and about the user's rights. Reads only, bounded in time."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from ferry.clusters.admin.acl_binding import AclBinding
from ferry.clusters.admin.acls import read_acls
from ferry.clusters.admin.api_versions import Capabilities, ask_capabilities
from ferry.clusters.admin.cluster_admin import HIDDEN
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
    alias: str
    bootstrap: str
    login: str
    problem: FerryError | None = None  # why it did not answer
    cluster_id: str = ""
    brokers: int = 0  # how many of the `known_brokers` are up
    known_brokers: int = 0
    capabilities: Capabilities = NOTHING
    configs: Mapping[str, str] = field(default_factory=dict, hash=False)  # a broker's configs; if they are empty, `no_configs` says why
    no_configs: str = ""
    without_ids: bool = False  # whether a topic has no topic id
    small_segments: tuple[str, ...] = ()  # topics with which brokers of newer releases do not start

    def config(self, name: str) -> int | None:
        """A numeric config of the broker; None: not known."""
        text = self.configs.get(name)
        return int(text) if text is not None and text.lstrip("-").isdigit() else None


@dataclass(frozen=True)
class RightsFacts:
    enforced: bool | None  # whether there is an authorizer (None: not known)
    acls: frozenset[AclBinding] | None  # all ACLs that matter; None: the user may not see them
    operations: frozenset[str] | None  # what the user may do to the cluster (KIP-430, names of AclOperation); None: the broker does not say
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)  # what the user may do to existing topics
    hidden: frozenset[str] = frozenset()  # topics that the user may not even describe
    renamed: bool = False  # whether brokers may know the user by another name than the certificate's


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
    renamed = enforced and opened.cluster.by_certificate
    if renamed:
        with suppress(FerryError):
            renamed = names_certificates({name: entry.value for name, entry in admin.broker_configs().items()})
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
