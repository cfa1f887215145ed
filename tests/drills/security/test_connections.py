"""Every way to log in, with the very lines of docs/security.md: whole runs between clusters that have every kind of listener."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.drills.security.conftest import PLAIN, SNIPPETS, Grounds
from tools.kafka import compare_topics

from ferry.config import Flow
from ferry.errors import ExitCode
from ferry.ledger.run_report import RunReport

pytestmark = pytest.mark.brokers

RECORDS = 50


def unencrypted(snippet: str) -> str:
    """The same login over SASL_PLAINTEXT, as the page says."""
    kept = [line for line in snippet.splitlines() if not line.startswith("A.ssl.")]
    return "\n".join(kept).replace("SASL_SSL", "SASL_PLAINTEXT")


def listener(snippet: str) -> str:
    """Which listener of the guarded clusters wants this login."""
    if "SASL" not in snippet:
        return "PLAIN" if "PLAINTEXT" in snippet else "MUTUAL" if "keystore" in snippet else "TLS"
    if "AWS" in snippet or "amazon" in snippet:
        return "AWS_TLS" if "SASL_SSL" in snippet else "AWS"
    return ("UNSIGNED" if "unsecuredLogin" in snippet else "SASL") + ("_TLS" if "SASL_SSL" in snippet else "")


def combinations() -> dict[str, str]:
    found = {"PLAINTEXT": PLAIN} | {name: text for name, text in SNIPPETS.items() if "SASL" not in text}
    for name, text in SNIPPETS.items():
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512") if "SCRAM" in text else (None,):
            if "SASL" in text:
                chosen = text.replace("SCRAM-SHA-512", mechanism) if mechanism else text
                found[f"{mechanism or name}, encrypted"] = chosen
                found[f"{mechanism or name}, plain"] = unencrypted(chosen)
    return found


COMBINATIONS = combinations()
# Each login in one run, by both clients: they administer and copy. A token that Ferry gives to librdkafka costs its clients a second each,
# and the target has many: at the source then.
FILES = [name for name in COMBINATIONS if any(kind in name for kind in ("in a file", "JWT", "of your own", "AWS"))]
OTHERS = [name for name in COMBINATIONS if name not in FILES]
HALF = (len(COMBINATIONS) + 1) // 2
PAIRS = list(zip([*FILES, *OTHERS[: HALF - len(FILES)]], [*OTHERS[HALF - len(FILES) :], OTHERS[0]], strict=True))


def test_the_page_lists_every_way() -> None:
    assert len(COMBINATIONS) == 27
    assert {name for pair in PAIRS for name in pair} == set(COMBINATIONS)
    named = {"PLAIN", "TLS", "MUTUAL", "SASL", "SASL_TLS", "UNSIGNED", "UNSIGNED_TLS", "AWS", "AWS_TLS"}
    assert {listener(text) for text in COMBINATIONS.values()} == named


@pytest.mark.parametrize(("from_", "to"), PAIRS, ids=[f"{from_} to {to}" for from_, to in PAIRS])
def test_a_run_copies_and_syncs(
    from_: str, to: str, grounds: Grounds, guarded_flow: Callable[..., Flow], run_flow: Callable[..., RunReport]
) -> None:
    topic = f"t-{secrets.token_hex(4)}"
    source = {"bootstrap.servers": grounds.source.address("PLAIN")}
    admin = AdminClient(source)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer({**source, "linger.ms": 5})
    for number in range(RECORDS):
        producer.produce(topic, value=secrets.token_bytes(100), key=str(number).encode())
    assert producer.flush(30) == 0
    flow = guarded_flow(
        grounds.source.address(listener(COMBINATIONS[from_])),
        grounds.target.address(listener(COMBINATIONS[to])),
        *grounds.login(COMBINATIONS[from_], "A"),
        *grounds.login(COMBINATIONS[to], "B"),
        f"A->B.topics = {topic}",
        "A->B.ferry.lanes = 1",
    )
    report = run_flow(flow)
    assert (report.exit_code, report.records) == (ExitCode.DONE, RECORDS)
    found = compare_topics(source, {"bootstrap.servers": grounds.target.address("PLAIN")}, {topic: f"{flow.source.alias}.{topic}"})
    assert (found.equal, found.records) == (True, RECORDS)
