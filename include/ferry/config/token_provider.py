"""OAUTHBEARER tokens for kafka-python, which asks for one for every connection.

A module of its own, because importing kafka-python takes a quarter of a second, and only logins with OAuth need it here.
"""

import ssl
import time
from dataclasses import dataclass, field

from kafka.net.sasl.oauth import AbstractTokenProvider

from ferry.config.login import ClientCredentials, TokenFile, UnsecuredToken
from ferry.config.tokens import read_token_file, request_token, unsecured_token

# Java renews a token after 80 % of its life (sasl.login.refresh.window.factor).
USABLE_SHARE = 0.8


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
