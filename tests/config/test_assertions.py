"""JWT assertions: what is signed, and how; what a request for a token holds; what is refused."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from ferry.config import ClientRole, FerryConfig
from ferry.config.assertions import assertion_text
from ferry.config.credentials import AssertionFile, JwtAssertion, SignedAssertion
from ferry.config.secret import Secret
from ferry.config.token_requests import request_token
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

RSA_KEY, EC_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048), ec.generate_private_key(ec.SECP256R1())
OAUTH = "org.apache.kafka.common.security.oauthbearer."


def pem(key: Any, password: str | None = None) -> bytes:
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    content: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    return content


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("keys")
    (directory / "rsa.pem").write_bytes(pem(RSA_KEY, "s3cret"))
    (directory / "ec.pem").write_bytes(pem(EC_KEY))
    (directory / "p384.pem").write_bytes(pem(ec.generate_private_key(ec.SECP384R1())))
    (directory / "template").write_text('{"header": {"kid": "k", "alg": "none"}, "payload": {"aud": "other", "iat": 1, "role": ["a"]}}')
    (directory / "bad-template").write_text("[]")
    (directory / "jwt").write_text("a.b.c\n")
    (directory / "no-jwt").write_text("s3cret")
    return directory


def test_rs256_with_an_encrypted_key_and_a_template(keys: Path) -> None:
    claims = (("aud", "endpoint"), ("iss", "me"), ("sub", "me"))
    assertion = SignedAssertion(str(keys / "rsa.pem"), Secret("s3cret"), "RS256", claims, 60, 5, True, str(keys / "template"))
    header, payload, signature = assertion_text(assertion, 1_000.9).split(".")
    assert json.loads(decoded(header)) == {"kid": "k", "alg": "RS256", "typ": "JWT"}
    found = json.loads(decoded(payload))
    assert len(found.pop("jti")) == 36
    # As Java layers them: the file before the properties, and what Kafka itself adds before both.
    assert found == {"aud": "other", "iss": "me", "sub": "me", "role": ["a"], "iat": 1_000, "exp": 1_060, "nbf": 995}
    RSA_KEY.public_key().verify(decoded(signature), f"{header}.{payload}".encode(), padding.PKCS1v15(), hashes.SHA256())


@given(st.dictionaries(st.sampled_from(["aud", "iss", "sub"]), st.text(max_size=20)), st.integers(0, 86_400))
def test_es256_is_two_numbers_of_32_bytes(keys: Path, claims: dict[str, str], valid: int) -> None:
    text = assertion_text(SignedAssertion(str(keys / "ec.pem"), None, "ES256", tuple(claims.items()), valid), 5_000.0)
    signed, _, signature = text.rpartition(".")
    assert len(decoded(signature)) == 64
    halves = [int.from_bytes(decoded(signature)[part], "big") for part in (slice(32), slice(32, 64))]
    EC_KEY.public_key().verify(encode_dss_signature(*halves), signed.encode(), ec.ECDSA(hashes.SHA256()))
    assert json.loads(decoded(signed.partition(".")[2])) == {**claims, "iat": 5_000, "exp": 5_000 + valid, "nbf": 4_940}


@pytest.mark.parametrize(
    ("assertion", "said"),
    [
        (AssertionFile("no-jwt"), "holds no JWT assertion: a JWT has three parts"),
        (AssertionFile("missing"), "JWT assertion .*missing cannot be read: FileNotFoundError"),
        (SignedAssertion("rsa.pem"), r"rsa.pem cannot be used: .*passphrase \(TypeError\)"),
        (SignedAssertion("rsa.pem", Secret("s3cret-not")), r"rsa.pem cannot be used: .*passphrase \(ValueError\)"),
        (SignedAssertion("ec.pem"), "ec.pem is not of the kind that RS256 needs"),
        (SignedAssertion("p384.pem", algorithm="ES256"), "p384.pem is not of the kind that ES256 needs"),
        (SignedAssertion("ec.pem", algorithm="ES256", template="bad-template"), "bad-template must hold a JSON object such as"),
    ],
)
def test_what_cannot_be_signed_is_named(keys: Path, assertion: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(keys)
    with pytest.raises(ConfigError, match=said) as caught:
        assertion_text(assertion, 0.0)
    assert "s3cret" not in str(caught.value)


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        fields = {name: texts[0] for name, texts in parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()).items()}
        self.server.asked.append((fields, self.headers.get("Authorization")))  # type: ignore[attr-defined]
        answer = b'{"access_token": "opaque", "expires_in": 60}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def endpoint() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        server.asked = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_requests_are_those_of_kafka(keys: Path, endpoint: Any) -> None:
    url, jwt = f"http://127.0.0.1:{endpoint.server_port}/", AssertionFile(str(keys / "jwt"))
    for assertion in (JwtAssertion(url, jwt, "a b", 5.0), JwtAssertion(url, jwt, None, 5.0, as_client=True, client_id="me")):
        assert request_token(assertion, None)[0] == "opaque"
    assert endpoint.asked == [
        ({"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "a.b.c", "scope": "a b"}, None),
        (
            {
                "grant_type": "client_credentials",
                "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                "client_assertion": "a.b.c",
                "client_id": "me",
            },
            None,
        ),
    ]


def lines(*more: str) -> str:
    all_lines = (
        "security.protocol = SASL_PLAINTEXT",
        "sasl.mechanism = OAUTHBEARER",
        f"sasl.jaas.config = {OAUTH}OAuthBearerLoginModule required;",
        "sasl.oauthbearer.token.endpoint.url = https://login.test/token",
        *more,
    )
    return "".join(f"A.{line}\n" for line in all_lines)


GRANT = f"sasl.oauthbearer.jwt.retriever.class = {OAUTH}JwtBearerJwtRetriever"
PREFIX = "sasl.oauthbearer.assertion."


@pytest.mark.parametrize(
    ("more", "user", "as_client"),
    [
        ((GRANT, f"{PREFIX}file = jwt"), "JWT in jwt", False),
        ((GRANT, f"{PREFIX}private.key.file = k", f"{PREFIX}claim.iss = i", f"{PREFIX}claim.sub = s"), "s", False),
        ((GRANT, f"{PREFIX}private.key.file = k"), "JWT signed with k", False),
        ((f"{PREFIX}private.key.file = k", f"{PREFIX}claim.iss = i"), "i", True),
        ((f"{PREFIX}file = jwt", "sasl.oauthbearer.client.credentials.client.id = me"), "me", True),
    ],
)
def test_the_properties_say_what_the_jwt_is_for(
    load: Callable[..., FerryConfig], more: tuple[str, ...], user: str, as_client: bool, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = load(lines(*more)).clusters["A"]
    credentials = cluster.kafka_python(ClientRole.ADMIN)["sasl_oauth_token_provider"].credentials  # type: ignore[attr-defined]
    assert isinstance(credentials, JwtAssertion)
    assert (credentials.user, credentials.as_client) == (user, as_client)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((GRANT,), "assertion.private.key.file: is not set: JWT assertions need it, or sasl.oauthbearer.assertion.file"),
        ((GRANT, f"{PREFIX}file = x", f"{PREFIX}algorithm = HS256"), "assertion.algorithm: must be RS256 or ES256"),
        ((GRANT, f"{PREFIX}file = x", f"{PREFIX}claim.nbf.seconds = -1"), "claim.nbf.seconds: must be a whole number from 0"),
    ],
)
def test_assertions_that_cannot_work_are_found_when_the_file_is_read(
    problems: Callable[..., list[str]], more: tuple[str, ...], said: str
) -> None:
    found = problems(lines(*more))
    assert any(said in problem for problem in found), found
