"""Tokens of classes of users: kept, renewed early, and refused with a reason that shows no text of theirs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ferry import clock
from ferry.config import ClientRole, Cluster, FerryConfig
from ferry.config.credentials import OwnTokens
from ferry.config.kept_tokens import KeptToken, Token, token_of_process
from ferry.config.secret import Secret
from ferry.config.tokens import TokenCallback, TokenProvider
from ferry.errors import AuthenticationFailed, ClusterUnreachable, ConfigError

pytestmark = pytest.mark.unit

OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
CLASSES = """
import time


class Good:
    made = 0

    def configure(self, options):
        type(self).made += 1
        self.options, self.given = options, 0

    def token(self):
        self.given += 1
        return f"{self.options['name']}-{self.given}", time.time() + 100


class Raises:
    def token(self):
        raise KeyError("s3cret")


class Lonely:
    def token(self):
        raise TimeoutError("s3cret")


class Unmade:
    def configure(self, options):
        raise ValueError(options["name"])


    def token(self):
        return "", 0


class TextOnly:
    def token(self):
        return "s3cret"


class Expired:
    def token(self):
        return "s3cret", time.time() - 1


class Milliseconds:
    def token(self):
        return "s3cret", time.time() * 1000


class NoMethod:
    pass


def function():
    return "", 0
"""


@pytest.fixture(autouse=True)
def _classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_tokens.py").write_text(CLASSES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "own_tokens", raising=False)
    token_of_process.cache_clear()


def lines(path: str, options: str = 'name="me" secret="s3cret" extension_pool="p"') -> str:
    return (
        "A.security.protocol = SASL_PLAINTEXT\nA.sasl.mechanism = OAUTHBEARER\n"
        f"A.sasl.login.callback.handler.class = {path}\nA.sasl.jaas.config = {OAUTH} required {options};\n"
    )


def test_all_clients_of_a_process_share_one_object_and_one_token(load: Callable[..., FerryConfig]) -> None:
    cluster: Cluster = load(lines("own_tokens:Good")).clusters["A"]
    callback = cluster.librdkafka()["oauth_cb"]
    provider = cluster.kafka_python(ClientRole.CONSUMER)["sasl_oauth_token_provider"]
    assert isinstance(callback, TokenCallback)
    assert isinstance(provider, TokenProvider)
    token, expiry, principal, extensions = callback("")
    assert (token, principal, extensions) == ("me-1", "", {"pool": "p"})
    assert 98 < expiry - time.time() <= 100
    assert (provider.token(), provider.extensions()) == ("me-1", {"pool": "p"})
    assert provider.credentials == OwnTokens("own_tokens:Good", (("name", Secret("me")), ("secret", Secret("s3cret"))), {"pool": "p"})
    assert (cluster.user_name, cluster.principal) == ("token of own_tokens:Good", None)
    import own_tokens  # type: ignore[import-not-found]  # noqa: PLC0415 - written by this test

    assert own_tokens.Good.made == 1


class Source:
    """Gives tokens of `life` seconds; `fails` makes it raise."""

    def __init__(self, life: float) -> None:
        self.life, self.given, self.fails = life, 0, False

    def __call__(self) -> Token:
        if self.fails:
            raise ClusterUnreachable("nobody")
        self.given += 1
        return f"token-{self.given}", clock.time() + self.life


def test_a_token_is_renewed_when_most_of_its_life_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, wall = time.monotonic(), time.time()
    passed = 0.0
    monkeypatch.setattr(clock, "monotonic", lambda: begun + passed)
    monkeypatch.setattr(clock, "time", lambda: wall + passed)
    source = Source(100.0)
    kept = KeptToken(source)
    assert kept.get() == ("token-1", wall + 100)
    passed = 79.0
    assert kept.get()[0] == "token-1"
    passed = 81.0
    source.fails = True
    assert kept.get()[0] == "token-1"  # not renewed, and still good
    source.fails = False
    assert kept.get() == ("token-2", wall + 181)
    passed, source.fails = 182.0, True
    with pytest.raises(ClusterUnreachable):
        kept.get()


def test_what_renews_a_clients_token_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = TokenProvider(OwnTokens("own_tokens:Good", (("name", Secret("me")),)))
    callback = TokenCallback(provider)

    def nobody() -> Token:
        raise ClusterUnreachable("nobody")

    monkeypatch.setattr(provider, "current", nobody)
    later = time.time() + 1_000
    monkeypatch.setattr(clock, "time", lambda: later)
    assert callback("")[:2] == ("me-1", later + 10)


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("Raises", AuthenticationFailed, "own_tokens:Raises gives no token: it raised KeyError at own_tokens.py:19 in token"),
        ("Lonely", ClusterUnreachable, "own_tokens:Lonely gives no token: it raised TimeoutError at own_tokens.py:24 in token"),
        ("Unmade", ConfigError, "own_tokens:Unmade raised ValueError at own_tokens.py:29 in configure when it was made"),
        ("TextOnly", AuthenticationFailed, "token() must return a token, and when it expires in seconds since the epoch"),
        ("Expired", AuthenticationFailed, "own_tokens:Expired gives a token that has expired"),
        ("Milliseconds", AuthenticationFailed, "expires in more than ten years: give seconds since the epoch"),
    ],
)
def test_bad_sources_are_told_by_type_and_place(load: Callable[..., FerryConfig], name: str, error: type[Exception], said: str) -> None:
    cluster: Cluster = load(lines(f"own_tokens:{name}", 'name="s3cret"')).clusters["A"]
    for use in (cluster.librdkafka, cluster.kafka_python(ClientRole.ADMIN)["sasl_oauth_token_provider"].token):  # type: ignore[attr-defined]
        with pytest.raises(error) as caught:
            use()
        assert said in str(caught.value)
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own_tokens:NoMethod", "own_tokens:NoMethod lacks token"),
        ("own_tokens:function", "own_tokens:function is no class"),
        ("own_tokens:Missing", "own_tokens:Missing cannot be imported (AttributeError"),
        ("nowhere:Missing", "nowhere:Missing cannot be imported (ModuleNotFoundError"),
        (
            "com.example.JavaHandler",
            "must be OAuthBearerLoginCallbackHandler or IAMOAuthBearerLoginCallbackHandler, or a class of your own",
        ),
    ],
)
def test_classes_that_cannot_give_tokens_are_found_when_the_file_is_read(problems: Callable[..., list[str]], name: str, said: str) -> None:
    found = problems(lines(name))
    assert any(said in problem for problem in found), found
