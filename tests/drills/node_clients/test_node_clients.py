"""Registry clients for Node, Confluent's and that of kafkajs, read copies by the target's registry alone: their own records, and Python's.

kafkajs's client knows ids in the frame only. Protobuf is left out: the double keeps a text of Protobuf as it was registered, and these
clients register and read other forms of it than Python's.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from tests.cli.inside import ferry
from tests.conftest import Lab
from tests.schemas.double.server import RegistryDouble
from tests.schemas.serializers import FORMATS, Record, read, written

from ferry.cache import cache_directory
from ferry.config import load_config
from ferry.errors import ExitCode

pytestmark = [pytest.mark.node_clients, pytest.mark.brokers]

PACKAGES = ("@confluentinc/schemaregistry@1.10.1", "@kafkajs/confluent-schema-registry@4.1.0")
WRITERS = ("kafkajs", "confluent-frame", "confluent-header", "python-frame", "python-header")
FORMS = {form.name: form for form in FORMATS if form.name != "PROTOBUF"}
ORDER = {"item": "the first item"}


@pytest.fixture(scope="session")
def modules() -> Path:
    """The folder with both packages."""
    folder = cache_directory() / "node-clients"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("clients.js"), folder)
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", *PACKAGES]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def registries() -> Iterator[tuple[RegistryDouble, RegistryDouble]]:
    with RegistryDouble() as source, RegistryDouble() as target:
        yield source, target


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("writer", WRITERS)
def test_copies_are_read_by_the_targets_registry(
    lab: Lab, modules: Path, registries: tuple[RegistryDouble, RegistryDouble], writer: str, form: str
) -> None:
    source, target = registries
    source.seed("of-others-value", '"bytes"')  # so that an id that the target gave itself would be another one
    topic = lab.topic(lab.source)
    urls = [f"{alias}.schema.registry.url = {registry.url}" for alias, registry in zip("AB", registries, strict=True)]
    config = lab.config(f"topics = {topic}", *urls, *lab.copy_only)
    flow = load_config(config).flows[0]
    record = _written(modules, writer, form, source.url, topic)
    producer = Producer(lab.source.client_settings())
    producer.produce(topic, record.payload, headers=record.headers)
    assert producer.flush(60) == 0
    done = ferry("run", config, "--flow", flow.name)
    assert done.returncode == ExitCode.DONE, done.stderr

    remote = f"{flow.source.alias}.{topic}"
    copy = _first(lab, remote)
    with SchemaRegistryClient({"url": target.url}) as client:
        assert read(client, FORMS[form], remote, copy) == ORDER["item"]
    readers = ["confluent-frame"] if writer.endswith("header") else ["confluent-frame", "kafkajs"]
    headers = json.dumps({name: base64.b64encode(value).decode() for name, value in copy.headers})
    for reader in readers:
        assert _node(modules, "read", reader, form, target.url, remote, base64.b64encode(copy.payload).decode(), headers) == ORDER


def _written(modules: Path, writer: str, form: str, url: str, topic: str) -> Record:
    if writer.startswith("python"):
        with SchemaRegistryClient({"url": url}) as client:
            return written(client, FORMS[form], topic, ORDER["item"], in_header=writer.endswith("header"))
    found = _node(modules, "write", writer, form, url, topic)
    return Record(base64.b64decode(found["payload"]), [(name, base64.b64decode(value)) for name, value in found["headers"].items()])


def _node(modules: Path, *arguments: str) -> Any:
    done = subprocess.run(["node", "clients.js", *arguments], cwd=modules, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _first(lab: Lab, topic: str) -> Record:
    consumer = Consumer({**lab.target.client_settings(), "group.id": "reads", "isolation.level": "read_committed"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        return Record(message.value() or b"", [(name, value or b"") for name, value in message.headers() or []])
    finally:
        consumer.close()
