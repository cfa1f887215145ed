"""Java logins as settings of both client libraries."""

from __future__ import annotations

import base64
import itertools
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kafka.net.manager import KafkaConnectionManager

from ferry.config import ClientRole, Cluster, FerryConfig
from ferry.config.credentials import ClientCredentials, TokenFile, UnsecuredToken
from ferry.config.secret import Secret
from ferry.config.tokens import TokenCallback, TokenProvider, unsecured_token
from ferry.errors import AuthenticationFailed, ClusterUnreachable, ConfigError

pytestmark = pytest.mark.unit

Load = Callable[..., FerryConfig]
PACKAGE = "org.apache.kafka.common.security."
SCRAM = f"{PACKAGE}scram.ScramLoginModule"
OAUTH = f"{PACKAGE}oauthbearer.OAuthBearerLoginModule"
URL = "https://login.test/token"
KRB5 = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="me@R"'


def sasl(mechanism: str, jaas: str, *more: str, protocol: str = "SASL_PLAINTEXT") -> str:
    lines = [f"security.protocol={protocol}", f"sasl.mechanism={mechanism}", f"sasl.jaas.config={jaas}", *more]
    return "".join(f"A.{line}\n" for line in lines)


def made(load: Load, text: str) -> Cluster:
    return load(text).clusters["A"]


def test_plain_text(load: Load) -> None:
    cluster = made(load, "")
    assert cluster.librdkafka() == {
        "bootstrap.servers": "a:9092",
        "client.id": "ferry",
        "security.protocol": "plaintext",
    }
    assert cluster.kafka_python(ClientRole.CONSUMER) == {
        "bootstrap_servers": ["a:9092"],
        "client_id": "ferry",
        "security_protocol": "PLAINTEXT",
        "socket_options": [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)],
    }
    assert (cluster.user_name, cluster.bootstrap, repr(cluster)) == ("ANONYMOUS", "a:9092", "Cluster(alias='A')")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_passwords(load: Load, mechanism: str) -> None:
    module = f"{PACKAGE}plain.PlainLoginModule" if mechanism == "PLAIN" else SCRAM
    # In the file a backslash is written twice, once for the properties and once for JAAS.
    cluster = made(load, sasl(mechanism, rf'{module} required username="me" password="a;\\"b\\\\c";', protocol="sasl_ssl"))
    own = cluster.librdkafka()
    assert own["security.protocol"] == "sasl_ssl"
    assert (own["sasl.mechanism"], own["sasl.username"], own["sasl.password"]) == (mechanism, "me", 'a;"b\\c')
    other = cluster.kafka_python(ClientRole.PRODUCER)
    assert isinstance(other["ssl_context"], ssl.SSLContext)
    assert (other["security_protocol"], other["sasl_mechanism"]) == ("SASL_SSL", mechanism)
    assert (other["sasl_plain_username"], other["sasl_plain_password"]) == ("me", 'a;"b\\c')
    assert cluster.user_name == "me"


def test_client_credentials(load: Load) -> None:
    jaas = f'{OAUTH} required clientId="me" clientSecret="s" scope="kafka" extension_pool="p";'
    handler = f"sasl.login.callback.handler.class={PACKAGE}oauthbearer.OAuthBearerLoginCallbackHandler"
    cluster = made(load, sasl("OAUTHBEARER", jaas, f"sasl.oauthbearer.token.endpoint.url={URL}", handler))
    own = cluster.librdkafka()
    assert {name.removeprefix("sasl.oauthbearer."): value for name, value in own.items() if name.startswith("sasl.oauthbearer.")} == {
        "method": "oidc",
        "token.endpoint.url": URL,
        "client.id": "me",
        "client.secret": "s",
        "scope": "kafka",
        "extensions": "pool=p",
    }
    provider = cluster.kafka_python(ClientRole.CONSUMER)["sasl_oauth_token_provider"]
    assert isinstance(provider, TokenProvider)
    assert provider.credentials == ClientCredentials(URL, "me", Secret("s"), "kafka", 10.0, {"pool": "p"})
    assert provider.extensions() == {"pool": "p"}
    assert cluster.user_name == "me"


def test_newer_names_of_client_credentials_win(load: Load) -> None:
    more = [
        f"sasl.oauthbearer.token.endpoint.url={URL}",
        "sasl.oauthbearer.client.credentials.client.id=new",
        "sasl.oauthbearer.client.credentials.client.secret=n",
        "sasl.oauthbearer.scope=other",
    ]
    own = made(load, sasl("OAUTHBEARER", f'{OAUTH} required clientId="old";', *more)).librdkafka()
    names = ("client.id", "client.secret", "scope")
    assert [own[f"sasl.oauthbearer.{name}"] for name in names] == ["new", "n", "other"]


