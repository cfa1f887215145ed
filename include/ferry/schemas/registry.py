"""Requests to a schema registry over HTTP, by a few connections that are kept (decision 015).

A request that got no answer, or a 5xx, is sent again for a bounded time. With Retry-After, Ferry waits as long as the registry asks for.
Every request may be sent twice: with id and version a registration says what shall be, not what to add. Messages hold the path and what
the registry says, and never a header. Redirects are not followed: they would carry the login elsewhere.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import urllib3
from urllib3.exceptions import HTTPError, SSLError
from urllib3.util import Timeout, make_headers

from ferry import clock
from ferry.config.cluster import Cluster
from ferry.config.credentials import Password
from ferry.config.schema_registry import RegistryLogin, read_registry
from ferry.config.secret import Secret
from ferry.errors import FerryError, RegistryLoginRefused, RegistryUnreachable, SchemasRefused
from ferry.schemas.at_once import CONNECTIONS

# A registry that hangs is given up after this, and the request is sent again.
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 30.0
# How long one request is tried again: a registry elects a new leader, or is started anew, in less.
TRY_SECONDS = 60.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 5.0
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
_SAID = 300  # characters of what a registry says in a message
NO_CONTENT, NOT_FOUND = 204, 404


class SchemaRegistry:
    """One registry. Threads may share it. `requests`: how many were sent."""

    def __init__(self, login: RegistryLogin, token: Callable[[], str] | None = None, **tls: Any) -> None:
        """`token`: gives a bearer token for each request. `tls`: arguments of urllib3 for https."""
        self.login, self._token, self.requests = login, token, 0
        self._headers = {"Accept": _ACCEPT, "Content-Type": _ACCEPT.partition(",")[0], **login.headers}
        if isinstance(login.credentials, Password):
            pair = f"{login.credentials.user}:{login.credentials.password.reveal()}"
            self._headers |= make_headers(basic_auth=pair)
        waits = Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS)
        options = {"maxsize": CONNECTIONS, "block": True, "timeout": waits, "retries": False}
        self._instances = [
            (urllib3.connection_from_url(url, **options, **(tls if url.startswith("https") else {})), urlsplit(url).path)
            for url in login.urls
        ]
        self._lock = threading.Lock()

    def close(self) -> None:
        for pool, _ in self._instances:
            pool.close()

    def find(self, path: str, **query: str) -> Any:
        """The answer to a GET; None if there is no such thing (404)."""
        return self.ask("GET", path, query=query, missing=True)

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        missing: bool = False,
    ) -> Any:
        """The JSON of the answer; None if it is empty. SchemasRefused with what the registry says; with `missing`, None for 404.

        RegistryUnreachable or RegistryLoginRefused, also FerryError of the source of tokens.
        """
        target = path + (f"?{urlencode(query)}" if query else "")
        status, data = self._answered(method, target, None if body is None else json.dumps(body).encode())
        document = _parsed(data)
        if missing and status == NOT_FOUND:
            return None
        if status == NO_CONTENT or (status < 300 and document is not None):
            return document
        what = f"{self.login.where}: {method} {path}"
        if status < 300:
            raise RegistryUnreachable(f"{what} answers no JSON: is schema.registry.url the URL of a schema registry?")
        text = str(document.get("message", "")) if isinstance(document, Mapping) else ""
        code = document.get("error_code", status) if isinstance(document, Mapping) else status
        said = f"{what}: {code}{f': {text[:_SAID]}' if text else ''}"
        if status in {401, 403}:
            user = f"as {self.login.user}" if status == 401 else f"{self.login.user} lacks a right"
            raise RegistryLoginRefused(f"{said} ({user})")
        raise (RegistryUnreachable if status >= 500 or status == 429 else SchemasRefused)(said)

    def _answered(self, method: str, target: str, body: bytes | None) -> tuple[int, bytes]:
        """Status and body of the first answer that is none of a registry in trouble, or of the last one in TRY_SECONDS."""
        deadline, pause = clock.monotonic() + TRY_SECONDS, FIRST_PAUSE_SECONDS
        while True:
            wait, problem = pause, ""
            try:
                status, data, headers = self._send(method, target, body)
                if status < 500 and status != 429:
                    return status, data
                wait = max(wait, _seconds(headers.get("Retry-After")))
            except (HTTPError, OSError) as trouble:
                problem = f"{type(trouble).__name__}: {str(trouble).rpartition(': ')[2]}"
                if isinstance(trouble, SSLError):
                    raise RegistryUnreachable(f"{self.login.where}: TLS: {trouble}; check schema.registry.ssl.*") from None
                self._instances = [*self._instances[1:], self._instances[0]]
            if clock.monotonic() + wait > deadline:
                if not problem:
                    return status, data
                raise RegistryUnreachable(f"{self.login.where} gives no answer to {method} {target.partition('?')[0]}: {problem}")
            clock.sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _send(self, method: str, target: str, body: bytes | None) -> tuple[int, bytes, Mapping[str, str]]:
        pool, base = self._instances[0]
        headers = self._headers | ({"Authorization": f"Bearer {self._token()}"} if self._token else {})
        with self._lock:
            self.requests += 1
        answer = pool.urlopen(method, base + target, body=body, headers=headers, redirect=False)
        return answer.status, answer.data, answer.headers


def path_of(*parts: object) -> str:
    """A path of these parts, each quoted."""
    return "".join(f"/{quote(str(part), safe='')}" for part in parts)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _seconds(text: str | None) -> float:
    """The value of Retry-After, if it is a number of seconds. A date is left to the usual pauses."""
    return float(text) if text and text.strip().isdecimal() else 0.0


@contextmanager
def open_registries(clusters: Sequence[Cluster]) -> Iterator[list[SchemaRegistry]]:
    """The schema registries of these clusters. ConfigError for a login or a store that cannot be read."""
    opened: list[SchemaRegistry] = []
    try:
        opened += map(_opened, clusters)
        yield opened
    finally:
        for registry in opened:
            registry.close()


def _opened(cluster: Cluster) -> SchemaRegistry:
    settings = cluster.registry_settings()
    login, tls = read_registry(cluster.alias, settings), dict[str, Any]()
    encrypted = any(url.startswith("https") for url in login.urls)
    if encrypted or not isinstance(login.credentials, None | Password | Secret):  # a source of tokens may be encrypted too
        from ferry.config.stores import tls_context  # noqa: PLC0415 - loads cryptography, which only encrypted connections need

        context = tls_context(settings)
        tls = {"ssl_context": context, "assert_hostname": None if context.check_hostname else False}
    match login.credentials:
        case None | Password():
            return SchemaRegistry(login, **tls)
        case Secret() as fixed:
            return SchemaRegistry(login, fixed.reveal, **tls)
    from ferry.config.tokens import TokenProvider  # noqa: PLC0415 - loads kafka-python, which only logins with OAuth need

    provider = TokenProvider(login.credentials, tls.get("ssl_context"))

    def token() -> str:
        try:
            return str(provider.token())
        except FerryError as problem:
            raise RegistryLoginRefused(f"{login.where}: {problem}") from problem

    return SchemaRegistry(login, token, **tls)
