"""TLS versions and cipher suites: what the properties allow, and what both client libraries then offer to a server."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.certificates import Authority

from ferry.config import ClientRole, FerryConfig
from ferry.config.tls_policy import TLS_1_2, TLS_1_3, VERSIONS, TlsPolicy, read_tls_policy

pytestmark = pytest.mark.unit

Load = Callable[..., FerryConfig]
Problems = Callable[..., list[str]]
ALL_1_3 = "TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256"
SUITE = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
ONLY_1_2, ONLY_1_3 = frozenset({TLS_1_2}), frozenset({TLS_1_3})


def policy(load: Load, lines: str) -> TlsPolicy:
    config = load("A.security.protocol = SSL\n" + lines)
    return read_tls_policy(config.clusters["A"].written(ClientRole.ADMIN))


@pytest.mark.parametrize(
    ("lines", "versions", "ciphers"),
    [
        ("", VERSIONS, ()),
        ("A.ssl.enabled.protocols = TLSv1.2\n", ONLY_1_2, ()),
        ("A.ssl.enabled.protocols = TLSv1.3\n", ONLY_1_3, ()),
        ("A.ssl.enabled.protocols = TLSv1.2,TLSv1.1,TLSv1\n", ONLY_1_2, ()),
        ("A.ssl.protocol = TLSv1.2\n", ONLY_1_2, ()),
        ("A.ssl.protocol = TLS\n", VERSIONS, ()),
        (f"A.ssl.cipher.suites = {SUITE}\n", ONLY_1_2, ("ECDHE-RSA-AES256-GCM-SHA384",)),
        (f"A.ssl.cipher.suites = {ALL_1_3}\n", ONLY_1_3, ()),
        (f"A.ssl.cipher.suites = {SUITE}, {ALL_1_3}\n", VERSIONS, ("ECDHE-RSA-AES256-GCM-SHA384",)),
        (f"A.ssl.cipher.suites = {SUITE}, TLS_AES_256_GCM_SHA384\n", ONLY_1_2, ("ECDHE-RSA-AES256-GCM-SHA384",)),
        (f"A.ssl.cipher.suites = TLS_EMPTY_RENEGOTIATION_INFO_SCSV, {SUITE}\n", ONLY_1_2, ("ECDHE-RSA-AES256-GCM-SHA384",)),
    ],
)
def test_what_is_allowed(load: Load, lines: str, versions: frozenset[str], ciphers: tuple[str, ...]) -> None:
    assert policy(load, lines) == TlsPolicy(versions, ciphers)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("A.ssl.enabled.protocols = TLSv1.1", "6: A.ssl.enabled.protocols: names neither TLSv1.2 nor TLSv1.3"),
        ("A.ssl.enabled.protocols = TLSv9", "6: A.ssl.enabled.protocols: must be a list of TLSv1 and TLSv1.1"),
        ("A.ssl.enabled.protocols = TLSv1.3\nA.ssl.protocol = TLSv1.2", "7: A.ssl.protocol: excludes TLSv1.3"),
        ("A.ssl.cipher.suites = TLS_AES_256_GCM_SHA384", "6: A.ssl.cipher.suites: leaves no suite"),
        (f"A.ssl.cipher.suites = {SUITE}, TLS_NULL", "6: A.ssl.cipher.suites: TLS_NULL is no cipher suite"),
        (
            "A.ssl.protocol = TLSv1.2\nB.security.protocol = SSL\nB.ssl.enabled.protocols = TLSv1.3",
            "A->B: A allows only TLSv1.2 and B only TLSv1.3",
        ),
    ],
)
def test_what_leaves_nothing(problems: Problems, lines: str, told: str) -> None:
    found = problems(f"A.security.protocol = SSL\n{lines}\n")
    assert len(found) == 1
    assert found[0].startswith(told)


def test_every_name_of_openssl_is_right() -> None:
    told = subprocess.run(["openssl", "ciphers", "-stdname", "ALL:@SECLEVEL=0"], capture_output=True, text=True, check=True).stdout
    names = {line.split()[0]: line.split()[2] for line in told.splitlines()}

    class Settings:
        def problem(self, _: str, what: str) -> Exception:
            return ValueError(what)

    from ferry.config.tls_policy import _openssl_name  # noqa: PLC0415 - the rule of names alone

    known = 0
    for java, openssl in names.items():
        try:
            found = _openssl_name(Settings(), java)  # type: ignore[arg-type]
        except ValueError:
            continue
        known += 1
        assert found == openssl
    assert known >= 20


class Server:
    """A TLS server that notes the version and suite of each handshake, and talks no Kafka."""

    def __init__(self, authority: Authority, directory: Path) -> None:
        chain = directory / "server.pem"
        chain.write_text(authority.local_broker.key_pem() + authority.local_broker.certificate_pem + authority.intermediate.certificate_pem)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(chain)
        self.seen: list[tuple[str | None, str]] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                raw, _ = self.socket.accept()
            except OSError:
                return
            try:
                with self.context.wrap_socket(raw, server_side=True) as connection:
                    self.seen.append((connection.version(), (connection.cipher() or ("",))[0]))
            except (ssl.SSLError, OSError) as problem:
                self.seen.append((None, str(problem)))


@pytest.fixture
def server(authority: Authority, tmp_path: Path) -> Iterator[Server]:
    made = Server(authority, tmp_path)
    yield made
    made.socket.close()


ASK = """
import socket, sys
from ferry.clusters.open_cluster import open_cluster
from ferry.config import ClientRole, load_config
side = load_config(sys.argv[1]).flow("A->B").source
context = side.kafka_python(ClientRole.ADMIN)["ssl_context"]
with socket.create_connection(("127.0.0.1", int(sys.argv[2]))) as raw, context.wrap_socket(raw, server_hostname="localhost"):
    pass
with open_cluster(side) as opened:
    admin = opened.admin
    admin._clients.admin.poll(0)
    for _ in range(50):
        admin._clients.admin.poll(0.1)
        if admin._clients.errors:
            break
"""


@pytest.mark.parametrize(
    ("lines", "version", "cipher"),
    [
        ("", "TLSv1.3", ""),
        ("A.ssl.enabled.protocols = TLSv1.2\n", "TLSv1.2", ""),
        ("A.ssl.protocol = TLSv1.2\n", "TLSv1.2", ""),
        ("A.ssl.cipher.suites = TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\n", "TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        (f"A.ssl.cipher.suites = {ALL_1_3}\n", "TLSv1.3", ""),
    ],
)
def test_both_clients_offer_only_what_is_allowed(
    server: Server, authority: Authority, tmp_path: Path, lines: str, version: str, cipher: str
) -> None:
    trust, config = tmp_path / "trust.pem", tmp_path / "mm2.properties"
    trust.write_text(authority.root.certificate_pem)
    config.write_text(
        f"clusters = A, B\nA.bootstrap.servers = localhost:{server.port}\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"
        f"A.security.protocol = SSL\nA.ssl.truststore.type = PEM\nA.ssl.truststore.location = {trust}\n{lines}"
    )
    done = subprocess.run([sys.executable, "-c", ASK, str(config), str(server.port)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(server.seen) >= 2, json.dumps(server.seen)
    assert {seen for seen, _ in server.seen} == {version}
    assert not cipher or {found for _, found in server.seen} == {cipher}
