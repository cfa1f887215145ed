"""No secret shows in what Python prints of Ferry's objects: `repr`, `str`, `format`, after a pickle, in a dataclass's fields, in errors."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drills.security.searching import Search

from ferry.config import ClientRole, ConnectionFields, load_config
from ferry.config.credentials import TokenFile
from ferry.config.login import read_login
from ferry.config.tokens import TokenCallback, TokenProvider
from ferry.copying.lane_messages import CopyJob

pytestmark = pytest.mark.unit

OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
# Long enough to stand nowhere by chance; also characters that other forms than the raw text would change.
SECRETS = st.text(st.sampled_from("abcdefgh0123456789+/=%&<> üß€"), min_size=12, max_size=30).map(lambda text: f"s3{text.strip()}cret")


def objects(directory: Path, secret: str) -> Iterator[tuple[str, Any]]:
    """Everything that holds a secret, made from a file with it."""
    text = "".join(character if ord(character) < 128 else f"\\u{ord(character):04x}" for character in secret)
    path = directory / "mm2.properties"
    path.write_text(
        f"""clusters = A, B, C
A.bootstrap.servers = a:1
A.security.protocol = SASL_SSL
A.sasl.mechanism = PLAIN
A.sasl.jaas.config = {PLAIN} required username="me" password="{text}";
A.ssl.truststore.password = {text}
B.bootstrap.servers = b:1
B.security.protocol = SASL_PLAINTEXT
B.sasl.mechanism = OAUTHBEARER
B.sasl.oauthbearer.token.endpoint.url = http://127.0.0.1:1/token
B.sasl.jaas.config = {OAUTH} required clientId="me" clientSecret="{text}";
C.ferry.airflow.connection = c
A->B.enabled = true
B->A.enabled = true
""",
        encoding="latin-1",
    )
    fields = ConnectionFields("c", 1, "me", secret, {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "x": secret})
    config = load_config(path, connections=lambda _: fields)
    yield "connection", fields
    yield "config", config
    for flow in config.flows:
        yield "flow", flow
        yield "handling", flow.handling
    for cluster in config.clusters.values():
        yield "cluster", cluster
        yield "providers", cluster.providers
        for role in ClientRole:
            yield "settings", cluster.of_role(role)
            yield "written", cluster.written(role)
            client = cluster.resolved(role)
            yield "resolved", client
            login = read_login(client)
            yield "login", login
            if cluster.alias == "B":
                yield "token provider", TokenProvider(login.credentials)  # type: ignore[arg-type]
        yield "messages", (cluster.user_name, cluster.bootstrap, cluster.login_of(ClientRole.ADMIN))


@given(SECRETS)
def test_no_object_shows_a_secret(secret: str) -> None:
    search = Search({"secret": secret})
    kinds = set()
    with tempfile.TemporaryDirectory() as directory:
        for kind, found in objects(Path(directory), secret):
            kinds.add(kind)
            search.look(f"{kind}: repr", repr(found))
            search.look(f"{kind}: str", str(found))
            search.look(f"{kind}: format", f"{found}")
            if kind in {"flow", "cluster"}:
                again = pickle.loads(pickle.dumps(found))  # noqa: S301 - its own bytes
                assert again == found
                search.look(f"{kind}: after a pickle", repr(again))
                search.look(f"{kind}: fields", repr(asdict(found)) if is_dataclass(found) else "")
    assert search.found == set()
    assert {"flow", "cluster", "login", "token provider", "connection", "resolved"} <= kinds


def test_the_job_of_the_lanes_covers_its_flow() -> None:
    assert "flow" in CopyJob.__dataclass_fields__  # what travels to Spark is the flow of the test above


def test_token_callbacks_show_no_token(tmp_path: Path) -> None:

    (tmp_path / "token").write_text("opaque-s3cret-token")
    assert "s3cret" not in repr(TokenCallback(TokenProvider(TokenFile(str(tmp_path / "token")))))
