"""Asks a token endpoint for a token: by client id and secret, or with a JWT assertion (RFC 6749, 7521 and 7523)."""

import base64
import json
import ssl
import urllib.parse
import urllib.request
from collections.abc import Mapping
from urllib.error import HTTPError, URLError

from ferry import clock
from ferry.config.assertions import assertion_text
from ferry.config.credentials import ClientCredentials, JwtAssertion
from ferry.errors import AuthenticationFailed, ClusterUnreachable

# Life of a token if the endpoint does not give it.
DEFAULT_LIFE_SECONDS = 300.0
_CREDENTIALS = "client_credentials"
_JWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_CLIENT_JWT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


def request_token(credentials: ClientCredentials | JwtAssertion, context: ssl.SSLContext | None) -> tuple[str, float]:
    """A token, and when it expires in seconds since the epoch. AuthenticationFailed or ClusterUnreachable; ConfigError: no assertion."""
    fields, headers = _asked(credentials)
    if credentials.scope:
        fields = {**fields, "scope": credentials.scope}
    headers = {**headers, "Accept": "application/json"}
    # The scheme was checked to be http or https when the login was read.
    request = urllib.request.Request(credentials.url, urllib.parse.urlencode(fields).encode(), headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=credentials.timeout_seconds, context=context) as answer:  # noqa: S310
            content = json.load(answer)
        return str(content["access_token"]), clock.time() + float(content.get("expires_in", DEFAULT_LIFE_SECONDS))
    except (URLError, OSError, ValueError, KeyError, TypeError) as problem:
        code = None
        if isinstance(problem, HTTPError):
            code = problem.code
            problem.close()  # it holds the connection
        reason = code or getattr(problem, "reason", None) or type(problem).__name__
        what = f"token endpoint {credentials.url} gives client {credentials.user} no token: {reason}"
        # An endpoint that is down or busy may grant the token later. Any other answer stays the same if Ferry asks again.
        cause = getattr(problem, "reason", problem)
        down = isinstance(cause, OSError) and not isinstance(cause, ssl.SSLCertVerificationError)
        kind = ClusterUnreachable if (down if code is None else code >= 500 or code == 429) else AuthenticationFailed
        raise kind(f"{what}; check sasl.oauthbearer.* and sasl.jaas.config") from None


def _asked(credentials: ClientCredentials | JwtAssertion) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The fields and headers of a request, as Kafka's HttpRequestFormatters write them."""
    if isinstance(credentials, ClientCredentials):
        pair = f"{credentials.client_id}:{credentials.client_secret.reveal()}".encode()
        return {"grant_type": _CREDENTIALS}, {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    text = assertion_text(credentials.assertion, clock.time())
    if not credentials.as_client:
        return {"grant_type": _JWT, "assertion": text}, {}
    fields = {"grant_type": _CREDENTIALS, "client_assertion_type": _CLIENT_JWT, "client_assertion": text}
    return {**fields, "client_id": credentials.client_id} if credentials.client_id else fields, {}
