"""What a verify may take, and what others let it have: memory for one batch, a broker's fetch quota."""

from __future__ import annotations

import os
import re
import time

import pytest
from tests.copying.test_quotas import set_quotas
from tests.verify.conftest import Pair, Row, write

from ferry.errors import BatchTooLarge, ExitCode
from ferry.verify import log_reader
from ferry.verify.request import DigestKind

pytestmark = pytest.mark.brokers


@pytest.mark.long
def test_a_verify_waits_for_a_small_fetch_quota(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """4 MB where the broker allows 0.3 MB a second, of which the first ten seconds' worth at once; patience is shorter than the pauses."""
    topic = pair.topic()
    client = f"limited-{topic}"
    flow = pair.flow(topic, f"A.consumer.client.id = {client}")
    rows: list[Row] = [(os.urandom(10_000), None, [], 0) for _ in range(400)]
    write(pair.source, topic, rows, **{"batch.size": 100_000})
    pair.run(flow)
    set_quotas(flow.source, client, {"consumer_byte_rate": 300_000.0})
    monkeypatch.setattr(log_reader, "PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(log_reader, "FETCH_BYTES", 1 << 20)
    started = time.monotonic()
    report = pair.prove(flow)
    assert (report.failed, report.equal, report.records) == ((), True, 400)
    assert time.monotonic() - started > 2.0


def test_a_batch_that_fills_the_memory_is_refused_where_it_must_be_opened(pair: Pair) -> None:
    """Thirty records of a MB in a few KB: a worker with 512 MiB copied and compares them, of 128 MiB one batch may have 21."""
    topics = sorted(pair.topic(config={"max.message.bytes": "50000000"}) for _ in range(2))
    roomy, narrow = pair.flow(",".join(topics)), pair.flow(",".join(topics), "ferry.memory.mb = 128")
    large = {"compression.type": "zstd", "message.max.bytes": 100_000_000, "batch.size": 100_000_000}
    write(pair.source, topics[0], [(bytes(1_000_000), None, [], 0)] * 30, **large)
    write(pair.source, topics[1], [(b"small", None, [], 0)])
    pair.run(roomy)
    report = pair.prove(roomy, digest=DigestKind.RECORDS)
    assert (report.failed, report.equal, report.records) == ((), True, 31)
    assert report.bytes < 1_000_000
    refused = pair.prove(narrow, digest=DigestKind.RECORDS)
    (failed,) = refused.failed
    assert (failed.topic, failed.error, refused.exit_code) == (topics[0], BatchTooLarge.__name__, ExitCode.PARTLY_FAILED)
    assert re.match(rf"cluster {narrow.source.alias}: the batch at offset \d+: its records take more than 22,369,621 bytes", failed.problem)
    assert failed.problem.endswith("; raise ferry.memory.mb")
    assert [entry.topic for entry in refused.verified] == [topics[1]]
