"""Logins that are refused: one typed error within seconds, from both clients, that names cluster, listener, user and reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from tests.drills.security.conftest import SNIPPETS, Grounds
from tests.drills.security.guarded import CLIENT_ID, USER
from tests.opened import administration, topic_reader

from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.event_loop import EventLoop
from ferry.config import ClientRole, Cluster, Flow
from ferry.errors import AuthenticationFailed, ClusterUnreachable, ExitCode, FerryError

pytestmark = pytest.mark.brokers

# Far below every time-out; a refused login takes about one.
SOON_SECONDS = 14.0
CREDENTIALS = "SASL OAUTHBEARER with client credentials"
ASSERTION, OWN = "SASL OAUTHBEARER with a JWT assertion", "SASL OAUTHBEARER with a class of your own"
STRANGE_ROLE = 'awsRoleArn="arn:aws:iam::1:role/x"'
NOBODY = 'password="not it, ${file:/etc/ferry/secrets.properties:key}"'


@dataclass(frozen=True)
class Refused:
    """A login, what is changed in it, the listener, and what the message says beside the cluster and where it is."""

    login: str
    listener: str
    says: tuple[str, ...]
    changed: dict[str, str] = field(default_factory=dict)
    error: type[FerryError] = AuthenticationFailed


WRONG_PASSWORD = {'password="${file:/etc/ferry/secrets.properties:password}"': NOBODY}
CASES = {
    "PLAIN, wrong password": Refused("SASL PLAIN", "SASL_TLS", (USER, "SASL_SSL, PLAIN", "Invalid username or password"), WRONG_PASSWORD),
    "SCRAM, wrong password": Refused("SASL SCRAM", "SASL_TLS", (USER, "SCRAM-SHA-512", "invalid credentials"), WRONG_PASSWORD),
    "client credentials, wrong secret": Refused(
        CREDENTIALS, "SASL_TLS", (CLIENT_ID, "token"), {"secrets.properties:client": "secrets.properties:key"}
    ),
    "client credentials, endpoint away": Refused(
        CREDENTIALS, "SASL_TLS", (CLIENT_ID, "token"), {"https://login.example.com": "http://127.0.0.1:1"}, ClusterUnreachable
    ),
    "a token that nobody signed": Refused("SASL OAUTHBEARER without signatures", "SASL_TLS", (USER, "OAUTHBEARER", "invalid_token")),
    "JWT assertion, wrong key": Refused(ASSERTION, "SASL_TLS", (CLIENT_ID, "token", "401"), {"assertion-key.pem": "stranger-key.pem"}),
    "own class, wrong tokens": Refused(OWN, "SASL_TLS", ("entra_tokens:Wrong", "invalid_token"), {":EntraTokens": ":Wrong"}),
    "own class that fails": Refused(
        OWN, "SASL_TLS", ("entra_tokens:Failing", "raised ValueError at entra_tokens.py:"), {":EntraTokens": ":Failing"}
    ),
    "own class, nobody answers": Refused(
        OWN, "SASL_TLS", ("entra_tokens:Lonely", "raised ConnectionRefusedError"), {":EntraTokens": ":Lonely"}, ClusterUnreachable
    ),
    "AWS IAM, wrong secret": Refused("AWS IAM", "AWS_TLS", ("AWS profile stranger", "wrong signature"), {'"ferry"': '"stranger"'}),
    "AWS IAM, a role that must not be assumed": Refused(
        "AWS IAM by OAUTHBEARER", "AWS_TLS", ("AWS role arn:aws:iam::1:role/x", "AccessDenied"), {'awsProfileName="ferry"': STRANGE_ROLE}
    ),
    "a mechanism that the listener does not offer": Refused("SASL SCRAM", "UNSIGNED_TLS", (USER, "SCRAM-SHA-512", "mechanism")),
    "unknown authority": Refused("The same from PEM", "TLS", ("CN=client", "local issuer certificate"), {"ca.pem": "stranger.pem"}),
    "expired certificate": Refused("TLS", "EXPIRED", ("ANONYMOUS", "certificate has expired")),
    "certificate of another host": Refused("TLS", "ELSEWHERE", ("Hostname mismatch", "'localhost'")),
    "no client certificate": Refused("TLS", "MUTUAL", ("ANONYMOUS", "does not accept the client's certificate, or there is none")),
}


READ = ("SCRAM, wrong password", "expired certificate", "client credentials, wrong secret")


def administer(cluster: Cluster) -> None:
    with administration(cluster) as admin:
        admin.cluster_id()


def read(cluster: Cluster) -> None:
    with topic_reader(cluster) as reader:
        reader.partitions("any")


def copy(cluster: Cluster) -> None:
    with data_path(cluster) as (loop, connection):
        loop.run(connection.open)


@contextmanager
def data_path(cluster: Cluster) -> Iterator[tuple[EventLoop, ClusterConnection]]:
    loop = EventLoop()
    connection = ClusterConnection(loop, cluster, ClientRole.CONSUMER)
    try:
        yield loop, connection
    finally:
        connection.close()
        loop.close()


def refused_cluster(case: Refused, grounds: Grounds, guarded_flow: Callable[..., Flow]) -> Cluster:
    snippet = SNIPPETS[case.login]
    for old, new in case.changed.items():
        assert old in snippet
        snippet = snippet.replace(old, new)
    lines = grounds.login(snippet, "A")
    return guarded_flow(grounds.source.address(case.listener), grounds.target.address("PLAIN"), *lines).source


@pytest.mark.parametrize("name", CASES)
def test_refused_logins_end_soon_and_say_why(name: str, grounds: Grounds, guarded_flow: Callable[..., Flow]) -> None:
    case = CASES[name]
    cluster = refused_cluster(case, grounds, guarded_flow)
    # A reader looks a second time after three seconds.
    for use in (administer, copy, *([read] if name in READ else [])):
        started = time.monotonic()
        with pytest.raises(FerryError) as caught:
            use(cluster)
        assert time.monotonic() - started < SOON_SECONDS
        assert (type(caught.value), caught.value.exit_code) == (case.error, ExitCode.UNREACHABLE)
        said = str(caught.value)
        assert [text for text in (f"cluster {cluster.alias}", grounds.source.address(case.listener), *case.says) if text not in said] == []
        assert "not it" not in said
        assert "s3cret" not in said


def test_host_names_are_not_checked_where_the_config_says_so(grounds: Grounds, guarded_flow: Callable[..., Flow]) -> None:
    lines = [*grounds.login(SNIPPETS["TLS"], "A"), "A.ssl.endpoint.identification.algorithm ="]
    cluster = guarded_flow(grounds.source.address("ELSEWHERE"), grounds.target.address("PLAIN"), *lines).source
    for use in (administer, copy):
        use(cluster)
