"""Keeps a token until four fifths of its life are over, for all clients that log in with it.

Java renews a token at the same age (sasl.login.refresh.window.factor). So no login fails if the source of tokens does not answer for a
moment. A message about an error of the source leaves out the error's text, which may hold a secret.
"""

import threading
from collections.abc import Callable
from functools import cache

from ferry import clock
from ferry.config.credentials import AwsIam, OwnTokens
from ferry.errors import AuthenticationFailed, ClusterUnreachable, ConfigError, FerryError
from ferry.handling.calling import described
from ferry.policy.custom_classes import class_with, configured

USABLE_SHARE = 0.8
# A longer life is a mistake: somebody gave milliseconds.
_LONGEST_LIFE_SECONDS = 10 * 365 * 86_400.0

Token = tuple[str, float]


class KeptToken:
    """`fetch` gives a token and when it expires, in seconds since the epoch. Threads may share it."""

    def __init__(self, fetch: Callable[[], Token]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._token, self._expiry = "", 0.0
        self._renew_at = 0.0  # of clock.monotonic()

    def get(self) -> Token:
        """A token that has not expired. FerryError if the source gives none."""
        with self._lock:
            if clock.monotonic() >= self._renew_at:
                try:
                    self._token, self._expiry = self._fetch()
                    self._renew_at = clock.monotonic() + (self._expiry - clock.time()) * USABLE_SHARE
                except FerryError:
                    if self._expiry <= clock.time():  # otherwise this login still has a token, and the next one asks again
                        raise
            return self._token, self._expiry


@cache
def token_of_process(credentials: OwnTokens | AwsIam) -> KeptToken:
    """The token that all clients with these credentials share. ConfigError if its source cannot be made."""
    if isinstance(credentials, AwsIam):
        from ferry.config.aws_iam import AwsTokens  # noqa: PLC0415 - an extra that need not be installed

        return KeptToken(_checked(credentials.user, AwsTokens(credentials).token))
    found = class_with(credentials.path, ("token",))
    try:
        made = configured(found, {name: value.reveal() for name, value in credentials.options})
    except Exception as problem:  # noqa: BLE001 - the code of users may raise anything
        raise ConfigError(f"{credentials.path} {described(problem)} when it was made and configured") from None
    return KeptToken(_checked(credentials.path, made.token))


def _checked(name: str, token: Callable[[], object]) -> Callable[[], Token]:
    """A function that calls `token`, and checks that the result is a text and a time to come. It raises FerryErrors only."""

    def fetch() -> Token:
        try:
            found = token()
        except FerryError:
            raise
        except Exception as problem:  # noqa: BLE001 - the code of users may raise anything
            # A source that could not connect may connect later.
            kind = ClusterUnreachable if isinstance(problem, OSError) else AuthenticationFailed
            raise kind(f"{name} gives no token: it {described(problem)}") from None
        match found:
            case (str(text), int() | float() as expiry) if text:
                life = expiry - clock.time()
            case _:
                raise AuthenticationFailed(f"{name}: token() must return a token, and when it expires in seconds since the epoch")
        if not 0 < life < _LONGEST_LIFE_SECONDS:
            what = "has expired" if life <= 0 else "expires in more than ten years: give seconds since the epoch"
            raise AuthenticationFailed(f"{name} gives a token that {what}")
        return text, float(expiry)

    return fetch
