"""OAUTHBEARER tokens for the two client libraries: without signature, from a file, or from a token endpoint.

Importing kafka-python takes a quarter of a second, so only logins with OAuth load this module.
"""

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

from kafka.net.sasl.oauth import AbstractTokenProvider

from ferry.config.login import ClientCredentials, TokenFile, UnsecuredToken
from ferry.errors import AuthenticationFailed, ClusterUnreachable, ConfigError, FerryError

# Life of a token if the endpoint does not give it.
_DEFAULT_LIFE_SECONDS = 300.0
# After this a token file without a valid token is read again.
_AGAIN_SECONDS = 10.0
# Java renews a token after 80 % of its life (sasl.login.refresh.window.factor).
USABLE_SHARE = 0.8


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
    return f"{_base64({'alg': 'none'})}.{_base64(claims)}."


def _base64(content: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).decode().rstrip("=")


def read_token_file(credentials: TokenFile) -> str:
    """The token in the file; ConfigError if it cannot be read, AuthenticationFailed if it is a JWT that has expired."""
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
    """A token by the client credentials grant (RFC 6749, 4.4), and its life in seconds. AuthenticationFailed if the endpoint refuses it,
    ClusterUnreachable if the endpoint does not answer."""
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
        # An endpoint that is down or busy may grant the token later; another attempt does not change any other answer.
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

    A call never raises, because confluent-kafka would raise the error in some other call. While the file has no valid token, it gives the
    last token again for a while, and the brokers say that it has expired. ConfigError or AuthenticationFailed if there is no token at the
    start.
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
    """The `exp` claim of a JWT; for other tokens a time soon."""
    try:
        body = token.split(".")[1]
        return float(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return time.time() + _DEFAULT_LIFE_SECONDS


@dataclass
class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Keeps a token until most of its life is over, so connections to many brokers ask the endpoint once."""

    credentials: UnsecuredToken | ClientCredentials | TokenFile
    context: ssl.SSLContext | None = None
    _token: str = field(default="", repr=False)
    _until: float = 0.0

    def token(self) -> str:
        match self.credentials:
            case UnsecuredToken():
                return unsecured_token(self.credentials, time.time())
            case TokenFile():
                return read_token_file(self.credentials)
            case ClientCredentials():
                if time.monotonic() >= self._until:
                    self._token, life = request_token(self.credentials, self.context)
                    self._until = time.monotonic() + life * USABLE_SHARE
        return self._token

    def extensions(self) -> dict[str, str]:
        """SASL extensions (KIP-342)."""
        return dict(self.credentials.extensions)
