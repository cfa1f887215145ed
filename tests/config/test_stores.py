"""Trust and key stores: PEM, PKCS12 and JKS give the same certificates and key.

`stores` holds what keytool of several releases of Java wrote (Debian's 8u504, 11.0.24, 17.0.15, 17.0.21 and 21.0.12, Temurin's 25.0.3),
always of the same key, which is used nowhere else: `stores/make.sh` makes the stores of another release.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from ferry.config import ClientRole, Cluster, FerryConfig
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

PASSWORD = "changeit"
STORES = Path(__file__).parent / "stores"
RELEASES = ("8", "11", "17.0.15", "17.0.21", "21", "25")
# Of the keys in JKS stores.
KEY_PASSWORD = "keysecret"
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


WRITERS = {"pem": write_pem, "p12": write_pkcs12}


def cluster_with(load: Load, directory: Path, suffix: str, options: dict[str, object]) -> Cluster:
    locations = {"truststore_location": directory / f"trust.{suffix}", "keystore_location": directory / f"key.{suffix}"}
    return load(properties(**locations, **options)).clusters["A"]


def subjects(context: ssl.SSLContext) -> list[str]:
    return [certificate["subject"][0][0][1] for certificate in context.get_ca_certs()]  # type: ignore[index, misc]


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_gives_the_same(load: Load, tmp_path: Path, authority: Any, suffix: str) -> None:
    cluster = cluster_with(load, tmp_path, suffix, WRITERS[suffix](tmp_path, authority))
    settings = cluster.librdkafka()
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
    assert cluster.librdkafka()["ssl.endpoint.identification.algorithm"] == "none"
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
    settings = cluster.librdkafka()
    assert settings["ssl.ca.pem"] == authority.root.certificate_pem
    assert settings["ssl.certificate.pem"] == authority.client.certificate_pem + authority.intermediate.certificate_pem
    assert settings["ssl.key.pem"] == authority.client.key_pem()


def x509_label(pem: str) -> str:
    return pem.replace(" CERTIFICATE", " X509 CERTIFICATE")


def empty_lines(pem: str) -> str:
    return pem.replace("\n", "\n\n")


def windows(pem: str) -> str:
    return empty_lines(pem).replace("\n", "\r\n")


@pytest.mark.parametrize("spell", [x509_label, empty_lines, windows])
def test_spellings_of_pem(load: Load, tmp_path: Path, authority: Any, spell: Callable[[str], str]) -> None:
    options = write_pem(tmp_path, authority)
    for name in ("trust.pem", "key.pem"):
        (tmp_path / name).write_bytes(spell((tmp_path / name).read_text()).encode())
    cluster = cluster_with(load, tmp_path, "pem", options)
    settings = cluster.librdkafka()
    assert settings["ssl.ca.pem"] == authority.root.certificate_pem
    assert settings["ssl.certificate.pem"] == authority.client.certificate_pem + authority.intermediate.certificate_pem
    assert settings["ssl.key.pem"] == authority.client.key_pem()
    assert subjects(cluster.kafka_python(ClientRole.CONSUMER)["ssl_context"]) == ["root"]


@pytest.mark.parametrize("password", [None, PASSWORD])
def test_openssls_own_form_of_a_private_key(load: Load, tmp_path: Path, authority: Any, password: str | None) -> None:
    """Encrypted, it has the headers Proc-Type and DEK-Info."""
    options = write_pem(tmp_path, authority)
    del options["key_password"]
    protection = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    key = authority.client.key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, protection).decode()
    assert ("Proc-Type" in key) == bool(password)
    (tmp_path / "key.pem").write_text(key + authority.client.certificate_pem)
    cluster = cluster_with(load, tmp_path, "pem", options | ({"key_password": password} if password else {}))
    assert cluster.librdkafka()["ssl.key.pem"] == authority.client.key_pem()
    assert isinstance(cluster.kafka_python(ClientRole.CONSUMER)["ssl_context"], ssl.SSLContext)


def test_certificates_with_trust_settings_are_refused(load: Load, tmp_path: Path, authority: Any) -> None:
    options = write_pem(tmp_path, authority)
    trusted = authority.root.certificate_pem
    (tmp_path / "trust.pem").write_text(trusted + trusted.replace(" CERTIFICATE", " TRUSTED CERTIFICATE"))
    with pytest.raises(ConfigError, match=r"A\.ssl\.truststore\.location: holds a TRUSTED CERTIFICATE"):
        cluster_with(load, tmp_path, "pem", options).librdkafka()


def source() -> pkcs12.PKCS12KeyAndCertificates:
    """What all of `stores` were made of."""
    return pkcs12.load_pkcs12((STORES / "source.p12").read_bytes(), PASSWORD.encode())


def passwords_of(kind: str) -> dict[str, object]:
    """What opens one of `stores`."""
    own: dict[str, object] = {"key_password": KEY_PASSWORD} if kind == "jks" else {}
    return {"truststore_password": PASSWORD, "keystore_password": PASSWORD, **own}


@pytest.mark.parametrize("kind", ["jks", "p12"])
@pytest.mark.parametrize("release", RELEASES)
def test_stores_of_every_java(load: Load, release: str, kind: str) -> None:
    """The key store also holds a certificate that is trusted: it is no issuer of the client's, so it is not shown to the broker."""
    expected = source()
    assert expected.cert is not None
    assert isinstance(expected.key, ec.EllipticCurvePrivateKey)
    cluster = cluster_with(load, STORES / release, kind, passwords_of(kind))
    settings = cluster.librdkafka()
    chain = x509.load_pem_x509_certificates(str(settings["ssl.certificate.pem"]).encode())
    assert [certificate.subject.rfc4514_string() for certificate in chain] == ["CN=client", "CN=intermediate", "CN=root"]
    assert chain[0] == expected.cert.certificate
    assert set(chain[1:]) == {entry.certificate for entry in expected.additional_certs}
    assert settings["ssl.key.pem"] == expected.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    trusted = x509.load_pem_x509_certificates(str(settings["ssl.ca.pem"]).encode())
    assert set(trusted) == {x509.load_pem_x509_certificate((STORES / f"{name}.pem").read_bytes()) for name in ("root", "other")}
    context = cluster.kafka_python(ClientRole.CONSUMER)["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert sorted(subjects(context)) == ["other", "root"]
    assert cluster.user_name == "CN=client"


@pytest.mark.parametrize("release", RELEASES)
def test_a_key_store_with_two_keys_is_refused(load: Load, release: str) -> None:
    for kind, held in (("jks", r" \(holds: client, second\)"), ("p12", ", and holds 2")):
        lines = properties(keystore_location=STORES / release / f"two.{kind}", keystore_password=PASSWORD)
        with pytest.raises(ConfigError, match=rf"A\.ssl\.keystore\.location: must hold exactly one private key{held}"):
            load(lines).clusters["A"].librdkafka()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("key.jks", {"keystore_password": "wrong"}, "is a JKS store that is damaged, or its password is wrong"),
        ("key.jks", {"keystore_password": PASSWORD}, "holds the private key client, but its password"),
        ("key.jks", {"keystore_password": PASSWORD, "key_password": "wrong"}, "holds the private key client, but its password"),
        ("key.jks", {}, "needs ssl.keystore.password or ssl.key.password"),
        ("key.p12", {"keystore_password": "wrong"}, "is no JKS or PKCS12 store, or its password is wrong"),
        ("key.p12", {}, "is no JKS or PKCS12 store, or its password is missing"),
        ("trust.jks", {"keystore_password": PASSWORD}, "must hold exactly one private key (holds: none)"),
        ("trust.p12", {"keystore_password": PASSWORD}, "must hold exactly one private key (holds: none)"),
    ],
)
def test_key_stores_that_do_not_open(load: Load, release: str, name: str, options: dict[str, object], problem: str) -> None:
    cluster = load(properties(keystore_location=STORES / release / name, **options)).clusters["A"]
    with pytest.raises(ConfigError) as caught:
        cluster.librdkafka()
    assert f"A.ssl.keystore.location: {problem}" in str(caught.value)


