"""A run copies schemas before records, between real brokers: confluent-kafka's clients read the copies by the target's registry alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.serialization import MessageField
from tests.cli.inside import ferry
from tests.conftest import Lab
from tests.schemas.apicurio import apicurio
from tests.schemas.double.server import RegistryDouble
from tests.schemas.serializers import AVRO_SCHEMA, FORMATS, Format, Record, read, written
from tests.waiting import until
from tools.kafka import SandboxCluster
from tools.kafka.groups import commit_offsets, next_records

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
    commit_offsets(lab.source.client_settings(), group := f"readers-of-{topic}", {(topic, 0): 0})
    moved = _run(path, "failover", "--yes", "--json", "--groups", group)
    assert moved.returncode == ExitCode.DONE, moved.stderr
    assert "last copy: SchemasRefused: no record is copied: subject " in moved.stdout
    assert _run(path, "backfill", "--from", "2020-01-01", "--until", "2100-01-01").returncode == ExitCode.PARTLY_FAILED
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


REWRITE = "sync.schemas.rewrite.ids.topics = .*"


@pytest.mark.parametrize("lines", [(), (REWRITE,)], ids=["kept", "rewritten"])
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_a_group_that_failed_over_reads_on_with_the_targets_registry(
    lab: Lab, registries: Registries, form: Format, lines: tuple[str, ...]
) -> None:
    """The last record has a schema that is newer than the last run: the last copy of the failover brings both."""
    source, target = registries
    path, topic, remote = _flow(lab, registries, *lines)
    if lines:
        target.seed("of-others", '"bytes"')
    with _client(source) as client:
        for item in ("the first item", "the second item"):
            _produce(lab, topic, written(client, form, topic, item))
        assert _run(path).returncode == ExitCode.DONE
        other = next(one for one in FORMATS if one is not form)
        key = written(client, other, topic, "the last key", MessageField.KEY)
        _produce(lab, topic, written(client, form, topic, "the last item"), key.payload)
    commit_offsets(lab.source.client_settings(), group := f"readers-of-{topic}", {(topic, 0): 1})
    moved = _run(path, "failover", "--yes", "--groups", group)
    assert moved.returncode == ExitCode.DONE, moved.stderr
    ((_, following),) = next_records(lab.target.bootstrap, group, remote).values()
    last, last_key = _records(lab, remote)[-1], _records(lab, remote, lambda message: message.key())[-1]
    with _client(target) as client:
        assert read(client, form, remote, Record(following or b"", [])) == "the second item"
        assert read(client, form, remote, last) == "the last item"
        assert read(client, other, remote, last_key, MessageField.KEY) == "the last key"


# Ids rewritten.


@pytest.mark.parametrize("in_header", [False, True], ids=["frame", "header"])
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_copies_with_the_targets_ids(lab: Lab, registries: Registries, form: Format, in_header: bool) -> None:
    source, target = registries
    path, topic, remote = _flow(lab, registries, REWRITE)
    target.seed("of-others", '"bytes"')
    with _client(source) as client:
        _produce(lab, topic, written(client, form, topic, "the first item", in_header=in_header))
    lab.produce(lab.source, topic, [(0, None, None), (0, b"a key", b"plain text")])
    done = _run(path)
    assert done.returncode == ExitCode.DONE, done.stderr
    first, *others = _records(lab, remote)
    with _client(target) as client:
        assert read(client, form, remote, first) == "the first item"
    assert [one.payload for one in others] == [b"", b"plain text"]
    if not in_header:
        assert first.payload[:5] == b"\0\0\0\0\2"
    compared = _run(path, "verify", "--json")
    assert compared.returncode == ExitCode.DONE, compared.stderr
    assert "new ids of schemas" in json.loads(compared.stdout)["not_covered"][0]["reason"]
    assert _run(path, "verify", "--schemas").returncode == ExitCode.DONE


def test_a_schema_that_is_new_since_the_sync_is_looked_up_once(lab: Lab, registries: Registries) -> None:
    source, target = registries
    path, topic, remote = _flow(lab, registries, REWRITE, "sync.schemas.interval.seconds = 3600")
    target.seed("of-others", '"bytes"')
    with _client(source) as client:
        _produce(lab, topic, written(client, FORMATS[0], topic, "first"))
        assert _run(path).returncode == ExitCode.DONE
        _produce(lab, topic, written(client, FORMATS[1], f"{topic}-other", "second"))
    done = _run(path, "run", "--json")
    assert done.returncode == ExitCode.DONE, done.stderr
    with _client(target) as client:
        first, second = _records(lab, remote)
        assert read(client, FORMATS[0], remote, first) == "first"
        assert read(client, FORMATS[1], remote, second) == "second"


@pytest.mark.long
def test_a_run_that_follows_finds_a_new_schema_by_its_next_sync(lab: Lab, registries: Registries) -> None:
    source, target = registries
    often = ("sync.schemas.interval.seconds = 1", "refresh.topics.interval.seconds = 1")
    path, topic, remote = _flow(lab, registries, REWRITE, *often)
    target.seed("of-others", '"bytes"')
    unknown = b"\0\0\0\0\2" + b'{"item": "second"}'
    with _client(source) as client, ThreadPoolExecutor() as aside:
        _produce(lab, topic, written(client, FORMATS[0], topic, "first"))

        def later() -> None:
            until(lambda: len(_records(lab, remote)) == 1)
            lab.produce(lab.source, topic, [(0, None, unknown)])
            clock_at = time.monotonic() + 6  # the lane has met it by then, and a sync has not found it
            until(lambda: time.monotonic() > clock_at)
            written(client, FORMATS[1], f"{topic}-other", "registers id 2")

        done, followed = aside.submit(later), _run(path, "run", "--follow", "40s")
        done.result()
    assert followed.returncode == ExitCode.DONE, followed.stderr
    with _client(target) as client:
        assert [read(client, FORMATS[at], remote, one) for at, one in enumerate(_records(lab, remote))] == ["first", "second"]


def test_both_directions_with_names_that_stay(lab: Lab, registries: Registries) -> None:
    """Each record gets the other side's id once, and none comes back."""
    source, target = registries
    path, topic, _ = _flow(lab, registries, REWRITE, "replication.policy.class = IdentityReplicationPolicy")
    here, there = (flow.alias for flow in (load_config(path).flows[0].source, load_config(path).flows[0].target))
    path.write_text(f"{path.read_text()}\n{there}->{here}.enabled = true\n")
    target.seed("of-others", '"bytes"')
    with _client(source) as client:
        _produce(lab, topic, written(client, FORMATS[0], topic, "from here"))
    forth, back = f"{here}->{there}", f"{there}->{here}"
    assert ferry("run", path, "--flow", forth).returncode == ExitCode.DONE
    with _client(target) as client:
        record = written(client, FORMATS[1], f"{topic}-other", "from there")
        lab.produce(lab.target, topic, [(0, None, record.payload)])
    for flow in (back, forth, back):
        done = ferry("run", path, "--flow", flow)
        assert done.returncode == ExitCode.DONE, done.stderr
    for cluster, registry in ((lab.source, source), (lab.target, target)):
        with _client(registry) as client:
            first, second = _records(lab, topic, cluster=cluster)
            assert read(client, FORMATS[0], topic, first) == "from here"
            assert read(client, FORMATS[1], topic, second) == "from there"


