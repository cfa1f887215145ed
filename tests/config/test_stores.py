"""Trust and key stores: PEM, PKCS12 and JKS give the same certificates and key."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jks
import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12

from ferry.config import ClientRole, Cluster, FerryConfig
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

PASSWORD = "changeit"
Load = Callable[..., FerryConfig]


def properties(**values: object) -> str:
    """`A.ssl.…` lines; names with `_` for `.`."""
    return "A.security.protocol=SSL\n" + "".join(f"A.ssl.{name.replace('_', '.')}={value}\n" for name, value in values.items())


def write_pem(directory: Path, authority: Any) -> dict[str, object]:
    (directory / "trust.pem").write_text("# the root\n" + authority.root.certificate_pem)
    chain = authority.client.certificate_pem + authority.intermediate.certificate_pem
    (directory / "key.pem").write_text(authority.client.key_pem(PASSWORD) + chain)
    return {"key_password": PASSWORD, "truststore_type": "PEM", "keystore_type": "pem"}


def write_pkcs12(directory: Path, authority: Any) -> dict[str, object]:
    protection = BestAvailableEncryption(PASSWORD.encode())
    client = authority.client
    (directory / "trust.p12").write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, [authority.root.certificate], protection))
    (directory / "key.p12").write_bytes(
        pkcs12.serialize_key_and_certificates(b"client", client.key, client.certificate, [authority.intermediate.certificate], protection)
    )
    return {"truststore_password": PASSWORD, "keystore_password": PASSWORD, "truststore_type": "PKCS12", "keystore_type": "PKCS12"}


def write_jks(directory: Path, authority: Any, key_password: str = PASSWORD) -> dict[str, object]:
    chain = [authority.client.certificate_der, authority.intermediate.certificate_der]
    key = jks.PrivateKeyEntry.new("client", chain, authority.client.key_der, "pkcs8")
    key.encrypt(key_password)
    jks.KeyStore.new("jks", [key]).save(str(directory / "key.jks"), PASSWORD)
    trusted = jks.TrustedCertEntry.new("root", authority.root.certificate_der)
    jks.KeyStore.new("jks", [trusted]).save(str(directory / "trust.jks"), PASSWORD)
    return {"truststore_password": PASSWORD, "keystore_password": PASSWORD}


WRITERS = {"pem": write_pem, "p12": write_pkcs12, "jks": write_jks}


def cluster_with(load: Load, directory: Path, suffix: str, options: dict[str, object]) -> Cluster:
    locations = {"truststore_location": directory / f"trust.{suffix}", "keystore_location": directory / f"key.{suffix}"}
    return load(properties(**locations, **options)).clusters["A"]


def subjects(context: ssl.SSLContext) -> list[str]:
    return [certificate["subject"][0][0][1] for certificate in context.get_ca_certs()]  # type: ignore[index, misc]


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_gives_the_same(load: Load, tmp_path: Path, authority: Any, suffix: str) -> None:
    cluster = cluster_with(load, tmp_path, suffix, WRITERS[suffix](tmp_path, authority))
    settings = cluster.librdkafka(ClientRole.CONSUMER)
    assert settings["ssl.ca.pem"] == authority.root.certificate_pem
    assert settings["ssl.certificate.pem"] == authority.client.certificate_pem + authority.intermediate.certificate_pem
    key = load_pem_private_key(str(settings["ssl.key.pem"]).encode(), None)
    assert key.public_key() == authority.client.key.public_key()
    assert settings["security.protocol"] == "ssl"
    assert cluster.user_name == "CN=client"


@pytest.mark.parametrize("suffix", WRITERS)
def test_kafka_python_connects_with_them(load: Load, tmp_path: Path, authority: Any, suffix: str) -> None:
    cluster = cluster_with(load, tmp_path, suffix, WRITERS[suffix](tmp_path, authority))
    context = cluster.kafka_python(ClientRole.CONSUMER)["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert subjects(context) == ["root"]
    (tmp_path / "broker.pem").write_text(
        authority.broker.key_pem() + authority.broker.certificate_pem + authority.intermediate.certificate_pem
    )
    broker = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    broker.load_cert_chain(tmp_path / "broker.pem")
    broker.load_verify_locations(cadata=authority.root.certificate_pem)
    broker.verify_mode = ssl.CERT_REQUIRED
    assert handshake(context, broker, "broker.test") == "client"
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(context, broker, "other.test")


def handshake(client: ssl.SSLContext, broker: ssl.SSLContext, host: str) -> str:
    """Both ends in memory; gives the common name that the broker sees."""
    upwards, downwards = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(downwards, upwards, server_hostname=host), broker.wrap_bio(upwards, downwards, server_side=True)]
    waiting = list(ends)
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue
    seen: Any = ends[1].getpeercert()
    return str(seen["subject"][0][0][1])


def test_host_names_are_not_checked_when_told_so(load: Load) -> None:
    cluster = load(properties(endpoint_identification_algorithm="")).clusters["A"]
    assert cluster.librdkafka(ClientRole.ADMIN)["ssl.endpoint.identification.algorithm"] == "none"
    context = cluster.kafka_python(ClientRole.ADMIN)["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_REQUIRED)


def test_pem_in_the_file_itself_with_blanks_for_line_ends(load: Load, authority: Any) -> None:
    def flat(pem: str) -> str:
        return pem.replace("\n", " ")

    chain = flat(authority.client.certificate_pem + authority.intermediate.certificate_pem)
    cluster = load(
        properties(
            truststore_type="PEM",
            truststore_certificates=flat(authority.root.certificate_pem),
            keystore_type="PEM",
            keystore_certificate_chain=chain,
            keystore_key=flat(authority.client.key_pem(PASSWORD)),
            key_password=PASSWORD,
        )
    ).clusters["A"]
    settings = cluster.librdkafka(ClientRole.PRODUCER)
    assert settings["ssl.ca.pem"] == authority.root.certificate_pem
    assert settings["ssl.certificate.pem"] == authority.client.certificate_pem + authority.intermediate.certificate_pem
    assert settings["ssl.key.pem"] == authority.client.key_pem()


def test_jks_key_with_a_password_of_its_own(load: Load, tmp_path: Path, authority: Any) -> None:
    options = write_jks(tmp_path, authority, key_password="other")
    cluster = cluster_with(load, tmp_path, "jks", {**options, "key_password": "other"})
    assert cluster.librdkafka(ClientRole.ADMIN)["ssl.key.pem"] == authority.client.key_pem()
    with pytest.raises(ConfigError, match=r"A\.ssl\.keystore\.location: cannot be opened: .*password of the store or of its key is wrong"):
        cluster_with(load, tmp_path, "jks", options).librdkafka(ClientRole.ADMIN)


def test_content_decides_between_jks_and_pkcs12_as_in_java(load: Load, tmp_path: Path, authority: Any) -> None:
    options = write_pkcs12(tmp_path, authority)
    cluster = cluster_with(load, tmp_path, "p12", {**options, "truststore_type": "JKS", "keystore_type": "JKS"})
    assert cluster.librdkafka(ClientRole.ADMIN)["ssl.ca.pem"] == authority.root.certificate_pem


def test_trust_store_without_a_password(load: Load, tmp_path: Path, authority: Any) -> None:
    write_jks(tmp_path, authority)
    cluster = load(properties(truststore_location=tmp_path / "trust.jks")).clusters["A"]
    assert cluster.librdkafka(ClientRole.ADMIN)["ssl.ca.pem"] == authority.root.certificate_pem


def test_two_keys_are_one_too_many(load: Load, tmp_path: Path, authority: Any) -> None:
    entries = [jks.PrivateKeyEntry.new(name, [authority.client.certificate_der], authority.client.key_der, "pkcs8") for name in ("x", "y")]
    jks.KeyStore.new("jks", entries).save(str(tmp_path / "two.jks"), PASSWORD)
    cluster = load(properties(keystore_location=tmp_path / "two.jks", keystore_password=PASSWORD)).clusters["A"]
    with pytest.raises(ConfigError, match=r"must hold exactly one private key \(holds: x, y\)"):
        cluster.librdkafka(ClientRole.ADMIN)


@pytest.mark.parametrize(
    ("name", "content", "options", "problem"),
    [
        ("truststore", None, {}, "cannot be read: No such file or directory"),
        ("truststore", b"rubbish", {}, "is no JKS or PKCS12 store, or its password is wrong"),
        ("truststore", b"\xfe\xed\xfe\xedrubbish", {}, "cannot be opened: the store is damaged"),
        ("truststore", b"rubbish", {"truststore_type": "PEM"}, "holds no PEM certificate"),
        (
            "truststore",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            {"truststore_type": "PEM"},
            "holds a certificate that cannot be read",
        ),
        ("keystore", b"rubbish", {"keystore_type": "PEM"}, "must hold exactly one PEM private key, and holds 0"),
        (
            "keystore",
            b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
            {"keystore_type": "PEM"},
            "holds a private key that cannot",
        ),
    ],
)
def test_unreadable_stores_are_named(
    load: Load, tmp_path: Path, name: str, content: bytes | None, options: dict[str, object], problem: str
) -> None:
    path = tmp_path / "store"
    if content is not None:
        path.write_bytes(content)
    cluster = load(properties(**{f"{name}_location": path}, **options)).clusters["A"]
    with pytest.raises(ConfigError) as caught:
        cluster.librdkafka(ClientRole.ADMIN)
    assert f"A.ssl.{name}.location: " in str(caught.value)
    assert problem in str(caught.value)


def test_contradictions_are_found_when_the_file_is_read(problems: Callable[..., list[str]]) -> None:
    assert problems(properties(truststore_certificates="x", keystore_type="PEM", keystore_key="y")) == [
        "6: A.ssl.truststore.certificates: is read only with ssl.truststore.type=PEM: set it",
        "8: A.ssl.keystore.key: needs ssl.keystore.certificate.chain beside it",
    ]
    assert problems(properties(truststore_type="PEM", truststore_certificates="x", truststore_location="/y")) == [
        "7: A.ssl.truststore.certificates: and ssl.truststore.location exclude each other: remove one",
    ]
