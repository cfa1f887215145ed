"""OAUTHBEARER tokens for the two client libraries.

librdkafka itself makes tokens without signature, and requests tokens for client credentials. Ferry gives it all others.

Importing kafka-python takes a quarter of a second, so only logins with OAuth load this module.
"""

import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jwt
from kafka.net.sasl.oauth import AbstractTokenProvider

from ferry import clock
from ferry.config.credentials import AwsIam, OwnTokens, TokenFile, Tokens, UnsecuredToken
from ferry.config.kept_tokens import KeptToken, Token, token_of_process
from ferry.config.token_requests import DEFAULT_LIFE_SECONDS, request_token
from ferry.errors import AuthenticationFailed, ConfigError, FerryError, time_text

# After this librdkafka asks again for a token that could not be renewed.
_AGAIN_SECONDS = 10.0


def unsecured_token(credentials: UnsecuredToken, now: float) -> str:
    """A JWS without signature, as Kafka's OAuthBearerUnsecuredLoginCallbackHandler writes it; `now` in seconds since the epoch."""
    issued = int(now)  # a broker counts whole milliseconds and refuses tokens from the future
    claims: dict[str, Any] = {
        "iat": issued,
        "exp": issued + credentials.lifetime_seconds,
        credentials.principal_claim: credentials.principal,
    }
    if credentials.scopes:
        claims["scope"] = list(credentials.scopes)
    return jwt.encode(claims, "", "none", {"typ": None})


def read_token_file(credentials: TokenFile) -> Token:
    """The token and its expiry; ConfigError if it cannot be read, AuthenticationFailed if it is a JWT that has expired."""
    try:
        token = Path(credentials.path).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as problem:
        raise ConfigError(f"token file {credentials.path} cannot be read: {type(problem).__name__}") from None
    if not token:
        raise ConfigError(f"token file {credentials.path} is empty")
    expiry = _expiry(token)
    if expiry <= clock.time():
        raise AuthenticationFailed(f"the token in file {credentials.path} expired at {time_text(int(expiry * 1000))}: have it renewed")
    return token, expiry


def _expiry(token: str) -> float:
    """The `exp` claim of a JWT; for other tokens a time soon."""
    try:
        return float(jwt.decode(token, options={"verify_signature": False})["exp"])
    except (jwt.InvalidTokenError, KeyError, ValueError, TypeError):
        return clock.time() + DEFAULT_LIFE_SECONDS


@dataclass
class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives a token for each login, and keeps it: connections to many brokers ask its source once. `context`: of a token endpoint."""

    credentials: Tokens
    context: ssl.SSLContext | None = None
    _kept: KeptToken | None = field(default=None, repr=False, compare=False)

    def token(self) -> str:
        return self.current()[0]

    def current(self) -> Token:
        """A token, and when it expires in seconds since the epoch. FerryError if there is none."""
        match self.credentials:
            case UnsecuredToken():
                now = clock.time()
                return unsecured_token(self.credentials, now), now + self.credentials.lifetime_seconds
            case TokenFile():
                return read_token_file(self.credentials)
            case OwnTokens() | AwsIam():
                return token_of_process(self.credentials).get()
        if self._kept is None:
            self._kept = KeptToken(partial(request_token, self.credentials, self.context))
        return self._kept.get()

    def extensions(self) -> dict[str, str]:
        """SASL extensions (KIP-342)."""
        return dict(self.credentials.extensions)


@dataclass
class TokenCallback:
    """librdkafka's `oauth_cb`: gives (token, expiry in seconds since the epoch, principal, extensions).

    A call never raises, because confluent-kafka would raise the error in some other call. While there is no valid token, it gives the last
    token again for a while, and the brokers say that this has expired. The constructor raises FerryError if there is no token.
    """

    provider: TokenProvider
    _last: Token = field(default=("", 0.0), repr=False, compare=False)

    def __post_init__(self) -> None:
        self._last = self.provider.current()

    def __call__(self, _config: str) -> tuple[str, float, str, dict[str, str]]:
        with suppress(FerryError):
            self._last = self.provider.current()
        token, expiry = self._last
        return token, max(expiry, clock.time() + _AGAIN_SECONDS), "", self.provider.extensions()
