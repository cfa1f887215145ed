"""A double of Confluent Schema Registry's REST API (release 8.5) on 127.0.0.1, in a thread of the test.

    with RegistryDouble() as registry:
        registry.seed("orders-value", '{"type": "string"}')         # directly, without a request
        sync(registry.url)
        assert registry.requests["GET", "/schemas"] == 1            # by method and route
        registry.plan = at(registry.asked + 3, Cut(done=True))      # the third request from now is done, but not answered

Requests are done one after the other. What the double does not do as a real registry is written in `content` (comparison of texts,
`?normalize`, `?format`) and `registration` (compatibility); it has no metadata of schemas' tags, and no leader election.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Container, Mapping
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.schemas.double import answers, routes
from tests.schemas.double.faults import Answered, Cut, Plan, Request
from tests.schemas.double.refusals import Refused
from tests.schemas.double.registry import Registry
from tests.schemas.double.versions import Version

_TYPE = "application/vnd.schemaregistry.v1+json"


class RegistryDouble:
    """Context manager. `users` (name: password) and `tokens` (bearer) let only them in; `forbids` answers 403 where it is true.

    `before_8`: answers of a release before 8. `page`: the most schemas of one answer of `/schemas`. `certificate`: a PEM file with key, for
    TLS; `clients`: certificates (PEM) that must vouch for that of a client. `requests` counts by method and route, `asked` all of them.
    `plan` may be set at any time: see `faults`.
    """

    def __init__(
        self,
        *,
        before_8: bool = False,
        page: int = 1000,
        users: Mapping[str, str] | None = None,
        tokens: Container[str] = frozenset(),
        certificate: Path | None = None,
        clients: str = "",
    ) -> None:
        self.registry = Registry()
        self.api = routes.Api(self.registry, answers.Answers(before_8), page)
        self.users, self.tokens = dict(users or {}), tokens
        self.forbids: Callable[[Request], bool] = lambda _: False
        self.plan: Plan = lambda _: None
        self.log: list[Request] = []
        self.requests: Counter[tuple[str, str]] = Counter()
        self.url = ""
        self._certificate, self._clients = certificate, clients
        self._lock = threading.RLock()
        self._running = ExitStack()

    @property
    def asked(self) -> int:
        return len(self.log)

    def __enter__(self) -> RegistryDouble:
        server = self._running.enter_context(_Server(self))
        scheme = "http"
        if self._certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate)
            if self._clients:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(cadata=self._clients)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://{'localhost' if self._certificate else '127.0.0.1'}:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        self._running.callback(thread.join)
        self._running.callback(server.shutdown)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def seed(self, subject: str, schema: str, **body: Any) -> Version:
        """Register without a request; `body` as of POST /subjects/{subject}/versions, for example `schemaType` or `references`."""
        with self._lock:
            return self.registry.register(subject, {"schema": schema, **body})

    def forget_requests(self) -> None:
        """Count anew."""
        with self._lock:
            self.log.clear()
            self.requests.clear()

    def answer(self, method: str, target: str, headers: Mapping[str, str], data: bytes) -> Answered | Cut | tuple[int, Any]:
        """Do one request: status and body, or what the plan of the test says."""
        with self._lock:
            split = urlsplit(target)
            path, query = routes.without_context(split.path.rstrip("/") or "/", dict(parse_qsl(split.query, keep_blank_values=True)))
            try:
                route, values = routes.find(method, path)
                body = json.loads(data or b"{}")
            except Refused as refusal:
                return self._refused(refusal)
            except ValueError:
                return self._refused(Refused(400, "the body is no JSON"))
            request = Request(self.asked + 1, method, split.path, route.template, query, body, headers)
            self.log.append(request)
            self.requests[method, route.template] += 1
            fault = self.plan(request)
            if fault and fault != Cut(done=True):
                return fault
            done = self._done(request, route, values)
            return fault or done

    def _done(self, request: Request, route: routes.Route, values: list[str]) -> tuple[int, Any]:
        try:
            self._check_login(request)
            answer = route.handler(routes.Call(self.api, values, request.query, dict(request.body)))
        except Refused as refusal:
            return self._refused(refusal)
        return (204, None) if routes.is_empty(answer) else (200, answer)

    def _refused(self, refusal: Refused) -> tuple[int, Any]:
        code = 409 if self.api.answers.before_8 and refusal.code == 40901 else refusal.code
        return refusal.status, answers.refused(code, refusal.message)

    def _check_login(self, request: Request) -> None:
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        if (self.users or self.tokens) and not (self._is_user(scheme, value) or (scheme == "Bearer" and value in self.tokens)):
            raise Refused(401, "unauthorized")
        if self.forbids(request):
            raise Refused(40301, "the user may not do this")

    def _is_user(self, scheme: str, value: str) -> bool:
        if scheme != "Basic":
            return False
        name, _, password = base64.b64decode(value).decode().partition(":")
        return name in self.users and self.users[name] == password


class _Server(ThreadingHTTPServer):
    # A client that keeps its connection must not hold up the end of a test.
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, double: RegistryDouble) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.double = double

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: a client that was killed has cut its connection."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    # Head and body are one write: of two, the second would wait for the client's delayed ACK.
    wbufsize = -1

    def do_GET(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.double.answer(self.command, self.path, headers, data)
        if isinstance(answer, Cut):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif isinstance(answer, Answered):
            self._send(answer.status, answers.refused(answer.code or answer.status, answer.message), answer.headers)
        else:
            self._send(*answer)

    def do_POST(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def _send(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        content = _encoded(status, body)
        self.send_response(status)
        for name, value in {"Content-Type": _TYPE, "Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Silent."""


def _encoded(status: int, body: Any) -> bytes:
    if status == 204:
        return b""
    return body.encode() if isinstance(body, routes.Text) else json.dumps(body).encode()
