"""The properties that are in force, where each comes from, and that no secret is among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.airflow.connections import placeholder
from ferry.config import load_config
from ferry.config.in_force import OF_CONNECTION, InForce

pytestmark = pytest.mark.unit

SECRET = "hunter-two"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="ferry" password="{SECRET}";'
LINES = (
    "clusters = A, B, C",
    "A.bootstrap.servers = a:9092",
    "B.bootstrap.servers = b:9092",
    "C.ferry.airflow.connection = kafka_c",
    "topics = everything",
    "A->B.enabled = true",
    "A->B.topics = orders",
    "C->B.enabled = true",
    "B.ferry.ledger.partitions = 7",
    "offset.lag.max = 3",
    "config.providers = env",
    "config.providers.env.class = EnvVarConfigProvider",
    "A.security.protocol = SASL_SSL",
    "A.sasl.mechanism = PLAIN",
    f"A.sasl.jaas.config = {JAAS}",
    "A.ssl.truststore.password = ${env:TRUST}",
    f"A.ssl.keystore.password = ${{env:KEY}}{SECRET}",
    "A.consumer.auto.offset.reset = latest",
    f"A->B.sasl.oauthbearer.token.endpoint.url = https://x:{SECRET}@idp/token",
    f'ferry.alert.callback.args = {{"m:f": {{"token": "{SECRET}"}}}}',
    "ferry.alert.callback = m:f",
)


def found(tmp_path: Path, flow: str = "A->B", lines: tuple[str, ...] = LINES) -> dict[tuple[str, str], InForce]:
    path = tmp_path / "mm2.properties"
    path.write_text("\n".join(lines), encoding="latin-1")
    return {(entry.of, entry.name): entry for entry in load_config(path, connections=placeholder).in_force[flow]}


def told(entry: InForce) -> tuple[str, str, int]:
    return entry.value.reveal(), entry.key, entry.line


def test_each_value_has_the_key_and_line_that_it_comes_from(tmp_path: Path) -> None:
    rows = found(tmp_path)
    assert told(rows["A->B", "topics"]) == ("orders", "A->B.topics", 7)
    assert told(found(tmp_path, "C->B")["C->B", "topics"]) == ("everything", "topics", 5)
    assert told(rows["A->B", "ferry.ledger.partitions"]) == ("7", "B.ferry.ledger.partitions", 9)
    assert told(rows["A->B", "offset.lag.max"]) == ("3", "offset.lag.max", 10)
    assert told(rows["A->B", "ferry.transaction.seconds"]) == ("10", "", 0)
    assert told(rows["A->B", "ferry.schedule"]) == ("", "", 0)
    assert told(rows["A", "bootstrap.servers"]) == ("a:9092", "A.bootstrap.servers", 2)
    assert told(rows["A", "auto.offset.reset"]) == ("latest", "A.consumer.auto.offset.reset", 18)
    only = found(tmp_path, lines=(*LINES, "A.consumer.ssl.endpoint.identification.algorithm = https"))
    assert ("A (consumer)", "ssl.endpoint.identification.algorithm") in only
    assert all(entry.meaning for entry in rows.values())


def test_a_secret_is_shown_only_as_the_reference_to_it(tmp_path: Path) -> None:
    rows = found(tmp_path)
    assert rows["A", "sasl.jaas.config"].value.reveal() == "[hidden]"
    assert rows["A", "ssl.truststore.password"].value.reveal() == "${env:TRUST}"
    assert rows["A", "ssl.keystore.password"].value.reveal() == "[hidden]", "it is not only a reference"
    assert rows["A->B", "ferry.alert.callback.args"].value.reveal() == "[hidden]"
    assert all(SECRET not in entry.value.reveal() for entry in rows.values())


@pytest.mark.parametrize(
    "line",
    [
        f"A.sasl.oauthbearer.token.endpoint.url = https://x:{SECRET}@idp/token",
        f"A.sasl.oauthbearer.token.endpoint.url = https://x:a@{SECRET}/b@idp/token",
        f"A.sasl.oauthbearer.token.endpoint.url = https://idp/token?scope=all&token={SECRET}",
        f"A->B.ferry.message.handler.args = {SECRET}",
        f"A->B.topic.filter.api.key = {SECRET}",
    ],
)
def test_neither_is_one_in_another_value(tmp_path: Path, line: str) -> None:
    lines = (*LINES[:10], line, "A->B.topic.filter.class = tests.config.test_in_force:Filter")
    rows = found(tmp_path, lines=lines)
    name = line.partition(" = ")[0].removeprefix("A.").removeprefix("A->B.")
    (entry,) = (entry for (_, shown), entry in rows.items() if shown == name)
    assert "[hidden]" in entry.value.reveal()
    assert SECRET not in entry.value.reveal()


def test_what_a_connection_says_is_not_told(tmp_path: Path) -> None:
    rows = found(tmp_path, "C->B")
    assert rows["C", "ferry.airflow.connection"].value.reveal() == "kafka_c"
    assert told(rows["C", "bootstrap.servers"]) == (OF_CONNECTION, "C.ferry.airflow.connection", 4)


class Filter:
    """A custom class."""

    def should_replicate_topic(self, _: str) -> bool:
        return True
