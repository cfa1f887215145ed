"""The schema registry of a cluster: its URLs and login, read from `A.schema.registry.*`.

TLS and the tokens of OAuth have the properties of Kafka's clients, after this prefix. So the code that reads a cluster's login reads them.
Nothing is inherited from the cluster: its registry may be another party's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.config.client_settings import ClientSettings, store_problems
from ferry.config.credentials import Password, Tokens
from ferry.config.jaas import LoginModule
from ferry.config.oauth_login import ASSERTION, CLIENT_ID, ENDPOINT_URL, RETRIEVER, read_tokens
from ferry.config.registry.kinds import URLS
from ferry.config.secret import Secret

_USER, _TOKEN = "basic.auth.user.info", "bearer.auth.token"
_SECRET = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105 - the name of a property
_HEADERS = {"bearer.auth.logical.cluster": "target-sr-cluster", "bearer.auth.identity.pool.id": "Confluent-Identity-Pool-Id"}


@dataclass(frozen=True)
class RegistryLogin:
    """`alias`: of the cluster. `credentials`: user and password, a token, or where tokens come from; None: there is no login."""

    alias: str
    urls: tuple[str, ...]
    credentials: Password | Secret | Tokens | None = None
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def where(self) -> str:
        """The registry, for messages."""
        return f"the schema registry of {self.alias} ({', '.join(self.urls)})"

    @property
    def user(self) -> str:
        """Who logs in, for messages."""
        match self.credentials:
            case None:
                return "nobody: there is no login"
            case Secret():
                return f"the token of {_TOKEN}"
        return self.credentials.user


def read_registry(alias: str, settings: ClientSettings) -> RegistryLogin:
    """The registry that the settings describe. ConfigError if they contradict each other, or say too little."""
    for problem in store_problems(settings):
        raise problem
    ways = [name for name in (_USER, _TOKEN, ENDPOINT_URL) if settings.given(name)]
    if len(ways) > 1:
        raise settings.problem(ways[1], f"and {ways[0]} exclude each other: remove one")
    url = settings.text("url")
    if url is None:
        others = "but other keys of this schema registry are" if settings.settings else "so there are no schemas to copy"
        raise settings.problem("url", f"is not set, {others}")
    try:
        urls = URLS.parse(url)
    except ValueError:
        raise settings.problem("url", f"must be {URLS.wants}") from None
    credentials = _credentials(settings, ways[0]) if ways else None
    return RegistryLogin(alias, urls, credentials, {header: text for name, header in _HEADERS.items() if (text := settings.text(name))})


def _credentials(settings: ClientSettings, way: str) -> Password | Secret | Tokens:
    if way == ENDPOINT_URL:
        signed = settings.given(RETRIEVER) or any(name.startswith(ASSERTION) for name in settings.values)
        file = (settings.text(ENDPOINT_URL) or "").strip().startswith("file:")
        missing = [] if signed or file else [name for name in (CLIENT_ID, _SECRET) if not settings.text(name)]
        if missing:
            raise settings.problem(missing[0], "is not set: the token endpoint needs it")
        return read_tokens(settings, LoginModule("", {}))
    text = (settings.text(way) or "").strip()
    if way == _TOKEN:
        return Secret(text)
    user, colon, password = text.partition(":")
    if not user or not colon:
        raise settings.problem(_USER, "must be user:password")
    return Password(user, Secret(password))
