"""One flow under test: its config, its copier, its watcher, and the verdict on what it brought over."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

from tests.drills.bounces.clusters import ProxiedBrokers
from tests.drills.bounces.copier import Copier
from tests.drills.bounces.feeding import Sent, read_value
from tests.drills.bounces.verdict import Verdict, judge
from tests.drills.bounces.watching import Arrival
from tests.drills.faults.hanging import settle_hanging
from tools.kafka import RecordSeen, compare_topics, read_all

CONFIG = """\
clusters = {source}, {target}
{source}.bootstrap.servers = {source_address}
{target}.bootstrap.servers = {target_address}
{source}->{target}.enabled = true
{source}->{target}.topics = {topics}
{source}->{target}.tasks.max = 2
{source}->{target}.ferry.transaction.mb = 1
emit.heartbeats.enabled = false
emit.checkpoints.enabled = false
{target}->{source}.emit.heartbeats.enabled = false
"""
REPLICAS = """\
replication.factor = {replicas}
ferry.internal.topics.replication.factor = {replicas}
"""
# Until all has arrived after the last fault; more is a finding.
CATCH_UP_SECONDS = 240.0
# Nothing arrives for so long: perhaps a broker has forgotten a transaction (decision 7), and an operator would look.
STUCK_SECONDS = 120.0
POLL_SECONDS = 0.2


class FlowUnderTest:
    """Copies topics that match `topics`, by run after run, as long as it is entered. `hanging`: transactions an operator had to end.

    servers: a bootstrap server of the source and one of the target that come first. default_replicas: the config says nothing of replicas.
    """

    def __init__(
        self,
        directory: Path,
        source: ProxiedBrokers,
        target: ProxiedBrokers,
        topics: str,
        master: str,
        *,
        servers: tuple[str, str] = ("", ""),
        default_replicas: bool = False,
    ) -> None:
        self.alias = f"a{secrets.token_hex(3)}"
        name = f"{self.alias}->b{self.alias}"
        self.source, self.target, self.lanes = source, target, f"ferry-{name}-"
        config = directory / f"{self.alias}.properties"
        text = CONFIG.format(
            source=self.alias,
            target=f"b{self.alias}",
            source_address=",".join(filter(None, (servers[0], source.proxied))),
            target_address=",".join(filter(None, (servers[1], target.proxied))),
            topics=topics,
        )
        if not default_replicas:
            text += REPLICAS.format(replicas=min(3, len(target.cluster.nodes)))
        config.write_text(text, encoding="latin-1")
        self.copier = Copier(config, name, master)
        self.arrival = Arrival(target.bootstrap, f"{self.alias}.")
        self.hanging = 0

    def __enter__(self) -> FlowUnderTest:
        self.arrival.start()
        self.copier.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.copier.finish(kill=error is not None)
        self.arrival.finish()

    def wait_for(self, wanted: Mapping[str, int], seconds: float = CATCH_UP_SECONDS) -> float:
        """Return once so many records of each source topic have arrived; how long that took. AssertionError with what is missing."""
        started = moved = time.monotonic()
        before = -1
        while missing := {topic: count - self.arrival.count(topic) for topic, count in wanted.items() if self.arrival.count(topic) < count}:
            now = time.monotonic()
            if sum(missing.values()) != before:
                before, moved = sum(missing.values()), now
            if now - moved > STUCK_SECONDS:
                moved = now
                self.hanging += settle_hanging(self.target.bootstrap, self.lanes)
            said = "\n".join(self.copier.said[-20:])
            assert now - started < seconds, f"after {seconds:.0f} s still to come: {missing}; the copier's last words:\n{said}"
            assert not self.copier.problem, self.copier.problem
            time.sleep(POLL_SECONDS)
        return time.monotonic() - started

    def judge(self, topics: Iterable[str], label: str = "") -> Verdict:
        """What consumers saw all along, and what lies on the target now, against the source as librdkafka reads it.

        label: only the records of producers that begin so. Without it every byte is compared too.
        """
        topics, total = list(topics), Verdict()
        for topic in topics:
            remote = f"{self.alias}.{topic}"
            wanted = [_sent(records, label) for records in read_all(self.source.bootstrap, topic)]
            now = [_sent(records, label) for records in read_all(self.target.bootstrap, remote)]
            for number, records in enumerate(wanted):
                seen = [sent for sent in self.arrival.seen[remote, number] if sent.producer.startswith(label)]
                total += judge(records, seen)
                again = judge(records, now[number] if number < len(now) else [])
                assert again.exact, f"{remote}-{number}, read afterwards: {again}"
        if label:
            return total
        found = compare_topics(self.source.bootstrap, self.target.bootstrap, {topic: f"{self.alias}.{topic}" for topic in topics})
        assert found.equal, found.differences
        return total


def _sent(records: Iterable[RecordSeen], label: str) -> list[Sent]:
    read = (read_value(record.value or b"")[0] for record in records)
    return [sent for sent in read if sent.producer.startswith(label)]
