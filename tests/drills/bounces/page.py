"""The results as a page, beside what Kafka's test asks for and what kafka-mirror-tester found with other replicators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.drills.bounces.scenarios import FAULT_SECONDS

HEAD = """\
# Tests that stop brokers and copiers, and disturb the network

`make bounces` writes this page. It runs two test suites that other projects wrote for other copiers, with Ferry as the copier. Then it
runs Ferry's own outages. The tests use Kafka 4.3.1 on one machine with two cores. There are two clusters of three brokers each (KRaft,
all three are controllers too), with three replicas, of which two must acknowledge. The tests call `ferry run` again and again. All
connections of Ferry go through TCP proxies, which disturb the network. The producers, and the readers that check the result, connect
directly to the brokers; they use librdkafka. The tests compare both clusters record by record (keys, values, headers and timestamps) at
the end of each scenario of the first and third suite, and at the end of the second suite.

- **lost**, **twice**, **order**: a read_committed reader reads the target during the whole test. These are the records that it did not
  get, got again, or got before a record that the source has earlier in the same partition. Afterwards a second reader must find the same.
- **foreign**: records that librdkafka does not read at the source, for example those of aborted transactions. There may be none.
- **behind**: seconds from the end of the fault until that reader had all records that the source had acknowledged by then. This includes
  the rest of the current run, and the next run. In the first suite it is the time for all 100,000 records.
- **runs**: exit codes of `ferry run`, and how often each occurred. 5 and 3 are runs that reported a failure and were repeated. The test
  killed the runs with -9 (SIGKILL) and 143 (SIGTERM).
"""
KAFKA = """\
## Apache Kafka's `transactions_test`

The scenarios and numbers come from `tests/kafkatest/tests/core/transactions_test.py` of Apache Kafka. That test copies 100,000 records
within one cluster of three brokers, in 2 partitions, with a transactional copier and 750 records in each transaction. To *bounce* a
process means to stop it and start it again. The test bounces each broker once, or the copiers three times, each time after 20 % of
progress, both hard (SIGKILL) and clean. It requires that output and input are equal as sets, that there are no duplicates, that a reader
that reads during the whole test finds the same, and that the order is kept if there is one partition.

Ferry's test differs as follows. It has two clusters, and bounces brokers of either. It always requires the order. The source's producer
aborts every fourth transaction. During a bounce the connections to the target are slow, so that no bounce comes after the end of the
copy. To bounce the copier, the test stops the whole process tree of `ferry run` with Spark (hard), or `ferry run` itself (clean).
"""
MIRROR = f"""\
## AppsFlyer's kafka-mirror-tester

The scenarios and the results of the other replicators come from `results-brooklin.md` and `results-ureplicator.md` of
`github.com/AppsFlyer/kafka-mirror-tester`. Those tests used two AWS regions, 16 to 30 brokers in each cluster, 200,000 records of 1 kB a
second, retention of 5 minutes, and 32 workers of Brooklin or 8 of uReplicator. Ferry's test uses 300 records of 1 kB a second and topic
on one small machine, and faults of about {FAULT_SECONDS:.0f} s. You can compare which failures happen, but not amounts and times.

In those tests the kernel dropped packets (10 %). This machine's kernel has no `netem`. So here the proxies delay one frame in ten, for as
long as TCP waits before it sends a packet again, and reset connections.
"""
OUTAGES = """\
## Outages

These scenarios are Ferry's own: 12,000 records in 4 partitions each, while something hangs, dies or is missing for a longer time. A
failure of one of three brokers must not end a run (exit code 0 only). If all brokers of a cluster fail, the run must end without help,
once, and the next run must continue.
"""
UPGRADES = """\
## Rolling upgrades

