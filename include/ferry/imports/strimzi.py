"""Strimzi's `KafkaMirrorMaker2` and `KafkaConnector` resources become the files of connectors that Strimzi's operator would start.

The operator writes a cluster's `config` behind `source.cluster.` or `target.cluster.`, and turns `tls` and `authentication` into settings
of the clients (`KafkaMirrorMaker2Connectors`). Secrets stay where they are: a value from a Kubernetes Secret becomes a reference to a file
of the directory into which the Secret is mounted, `${directory:<secrets>/<name>:<key>}`.

Versions v1alpha1 to v1beta2 have `connectCluster` and `clusters`; v1 has `target`, and a `source` in each mirror.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TypeVar

from ferry.config.connector_file import CLASS, PARTS, SOURCE_ALIAS, TARGET_ALIAS
from ferry.config.jaas import MODULES, LoginModule
from ferry.config.problems import located
from ferry.config.properties import Entry, PropertiesFile
from ferry.errors import ConfigError
from ferry.imports.connectors import connector
from ferry.imports.lined_documents import Fields, Node, Text, line_of

KINDS = ("KafkaMirrorMaker2", "KafkaConnector")
# Fields of a mirror, newest name first, and the property that each stands for.
_PATTERNS = {
    "topicsPattern": "topics",
    "topicsExcludePattern": "topics.exclude",
    "topicsBlacklistPattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsExcludePattern": "groups.exclude",
    "groupsBlacklistPattern": "groups.exclude",
}
_CONNECTORS = {f"{part}Connector": name for name, part in PARTS.items()}
_CHECKPOINTS = frozenset({"groups", "groups.exclude"})
# Fields of a cluster that Ferry does not read: they say where Connect's workers keep their state.
_OF_WORKERS = frozenset({"alias", "groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic"})
_OF_CONNECTORS = frozenset({"autoRestart", "pause", "state", "version", "alterOffsets", "listOffsets"})
# Fields of `type: oauth` that a property of Kafka's clients stands for.
_OAUTH = {
    "tokenEndpointUri": "sasl.oauthbearer.token.endpoint.url",
    "clientId": "sasl.oauthbearer.client.credentials.client.id",
    "scope": "sasl.oauthbearer.scope",
}
_STOPPED = frozenset({"paused", "stopped"})
_LACKS: dict[type, str] = {Text: "is missing", dict: "is missing, or has no fields", list: "is missing, or is no list"}
T = TypeVar("T")


@dataclass
class Resource:
    path: Path
    secrets: PurePosixPath  # The directory into which Secrets will be mounted.
    lost: dict[Entry, str] = field(default_factory=dict)  # Why a field is left out.
    offsets_topic: Text | None = None  # The topic where the workers keep the offsets of connectors.

    def connectors(self, document: Fields) -> Iterator[PropertiesFile]:
        """The connectors of the resource. ConfigError if a field that is needed is missing, or has another form."""
        spec = self._field(dict, document, "spec")
        if document.get("kind") == "KafkaConnector":
            yield connector(self.path, {**self._connector(spec), Text(CLASS, line_of(spec)): self._field(Text, spec, "class")})
            return
        clusters = {str(one.get("alias", "")): one for one in (self._field(list, spec, "clusters") if "clusters" in spec else [])}
        for mirror in self._field(list, spec, "mirrors"):
            if "source" in mirror:
                source, target = self._field(dict, mirror, "source"), self._field(dict, spec, "target")
            else:
                names = (self._field(Text, mirror, "sourceCluster"), self._field(Text, mirror, "targetCluster"))
                source, target = (self._cluster(clusters, name) for name in names)
            yield from self._mirror(mirror, source, target)

    def _mirror(self, mirror: Fields, source: Fields, target: Fields) -> Iterator[PropertiesFile]:
        ends = {
            Text(SOURCE_ALIAS, line_of(source)): self._field(Text, source, "alias"),
            Text(TARGET_ALIAS, line_of(target)): self._field(Text, target, "alias"),
        }
        ends |= self._side("source", source) | self._side("target", target)
        lines = {str(key): key.line for key in mirror}
        # The older first: the newer replaces it.
        patterns = {Text(_PATTERNS[name], lines[name]): mirror[name] for name in reversed(_PATTERNS) if name in mirror}
        known = {*_PATTERNS, *_CONNECTORS, "sourceCluster", "targetCluster", "source"}
        self._lose(mirror, known, "a mirror of Ferry has no such setting")
        for name, java_class in _CONNECTORS.items():
            if name in mirror:
                own = self._connector(self._field(dict, mirror, name))
                # Both connectors read the topics; only that of checkpoints reads the groups.
                chosen = {key: value for key, value in patterns.items() if name == "checkpointConnector" or key not in _CHECKPOINTS}
                chosen = {} if name == "heartbeatConnector" else chosen
                yield connector(self.path, {**ends, **own, **chosen, Text(CLASS, lines[name]): Text(java_class, lines[name])})

    def _connector(self, fields: Fields) -> dict[Text, Node]:
        self._lose(fields, {"tasksMax", "config", "class", *_OF_CONNECTORS}, "a flow has no such setting")
        found = dict(self._field(dict, fields, "config")) if "config" in fields else {}
        for key, value in fields.items():
            if key == "tasksMax":
                found[Text("tasks.max", key.line)] = value
            if (key == "state" and value in _STOPPED) or (key == "pause" and value == "true"):
                found[Text("enabled", key.line)] = Text("false", key.line)
        return found

    def _side(self, side: str, cluster: Fields) -> dict[Text, Node]:
        """The settings of one cluster's clients, behind `source.cluster.` or `target.cluster.`."""
        self._lose(cluster, {"bootstrapServers", "tls", "authentication", "config", *_OF_WORKERS}, "Ferry has no setting for it")
        servers = self._field(Text, cluster, "bootstrapServers")
        if side == "target" and "offsetStorageTopic" in cluster:
            self.offsets_topic = self._field(Text, cluster, "offsetStorageTopic")
        found: Fields = {Text("bootstrap.servers", servers.line): servers}
        if "config" in cluster:
            found |= self._field(dict, cluster, "config")
            if side == "target" and isinstance(found.get("offset.storage.topic"), Text):
                self.offsets_topic = found["offset.storage.topic"]
        encrypted = "tls" in cluster
        if encrypted:
            found |= self._trusted(cluster["tls"])
        login = self._field(dict, cluster, "authentication") if "authentication" in cluster else {}
        found |= self._login(login)
        sasl = any(key.startswith("sasl.") for key in found)
        protocol = ("SASL_" if sasl else "") + ("SSL" if encrypted else "PLAINTEXT")
        found.setdefault(Text("security.protocol", servers.line), Text(protocol, servers.line))
        # The operator's workers write with the producer of the target's config.
        of_worker = tuple(key for key in found if side == "target" and key.startswith("producer."))
        return {Text(f"{side}.{'' if key in of_worker else 'cluster.'}{key}", key.line): value for key, value in found.items()}

    def _trusted(self, tls: Node) -> dict[Text, Node]:
        certificates = self._field(list, tls, "trustedCertificates") if isinstance(tls, dict) and "trustedCertificates" in tls else []
        if not certificates:
            return {}  # those of the system
        first, *others = certificates
        line = line_of(first)
        if others or first.get("pattern", "*.crt") != "*.crt":
            why = "Ferry reads one file of certificates: put them into one, and change ssl.truststore.certificates"
            self.lost[Entry("trustedCertificates", "", line, self.path)] = why
        name = first.get("certificate", "ca.crt")  # the name in the Secrets of Strimzi's own clusters, which `pattern: "*.crt"` finds
        trusted = self._secret(self._field(Text, first, "secretName"), Text(name, line))
        return {Text("ssl.truststore.type", line): Text("PEM", line), Text("ssl.truststore.certificates", line): trusted}

    def _login(self, login: Fields) -> dict[Text, Node]:
        if not login:
            return {}
        kind, line = self._field(Text, login, "type"), line_of(login)
        match kind:
            case "tls":
                pair = self._field(dict, login, "certificateAndKey")
                key, chain = (
                    self._secret(self._field(Text, pair, "secretName"), self._field(Text, pair, name)) for name in ("key", "certificate")
                )
                return {
                    Text("ssl.keystore.type", line): Text("PEM", line),
                    Text("ssl.keystore.key", line): key,
                    Text("ssl.keystore.certificate.chain", line): chain,
                }
            case "plain" | "scram-sha-256" | "scram-sha-512":
                held = self._field(dict, login, "passwordSecret")
                password = self._secret(self._field(Text, held, "secretName"), self._field(Text, held, "password"))
                mechanism = kind.upper()
                module = LoginModule(MODULES[mechanism], {"username": self._field(Text, login, "username"), "password": password})
                return {Text("sasl.mechanism", line): Text(mechanism, line), Text("sasl.jaas.config", line): Text(module.text, line)}
            case "oauth":
                return self._oauth(login, line)
            case "custom":
                return dict(self._field(dict, login, "config")) if "config" in login else {}
        what = f"is {kind}: Ferry knows tls, plain, scram-sha-256, scram-sha-512, oauth, custom"
        raise ConfigError(located(self.path, kind.line, "type", what))

    def _oauth(self, login: Fields, line: int) -> dict[Text, Node]:
        module = LoginModule(MODULES["OAUTHBEARER"], {})
        found = {Text("sasl.mechanism", line): Text("OAUTHBEARER", line), Text("sasl.jaas.config", line): Text(module.text, line)}
        found |= {Text(_OAUTH[key], key.line): value for key, value in login.items() if key in _OAUTH}
        if "clientSecret" in login:
            held = self._field(dict, login, "clientSecret")
            secret = self._secret(self._field(Text, held, "secretName"), self._field(Text, held, "key"))
            found[Text("sasl.oauthbearer.client.credentials.client.secret", line)] = secret
        self._lose(login, {*_OAUTH, "type", "clientSecret"}, "Ferry logs in with a client's id and secret, or with a token file")
        return found

    def _secret(self, name: Text, key: Text) -> Text:
        return Text(f"${{directory:{self.secrets / name}:{key}}}", name.line)

    def _lose(self, fields: Fields, known: set[str], why: str) -> None:
        self.lost |= {Entry(str(key), "", key.line, self.path): why for key in fields if key not in known}

    def _cluster(self, clusters: dict[str, Fields], name: Text) -> Fields:
        if name not in clusters:
            raise ConfigError(located(self.path, name.line, name, f"is no cluster of this resource ({', '.join(clusters) or 'none'})"))
        return clusters[name]

    def _field(self, kind: type[T], fields: Fields, name: str) -> T:
        """A field that must be there: a Text, a dict, or a list of dicts. ConfigError."""
        found = fields.get(name)
        if not isinstance(found, kind) or (isinstance(found, list) and not all(isinstance(one, dict) for one in found)):
            raise ConfigError(located(self.path, line_of(fields), name, _LACKS[kind]))
        return found