def test_a_key_without_its_certificate_is_named(load: Load, tmp_path: Path, authority: Any) -> None:
    protection = BestAvailableEncryption(PASSWORD.encode())
    (tmp_path / "key.p12").write_bytes(
        pkcs12.serialize_key_and_certificates(b"client", authority.client.key, None, [authority.root.certificate], protection)
    )
    cluster = load(properties(keystore_location=tmp_path / "key.p12", keystore_password=PASSWORD)).clusters["A"]
    with pytest.raises(ConfigError, match=r"A\.ssl\.keystore\.location: holds no certificate for its private key"):
        cluster.librdkafka()


def test_a_certificate_of_another_key_is_named(load: Load, authority: Any) -> None:
    lines = {"keystore_key": authority.broker.key_pem(), "keystore_certificate_chain": authority.client.certificate_pem}
    flat = {name: pem.replace("\n", " ") for name, pem in lines.items()}
    cluster = load(properties(keystore_type="PEM", **flat)).clusters["A"]
    with pytest.raises(ConfigError, match=r"A\.ssl\.keystore\.key: OpenSSL refuses its content: key values mismatch"):
        cluster.kafka_python(ClientRole.ADMIN)


def test_content_decides_between_jks_and_pkcs12_as_in_java(load: Load, tmp_path: Path, authority: Any) -> None:
    options = write_pkcs12(tmp_path, authority)
    cluster = cluster_with(load, tmp_path, "p12", {**options, "truststore_type": "JKS", "keystore_type": "JKS"})
    assert cluster.librdkafka()["ssl.ca.pem"] == authority.root.certificate_pem


def test_trust_store_without_a_password(load: Load) -> None:
    cluster = load(properties(truststore_location=STORES / "8" / "trust.jks")).clusters["A"]
    assert str(cluster.librdkafka()["ssl.ca.pem"]).count("BEGIN CERTIFICATE") == 2


@pytest.mark.parametrize(
    ("name", "content", "options", "problem"),
    [
        ("truststore", None, {}, "cannot be read: No such file or directory"),
        ("truststore", b"rubbish", {}, "is no JKS or PKCS12 store, or its password is missing"),
        ("truststore", b"\xfe\xed\xfe\xedrubbish", {}, "is a damaged JKS store"),
        ("keystore", b"\xce\xce\xce\xce", {}, "is a JCEKS store, which Ferry does not read"),
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
            "holds a private key that is damaged",
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
        cluster.librdkafka()
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
