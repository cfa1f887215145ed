"""A token endpoint on 127.0.0.1: grants signed, short-lived tokens to one client, over HTTP and over TLS.

The client proves itself by its secret, or by JWTs that it signs with the key of `assertion_certificate`.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

AUDIENCE = "kafka"
KEY_ID = "key-1"
# Whom an assertion is for.
ISSUER = "https://login.example.com"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class TokenEndpoint:
    """Context manager. `granted` counts tokens; `life` is the life of each in seconds; `refuse` makes it answer 401."""

    def __init__(self, certificate: Path, client_id: str, client_secret: str, assertion_certificate: str = "") -> None:
        self.client_id, self.client_secret = client_id, client_secret
        self.assertion_certificate = assertion_certificate
        self.life, self.granted = 3600, 0
        self._certificate = certificate
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        self._running = ExitStack()
        self.http = self.https = ""

    def __enter__(self) -> TokenEndpoint:
        plain, encrypted = self._serve(), self._serve()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate)
        encrypted.socket = context.wrap_socket(encrypted.socket, server_side=True)
        self.http, self.https = f"http://127.0.0.1:{plain.server_port}/token", f"https://localhost:{encrypted.server_port}/token"
        for server in (plain, encrypted):
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            self._running.callback(thread.join)
            self._running.callback(server.shutdown)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def key_set(self) -> str:
        """The public key, as a JSON web key set."""
        numbers = self._key.public_key().public_numbers()
        parts = {
            name: _encoded(number.to_bytes((number.bit_length() + 7) // 8, "big")) for name, number in (("n", numbers.n), ("e", numbers.e))
        }
        return json.dumps({"keys": [{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": KEY_ID, **parts}]})

    def token(self, life: float | None = None) -> str:
        """A signed token for the client."""
        now = time.time()
        claims = {"sub": self.client_id, "aud": AUDIENCE, "iat": int(now), "exp": int(now + (life or self.life)), "scope": "copy"}
        head = {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}
        text = ".".join(_encoded(json.dumps(part).encode()) for part in (head, claims))
        return f"{text}.{_encoded(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def accepts(self, authorization: str, fields: dict[str, str]) -> bool:
        """Whether a request proves that it comes from the client."""
        if fields["grant_type"] == _GRANT:
            return self._signed(fields["assertion"])
        if "client_assertion" in fields:
            return self._signed(fields["client_assertion"]) and fields["client_id"] == self.client_id
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        return pair == f"{self.client_id}:{self.client_secret}" and fields["grant_type"] == "client_credentials"

    def _signed(self, assertion: str) -> bool:
        signed, _, signature = assertion.rpartition(".")
        claims = json.loads(_decoded(signed.partition(".")[2]))
        key = x509.load_pem_x509_certificate(self.assertion_certificate.encode()).public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        halves = [int.from_bytes(_decoded(signature)[half], "big") for half in (slice(32), slice(32, 64))]
        try:
            key.verify(encode_dss_signature(*halves), signed.encode(), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        now = time.time()
        return (claims["iss"], claims["aud"]) == (self.client_id, ISSUER) and claims["nbf"] <= now <= claims["exp"] <= now + 300

    def _serve(self) -> ThreadingHTTPServer:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                good = endpoint.accepts(self.headers.get("Authorization", ""), {name: texts[0] for name, texts in parse_qs(body).items()})
                endpoint.granted += good
                content: dict[str, Any] = {"error": "invalid_client"}
                if good:
                    content = {"access_token": endpoint.token(), "token_type": "Bearer", "expires_in": endpoint.life}
                answer = json.dumps(content).encode()
                self.send_response(200 if good else 401)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Silent."""

        return self._running.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
