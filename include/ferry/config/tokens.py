"""OAUTHBEARER tokens: written without signature, read from a file, or asked for at an endpoint."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

from ferry.config.login import ClientCredentials, TokenFile, UnsecuredToken
from ferry.errors import AuthenticationFailed, ClusterUnreachable, ConfigError, FerryError

# For endpoints that do not say how long a token lives.
_DEFAULT_LIFE_SECONDS = 300.0
# How soon a token file that held no good token is read again.
_AGAIN_SECONDS = 10.0


def unsecured_token(credentials: UnsecuredToken, now: float) -> str:
    """A JWS without signature, as Kafka's OAuthBearerUnsecuredLoginCallbackHandler writes it; `now` in seconds since the epoch."""
    issued = int(now)  # a broker counts in whole milliseconds and refuses tokens of the future
    claims: dict[str, Any] = {
        "iat": issued,
        "exp": issued + credentials.lifetime_seconds,
        credentials.principal_claim: credentials.principal,
    }
    if credentials.scopes:
        claims["scope"] = list(credentials.scopes)
    return f"{_base64({'alg': 'none'})}.{_base64(claims)}."


def _base64(content: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).decode().rstrip("=")


def read_token_file(credentials: TokenFile) -> str:
    """The token in the file; ConfigError when it cannot be read, AuthenticationFailed when it is a JWT that has expired."""
    try:
        token = Path(credentials.path).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as problem:
        raise ConfigError(f"token file {credentials.path} cannot be read: {type(problem).__name__}") from None
    if not token:
        raise ConfigError(f"token file {credentials.path} is empty")
    expiry = _expiry(token)
    if expiry <= time.time():
        when = datetime.fromtimestamp(expiry, UTC).isoformat(timespec="seconds")
        raise AuthenticationFailed(f"the token in file {credentials.path} expired at {when}: have it renewed")
    return token


def request_token(credentials: ClientCredentials, context: ssl.SSLContext | None) -> tuple[str, float]:
    """A token by the client credentials grant (RFC 6749, 4.4) and its life in seconds. AuthenticationFailed when it is not granted,
    ClusterUnreachable when the endpoint does not answer."""
    fields = {"grant_type": "client_credentials"}
    if credentials.scope:
        fields["scope"] = credentials.scope
    pair = f"{credentials.client_id}:{credentials.client_secret.reveal()}".encode()
    headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}", "Accept": "application/json"}
    # The scheme was checked to be http or https when the login was read.
    request = urllib.request.Request(credentials.url, urllib.parse.urlencode(fields).encode(), headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=credentials.timeout_seconds, context=context) as answer:  # noqa: S310
            content = json.load(answer)
        return str(content["access_token"]), float(content.get("expires_in", _DEFAULT_LIFE_SECONDS))
    except (URLError, OSError, ValueError, KeyError, TypeError) as problem:
        code = None
        if isinstance(problem, HTTPError):
            code = problem.code
            problem.close()  # it holds the connection
        reason = code or getattr(problem, "reason", None) or type(problem).__name__
        what = f"token endpoint {credentials.url} gives client {credentials.client_id} no token: {reason}"
        # An endpoint that is down or busy may grant it later; any other answer stays the same.
        kind = ClusterUnreachable if _passing(problem, code) else AuthenticationFailed
        raise kind(f"{what}; check sasl.oauthbearer.* and sasl.jaas.config") from None


def _passing(problem: Exception, code: int | None) -> bool:
    if code is not None:
        return code >= 500 or code == 429
    cause = getattr(problem, "reason", problem)
    return isinstance(cause, OSError) and not isinstance(cause, ssl.SSLCertVerificationError)


@dataclass
class TokenFileCallback:
    """librdkafka's `oauth_cb` for a token file: gives (token, expiry in seconds since the epoch, principal, extensions).

    Never raises, because confluent-kafka lets such an error surface in some other call: while the file has no good token, the last one is
    given again for a while, and the brokers say that it has expired. ConfigError or AuthenticationFailed when there is none to begin with.
    """

    credentials: TokenFile
    _token: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        self._token = read_token_file(self.credentials)

    def __call__(self, _config: str) -> tuple[str, float, str, dict[str, str]]:
        with suppress(FerryError):
            self._token = read_token_file(self.credentials)
        return self._token, max(_expiry(self._token), time.time() + _AGAIN_SECONDS), "", dict(self.credentials.extensions)


def _expiry(token: str) -> float:
    """The `exp` claim of a JWT; soon, for tokens that do not say."""
    try:
        body = token.split(".")[1]
        return float(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return time.time() + _DEFAULT_LIFE_SECONDS
