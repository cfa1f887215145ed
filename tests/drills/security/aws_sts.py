"""AWS's Security Token Service on 127.0.0.1, as far as AssumeRole: keys of one role for whoever names it, with a session token."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from tests.drills.security.guarded import AWS_KEY, AWS_ROLE, AWS_ROLE_KEY, AWS_ROLE_SECRET, AWS_SESSION

EXTERNAL_ID = "external-s3cret-id"
_ASSUMED = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken><Expiration>{end}</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>"""
_DENIED = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code>
<Message>the text of a refusal</Message></Error></ErrorResponse>"""


class _Service(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = {name: texts[0] for name, texts in parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()).items()}
        self.server.asked.append(asked)  # type: ignore[attr-defined]
        good = asked["RoleArn"] == AWS_ROLE and AWS_KEY in self.headers["Authorization"]
        end = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = _ASSUMED.format(key=AWS_ROLE_KEY, secret=AWS_ROLE_SECRET, token=AWS_SESSION, end=end) if good else _DENIED
        self.send_response(200 if good else 403)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Silent."""


@contextmanager
def security_token_service() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Its URL, and what it was asked."""
    asked: list[dict[str, str]] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Service) as server:
        server.asked = asked  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()
