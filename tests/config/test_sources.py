"""MM2's precedence of keys."""

from __future__ import annotations

import pytest

from ferry.config.properties import Entry
from ferry.config.secret import Secret
from ferry.config.sources import ClientRole, Pair, Setting, Sources

pytestmark = pytest.mark.unit

PAIR = Pair("A", "B")


def sources(*keys: str) -> Sources:
    """Every key with itself as its value."""
    return Sources({key: Entry(key, key, line) for line, key in enumerate(keys, 1)})


def client(given: Sources, alias: str, role: ClientRole, name: str, pair: Pair | None = PAIR) -> str | None:
    found = {setting.name: setting for setting in given.of_client(alias, role, pair)}
    return found[name].value.reveal() if name in found else None


LOGIN = [
    "A->B.source.consumer.security.protocol",
    "A.consumer.security.protocol",
    "A.security.protocol",
    "security.protocol",
    "A->B.consumer.security.protocol",
    "A->B.source.cluster.security.protocol",
]
OTHER = ["A->B.source.consumer.client.id", "A.consumer.client.id", "A->B.consumer.client.id"]
PRODUCER = [
    "A->B.producer.override.client.id",
    "A->B.target.producer.client.id",
    "B.producer.client.id",
    "A->B.producer.client.id",
]


@pytest.mark.parametrize("strongest", range(len(LOGIN)))
def test_login_properties_of_a_source(strongest: int) -> None:
    assert client(sources(*reversed(LOGIN[strongest:])), "A", ClientRole.CONSUMER, "security.protocol") == LOGIN[strongest]


@pytest.mark.parametrize("strongest", range(len(OTHER)))
def test_other_properties_of_a_source(strongest: int) -> None:
    assert client(sources(*reversed(OTHER[strongest:])), "A", ClientRole.CONSUMER, "client.id") == OTHER[strongest]


@pytest.mark.parametrize("strongest", range(len(PRODUCER)))
def test_properties_of_the_producer_on_a_target(strongest: int) -> None:
    assert client(sources(*reversed(PRODUCER[strongest:])), "B", ClientRole.PRODUCER, "client.id") == PRODUCER[strongest]


@pytest.mark.parametrize(
    "key",
    [
        "client.id",
        "consumer.client.id",
        "A.client.id",
        "B.consumer.client.id",
        "A.producer.client.id",
        "A->B.client.id",
        "A->B.source.client.id",
        "A->B.target.consumer.client.id",
        "A->B.source.cluster.client.id",
        "B->A.consumer.client.id",
        "A->B.consumer.override.client.id",
    ],
)
def test_keys_that_mm2_ignores_or_of_another_cluster(key: str) -> None:
    assert client(sources(key), "A", ClientRole.CONSUMER, "client.id") is None


def test_a_cluster_by_itself_knows_no_flow() -> None:
    given = sources("A->B.source.consumer.client.id", "A.consumer.client.id")
    assert client(given, "A", ClientRole.CONSUMER, "client.id", pair=None) == "A.consumer.client.id"


def test_roles_have_their_own_properties_only() -> None:
    given = sources("A.admin.isolation.level", "A.consumer.isolation.level")
    assert client(given, "A", ClientRole.ADMIN, "isolation.level") is None
    assert client(given, "A", ClientRole.CONSUMER, "isolation.level") == "A.consumer.isolation.level"


def test_the_connection_ranks_between_cluster_and_top_level() -> None:
    connected = {"A": {"security.protocol": Setting("security.protocol", "A.ferry.airflow.connection", 9, Secret("connection"))}}

    def found(*keys: str) -> str | None:
        return client(Sources(sources(*keys).entries, connected), "A", ClientRole.ADMIN, "security.protocol")

    assert found("security.protocol") == "connection"
    assert found("security.protocol", "A.security.protocol") == "A.security.protocol"


def test_settings_know_their_key_and_line() -> None:
    (setting,) = sources("x", "A.bootstrap.servers").of_client("A", ClientRole.ADMIN, None)
    assert (setting.key, setting.line, setting.name) == ("A.bootstrap.servers", 2, "bootstrap.servers")


@pytest.mark.parametrize(
    ("keys", "name", "found"),
    [
        (["topics", "A->B.topics"], "topics", "A->B.topics"),
        (["topics", "A.topics", "B->A.topics"], "topics", "topics"),
        (["use.defaults.from"], "use.defaults.from", None),
        (["use.defaults.from", "A->B.use.defaults.from"], "use.defaults.from", "A->B.use.defaults.from"),
        (["ferry.ledger.partitions", "B.ferry.ledger.partitions"], "ferry.ledger.partitions", "B.ferry.ledger.partitions"),
        (["B.ferry.ledger.partitions", "A->B.ferry.ledger.partitions"], "ferry.ledger.partitions", "A->B.ferry.ledger.partitions"),
        (["ferry.ledger.partitions", "A.ferry.ledger.partitions"], "ferry.ledger.partitions", "ferry.ledger.partitions"),
        (["ferry.lanes", "B.ferry.lanes"], "ferry.lanes", "ferry.lanes"),
    ],
)
def test_properties_of_flows(keys: list[str], name: str, found: str | None) -> None:
    entry = sources(*keys).of_flow(PAIR, name)
    assert (entry.key if entry else None) == found
