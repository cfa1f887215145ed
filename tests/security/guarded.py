"""Clusters with a listener for every way to log in, and with listeners whose certificates are bad."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from tests.certificates import Authority, authority_of_tests, certified
from tests.security.token_endpoint import AUDIENCE, TokenEndpoint
from tests.waiting import NEVER_SECONDS
from tools.kafka import SandboxCluster

from ferry.sandbox.ports import free_ports

SECURITY = "org.apache.kafka.common.security."
OAUTH = f"{SECURITY}oauthbearer.OAuthBearer"
USER, PASSWORD = "ferry", 'pass"w0rd, with = and \\ in it'
CLIENT_ID, CLIENT_SECRET = "ferry-client", "client-s3cret"
STORE_PASSWORD, KEY_PASSWORD = "store-s3cret", "key-s3cret"
# Seconds that a login is good for on the listeners named BRIEF.
BRIEF_SECONDS = 3
PROTOCOLS = {
    "PLAIN": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SASL_TLS": "SASL_SSL",
    "UNSIGNED": "SASL_PLAINTEXT",
    "UNSIGNED_TLS": "SASL_SSL",
    "BRIEF": "SASL_PLAINTEXT",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
}


@dataclass(frozen=True)
class Guarded:
    """A cluster, its ports by listener, and the files of `materials`."""

    cluster: SandboxCluster
    ports: Mapping[str, int | str] = field(default_factory=dict)

    def address(self, listener: str) -> str:
        """Where `listener` is; by the name that its certificate is for."""
        return f"localhost:{self.ports[listener]}"


def write_materials(directory: Path) -> Authority:
    """Keys, certificates and stores as an operator would have them; the binary stores by Java's own keytool."""
    authority = authority_of_tests()
    root, intermediate = authority.root.certificate_pem, authority.intermediate.certificate_pem
    (directory / "ca.pem").write_text(root)
    (directory / "stranger.pem").write_text(certified("stranger", None, authority=True).certificate_pem)
    for name, owner in {
        "broker": authority.local_broker,
        "expired": certified("localhost", authority.intermediate, authority=False, ended=True),
        "elsewhere": certified("elsewhere.test", authority.intermediate, authority=False),
    }.items():
        (directory / f"{name}.pem").write_text(owner.key_pem() + owner.certificate_pem + intermediate)
    client = authority.client
    (directory / "client.pem").write_text(client.key_pem(KEY_PASSWORD) + client.certificate_pem + intermediate)
    plain = directory / "client-plain.pem"
    plain.write_text(client.key_pem() + client.certificate_pem + intermediate)
    password = f"pass:{STORE_PASSWORD}"
    openssl = ["openssl", "pkcs12", "-export", "-in", str(plain), "-name", "ferry", "-out", str(directory / "client.p12")]
    _run(*openssl, "-passout", password)
    plain.unlink()
    for kind, ending in (("JKS", "jks"), ("PKCS12", "p12")):
        trust = ["-keystore", str(directory / f"ca.{ending}"), "-storetype", kind, "-storepass", STORE_PASSWORD]
        _run("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", str(directory / "ca.pem"), *trust)
    origin = ["-srckeystore", str(directory / "client.p12"), "-srcstorepass", STORE_PASSWORD, "-srcalias", "ferry"]
    goal = ["-destkeystore", str(directory / "client.jks"), "-deststoretype", "JKS", "-deststorepass", STORE_PASSWORD]
    _run("keytool", "-importkeystore", "-noprompt", *origin, *goal, "-destkeypass", KEY_PASSWORD)
    return authority


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=NEVER_SECONDS)


def start_guarded(directory: Path, names: list[str], endpoint: TokenEndpoint, running: ExitStack) -> list[Guarded]:
    """Clusters with all listeners, started at the same time, with USER and CLIENT_ID known to them."""
    keys = directory / "keys.json"
    keys.write_text(endpoint.key_set())

    def start(name: str) -> Guarded:
        others = [listener for listener in PROTOCOLS if listener != "PLAIN"]
        ports: dict[str, int | str] = {"PLAIN": "{port}", **dict(zip(others, free_ports(len(others)), strict=True))}
        options = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"
        cluster = SandboxCluster.start(
            directory / name, name, properties=_broker_properties(directory, ports, keys), java_options=(*options, allowed)
        )
        running.enter_context(cluster)
        return Guarded(cluster, {**ports, "PLAIN": cluster.port})

    with ThreadPoolExecutor(len(names)) as pool:
        started = list(pool.map(start, names))
    for guarded in started:
        admin = AdminClient({"bootstrap.servers": guarded.address("PLAIN")})
        mechanisms = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        wanted = [UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4_096), PASSWORD.encode()) for mechanism in mechanisms]
        for change in wanted:
            for future in admin.alter_user_scram_credentials([change]).values():
                future.result(30)
    return started


def _broker_properties(directory: Path, ports: Mapping[str, int | str], keys: Path) -> dict[str, str]:
    found = {
        "listeners": ",".join(
            [*(f"{name}://127.0.0.1:{port}" for name, port in ports.items()), "CONTROLLER://127.0.0.1:{controller_port}"]
        ),
        "advertised.listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
        "inter.broker.listener.name": "PLAIN",
        "listener.security.protocol.map": ",".join([*(f"{name}:{kind}" for name, kind in PROTOCOLS.items()), "CONTROLLER:PLAINTEXT"]),
    }
    certificates = {"EXPIRED": "expired", "ELSEWHERE": "elsewhere"}
    for name, protocol in PROTOCOLS.items():
        if protocol.endswith("SSL"):
            found |= {
                f"listener.name.{name.lower()}.ssl.keystore.type": "PEM",
                f"listener.name.{name.lower()}.ssl.keystore.location": str(directory / f"{certificates.get(name, 'broker')}.pem"),
                f"listener.name.{name.lower()}.ssl.truststore.type": "PEM",
                f"listener.name.{name.lower()}.ssl.truststore.location": str(directory / "ca.pem"),
            }
        if protocol.startswith("SASL"):
            found |= _logins(f"listener.name.{name.lower()}", keys, unsigned=name.startswith("UNSIGNED"))
    found["listener.name.mutual.ssl.client.auth"] = "required"
    for mechanism in ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer"):
        found[f"listener.name.brief.{mechanism}.connections.max.reauth.ms"] = str(BRIEF_SECONDS * 1_000)
    return found


def _logins(prefix: str, keys: Path, *, unsigned: bool) -> dict[str, str]:
    # Once for JAAS, once for the properties file.
    password = PASSWORD.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")
    found = {
        f"{prefix}.sasl.enabled.mechanisms": "OAUTHBEARER" if unsigned else "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{prefix}.plain.sasl.jaas.config": f'{SECURITY}plain.PlainLoginModule required user_{USER}="{password}";',
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{SECURITY}scram.ScramLoginModule required;",
        f"{prefix}.scram-sha-512.sasl.jaas.config": f"{SECURITY}scram.ScramLoginModule required;",
        f"{prefix}.oauthbearer.sasl.jaas.config": f"{OAUTH}LoginModule required;",
    }
    if not unsigned:
        found |= {
            f"{prefix}.oauthbearer.sasl.server.callback.handler.class": f"{OAUTH}ValidatorCallbackHandler",
            f"{prefix}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            f"{prefix}.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
        }
    return found
