"""Secrets stay covered wherever a configuration is shown."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import pickle
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from ferry.config import ClientRole, ConnectionFields, FerryConfig, Secret, load_config
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

T = TypeVar("T")

PASSWORD = "hunter2-opened"

LOGINS = f"""\
A.security.protocol = SASL_SSL
A.sasl.mechanism = PLAIN
A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="{PASSWORD}";
A.ssl.truststore.location = /nowhere/{PASSWORD}.not
A.ssl.truststore.password = {PASSWORD}
B.security.protocol = SSL
B.ssl.key.password = {PASSWORD}
B.ssl.keystore.type = PEM
B.ssl.keystore.key = {PASSWORD}
B.ssl.keystore.certificate.chain = {PASSWORD}
"""


def travelled(thing: T) -> T:
    """What arrives in another process."""
    copied: T = pickle.loads(pickle.dumps(thing))  # noqa: S301 - made here
    return copied


def test_shows_nothing_in_any_form() -> None:
    secret = Secret(PASSWORD)
    shown = [repr(secret), str(secret), f"{secret}", f"{secret:>20}", "%s %r" % (secret, secret), repr([secret]), repr({secret: secret})]  # noqa: UP031
    assert all("[hidden]" in text and PASSWORD not in text for text in shown)
    assert secret.reveal() == PASSWORD


def test_equals_and_travels() -> None:
    secret = Secret(PASSWORD)
    assert secret == travelled(secret) == copy.deepcopy(secret)
    assert secret != Secret("other")
    assert secret != PASSWORD
    assert len({secret, Secret(PASSWORD)}) == 1
    assert PASSWORD not in repr(travelled(secret))


def test_cannot_be_changed_or_written_as_json() -> None:
    secret = Secret(PASSWORD)
    with pytest.raises(AttributeError):
        secret._text = "other"
    with pytest.raises(AttributeError):
        del secret._text
    with pytest.raises(TypeError):
        json.dumps(secret)


def test_configuration_shows_no_value(load: Callable[..., FerryConfig]) -> None:
    config = load(LOGINS)
    arrived = travelled(config)
    assert arrived == config
    for shown in (config, arrived, config.flows[0], config.clusters["A"], config.flows[0].target.settings, config.warnings):
        assert PASSWORD not in repr(shown)
        assert PASSWORD not in str(shown)
    assert PASSWORD not in repr(dataclasses.asdict(config))


def test_errors_of_logins_show_no_value(load: Callable[..., FerryConfig], caplog: pytest.LogCaptureFixture) -> None:
    config = load(LOGINS.replace(f"/nowhere/{PASSWORD}.not", "/nowhere/store.jks"))
    for cluster in config.clusters.values():
        for settings in (cluster.librdkafka, partial(cluster.kafka_python, ClientRole.CONSUMER)):
            with pytest.raises(ConfigError) as caught:
                settings()
            logging.getLogger("test").error("failed", exc_info=caught.value)
            assert PASSWORD not in "".join(traceback.format_exception(caught.value))
            assert PASSWORD not in repr(travelled(caught.value))
    assert PASSWORD not in caplog.text


@pytest.mark.parametrize(
    "jaas",
    [
        f"org.apache.kafka.common.security.plain.PlainLoginModule required username=me password={PASSWORD}@x;",
        f"org.apache.kafka.common.security.plain.PlainLoginModule required password {PASSWORD};",
        f'org.apache.kafka.common.security.plain.PlainLoginModule required password="{PASSWORD}";',
        f'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="{PASSWORD}";',
        f'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="{PASSWORD}"',
        PASSWORD,
        f"{PASSWORD} required;",
    ],
)
def test_problems_with_jaas_show_no_value(problems: Callable[..., list[str]], jaas: str) -> None:
    found = problems(f"A.security.protocol=SASL_PLAINTEXT\nA.sasl.mechanism=PLAIN\nA.sasl.jaas.config={jaas}\n")
    assert len(found) == 1
    assert found[0].startswith("7: A.sasl.jaas.config: ")
    assert PASSWORD not in found[0]


def test_values_behind_references_are_not_quoted(problems: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANES", PASSWORD)
    found = problems(
        "config.providers=env\nconfig.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
        "ferry.lanes=${env:LANES}\n"
    )
    assert found == ["7: ferry.lanes: must be a whole number from 1 to 1000"]


def test_failing_connection_lookup_shows_only_the_kind_of_error(problems: Callable[..., list[str]]) -> None:
    for problem, told in (
        (LookupError, "was not found: define it in the environment (AIRFLOW_CONN_KAFKA_A) or in the secrets backend, "),
        (TimeoutError, "cannot be read (TimeoutError): see whether the secrets backend answers, "),
    ):

        def lookup(name: str, problem: type[Exception] = problem) -> ConnectionFields:
            raise problem(f"kafka://me:{PASSWORD}@{name}")

        (found,) = problems("A.ferry.airflow.connection=kafka_a\n", connections=lookup)
        assert found.startswith(f"5: A.ferry.airflow.connection: Airflow connection kafka_a {told}")
        assert PASSWORD not in found
    assert PASSWORD not in repr(ConnectionFields(password=PASSWORD, extra={"sasl.password": PASSWORD}))


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.properties: cannot be read: No such file"):
        load_config(tmp_path / "none.properties")
