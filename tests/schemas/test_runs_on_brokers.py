"""A run copies schemas before records, between real brokers: confluent-kafka's clients read the copies by the target's registry alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from tests.cli.inside import ferry
from tests.conftest import Lab
from tests.schemas.double.server import RegistryDouble
from tests.schemas.serializers import AVRO_SCHEMA, FORMATS, Format, Record, read, written

from ferry.config import load_config
from ferry.errors import ExitCode

pytestmark = pytest.mark.brokers

Registries = tuple[RegistryDouble, RegistryDouble]


@pytest.fixture
def registries() -> Iterator[Registries]:
    with RegistryDouble() as source, RegistryDouble() as target:
        yield source, target


@pytest.mark.parametrize("in_header", [False, True], ids=["frame", "header"])
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_copies_are_read_by_the_targets_registry(lab: Lab, registries: Registries, form: Format, in_header: bool) -> None:
    source, target = registries
    path, topic, remote = _flow(lab, registries)
    with _client(source) as client:
        _produce(lab, topic, written(client, form, topic, "the first item", in_header=in_header))
    done = _run(path)
    assert done.returncode == ExitCode.DONE, done.stderr
    with _client(target) as client:
        assert [read(client, form, remote, one) for one in _records(lab, remote)] == ["the first item"]

    writes = _writes(target)
    assert _run(path, "sync", "schemas").returncode == ExitCode.DONE
    assert _writes(target) == writes


def test_no_record_is_copied_whose_schema_the_target_cannot_hold(lab: Lab, registries: Registries) -> None:
    source, target = registries
    path, topic, remote = _flow(lab, registries)
    target.seed("of-others", '"bytes"')
    source.seed(f"{topic}-value", AVRO_SCHEMA)
    lab.produce(lab.source, topic, [(0, None, b"\0\0\0\0\1\x18any payload.")])
    before = _writes(target)
    stopped = _run(path)
    assert stopped.returncode == ExitCode.PARTLY_FAILED
    assert "id 1 means another schema on the target: that of subject of-others version 1" in stopped.stderr
    assert (_writes(target), _records(lab, remote)) == (before, [])

    assert _run(_without_schemas(path)).returncode == ExitCode.DONE
    assert len(_records(lab, remote)) == 1


def test_ids_in_copies_that_the_target_does_not_know(lab: Lab, registries: Registries) -> None:
    source, target = registries
    path, topic, remote = _flow(lab, registries)
    with _client(source) as client:
        for in_header in (False, True):
            record = written(client, FORMATS[0], topic, "an item", in_header=in_header)
            _produce(lab, topic, record)
            _produce(lab, topic, record)
    lab.produce(lab.source, topic, [(0, None, b"\3\0" + bytes(16) + b"data of Glue")])
    assert _run(path).returncode == ExitCode.DONE
    equal = _run(path, "verify", "--schemas", "--json")
    assert equal.returncode == ExitCode.DONE, equal.stderr
    notices = " ".join(json.loads(equal.stdout)["notices"])
    assert f"{remote}-0 offset 4: it looks like an id of AWS Glue, in the value" in notices
    assert "looked for ids of schemas in the newest records of 1 of 1 remote partition: found 2" in notices

    for permanent in (False, True):
        target.registry.delete_subject(f"{remote}-value", permanent)
    found = _run(path, "verify", "--schemas", "--json")
    assert found.returncode == ExitCode.PARTLY_FAILED
    named = {one["what"]: one["problem"] for one in json.loads(found.stdout)["differences"]}
    assert named[f"{remote}-0 offset 0, value"] == "no schema has the id 1 there"
    assert named[f"{remote}-0 offset 2, header __value_schema_id"].startswith("no schema has the GUID ")

    looked = _run(path, "failover", "--dry-run", "--json")
    assert looked.returncode == ExitCode.DONE, looked.stderr
    assert f"{remote}-0 offset 0, value: no schema has the id 1 there, so consumers cannot read it" in json.loads(looked.stdout)["problems"]
    assert _run(path, "sync", "schemas").returncode == ExitCode.DONE
    assert json.loads(_run(path, "failover", "--dry-run", "--json").stdout)["problems"] == []


def _run(path: Path, command: str = "run", *more: str) -> CompletedProcess[str]:
    return ferry(command, path, "--flow", load_config(path).flows[0].name, *more)


def _without_schemas(path: Path) -> Path:
    other = path.with_name("without.properties")
    other.write_text(path.read_text() + "sync.schemas.enabled = false\n")
    return other


def _flow(lab: Lab, registries: Registries) -> tuple[Path, str, str]:
    """The config, the topic and its remote topic."""
    topic = lab.topic(lab.source)
    urls = [f"{alias}.schema.registry.url = {registry.url}" for alias, registry in zip("AB", registries, strict=True)]
    path = lab.config(f"topics = {topic}", *urls, *lab.copy_only)
    return path, topic, f"{load_config(path).flows[0].source.alias}.{topic}"


def _client(registry: RegistryDouble) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def _writes(registry: RegistryDouble) -> dict[tuple[str, str], int]:
    return {(method, path): count for (method, path), count in registry.requests.items() if method != "GET"}


def _produce(lab: Lab, topic: str, record: Record) -> None:
    producer = Producer(lab.source.client_settings())
    producer.produce(topic, record.payload, headers=record.headers)
    assert producer.flush(60) == 0


def _records(lab: Lab, topic: str) -> list[Record]:
    """All records of a topic with one partition; none if there is no such topic."""
    consumer = Consumer(
        {**lab.target.client_settings(), "group.id": "reads", "isolation.level": "read_committed", "enable.partition.eof": True}
    )
    found: list[Record] = []
    try:
        if topic not in consumer.list_topics(timeout=60).topics:
            return []
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(60)) is not None and message.error() is None:
            found.append(Record(message.value() or b"", [(name, value or b"") for name, value in message.headers() or []]))
        return found
    finally:
        consumer.close()