def test_an_id_that_no_registry_knows_stops_its_partition_by_name(lab: Lab, registries: Registries) -> None:
    source, _ = registries
    path, topic, remote = _flow(lab, registries, REWRITE)
    with _client(source) as client:
        record = written(client, FORMATS[0], topic, "an item")
    _produce(lab, topic, record)
    lab.produce(lab.source, topic, [(0, None, b"\0\0\0\0\x63any data")])
    _produce(lab, topic, record)
    for _ in range(2):
        stopped = _run(path)
        assert stopped.returncode == ExitCode.PARTLY_FAILED
        assert f"{topic}-0: SchemaIdUnknown: offset 1: the value has id 99" in stopped.stderr
        assert len(_records(lab, remote)) == 1


@pytest.mark.java
@pytest.mark.long
def test_a_registry_that_keeps_no_ids_gets_records_with_its_own(lab: Lab, tmp_path: Path) -> None:
    """Apicurio as the target. Before, it has ids of its own, so that none is the same by chance."""
    with (
        RegistryDouble() as source,
        apicurio(tmp_path / "log") as url,
        SchemaRegistryClient({"url": source.url}) as here,
        SchemaRegistryClient({"url": url}) as there,
    ):
        for number in range(3):
            text = json.dumps({"type": "enum", "name": f"F{number}", "symbols": ["A"]})
            there.register_schema(f"filler-{number}", Schema(text, "AVRO"))
        for form in FORMATS:
            path, topic, remote = _flow(lab, (source.url, url), REWRITE)
            key, value = (_written(source, here, form, topic, field) for field in (MessageField.KEY, MessageField.VALUE))
            _produce(lab, topic, value, key.payload)
            done = _run(path)
            assert done.returncode == ExitCode.DONE, done.stderr
            (copied,) = _records(lab, remote)
            (copied_key,) = _records(lab, remote, lambda message: message.key())
            for before, after, field in ((key, copied_key, MessageField.KEY), (value, copied, MessageField.VALUE)):
                assert after.payload[:5] != before.payload[:5]
                assert after.payload[5:] == before.payload[5:]
                with SchemaRegistryClient({"url": url}) as reader:  # Apicurio lets a second question over one connection wait, at times
                    if form.name != "PROTOBUF":
                        assert read(reader, form, remote, after, field) == field
                    else:  # Apicurio does not give descriptors as this client wants them (findings)
                        assert "message Order {" in str(reader.get_schema(int.from_bytes(after.payload[1:5], "big")).schema_str)
            again = _run(path, "sync", "schemas", "--json")
            assert again.returncode == ExitCode.DONE, again.stderr
            assert json.loads(again.stdout)["syncs"]["schemas"]["changes"] == []
            compared = _run(path, "verify", "--schemas")
            assert compared.returncode == ExitCode.DONE, compared.stdout


