"""Brokers that want a new login every few seconds (KIP-368): copies go on, on the connections that they have."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.drills.security.conftest import SNIPPETS, Grounds
from tests.drills.security.guarded import AWS_ROLE, BRIEF_SECONDS
from tests.drills.security.test_connections import unencrypted
from tests.opened import administration
from tools.kafka import compare_topics

from ferry.config import Flow
from ferry.errors import ExitCode
from ferry.ledger.run_report import RunReport

pytestmark = pytest.mark.brokers

# The rate of a copy is limited, so it takes at least so long, and nothing holds up its process: several logins.
LANES, RECORDS, RECORD_BYTES, COPY_SECONDS = 24, 400, 40_000, 10.0
# On a machine that stands still for seconds a login ends before it is renewed, and the connection is made anew: then once more.
ATTEMPTS = 3
# A token that many connections share: less than a copy, and logins with its last fifth last for two seconds.
SHARED_SECONDS = 10
# Brokers let a connection log in again once a second (Kafka's KafkaChannel). librdkafka uses a token until four fifths of its life are
# over: what is left then must be well over a second.
TOKEN_SECONDS = 4 * BRIEF_SECONDS


class Renewals(logging.Handler):
    """Counts the data path's renewed logins."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = self.failed = 0
        self.reasons: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.begun += "Beginning SASL re-authentication" in str(record.msg)
        if "re-authentication failed" in str(record.msg):
            self.failed += 1
            self.reasons.append(record.getMessage())


SCRAM, OAUTH, ASSERTION, OWN, AWS = (
    unencrypted(SNIPPETS[name])
    for name in (
        "SASL SCRAM",
        "SASL OAUTHBEARER with client credentials",
        "SASL OAUTHBEARER with a JWT assertion",
        "SASL OAUTHBEARER with a class of your own",
        "AWS IAM",
    )
)
ROLE = AWS.replace('awsProfileName="ferry"', f'awsRoleArn="{AWS_ROLE}" awsRoleSessionName="ferry"')


@dataclass(frozen=True)
class Copy:
    """From one login to another. `life`: seconds of a token. `tokens`: the endpoint gives more than so many."""

    source: str
    target: str
    life: int = SHARED_SECONDS
    tokens: int = 1


COPIES = {
    "SCRAM to client credentials": Copy(SCRAM, OAUTH, BRIEF_SECONDS, 4),
    "JWT assertion to AWS profile": Copy(ASSERTION, AWS),
    "AWS role to own class": Copy(ROLE, OWN),
}


@pytest.mark.long
@pytest.mark.parametrize("name", COPIES)
def test_a_long_copy_outlives_its_logins(
    name: str,
    grounds: Grounds,
    guarded_flow: Callable[..., Flow],
    run_flow: Callable[..., RunReport],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    copy = COPIES[name]
    monkeypatch.setattr(grounds.endpoint, "life", copy.life)
    monkeypatch.setattr(MSKAuthTokenProvider, "DEFAULT_TOKEN_EXPIRY_SECONDS", copy.life)
    renewals, log = Renewals(), logging.getLogger("kafka.net.connection")
    monkeypatch.setattr(log, "handlers", [renewals])
    monkeypatch.setattr(log, "propagate", False)
    caplog.set_level(logging.DEBUG, logger=log.name)
    for _ in range(ATTEMPTS):
        renewals.begun = renewals.failed = 0
        granted = grounds.endpoint.granted
        copy_slowly(copy, grounds, guarded_flow, run_flow)
        assert grounds.endpoint.granted - granted > copy.tokens
        if renewals.begun - renewals.failed >= 2:
            return
    pytest.fail(str(renewals.reasons))


def copy_slowly(copy: Copy, grounds: Grounds, guarded_flow: Callable[..., Flow], run_flow: Callable[..., RunReport]) -> None:
    topic = f"t-{secrets.token_hex(4)}"
    source = {"bootstrap.servers": grounds.source.address("PLAIN")}
    admin = AdminClient(source)
    admin.create_topics([NewTopic(topic, LANES, 1)])[topic].result(30)
    producer = Producer(source)
    for number in range(RECORDS):
        producer.produce(topic, value=str(number).encode().zfill(RECORD_BYTES), partition=number % LANES)
    assert producer.flush(30) == 0
    flow = guarded_flow(
        grounds.source.address("AWS_BRIEF" if copy.source == ROLE else "BRIEF"),
        grounds.target.address("AWS_BRIEF" if copy.target == AWS else "BRIEF"),
        *grounds.login(copy.source, "A"),
        *grounds.login(copy.target, "B"),
        f"A->B.topics = {topic}",
        f"A->B.ferry.lanes = {LANES}",
        "A->B.ferry.max.rate.mb = 1",
    )
    started = time.monotonic()
    report = run_flow(flow)
    assert time.monotonic() - started > COPY_SECONDS
    assert (report.exit_code, report.records) == (ExitCode.DONE, RECORDS)
    target = {"bootstrap.servers": grounds.target.address("PLAIN")}
    found = compare_topics(source, target, {topic: f"{flow.source.alias}.{topic}"})
    assert (found.equal, found.records) == (True, RECORDS)


def test_administration_outlives_its_logins(grounds: Grounds, guarded_flow: Callable[..., Flow], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grounds.endpoint, "life", TOKEN_SECONDS)
    addresses = (grounds.source.address("BRIEF"), grounds.target.address("BRIEF"))
    flow = guarded_flow(*addresses, *grounds.login(SCRAM, "A"), *grounds.login(OAUTH, "B"))
    deadline = time.monotonic() + TOKEN_SECONDS
    with administration(flow.source) as source, administration(flow.target) as target:
        identities = source.cluster_id(), target.cluster_id()
        while time.monotonic() < deadline:
            assert (source.cluster_id(), target.cluster_id()) == identities
            time.sleep(0.3)
