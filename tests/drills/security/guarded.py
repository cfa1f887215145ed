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
from tests.drills.security.token_endpoint import AUDIENCE, TokenEndpoint
from tests.waiting import NEVER_SECONDS
from tools.kafka import SandboxCluster

from ferry.sandbox.jars import broker_jars, java
from ferry.sandbox.ports import free_ports

SECURITY = "org.apache.kafka.common.security."
OAUTH = f"{SECURITY}oauthbearer.OAuthBearer"
USER, PASSWORD = "ferry", 'pass"w0rd, with = and \\ in it'
CLIENT_ID, CLIENT_SECRET = "ferry-client", "client-s3cret"
STORE_PASSWORD, KEY_PASSWORD = "store-s3cret", "key-s3cret"
# Of AWS: a user's keys, and those of a role with their session token.
AWS_REGION, AWS_KEY, AWS_SECRET = "eu-west-1", "AKIAFERRYTESTS", "aws-s3cret/of+the=user"
AWS_ROLE, AWS_ROLE_KEY, AWS_ROLE_SECRET = "arn:aws:iam::123456789012:role/ferry", "ASIAFERRYTESTS", "aws-s3cret/of+the=role"
AWS_SESSION = "session-s3cret//with+odd=signs=="
VALIDATOR = Path(__file__).parents[2] / "java" / "AwsUrlValidator.java"
# Seconds that a login is good for on the listeners whose names end with BRIEF.
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
    "AWS": "SASL_PLAINTEXT",
    "AWS_TLS": "SASL_SSL",
    "AWS_BRIEF": "SASL_PLAINTEXT",
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
    (directory / "assertion-key.pem").write_text(client.key_pem(KEY_PASSWORD))
    (directory / "stranger-key.pem").write_text(authority.broker.key_pem(KEY_PASSWORD))
    secrets = {"default": AWS_SECRET, "ferry": AWS_SECRET, "stranger": "not-the-s3cret"}
    profiles = (f"[{name}]\naws_access_key_id = {AWS_KEY}\naws_secret_access_key = {text}\n" for name, text in secrets.items())
    (directory / "aws-credentials").write_text("".join(profiles))
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


def compiled(source: Path, directory: Path) -> Path:
    """The directory with the classes of `source`. By the compiler in every Java, whether `javac` is there or not."""
    jars = ":".join(map(str, broker_jars().glob("*.jar")))
    _run(java(), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", jars, "-d", str(directory), str(source))
    return directory


def start_guarded(directory: Path, names: list[str], endpoint: TokenEndpoint, running: ExitStack) -> list[Guarded]:
    """Clusters with all listeners, started at the same time, with USER and CLIENT_ID known to them."""
    keys = directory / "keys.json"
    keys.write_text(endpoint.key_set())
    classes = compiled(VALIDATOR, directory / "classes")

    def start(name: str) -> Guarded:
        others = [listener for listener in PROTOCOLS if listener != "PLAIN"]
        ports: dict[str, int | str] = {"PLAIN": "{port}", **dict(zip(others, free_ports(len(others)), strict=True))}
        options = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"
        cluster = SandboxCluster.start(
            directory / name,
            name,
            properties=_broker_properties(directory, ports, keys),
            java_options=(*options, allowed),
            classes=str(classes),
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
            prefix = f"listener.name.{name.lower()}"
            found |= _aws(prefix) if name.startswith("AWS") else _logins(prefix, keys, unsigned=name.startswith("UNSIGNED"))
    found["listener.name.mutual.ssl.client.auth"] = "required"
    brief = [("brief", mechanism) for mechanism in ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer")]
    for name, mechanism in [*brief, ("aws_brief", "oauthbearer")]:
        found[f"listener.name.{name}.{mechanism}.connections.max.reauth.ms"] = str(BRIEF_SECONDS * 1_000)
    return found


def _aws(prefix: str) -> dict[str, str]:
    # The broker makes a token for itself, which it does not use: without a name for it, it would not start.
    options = f'unsecuredLoginStringClaim_sub="broker" region="{AWS_REGION}" key_{AWS_KEY}="{AWS_SECRET}"'
    options += f' key_{AWS_ROLE_KEY}="{AWS_ROLE_SECRET} {AWS_SESSION}"'
    return {
        f"{prefix}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}.oauthbearer.sasl.jaas.config": f"{OAUTH}LoginModule required {options};",
        f"{prefix}.oauthbearer.sasl.server.callback.handler.class": VALIDATOR.stem,
    }


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