def _written(source: RegistryDouble, client: SchemaRegistryClient, form: Format, topic: str, field: str) -> Record:
    """As `written`, but of Protobuf the source has the schema's text, as a registry has it: the double keeps what the client sends."""
    if form.name != "PROTOBUF":
        return written(client, form, topic, field, field)
    with RegistryDouble() as other, _client(other) as scratch:
        record = written(scratch, form, topic, field, field)
    text = 'syntax = "proto3";\npackage shop;\n\nmessage Unused {}\nmessage Order {\n  optional string item = 1;\n}\n'
    number = source.seed(f"{topic}-{field}", text, schemaType="PROTOBUF").id
    return replace(record, payload=b"\0" + number.to_bytes(4, "big") + record.payload[5:])


def _run(path: Path, command: str = "run", *more: str) -> CompletedProcess[str]:
    return ferry(command, path, "--flow", load_config(path).flows[0].name, *more)


def _without_schemas(path: Path) -> Path:
    other = path.with_name("without.properties")
    other.write_text(path.read_text() + "sync.schemas.enabled = false\n")
    return other


def _flow(lab: Lab, registries: Registries | tuple[str, str], *lines: str) -> tuple[Path, str, str]:
    """The config, the topic and its remote topic."""
    topic = lab.topic(lab.source)
    found = [registry if isinstance(registry, str) else registry.url for registry in registries]
    urls = [f"{alias}.schema.registry.url = {url}" for alias, url in zip("AB", found, strict=True)]
    path = lab.config(f"topics = {topic}", *urls, *lines, *lab.copy_only)
    return path, topic, f"{load_config(path).flows[0].source.alias}.{topic}"


def _client(registry: RegistryDouble) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def _writes(registry: RegistryDouble) -> dict[tuple[str, str], int]:
    return {(method, path): count for (method, path), count in registry.requests.items() if method != "GET"}


def _produce(lab: Lab, topic: str, record: Record, key: bytes | None = None) -> None:
    producer = Producer(lab.source.client_settings())
    producer.produce(topic, record.payload, key, headers=record.headers)
    assert producer.flush(60) == 0


def _records(
    lab: Lab,
    topic: str,
    part: Callable[[Message], bytes | None] = lambda message: message.value(),
    cluster: SandboxCluster | None = None,
) -> list[Record]:
    """All records of a topic with one partition; none if there is no such topic."""
    consumer = Consumer(
        {
            **(cluster or lab.target).client_settings(),
            "group.id": "reads",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    found: list[Record] = []
    try:
        if topic not in consumer.list_topics(timeout=60).topics:
            return []
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(60)) is not None and message.error() is None:
            found.append(Record(part(message) or b"", [(name, value or b"") for name, value in message.headers() or []]))
        return found
    finally:
        consumer.close()
