"""A cluster of the configuration: its servers and login, as settings for the two client libraries.

A cluster holds the properties as written, each value as a Secret. References to config providers are resolved in the process that asks for
settings. So a cluster can be pickled into a Spark task closure, and only literal secrets travel with it.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ferry.config.client_libraries import kafka_python_settings, librdkafka_settings
from ferry.config.client_settings import ClientSettings
from ferry.config.credentials import Password, UnsecuredToken
from ferry.config.login import Login, read_login
from ferry.config.oauth_login import JAAS
from ferry.config.providers import Providers, UnresolvedReference, has_reference, is_reference, without_references
from ferry.config.registry import CLIENT_PROPERTIES
from ferry.config.registry.schemas import REGISTRY_PREFIX
from ferry.config.sources import ClientRole, Setting
from ferry.errors import ConfigError


@dataclass(frozen=True)
class Cluster:
    """One cluster, as a side of a flow or by itself. Its repr shows only the alias."""

    alias: str
    path: Path = field(repr=False)
    settings: tuple[tuple[ClientRole, tuple[Setting, ...]], ...] = field(repr=False)
    providers: Providers = field(default_factory=Providers, repr=False)
    # TLS versions that its flow's clients of librdkafka may use; empty: their connections are not encrypted.
    versions_of_librdkafka: frozenset[str] = field(default=frozenset(), repr=False)

    # The properties of its schema registry as written, by their names after REGISTRY_PREFIX.
    schema_registry: tuple[Setting, ...] = field(default=(), repr=False)

    def of_role(self, role: ClientRole) -> dict[str, Setting]:
        """The effective properties of a client, as written, by their Kafka names."""
        return {setting.name: setting for setting in dict(self.settings)[role]}

    @property
    def bootstrap(self) -> str:
        """Its servers, for messages; as written if a reference cannot be resolved here."""
        try:
            return ", ".join(self.resolved(ClientRole.ADMIN).value("bootstrap.servers"))
        except ConfigError:
            return self.of_role(ClientRole.ADMIN)["bootstrap.servers"].value.reveal()

    @property
    def where(self) -> str:
        """The cluster and its servers, for messages: `cluster A (a1:9092)`."""
        return f"cluster {self.alias} ({self.bootstrap})"

    @property
    def user_name(self) -> str:
        """The user as which Ferry's admin client logs in, for messages."""
        return self._login(ClientRole.ADMIN)[0]

    def login_of(self, role: ClientRole) -> str:
        """User and method of a login by a client of `role`, for messages: `ferry (SASL_SSL, PLAIN)`."""
        user, how = self._login(role)
        return f"{user} ({how})" if how else user

    def _login(self, role: ClientRole) -> tuple[str, str]:
        found = self._identified(role)
        if found is None:
            return "unknown (the login cannot be read here)", ""
        login, subject = found
        how = f"{login.protocol}, {login.mechanism}" if login.mechanism else login.protocol
        return login.user or subject or "ANONYMOUS", how

    @property
    def principal(self) -> str | None:
        """The principal of Ferry on brokers without mapping rules; None if only the brokers know it, from a token."""
        found = self._identified(ClientRole.ADMIN)
        if found is None:
            return None
        login, subject = found
        if login.credentials is None:
            return f"User:{subject or 'ANONYMOUS'}"
        return f"User:{login.user}" if isinstance(login.credentials, Password | UnsecuredToken) else None

    @property
    def by_certificate(self) -> bool:
        """Whether Ferry's principal comes from a certificate. Brokers with mapping rules may turn its subject into another name."""
        found = self._identified(ClientRole.ADMIN)
        return found is not None and found[1] is not None

    def _identified(self, role: ClientRole) -> tuple[Login, str | None] | None:
        """The login, and the subject of the client's certificate if it has one and no credentials. None if they cannot be read here."""
        with suppress(ConfigError):
            settings = self.resolved(role)
            login = read_login(settings)
            if login.credentials is not None or not login.encrypted:
                return login, None
            from ferry.config.stores import client_identity  # noqa: PLC0415 - loads cryptography, which only encrypted connections need

            identity = client_identity(settings)
            return login, identity.subject if identity else None
        return None

    @property
    def request_limit(self) -> int | None:
        """Bytes of the largest Produce request, where the file gives max.request.size for the producer."""
        written = self.written(ClientRole.PRODUCER)
        return int(written.value("max.request.size")) if written.given("max.request.size") else None

    def librdkafka(self) -> dict[str, object]:
        """Settings for confluent-kafka's admin client. ConfigError if a reference, store or login cannot be read."""
        return librdkafka_settings(self.resolved(ClientRole.ADMIN))

    def kafka_python(self, role: ClientRole) -> dict[str, object]:
        """Arguments for kafka-python's KafkaConnectionManager; may hold an SSLContext, which cannot be pickled. ConfigError as above."""
        return kafka_python_settings(self.resolved(role))

    @property
    def has_schema_registry(self) -> bool:
        return any(setting.name == "url" for setting in self.schema_registry)

    def registry_settings(self, *, resolved: bool = True) -> ClientSettings:
        """The properties of its schema registry, with all references replaced or as written. ConfigError as in `resolved`."""
        given = {setting.name: setting for setting in self.schema_registry}
        found = ClientSettings(f"{self.alias}.{REGISTRY_PREFIX.rstrip('.')}", self.path, given, {})
        return self._resolve(found) if resolved else replace(found, values={name: entry.value.reveal() for name, entry in given.items()})

    def written(self, role: ClientRole) -> ClientSettings:
        """The properties for checks that look up no references. Leaves out values that are only a reference, unless any text would do."""
        given = {
            name: setting
            for name, setting in self.of_role(role).items()
            if not is_reference(setting.value.reveal()) or (CLIENT_PROPERTIES[name].kind.secret and name != JAAS)
        }
        values = {name: without_references(setting.value.reveal()) for name, setting in given.items()}
        referring = frozenset(name for name, setting in self.of_role(role).items() if has_reference(setting.value.reveal()))
        return ClientSettings(self.alias, self.path, given, values, referring)

    def resolved(self, role: ClientRole) -> ClientSettings:
        """The properties with all references replaced; ConfigError names provider and key of a reference that cannot be resolved."""
        return self._resolve(ClientSettings(self.alias, self.path, self.of_role(role), {}))

    def _resolve(self, found: ClientSettings) -> ClientSettings:
        for name, setting in found.settings.items():
            try:
                found.values[name] = self.providers.resolve(setting.value.reveal())
            except UnresolvedReference as problem:
                raise found.problem(name, str(problem)) from problem.__cause__
        return found