def test_token_endpoint_is_checked_against_the_trust_store(load: Load, authority: Any, tmp_path: Path) -> None:
    (tmp_path / "root.pem").write_text(authority.root.certificate_pem)
    jaas = f'{OAUTH} required clientId="me" clientSecret="s";'
    trust = [f"ssl.truststore.location={tmp_path}/root.pem", "ssl.truststore.type=PEM"]
    cluster = made(load, sasl("OAUTHBEARER", jaas, f"sasl.oauthbearer.token.endpoint.url={URL}", *trust))
    own = cluster.librdkafka()
    assert own["https.ca.pem"] == authority.root.certificate_pem
    assert "ssl.ca.pem" not in own
    provider = cluster.kafka_python(ClientRole.ADMIN)["sasl_oauth_token_provider"]
    assert isinstance(provider, TokenProvider)
    assert provider.context is not None
    assert len(provider.context.get_ca_certs()) == 1


def test_unsecured_tokens(load: Load) -> None:
    options = 'unsecuredLoginStringClaim_sub="me" unsecuredLoginLifetimeSeconds="60" unsecuredLoginListClaim_scope="|a|b"'
    cluster = made(load, sasl("OAUTHBEARER", f"{OAUTH} required {options};"))
    own = cluster.librdkafka()
    assert own["enable.sasl.oauthbearer.unsecure.jwt"] is True
    assert own["sasl.oauthbearer.config"] == "principalClaimName=sub principal=me lifeSeconds=60 scope=a,b"
    provider = cluster.kafka_python(ClientRole.CONSUMER)["sasl_oauth_token_provider"]
    assert isinstance(provider, TokenProvider)
    header, claims, signature = provider.token().split(".")
    assert (decoded(header), signature) == ({"alg": "none"}, "")
    assert decoded(claims)["exp"] - decoded(claims)["iat"] == 60
    assert (decoded(claims)["sub"], decoded(claims)["scope"]) == ("me", ["a", "b"])
    assert cluster.user_name == "me"


