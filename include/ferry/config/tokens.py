"""OAUTHBEARER tokens: written without signature, read from a file, or asked for at an endpoint."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

from ferry.config.login import ClientCredentials, TokenFile, UnsecuredToken
from ferry.errors import AuthenticationFailed, ConfigError

# For endpoints that do not say how long a token lives.
_DEFAULT_LIFE_SECONDS = 300.0


def unsecured_token(credentials: UnsecuredToken, now: float) -> str:
    """A JWS without signature, as Kafka's OAuthBearerUnsecuredLoginCallbackHandler writes it; `now` in seconds since the epoch."""
    claims: dict[str, Any] = {"iat": now, "exp": now + credentials.lifetime_seconds, credentials.principal_claim: credentials.principal}
    if credentials.scopes:
        claims["scope"] = list(credentials.scopes)
    return f"{_base64({'alg': 'none'})}.{_base64(claims)}."


def _base64(content: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).decode().rstrip("=")


def read_token_file(credentials: TokenFile) -> str:
    """The token in the file; ConfigError when it cannot be read."""
    try:
        token = Path(credentials.path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"token file {credentials.path} cannot be read: {type(problem).__name__}") from None
    if not token:
        raise ConfigError(f"token file {credentials.path} is empty")
    return token


def request_token(credentials: ClientCredentials, context: ssl.SSLContext | None) -> tuple[str, float]:
    """A token by the client credentials grant (RFC 6749, 4.4) and its life in seconds. AuthenticationFailed when it is not granted."""
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
        reason = getattr(problem, "code", None) or getattr(problem, "reason", None) or type(problem).__name__
        what = f"token endpoint {credentials.url} gives client {credentials.client_id} no token: {reason}"
        raise AuthenticationFailed(f"{what}; check sasl.oauthbearer.* and sasl.jaas.config") from None


@dataclass(frozen=True)
class TokenFileCallback:
    """librdkafka's `oauth_cb` for a token file: gives (token, expiry in seconds since the epoch, principal, extensions)."""

    credentials: TokenFile

    def __call__(self, _config: str) -> tuple[str, float, str, dict[str, str]]:
        token = read_token_file(self.credentials)
        return token, _expiry(token), "", dict(self.credentials.extensions)


def _expiry(token: str) -> float:
    """The `exp` claim of a JWT; soon, for tokens that do not say."""
    try:
        body = token.split(".")[1]
        return float(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return time.time() + _DEFAULT_LIFE_SECONDS
