"""Reads `mm2.properties` by MM2's rules into frozen objects, or reports all of its problems.

It reads in this order: the file, `clusters`, config providers, every entry by itself, the clusters, the flows.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ferry.config.checks import EntryChecks, value_hint
from ferry.config.client_settings import ClientSettings, store_problems
from ferry.config.cluster import Cluster
from ferry.config.connections import CONNECTION_KEY, Lookup, read_connection
from ferry.config.connector_file import is_connector_file, read_connector_file
from ferry.config.flow import Flow
from ferry.config.flow_reader import FlowReader
from ferry.config.in_force import InForce, in_force
from ferry.config.jaas import parse_jaas
from ferry.config.keys import CLASS_KEYS, Keys, nearest_name
from ferry.config.legacy_file import is_legacy_file, read_legacy_file
from ferry.config.login import read_login
from ferry.config.loops import find_loops
from ferry.config.oauth_login import CLIENT_ID, ENDPOINT_URL, JAAS
from ferry.config.older_names import with_successors
from ferry.config.problems import Problems, PropertyError, located
from ferry.config.properties import GOES_ON, PEM_BEGIN, PropertiesFile, read_properties
from ferry.config.providers import Providers, UnresolvedReference, has_reference, read_providers
from ferry.config.registry import kinds
from ferry.config.schema_registry import read_registry
from ferry.config.settings import MirroringSettings, properties_of
from ferry.config.sources import ClientRole, Pair, Setting, Sources
from ferry.config.tls_policy import PROTOCOL, PROTOCOLS, SUITES, VERSIONS, read_tls_policy
from ferry.errors import ArgumentError, ConfigError
from ferry.policy.custom_classes import is_custom
from ferry.policy.naming import ALIAS, ALIAS_WANTS


@dataclass(frozen=True)
class FerryConfig:
    path: Path
    clusters: Mapping[str, Cluster] = field(hash=False)
    # The enabled ones.
    flows: tuple[Flow, ...]
    # One line for each entry that Ferry ignores, or does not read as a person expects.
    warnings: tuple[str, ...] = ()
    # For each cluster, a flow made of the top-level keys alone. MirrorClient takes the names of remote topics from it.
    top_level: Mapping[str, Flow] = field(default_factory=dict, hash=False, repr=False)
    # The properties of each flow, for people.
    in_force: Mapping[str, tuple[InForce, ...]] = field(default_factory=dict, hash=False, repr=False)

    def flow(self, name: str) -> Flow:
        """The enabled flow `A->B`. ArgumentError with the known flows if there is no such flow."""
        if found := next((flow for flow in self.flows if flow.name == name), None):
            return found
        known = [flow.name for flow in self.flows]
        hint = nearest_name(name, known)
        if name.endswith("-"):  # without quotes a shell takes >B of A->B for a redirection
            hint += f" Quote it for the shell: --flow '{known[0]}'"
        raise ArgumentError(f"{self.path}: there is no enabled flow {name}; enabled flows: {', '.join(known)}{hint}")


def load_config(path: Path | str, *, connections: Lookup | None = None) -> FerryConfig:
    """Read the file at `path`: an mm2.properties, a connector's or MirrorMaker 1's (see connector_file, legacy_file).

    `connections` looks Airflow connections up by their id.
    ConfigError lists every problem: "<file>:<line>: <key>: what; did you mean <nearest key>?".
    """
    file = read_properties(Path(path))
    if is_connector_file(file):
        file = read_connector_file(file)
    elif is_legacy_file(file):
        file = read_legacy_file(file)
    return _Loader(file, connections).load()


def examine(file: PropertiesFile) -> tuple[Problems, frozenset[str]]:
    """All problems and warnings of a file in the form of mm2.properties, and the names of its enabled flows. Raises nothing."""
    loader = _Loader(file, None)
    with suppress(ConfigError):
        loader.load()
    return loader.problems, loader.enabled


def _names_its_module(written: ClientSettings) -> bool:
    """Whether sasl.jaas.config holds references only in the values of its options."""
    text = written.text(JAAS)
    with suppress(ValueError):
        return text is not None and "." in parse_jaas(text).java_class
    return False


class _Loader:
    def __init__(self, file: PropertiesFile, lookup: Lookup | None) -> None:
        self._file = file
        self._lookup = lookup
        self.problems = Problems(file.path, file.words)
        self.enabled: frozenset[str] = frozenset()
        # Login settings by key and line: those that a client of some role uses, and the others with the protocol that ignores them.
        self._used: set[tuple[str, int]] = set()
        self._unused: dict[tuple[str, int], tuple[Setting, str]] = {}

    def load(self) -> FerryConfig:
        for entry in self._file.overridden:
            if winner := next((found for found in self._file.entries.values() if found.key == entry.key), None):
                self.problems.warn(f"is given again in line {winner.line}, which wins", entry)
        for entry, what in self._file.notes:
            self.problems.warn(what, entry)
        for entry in self._file.begun:
            self.problems.add(GOES_ON, replace(entry, key="") if PEM_BEGIN in entry.key else entry)
        providers = read_providers(self._file.entries, self.problems)
        aliases = self._aliases(providers)
        # Without clusters no other key can be judged.
        if not aliases:
            self.problems.raise_if_any()
        sources = self._sources(aliases, providers)
        clusters = {alias: self._cluster(sources, alias, providers, None) for alias in aliases}
        self._check_servers(sources, clusters)
        flows = tuple(self._flows(sources, aliases, providers))
        self._warn_of_unused_logins()
        if not flows:
            one = "clusters names one cluster only, a flow needs two"
            hint = one if len(aliases) < 2 else f"add {aliases[0]}->{aliases[1]}.enabled=true"
            self.problems.add(f"No source->target replication flows: {hint}")
        self.problems.raise_if_any()
        for flow, key, what in find_loops(flows):
            given = sources.of_flow(Pair(flow.source.alias, flow.target.alias), key)
            self.problems.add(what, given, key=f"{flow.name}.{key}")
        self.problems.raise_if_any()
        reader = FlowReader(sources, Pair("", ""), Problems(self._file.path))  # no key of a pair matches
        top_level = {alias: reader.read(cluster, cluster) for alias, cluster in clusters.items()}
        warnings = tuple(located(*told) for told in self.problems.warned)
        return FerryConfig(self._file.path, clusters, flows, warnings, top_level, {flow.name: in_force(flow, sources) for flow in flows})

    def _aliases(self, providers: Providers) -> tuple[str, ...]:
        entry = self._file.entries.get("clusters")
        if entry is None:
            self.problems.add("is missing: name the clusters, for example clusters = A, B", key="clusters")
            return ()
        try:
            aliases: tuple[str, ...] = kinds.LIST.parse(providers.resolve(entry.value))
        except (ValueError, UnresolvedReference):
            self.problems.add(f"must be {kinds.LIST.wants}", entry)
            return ()
        if not aliases:
            self.problems.add("is empty: name the clusters, for example clusters = A, B", entry)
        illegal = [alias for alias in aliases if not ALIAS.fullmatch(alias)]
        for alias in illegal:
            self.problems.add(f"alias {alias} becomes part of topic names: use {ALIAS_WANTS}{value_hint(entry.value)}", entry)
        return () if illegal else aliases

    def _sources(self, aliases: tuple[str, ...], providers: Providers) -> Sources:
        written = self._file.entries.items()
        custom = frozenset(name for name in CLASS_KEYS for key, entry in written if key.endswith(name) and is_custom(entry.value.strip()))
        keys = Keys(aliases, tuple(provider.name for provider in providers.providers), custom)
        checks = EntryChecks(keys, providers, self.problems)
        renamed = with_successors(self._file.entries, keys, self.problems)
        entries = {key: checks.checked(key, entry) for key, entry in renamed.items()}
        named = {alias: entries[f"{alias}.{CONNECTION_KEY}"] for alias in aliases if f"{alias}.{CONNECTION_KEY}" in entries}
        read = {alias: read_connection(entry, self._lookup, self.problems) for alias, entry in named.items()}
        return Sources(entries, {alias: settings for alias, settings in read.items() if settings is not None})

    def _cluster(self, sources: Sources, alias: str, providers: Providers, pair: Pair | None) -> Cluster:
        settings = tuple((role, sources.of_client(alias, role, pair)) for role in ClientRole)
        cluster = Cluster(alias, self._file.path, settings, providers, schema_registry=sources.of_registry(alias))
        for role in ClientRole:
            self._check_login(cluster, role)
        self._check_registry(cluster)
        return cluster

    def _check_registry(self, cluster: Cluster) -> None:
        """Report problems of a schema registry's login. Values that are references are looked up when it is opened."""
        if cluster.schema_registry and not any(has_reference(setting.value.reveal()) for setting in cluster.schema_registry):
            try:
                read_registry(cluster.alias, cluster.registry_settings(resolved=False))
            except PropertyError as problem:
                self.problems.add_error(problem)

    def _check_login(self, cluster: Cluster, role: ClientRole) -> None:
        """Report problems of a login that show without looking up references."""
        written = cluster.written(role)
        if written.refers("security.protocol"):
            return
        try:
            protocol = written.value("security.protocol")
        except PropertyError:
            return  # reported when the entry was checked by itself
        for problem in store_problems(written) if protocol.endswith("SSL") else ():
            self.problems.add_error(problem)
        self._allowed_versions(written)
        # The checks look at parts of these values. Nobody knows the parts of a reference.
        unclear = written.refers(JAAS) and not _names_its_module(written)
        if not unclear and not any(map(written.refers, (ENDPOINT_URL, CLIENT_ID, "sasl.mechanism"))):
            try:
                read_login(written)
            except PropertyError as problem:
                self.problems.add_error(problem)
        self._note_unused_login(written, protocol)

    def _allowed_versions(self, written: ClientSettings) -> frozenset[str]:
        """The TLS versions that a client may use; empty if it does not encrypt. Reports what is wrong."""
        try:
            protocol, *_ = [written.value(name) for name in ("security.protocol", PROTOCOLS, PROTOCOL, SUITES)]
        except PropertyError:
            return frozenset()  # reported when the entry was checked by itself
        try:
            return read_tls_policy(written).versions if protocol.endswith("SSL") else frozenset()
        except PropertyError as problem:
            self.problems.add_error(problem)
            return frozenset()

    def _with_common_versions(self, pair: Pair, *sides: Cluster) -> list[Cluster]:
        """Both clusters of a flow, with the TLS versions that both allow (see clusters.openssl_start)."""
        allowed = [self._allowed_versions(side.written(ClientRole.ADMIN)) for side in sides]
        common = frozenset.intersection(*(found or VERSIONS for found in allowed))
        if not common:
            what = f"{sides[0].alias} allows only {', '.join(allowed[0])} and {sides[1].alias} only {', '.join(allowed[1])}"
            self.problems.add(f"{what}, and Ferry's admin clients of a flow need a TLS version in common", key=pair.name)
        return [replace(side, versions_of_librdkafka=common if found else found) for side, found in zip(sides, allowed, strict=True)]

    def _note_unused_login(self, written: ClientSettings, protocol: str) -> None:
        uses = {"sasl.mechanism": protocol.startswith("SASL"), "ssl.keystore.location": protocol.endswith("SSL")}
        uses |= {JAAS: uses["sasl.mechanism"], "ssl.keystore.key": uses["ssl.keystore.location"]}
        for name, used in uses.items():
            setting = written.settings.get(name)
            if setting is not None and used:
                self._used.add((setting.key, setting.line))
            elif setting is not None and setting.key != name:
                self._unused.setdefault((setting.key, setting.line), (setting, protocol))

    def _warn_of_unused_logins(self) -> None:
        """Warn of login settings that no client uses: usually somebody forgot security.protocol."""
        for place, (setting, protocol) in self._unused.items():
            if place not in self._used:
                self.problems.warn(f"has no effect with security.protocol={protocol}", setting)

    def _check_servers(self, sources: Sources, clusters: Mapping[str, Cluster]) -> None:
        """Report clusters without servers, and two clusters with the same servers."""
        seen: dict[str, str] = {}
        for alias, cluster in clusters.items():
            setting = cluster.of_role(ClientRole.ADMIN).get("bootstrap.servers")
            if setting is None:
                self._add_missing_servers(sources, alias)
                continue
            try:
                servers = {server.lower() for server in kinds.SERVERS.parse(setting.value.reveal())}
            except ValueError:
                continue  # reported when the entry was checked by itself
            if other := next((seen[server] for server in sorted(servers) if server in seen), None):
                self.problems.add(f"has a server of cluster {other}: a flow must not copy a cluster to itself", setting)
            seen |= dict.fromkeys(servers - seen.keys(), alias)

    def _add_missing_servers(self, sources: Sources, alias: str) -> None:
        connection = sources.entries.get(f"{alias}.{CONNECTION_KEY}")
        if connection is None:
            what = "is missing: add the cluster's servers, as host:port pairs separated by commas"
            self.problems.add(what, key=self._file.words(f"{alias}.bootstrap.servers"))
        elif alias in sources.connections:  # otherwise the problem of the connection was reported
            what = f"the connection {connection.value.strip()} has no host, and {alias} has no bootstrap.servers: add one of them"
            self.problems.add(what, connection)

    def _flows(self, sources: Sources, aliases: tuple[str, ...], providers: Providers) -> list[Flow]:
        flows = []
        for pair in Keys(aliases).pairs:
            reader = FlowReader(sources, pair, self.problems)
            if reader.enabled:
                self.enabled |= {pair.name}
                sides = (self._cluster(sources, alias, providers, pair) for alias in (pair.source, pair.target))
                source, target = self._with_common_versions(pair, *sides)
                flow = reader.read(source, target)
                names = [name for name, key in properties_of(MirroringSettings).items() if key in self._file.left_out]
                left_out: dict[str, Any] = dict.fromkeys(names, False)
                mirroring = replace(flow.mirroring, **left_out)
                flows.append(replace(flow, copies=self._file.copies, mirroring=mirroring, aliases=frozenset(aliases)))
        return flows
