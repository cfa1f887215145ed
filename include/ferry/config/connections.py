"""A cluster's settings from an Airflow connection. The caller injects the look-up, because this room does not know Airflow.

The extra of a connection may use Kafka's Java names, or librdkafka's names as Airflow's Kafka provider does. Ferry takes only the settings
for connecting and for the login. Keys of the cluster in the file win over them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ferry.config.jaas import MODULES, LoginModule
from ferry.config.problems import Problems
from ferry.config.properties import Entry
from ferry.config.providers import has_reference
from ferry.config.registry import CLIENT_PROPERTIES
from ferry.config.secret import Secret
from ferry.config.sources import Setting

CONNECTION_KEY = "ferry.airflow.connection"
_PORT = 9092

# librdkafka's names that differ from Kafka's.
_RENAMED = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
}
_PEM_TYPES = {"ssl.ca.location": "truststore", "ssl.ca.pem": "truststore", "ssl.certificate.pem": "keystore", "ssl.key.pem": "keystore"}
_USER = "sasl.username"
_PASSWORD = "sasl.password"  # noqa: S105 - the name of a property
_IMPLIED = frozenset({_USER, _PASSWORD, "sasl.oauthbearer.method"})


@dataclass(frozen=True)
class ConnectionFields:
    """The fields of an Airflow connection that Ferry reads. `host` may hold several servers, with or without ports."""

    host: str | None = None
    port: int | None = None
    login: str | None = None
    password: str | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)


Lookup = Callable[[str], ConnectionFields]


def read_connection(entry: Entry, lookup: Lookup | None, problems: Problems) -> dict[str, Setting] | None:
    """Client settings of the connection that `entry` names, by Kafka's names; None if it cannot be read."""
    name = entry.value.strip()
    if lookup is None:
        what = "Airflow connections can be read inside Airflow only: write the cluster's bootstrap.servers and login here instead"
        problems.add(what, entry)
        return None
    try:
        fields = lookup(name)
    except LookupError:
        where = f"in the environment (AIRFLOW_CONN_{name.upper()}) or in the secrets backend, not in Airflow's database"
        problems.add(f"Airflow connection {name} was not found: define it {where}", entry)
        return None
    except Exception as problem:  # noqa: BLE001 - a look-up may raise anything; its text may hold the URI
        remedy = "see whether the secrets backend answers, and whether the connection is written correctly"
        problems.add(f"Airflow connection {name} cannot be read ({type(problem).__name__}): {remedy}", entry)
        return None
    texts = _translated(entry, fields, problems)
    for known, text in texts.items():
        kind = CLIENT_PROPERTIES[known].kind
        try:
            if not has_reference(text):
                kind.parse(text)
        except ValueError:
            problems.add(f"extra {known} of the connection must be {kind.wants}", entry)
    return {known: Setting(known, entry.key, entry.line, Secret(text), entry.path) for known, text in texts.items()}


def _translated(entry: Entry, fields: ConnectionFields, problems: Problems) -> dict[str, str]:
    texts: dict[str, str] = {}
    for written, value in fields.extra.items():
        if (known := CLIENT_PROPERTIES.get(_RENAMED.get(written, written))) and known.login:
            texts[known.name] = str(value).lower() if isinstance(value, bool) else str(value)
            if written in _PEM_TYPES:
                texts[f"ssl.{_PEM_TYPES[written]}.type"] = "PEM"
        elif written in {"ssl.certificate.location", "ssl.key.location"}:
            what = f"Ferry does not read extra {written} of the connection: use ssl.keystore.type=PEM and ssl.keystore.location"
            problems.add(what, entry)
        elif written not in _IMPLIED:
            problems.warn(f"extra {written} of the connection has no effect: it is neither an address nor a login", entry)
    if "bootstrap.servers" not in texts and fields.host:
        hosts = [host.strip() for host in fields.host.split(",") if host.strip()]
        port = fields.port or _PORT
        texts["bootstrap.servers"] = ",".join(host if host.rpartition(":")[2].isdecimal() else f"{host}:{port}" for host in hosts)
    _add_login(texts, fields)
    return texts


def _add_login(texts: dict[str, str], fields: ConnectionFields) -> None:
    """Turn user and password into a JAAS login module, as Kafka expects it."""
    user = fields.login or fields.extra.get(_USER)
    password = fields.password or fields.extra.get(_PASSWORD)
    mechanism = texts.get("sasl.mechanism", "")
    if user and password and mechanism and "sasl.jaas.config" not in texts:
        names = ("clientId", "clientSecret") if mechanism == "OAUTHBEARER" else ("username", "password")
        module = MODULES.get(mechanism, MODULES["PLAIN"])  # other mechanisms are refused with the login
        texts["sasl.jaas.config"] = LoginModule(module, dict(zip(names, (str(user), str(password)), strict=True))).text
