"""confluent-kafka's own client against the double: what it asks, it understands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
)
from tests.schemas.double.faults import at, busy
from tests.schemas.double.server import RegistryDouble

pytestmark = pytest.mark.unit

A, B = (Schema(f'{{"type":"record","name":"{name}","fields":[]}}', "AVRO") for name in "ab")


@pytest.fixture
def double() -> Iterator[RegistryDouble]:
    with RegistryDouble() as double:
        yield double


@pytest.fixture
def client(double: RegistryDouble) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": double.url}) as client:
        yield client


def test_register_and_read(client: SchemaRegistryClient) -> None:
    registered = client.register_schema_full_response("a", A)
    assert (registered.schema_id, registered.version) == (1, 1)
    assert client.register_schema("a", B) == 2
    client.clear_caches()
    assert client.get_schema(1).schema_str == A.schema_str
    assert client.get_schema_by_guid(registered.guid).schema_str == A.schema_str
    assert (client.lookup_schema("a", A).version, client.get_latest_version("a").version) == (1, 2)
    assert (client.get_subjects(), client.get_versions("a"), client.get_version("a", 2).schema_id) == (["a"], [1, 2], 2)
    assert (client.get_subjects_by_schema_id(1), client.get_schema_versions(1)[0].version) == (["a"], 1)
    assert client.get_schema_types() == ["AVRO", "JSON", "PROTOBUF"]


def test_references_and_metadata(client: SchemaRegistryClient) -> None:
    client.register_schema("a", A)
    owned = Metadata(None, MetadataProperties({"owner": "me"}), None)
    client.register_schema("b", Schema(B.schema_str, "AVRO", [SchemaReference("a", "a", 1)], owned))
    found = client.get_latest_version("b").schema
    assert [(one.name, one.subject, one.version) for one in found.references] == [("a", "a", 1)]
    assert found.metadata.properties.properties == {"owner": "me"}
    assert client.get_referenced_by("a", 1) == [2]


def test_delete(client: SchemaRegistryClient) -> None:
    client.register_schema("a", A)
    client.register_schema("a", B)
    assert client.delete_version("a", 1) == 1
    assert client.delete_subject("a") == [2]
    assert client.delete_subject("a", permanent=True) == [1, 2]
    with pytest.raises(SchemaRegistryError) as gone:
        client.get_versions("a")
    assert (gone.value.http_status_code, gone.value.error_code) == (404, 40401)


def test_configs_modes_and_contexts(client: SchemaRegistryClient) -> None:
    assert client.get_compatibility() == "BACKWARD"
    client.set_compatibility("a", "FULL")
    assert client.get_compatibility("a") == "FULL"
    client.set_config("a", ServerConfig(compatibility=ConfigCompatibilityLevel.NONE, compatibility_group="major"))
    assert client.get_config("a").compatibility_group == "major"
    client.delete_config("a")
    assert client.update_mode("a", "IMPORT") == "IMPORT"
    assert (client.get_mode("a"), client.get_global_mode()) == ("IMPORT", "READWRITE")
    client.register_schema(":.eu:a", A)
    assert client.get_contexts() == [".", ".eu"]


def test_the_client_asks_a_busy_registry_again(double: RegistryDouble) -> None:
    double.plan = at(1, busy(0))
    with SchemaRegistryClient({"url": double.url, "retries.wait.ms": 1, "retries.max.wait.ms": 1}) as client:
        assert client.get_subjects() == []
    assert double.requests["GET", "/subjects"] == 2


def test_logins() -> None:
    with RegistryDouble(users={"me": "secret"}, tokens=frozenset({"token"})) as double:
        with SchemaRegistryClient({"url": double.url, "basic.auth.user.info": "me:secret"}) as basic:
            assert basic.get_subjects() == []
        bearer = {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "token"}
        bearer |= {"bearer.auth.logical.cluster": "lsrc-1", "bearer.auth.identity.pool.id": "pool-1"}
        with SchemaRegistryClient({"url": double.url, **bearer}) as with_token:
            assert with_token.get_subjects() == []
        with SchemaRegistryClient({"url": double.url}) as nobody, pytest.raises(SchemaRegistryError) as refused:
            nobody.get_subjects()
        assert refused.value.http_status_code == 401
