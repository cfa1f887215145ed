"""The schema registry of a cluster in the file: what is read, what contradicts itself, and that nothing secret shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.config import load_config
from ferry.config.credentials import ClientCredentials, Password
from ferry.config.schema_registry import RegistryLogin, read_registry
from ferry.config.secret import Secret
from ferry.errors import ConfigError
from ferry.syncs.names import SyncName, not_enabled

pytestmark = pytest.mark.unit

FILE = """\
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
"""
OAUTH = "sasl.oauthbearer"


def loaded(tmp_path: Path, *lines: str) -> RegistryLogin:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE + "".join(f"A.schema.registry.{line}\n" for line in lines))
    cluster = load_config(path).flows[0].source
    return read_registry("A", cluster.registry_settings())


def test_urls(tmp_path: Path) -> None:
    login = loaded(tmp_path, "url = https://one/apis/, http://two:8081")
    assert login.urls == ("https://one/apis", "http://two:8081")
    assert (login.credentials, login.user) == (None, "nobody: there is no login")


def test_logins(tmp_path: Path) -> None:
    assert loaded(tmp_path, "url = http://r", "basic.auth.user.info = me:pass:word").credentials == Password("me", Secret("pass:word"))
    assert loaded(tmp_path, "url = http://r", "bearer.auth.token = t").credentials == Secret("t")
    client = [f"{OAUTH}.client.credentials.client.{name} = {name}" for name in ("id", "secret")]
    login = loaded(tmp_path, "url = http://r", f"{OAUTH}.token.endpoint.url = https://t", *client, "bearer.auth.logical.cluster = lsrc-1")
    assert isinstance(login.credentials, ClientCredentials)
    assert (login.user, login.headers) == ("id", {"target-sr-cluster": "lsrc-1"})


def test_references_are_looked_up_when_the_registry_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mm2.properties"
    env = "config.providers = env\nconfig.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
    path.write_text(f"{FILE}{env}A.schema.registry.url = http://r\nA.schema.registry.basic.auth.user.info = ${{env:REGISTRY_LOGIN}}\n")
    monkeypatch.setenv("REGISTRY_LOGIN", "not:yet")
    cluster = load_config(path).flows[0].source
    monkeypatch.setenv("REGISTRY_LOGIN", "me:secret")
    assert read_registry("A", cluster.registry_settings()).credentials == Password("me", Secret("secret"))


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["url = ftp://r"], "URLs separated by commas"),
        (["url = http://me:pass@r"], "without a user in it"),
        (["basic.auth.user.info = me:pass"], "A.schema.registry.url: is not set, but other keys"),
        (["url = http://r", "basic.auth.user.info = me"], "must be user:password"),
        (["url = http://r", "basic.auth.user.info = a:b", "bearer.auth.token = c"], "exclude each other"),
        (["url = http://r", f"{OAUTH}.token.endpoint.url = https://t"], "client.id: is not set: the token endpoint needs it"),
        (["url = https://r", "ssl.truststore.certificates = x"], "ssl.truststore.type=PEM"),
    ],
)
def test_what_is_wrong_is_named_and_no_secret_is_shown(tmp_path: Path, lines: list[str], problem: str) -> None:
    with pytest.raises(ConfigError) as told:
        loaded(tmp_path, *lines)
    assert problem in str(told.value)
    assert "pass" not in str(told.value).replace("password", "")


@pytest.mark.parametrize("value", ["", "x", ".a=", ".a=.b, .a=.c", ":.a:"])
def test_contexts_that_are_none(tmp_path: Path, value: str) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(f"{FILE}sync.schemas.contexts = {value}\n")
    with pytest.raises(ConfigError, match=r"sync\.schemas\.contexts: must be contexts"):
        load_config(path)


def test_the_sync_needs_both_registries(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    one = f"{FILE}A.schema.registry.url = http://r\n"
    path.write_text(one)
    assert not_enabled(load_config(path).flows[0], SyncName.SCHEMAS) == "B.schema.registry.url is not set"
    path.write_text(f"{one}B.schema.registry.url = http://r\n")
    assert not_enabled(load_config(path).flows[0], SyncName.SCHEMAS) == ""
    path.write_text(f"{one}A->B.sync.schemas.enabled = true\n")
    with pytest.raises(ConfigError, match=r"is true, but B\.schema\.registry\.url is not set"):
        load_config(path)
