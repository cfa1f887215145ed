"""Config providers: `${provider:[path:]key}`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ferry.config import ClientRole, FerryConfig
from ferry.config.providers import Provider, Providers, UnresolvedReference, has_reference, is_reference, without_references
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

PACKAGE = "org.apache.kafka.common.config.provider."
ENV = f"config.providers = env\nconfig.providers.env.class = {PACKAGE}EnvVarConfigProvider\n"
LOGIN = """\
A.security.protocol = SASL_PLAINTEXT
A.sasl.mechanism = PLAIN
A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="${env:FERRY_TEST_PW}";
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A directory with a properties file and a plain one."""
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "secrets.properties").write_text("user=me\npassword = a\\u0062c \n")
    (tmp_path / "allowed" / "token").write_text("t\n")
    (tmp_path / "outside").write_text("o")
    return tmp_path / "allowed"


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRY_A", "1")
    monkeypatch.setenv("OTHER", "2")
    env = Providers((Provider("env", "env", "FERRY_.*"),))
    assert env.resolve("x${env:FERRY_A}y${env::FERRY_A}") == "x1y1"
    with pytest.raises(UnresolvedReference, match="may not read OTHER: see config"):
        env.resolve("${env:OTHER}")
    with pytest.raises(UnresolvedReference, match="provider env has no variable FERRY_B"):
        env.resolve("${env:FERRY_B}")


def test_properties_files_and_directories(store: Path) -> None:
    both = Providers((Provider("file", "file"), Provider("dir", "directory")))
    assert both.resolve(f"${{file:{store}/secrets.properties:password}}") == "abc "
    assert both.resolve(f"${{dir:{store}:token}}") == "t\n"
    with pytest.raises(UnresolvedReference, match=r"provider file has no key none in .*secrets\.properties"):
        both.resolve(f"${{file:{store}/secrets.properties:none}}")
    with pytest.raises(UnresolvedReference, match=r"none\.properties: cannot be read"):
        both.resolve(f"${{file:{store}/none.properties:a}}")
    for key in ("none", "../outside"):
        with pytest.raises(UnresolvedReference, match=f"has no file {key}"):
            both.resolve(f"${{dir:{store}:{key}}}")


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_allowed_paths(store: Path, kind: str) -> None:
    providers = Providers((Provider("p", kind, f"/nowhere, {store}"),))
    found = f"${{p:{store}/secrets.properties:user}}" if kind == "file" else f"${{p:{store}:token}}"
    assert providers.resolve(found).strip() in {"me", "t"}
    for path in (store.parent, store / "..", Path(f"{store}x")):
        with pytest.raises(UnresolvedReference, match="provider p may not read"):
            providers.resolve(f"${{p:{path}:outside}}")


def test_unknown_provider_is_named() -> None:
    with pytest.raises(UnresolvedReference, match=r"no provider vault in config.providers \(declared: env\)"):
        Providers((Provider("env", "env"),)).check("${vault:a:b}")


def test_form_of_references() -> None:
    assert has_reference("a${p:k}b")
    assert not has_reference("a$b{c:d}")
    assert is_reference(" ${p:k} ")
    assert not is_reference("${p:k}${p:k}")
    assert without_references("a ${p:/x:k}") == "a reference"


def test_client_properties_are_resolved_when_used(
    load: Callable[..., FerryConfig], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FERRY_TEST_PW", raising=False)
    cluster = load(ENV + LOGIN).clusters["A"]
    for settings in (cluster.librdkafka, partial(cluster.kafka_python, ClientRole.CONSUMER)):
        with pytest.raises(ConfigError) as caught:
            settings()
        where = f"{tmp_path / 'mm2.properties'}:9: A.sasl.jaas.config: "
        assert str(caught.value) == f"{where}provider env has no variable FERRY_TEST_PW: set it in the environment of this process"
    assert cluster.user_name == "unknown (the login cannot be read here)"
    monkeypatch.setenv("FERRY_TEST_PW", "geheim")
    assert cluster.librdkafka()["sasl.password"] == "geheim"
    assert cluster.kafka_python(ClientRole.ADMIN)["sasl_plain_password"] == "geheim"
    assert cluster.user_name == "me"


def test_servers_behind_a_reference(load: Callable[..., FerryConfig], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERVERS", raising=False)
    cluster = load(ENV + "A.bootstrap.servers = ${env:SERVERS}\n").clusters["A"]
    assert cluster.bootstrap == "${env:SERVERS}"
    monkeypatch.setenv("SERVERS", "a:1,b:2")
    assert cluster.bootstrap == "a:1, b:2"
    monkeypatch.setenv("SERVERS", "nonsense")
    with pytest.raises(ConfigError, match=r"A\.bootstrap\.servers: must be host:port pairs"):
        cluster.librdkafka()


def test_other_properties_are_resolved_when_read(load: Callable[..., FerryConfig], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICS", "orders.*")
    assert load(ENV + "A->B.topics = ${env:TOPICS}, x\n").flow("A->B").topics == ("orders.*", "x")


def test_problems_of_providers(problems: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NONE", raising=False)
    found = problems(
        ENV
        + f"""config.providers.env.param.allowlist.patern = x
A->B.topics = ${{env:NONE}}
A.client.id = x
B.consumer.client.id = ${{vault:x}}
config.providers.file.class = {PACKAGE}FileConfigProvider
"""
    )
    parameter = "config.providers.env.param.allowlist."
    assert found == [
        f"7: {parameter}patern: is not a parameter of this provider; did you mean {parameter}pattern?",
        "8: A->B.topics: provider env has no variable NONE: set it in the environment of this process",
        "10: B.consumer.client.id: there is no provider vault in config.providers (declared: env)",
        "11: config.providers.file.class: configures no provider that config.providers names",
    ]


def test_unknown_classes(problems: Callable[..., list[str]]) -> None:
    found = problems("config.providers = a, b\nconfig.providers.a.class = com.example.Vault\n")
    assert found[0] == "5: config.providers: provider b has no class: add config.providers.b.class"
    assert found[1].startswith(
        "6: config.providers.a.class: Ferry knows EnvVarConfigProvider, FileConfigProvider and DirectoryConfigProvider"
    )
