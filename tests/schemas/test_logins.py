"""Logins of a registry over real TLS: with an authority of its own, a client's certificate, tokens of OAuth, user and password.

What is refused says so by the name of the registry, and never holds a secret.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import Authority, authority_of_tests, certified
from tests.drills.security.token_endpoint import TokenEndpoint
from tests.schemas.registries import Pair, pair

from ferry.errors import FerryError, RegistryLoginRefused, RegistryUnreachable
from ferry.schemas import registry as requests

pytestmark = pytest.mark.unit

SECRETS = ("s3cret", "t0ken-of-a-thief", "PRIVATE KEY", "eyJ")  # eyJ: how a JWT begins
CLIENT, SECRET = "ferry", "s3cret-of-oauth"
Make = Callable[..., AbstractContextManager[Pair]]


class AnyGranted:
    """The tokens of an endpoint."""

    def __init__(self, endpoint: TokenEndpoint) -> None:
        self._endpoint = endpoint

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and token.count(".") == 2 and self._endpoint.granted > 0


@pytest.fixture
def authority() -> Authority:
    return authority_of_tests()


@pytest.fixture
def certificate(tmp_path: Path, authority: Authority) -> Path:
    """The server's key and chain."""
    file = tmp_path / "registry.pem"
    file.write_text(authority.local_broker.key_pem() + authority.local_broker.certificate_pem + authority.intermediate.certificate_pem)
    return file


@pytest.fixture
def trusted(tmp_path: Path, authority: Authority) -> str:
    return _trust(tmp_path / "roots.pem", authority.root.certificate_pem)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificate: Path) -> Make:
    monkeypatch.setattr(requests, "TRY_SECONDS", 0.5)
    monkeypatch.setattr(requests, "FIRST_PAUSE_SECONDS", 0.01)

    def make(*lines: str, **target: Any) -> AbstractContextManager[Pair]:
        return pair(tmp_path, monkeypatch, *lines, **{"certificate": certificate, **target})

    return make


def test_an_authority_of_its_own_and_a_password(made: Make, trusted: str) -> None:
    user = "B.schema.registry.basic.auth.user.info = ferry:s3cret:with:colons"
    with made(trusted, user, users={"ferry": "s3cret:with:colons"}) as opened:
        _copies(opened)
    with made(trusted, user, users={"ferry": "another"}) as opened:
        assert "(as ferry)" in _refusal(opened, RegistryLoginRefused)


def test_an_authority_that_is_not_trusted(made: Make, tmp_path: Path) -> None:
    with made() as opened:
        assert "check schema.registry.ssl.*" in _refusal(opened, RegistryUnreachable)
    with made(_trust(tmp_path / "others.pem", certified("others", None, authority=True).certificate_pem)) as opened:
        assert "check schema.registry.ssl.*" in _refusal(opened, RegistryUnreachable)


def test_a_certificate_of_the_client(made: Make, trusted: str, tmp_path: Path, authority: Authority) -> None:
    clients = authority.root.certificate_pem + authority.intermediate.certificate_pem
    client = authority.client
    keys = tmp_path / "client.pem"
    keys.write_text(client.key_pem("s3cret-of-the-key") + client.certificate_pem + authority.intermediate.certificate_pem)
    own = [f"B.schema.registry.ssl.keystore.{name}" for name in (f"location = {keys}", "type = PEM")]
    with made(trusted, *own, "B.schema.registry.ssl.key.password = s3cret-of-the-key", clients=clients) as opened:
        _copies(opened)
    with made(trusted, clients=clients) as opened:
        assert "the schema registry of B" in _refusal(opened, RegistryUnreachable)
    with made(trusted, *own, "B.schema.registry.ssl.key.password = s3cret-but-wrong", clients=clients) as opened:
        _refusal(opened, FerryError)


@pytest.fixture
def endpoint(certificate: Path) -> Iterator[TokenEndpoint]:
    with TokenEndpoint(certificate, CLIENT, SECRET) as found:
        yield found


@pytest.mark.parametrize("encrypted", [True, False], ids=["https", "http"])
def test_tokens_of_oauth(made: Make, trusted: str, endpoint: TokenEndpoint, encrypted: bool) -> None:
    """One token for many requests; the truststore also counts for the endpoint."""
    more = {} if encrypted else {"certificate": None}
    with made(trusted, *_oauth(endpoint, SECRET), tokens=AnyGranted(endpoint), **more) as opened:
        _copies(opened)
        assert endpoint.granted == 1
    with made(trusted, *_oauth(endpoint, "s3cret-but-wrong"), tokens=AnyGranted(endpoint), **more) as opened:
        assert "the schema registry of B" in _refusal(opened, RegistryLoginRefused)


def test_a_token_that_does_not_change(made: Make, trusted: str) -> None:
    token = "B.schema.registry.bearer.auth.token = t0ken-of-a-thief"
    with made(trusted, token, tokens=frozenset({"t0ken-of-a-thief"})) as opened:
        _copies(opened)
    with made(trusted, token, tokens=frozenset({"another"})) as opened:
        assert "the token of bearer.auth.token" in _refusal(opened, RegistryLoginRefused)


def _trust(file: Path, text: str) -> str:
    file.write_text(text)
    return f"B.schema.registry.ssl.truststore.location = {file}\nB.schema.registry.ssl.truststore.type = PEM"


def _oauth(endpoint: TokenEndpoint, secret: str) -> list[str]:
    keys = {
        "token.endpoint.url": endpoint.https,
        "client.credentials.client.id": CLIENT,
        "client.credentials.client.secret": secret,
    }
    return [f"B.schema.registry.sasl.oauthbearer.{name} = {value}" for name, value in keys.items()]


def _copies(opened: Pair) -> None:
    opened.source.seed("orders-value", '"string"')
    assert opened.sync().failed == ()
    assert list(opened.content(opened.target)) == [("A.orders-value", 1)]


def _refusal(opened: Pair, error: type[FerryError]) -> str:
    """What the sync says; the whole traceback holds no secret."""
    with pytest.raises(error) as refusal:
        opened.sync()
    text = "".join(traceback.format_exception(refusal.value))
    assert not [secret for secret in SECRETS if secret in text]
    return str(refusal.value)