While Ferry copies, each broker of a cluster is stopped in order and started again with a newer release of Kafka, one after the other: first
the source, then the target. Then the features of both clusters are raised, `transaction.version` from 1 to 2 while a transaction of
Ferry is open on the target.
"""
# By scenario: what is published.
PUBLISHED = {
    "long haul": ("no loss", "no loss"),
    "kill a broker of the source": ("about 20 records lost", "no loss, a hiccup"),
    "kill a broker of the target": (
        "no loss, a hiccup",
        "halted for 5 to 20 minutes; significant loss at 5 minutes' retention; with more retention still a few lost, unexplained",
    ),
    "add a topic": ("found after 2 to 3 minutes", "found after 3 to 4 minutes"),
    "add partitions": (
        "new partitions are not copied until the topic is deleted from it and added again",
        "not copied unless the target is grown by hand; lost data when the source was grown first",
    ),
    "packet loss at the replicator": ("slow, no loss", "halts of minutes, about 10 minutes until normal"),
    "packet loss at a source broker": ("slow, catches up", "some loss at first, none when repeated for 1 minute"),
    "under capacity and back": ("about 10 minutes to catch up, sometimes only after a kick", "some loss at 200 MB/s, none at 100 MB/s"),
    "source one broker smaller": ("a hiccup, in some cases minor loss", "a hiccup"),
    "target one broker smaller": ("no hiccup", "400,000 records lost at 200 MB/s and some 1,000 again; none lost at 100 MB/s"),
}
EXPERIMENTS_LEFT_OUT = """\
The tests leave out experiments that add or remove workers and controllers of the replicator. Ferry has no permanent workers: Spark's
workers exist only for a run, and the first suite kills those.
"""
Rows = Sequence[Mapping[str, Any]]


def page(rows: Rows, circumstances: str) -> str:
    """The whole page; `circumstances` of this run: when, and what else the machine did."""
    kafka = [row for row in rows if row["suite"] == "transactions_test"]
    mirror = [row for row in rows if row["suite"] == "kafka-mirror-tester"]
    outages = [row for row in rows if row["suite"] == "outages"]
    upgrades = [row for row in rows if row["suite"] == "rolling upgrade"]
    return "\n".join(
        [
            HEAD,
            f"This run: {circumstances}\n",
            KAFKA,
            *_table(kafka),
            "",
            MIRROR,
            *_table(mirror),
            "",
            EXPERIMENTS_LEFT_OUT,
            *_published(mirror),
            "",
            *_late(mirror),
            OUTAGES,
            *_table(outages),
            "",
            UPGRADES,
            *_table(upgrades),
            "",
            *_told(rows),
        ]
    )


def _table(rows: Rows) -> list[str]:
    lines = [
        "| scenario | what was done | records | lost | twice | order | foreign | behind, s | runs |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        found = row["verdict"]
        runs = ", ".join(f"{code}: {count}" for code, count in sorted(row["exits"].items(), key=lambda pair: -int(pair[0])))
        done = row["done"] + (f"; {row['hanging']} transactions that the broker forgot, ended by hand" if row["hanging"] else "")
        counts = [found[name] for name in ("lost", "duplicated", "out_of_order", "foreign")]
        cells = [row["scenario"], done, f"{found['records']:,}", *map(str, counts), f"{row['behind']:.0f}", runs]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _published(rows: Rows) -> list[str]:
    lines = ["| scenario | Ferry | uReplicator, as published | Brooklin, as published |", "| --- | --- | --- | --- |"]
    for row in rows:
        others = PUBLISHED.get(row["scenario"], ("not tried", "not tried"))
        found = row["verdict"]
        ours = (
            "no loss, no duplicates" if not (found["lost"] or found["duplicated"]) else f"{found['lost']} lost, {found['duplicated']} twice"
        )
        lines.append("| " + " | ".join([row["scenario"], f"{ours}; {row['behind']:.0f} s behind", *others]) + " |")
    return lines


def _late(rows: Rows) -> list[str]:
    lines = [
        "The latency is the time from a record's timestamp until that reader got the record. It includes the rest of the previous run.",
        "",
    ]
    lines += ["| scenario | latency |", "| --- | --- |"]
    return [*lines, *(f"| {row['scenario']} | {row['more']} |" for row in rows), ""]


def _told(rows: Rows) -> list[str]:
    lines = [f"- {row['scenario']}: {text}" for row in rows for text in row["told"]]
    return ["These are the messages of failed runs; another run followed each of them:", "", *lines, ""] if lines else []