def decoded(part: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return content


def test_token_files(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "token"
    cluster = made(load, sasl("OAUTHBEARER", f"{OAUTH} required;", f"sasl.oauthbearer.token.endpoint.url=file://{path}"))
    with pytest.raises(ConfigError, match=r"token file .* cannot be read: FileNotFoundError"):
        cluster.librdkafka()
    now = int(time.time())
    token = unsecured_token(UnsecuredToken("me", lifetime_seconds=100), now)
    path.write_text(token + "\n")
    callback = cluster.librdkafka()["oauth_cb"]
    assert callback == TokenCallback(TokenProvider(TokenFile(str(path)), callback.provider.context))  # type: ignore[attr-defined]
    assert callback("") == (token, now + 100, "", {})  # type: ignore[operator]
    path.write_text("opaque")
    assert callback("")[1] > time.time() + 200  # type: ignore[operator]
    # Its clients cannot take an error: the last token is given again, and soon the file is looked at once more.
    path.unlink()
    last, expiry, *_ = callback("")  # type: ignore[operator]
    assert (last, expiry > time.time()) == ("opaque", True)
    path.write_text("\n")
    provider = cluster.kafka_python(ClientRole.CONSUMER)["sasl_oauth_token_provider"]
    with pytest.raises(ConfigError, match=r"token file .* is empty"):
        provider.token()  # type: ignore[attr-defined]
    assert cluster.user_name == f"token in {path}"


def test_expired_token_files_are_refused_before_anybody_connects(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(unsecured_token(UnsecuredToken("me", lifetime_seconds=100), 1_000.0))
    cluster = made(load, sasl("OAUTHBEARER", f"{OAUTH} required;", f"sasl.oauthbearer.token.endpoint.url=file://{path}"))
    with pytest.raises(AuthenticationFailed, match=r"the token in file .*token expired at 1970-01-01T00:18:20\+00:00: have it renewed"):
        cluster.librdkafka()


class TokenEndpoint(BaseHTTPRequestHandler):
    """Grants the client `me` a new token for every request."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        granted = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")) == b"me:s%:" and "scope=a+b" in body
        count = next(self.server.counter)  # type: ignore[attr-defined]
        answer = json.dumps({"access_token": f"token-{count}", "expires_in": self.server.life}).encode()  # type: ignore[attr-defined]
        self.send_response(200 if granted and "grant_type=client_credentials" in body else 401)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def endpoint() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), TokenEndpoint) as server:
        server.counter, server.life = itertools.count(1), 3600  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_tokens_are_asked_for_and_kept(endpoint: Any) -> None:
    url = f"http://127.0.0.1:{endpoint.server_port}/token"
    provider = TokenProvider(ClientCredentials(url, "me", Secret("s%:"), "a b", 5.0))
    assert [provider.token(), provider.token()] == ["token-1", "token-1"]
    endpoint.life = 0
    short = TokenProvider(ClientCredentials(url, "me", Secret("s%:"), "a b", 5.0))
    assert [short.token(), short.token()] == ["token-2", "token-3"]
    with pytest.raises(AuthenticationFailed, match="gives client me no token: 401"):
        TokenProvider(ClientCredentials(url, "me", Secret("wrong"), "a b", 5.0)).token()


def test_refused_tokens_name_endpoint_and_client_only() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/token"
        provider = TokenProvider(ClientCredentials(url, "me", Secret("geheim"), None, 5.0))
        with pytest.raises(
            ClusterUnreachable, match=r"token endpoint http://127\.0\.0\.1:\d+/token gives client me no token: .*refused"
        ) as caught:
            provider.token()
    assert "geheim" not in str(caught.value) + repr(provider)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "A.security.protocol=SASL_SSL\n",
            "A.sasl.jaas.config: is not set: GSSAPI, the default of sasl.mechanism, needs Krb5LoginModule with its options",
        ),
        (
            sasl("GSSAPI", "com.sun.security.auth.module.Krb5LoginModule required;"),
            "7: A.sasl.jaas.config: must have useKeyTab=true, keyTab and principal: Ferry offers Kerberos with a keytab only",
        ),
        (
            sasl("GSSAPI", f"{KRB5};"),
            "A.sasl.kerberos.service.name: is not set, nor serviceName in sasl.jaas.config",
        ),
        (
            sasl("GSSAPI", f'{KRB5} serviceName="a";', "sasl.kerberos.service.name=b"),
            "8: A.sasl.kerberos.service.name: differs from serviceName in sasl.jaas.config",
        ),
        (
            sasl("GSSAPI", KRB5.replace("me@R", "$(x)") + ";", "sasl.kerberos.service.name=b"),
            "7: A.sasl.jaas.config: must hold only letters, digits and . _ - / @ :",
        ),
        (sasl("HMAC", "x required;"), "6: A.sasl.mechanism: HMAC is not offered: use PLAIN, SCRAM"),
        (
            sasl("AWS_MSK_IAM", "x required;"),
            "7: A.sasl.jaas.config: names another login module than IAMLoginModule, which AWS_MSK_IAM needs",
        ),
        ("A.security.protocol=SASL_SSL\nA.sasl.mechanism=PLAIN\n", "A.sasl.jaas.config: is not set: PLAIN needs PlainLoginModule"),
        (
            sasl("PLAIN", f'{SCRAM} required username="a" password="b";'),
            "7: A.sasl.jaas.config: names another login module than Plain",
        ),
        (sasl("PLAIN", 'x.PlainLoginModule required username="a" password="b";'), "7: A.sasl.jaas.config: names another login module"),
        (sasl("SCRAM-SHA-256", f"{SCRAM} required;"), "7: A.sasl.jaas.config: lacks username and password"),
        (
            sasl("SCRAM-SHA-256", f'{SCRAM} required username="a" password="b" tokenauth="true";'),
            "7: A.sasl.jaas.config: delegation tokens",
        ),
        (sasl("OAUTHBEARER", f"{OAUTH} required;"), "7: A.sasl.jaas.config: needs sasl.oauthbearer.token.endpoint.url, or"),
        (
            sasl("OAUTHBEARER", f"{OAUTH} required;", "sasl.oauthbearer.token.endpoint.url=https://x"),
            "7: A.sasl.jaas.config: lacks clientId for",
        ),
        (
            sasl("OAUTHBEARER", f"{OAUTH} required clientId=a;", "sasl.oauthbearer.token.endpoint.url=https://x"),
            "7: A.sasl.jaas.config: lacks clientSecret for",
        ),
        (
            sasl("OAUTHBEARER", f"{OAUTH} required;", "sasl.oauthbearer.token.endpoint.url=ftp://x"),
            "8: A.sasl.oauthbearer.token.endpoint.url: must begin with https://, http:// or file://",
        ),
        (
            sasl("PLAIN", "x required;", protocol="SASL"),
            "5: A.security.protocol: must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, not 'SASL'",
        ),
    ],
)
def test_logins_that_cannot_work_are_found_when_the_file_is_read(problems: Callable[..., list[str]], text: str, problem: str) -> None:
    found = problems(text)
    assert len(found) == 1
    assert found[0].startswith(problem)


COMMON = """\
A.admin.client.id = mine
A.admin.client.dns.lookup = resolve_canonical_bootstrap_servers_only
A.admin.request.timeout.ms = 400000
A.admin.metadata.max.age.ms = 1000
A.admin.connections.max.idle.ms = 60000
A.admin.reconnect.backoff.ms = 10
A.admin.reconnect.backoff.max.ms = 20
A.admin.retry.backoff.ms = 30
A.admin.retry.backoff.max.ms = 40
A.admin.socket.connection.setup.timeout.ms = 500
A.admin.socket.connection.setup.timeout.max.ms = 600
A.admin.send.buffer.bytes = -1
A.admin.receive.buffer.bytes = 4096
"""


def test_common_properties(load: Load) -> None:
    cluster = made(load, COMMON)
    own = cluster.librdkafka()
    assert own == {
        "bootstrap.servers": "a:9092",
        "security.protocol": "plaintext",
        "client.id": "mine",
        "client.dns.lookup": "resolve_canonical_bootstrap_servers_only",
        "socket.timeout.ms": 300_000,  # the most that librdkafka takes
        "metadata.max.age.ms": 1000,
        "connections.max.idle.ms": 60_000,
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 20,
        "retry.backoff.ms": 30,
        "retry.backoff.max.ms": 40,
        "socket.connection.setup.timeout.ms": 1000,  # the least that it takes
        "socket.send.buffer.bytes": 0,
        "socket.receive.buffer.bytes": 4096,
    }
    other = cluster.kafka_python(ClientRole.ADMIN)
    assert other["request_timeout_ms"] == 400_000
    assert other["client_dns_lookup"] == "resolve_canonical_bootstrap_servers_only"
    assert (other["socket_connection_setup_timeout_ms"], other["socket_connection_setup_timeout_max_ms"]) == (500, 600)
    assert other["socket_options"][2:] == [(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)]  # type: ignore[index]


@pytest.mark.parametrize(
    "login",
    [
        "",
        COMMON,
        sasl("SCRAM-SHA-512", f'{SCRAM} required username="a" password="b";', protocol="SASL_SSL"),
        sasl("OAUTHBEARER", f'{OAUTH} required unsecuredLoginStringClaim_sub="a";'),
        sasl("OAUTHBEARER", f'{OAUTH} required clientId="a" clientSecret="b";', "sasl.oauthbearer.token.endpoint.url=http://127.0.0.1:1/"),
    ],
)
def test_both_libraries_take_the_settings(load: Load, login: str) -> None:
    cluster = made(load, login + "A.bootstrap.servers=127.0.0.1:1\n")
    AdminClient({**cluster.librdkafka(), "log_level": 0})
    for role in ClientRole:
        assert set(cluster.kafka_python(role)) <= set(KafkaConnectionManager.DEFAULT_CONFIG)


@pytest.mark.parametrize(
    ("key", "reference"),
    [
        ("sasl.oauthbearer.client.credentials.client.secret", "${env:SECRET}"),
        ("sasl.oauthbearer.client.credentials.client.id", "${env:ID}"),
        ("sasl.oauthbearer.token.endpoint.url", "${env:URL}"),
        ("ssl.keystore.key", "${env:KEY}"),
        ("ssl.truststore.certificates", "${env:CA}"),
    ],
)
def test_any_part_of_a_login_may_be_a_reference(load: Callable[..., FerryConfig], key: str, reference: str) -> None:
    lines = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
        "sasl.oauthbearer.token.endpoint.url": "https://localhost/token",
        "sasl.oauthbearer.client.credentials.client.id": "ferry",
        "sasl.oauthbearer.client.credentials.client.secret": "x",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": "x",
        "ssl.keystore.certificate.chain": "x",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "x",
        key: reference,
    }
    providers = "config.providers = env\nconfig.providers.env.class = EnvVarConfigProvider\n"
    assert load(providers + "".join(f"A.{name} = {value}\n" for name, value in lines.items())).warnings == ()


@pytest.mark.parametrize(
    "lines",
    [
        "A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\nA.sasl.jaas.config = ${env:JAAS}",
        'A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\nA.sasl.jaas.config = ${env:M} required username="u" password="p";',
        "A.security.protocol = SASL_SSL\nA.sasl.mechanism = SCRAM-SHA-${env:N}\nA.sasl.jaas.config = x",
        "A.security.protocol = SSL\nA.ssl.truststore.type = ${env:T}\nA.ssl.truststore.certificates = ${env:CA}",
    ],
)
def test_what_a_reference_hides_is_not_judged(load: Callable[..., FerryConfig], lines: str) -> None:
    providers = "config.providers = env\nconfig.providers.env.class = EnvVarConfigProvider\n"
    assert load(providers + lines + "\n").warnings == ()


def test_a_login_that_one_role_uses_has_an_effect(load: Callable[..., FerryConfig]) -> None:
    module = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    login = f"A.sasl.mechanism = PLAIN\nA.sasl.jaas.config = {module}\n"
    assert load(f"A.consumer.security.protocol = SASL_SSL\n{login}").warnings == ()
    assert load(f"A->B.source.consumer.security.protocol = SASL_SSL\n{login}").warnings == ()
    assert len(load(login).warnings) == 2
