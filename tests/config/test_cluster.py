"""As whom a cluster's settings log in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.certificates import Authority

from ferry.config import FerryConfig

pytestmark = pytest.mark.unit


def test_a_certificate_says_who_it_is(load: Callable[..., FerryConfig], authority: Authority, tmp_path: Path) -> None:
    store = tmp_path / "client.pem"
    store.write_text(authority.client.key_pem() + authority.client.certificate_pem)
    login = 'B.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="x";\n'
    clusters = load(
        f"A.security.protocol = SSL\nA.ssl.keystore.type = PEM\nA.ssl.keystore.location = {store}\n"
        f"B.security.protocol = SASL_SSL\nB.sasl.mechanism = PLAIN\n{login}"
    ).clusters
    assert (clusters["A"].by_certificate, clusters["B"].by_certificate, clusters["B"].principal) == (True, False, "User:me")
    assert (clusters["A"].principal or "").startswith("User:CN=")
    store.unlink()
    assert (clusters["A"].by_certificate, clusters["A"].principal) == (False, None)
