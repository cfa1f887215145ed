"""The results as a page, beside what Kafka's test asks for and what kafka-mirror-tester found with other replicators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.bounces.scenarios import FAULT_SECONDS

HEAD = """\
# Brokers and copiers bounced, networks broken

`make bounces` runs two suites that others made for others, with Ferry as the copier, then outages of its own,
and writes this page. Kafka 4.3.1 on one machine
of two cores: two clusters of three brokers each (KRaft, all three are controllers too), three replicas, two must acknowledge. Ferry
runs as a process, `ferry run` after `ferry run`; all its connections go by TCP proxies, which make the network worse. Feeders and the
readers that judge go to the brokers themselves; they are librdkafka. At the end of each scenario of the first and third suite, and of the
whole second one, both sides are compared record by record: keys, values, headers and timestamps.

- **lost**, **twice**, **order**: records that a read_committed reader, which watched the target all along, did not get, got again, or
  got before one that the source has earlier in the same partition. A second reader afterwards must find the same. The source is what
  librdkafka reads there, so records of aborted transactions count as foreign, and none may come.
- **behind**: seconds from the end of the fault until that reader had all that the source had acknowledged by then. It holds the run
  that was going on and the one after it. In the first suite: all 100,000 records.
- **runs**: exit codes of `ferry run`, and how often. 5 and 3 are runs that told a failure and were repeated; -9 and 143
  (SIGTERM) were bounced.
"""
KAFKA = """\
## Apache Kafka's `transactions_test`

Source of scenario and numbers: `tests/kafkatest/tests/core/transactions_test.py` of Apache Kafka. It copies 100,000 records within one
cluster of three brokers, 2 partitions, by a transactional copier, 750 records a transaction; bounces each broker once, or the copiers
three times, each time after 20 % of progress; hard (SIGKILL) and clean. It asks for: output equal to input as sets, no duplicates, the
same for a reader that read all along, and the order if there is one partition.

Here: two clusters, either of which is bounced; the order is asked for always; every fourth transaction of the source is aborted; the
links to the target are slow while something is bounced, so that no bounce comes after the end. A bounced copier is the whole process
tree of `ferry run` with Spark (hard), or `ferry run` itself (clean).
"""
MIRROR = f"""\
## AppsFlyer's kafka-mirror-tester

Source of scenarios and of the other replicators' results: `results-brooklin.md` and `results-ureplicator.md` of
`github.com/AppsFlyer/kafka-mirror-tester`. There: two AWS regions, 16 to 30 brokers a side, 200,000 records of 1 kB a second,
retention of 5 minutes, 32 workers of Brooklin or 8 of uReplicator. Here: 300 records of 1 kB a second and topic on one small machine,
faults of some {FAULT_SECONDS:.0f} s. The kind of what happens compares, amounts and times do not.

Packet loss there is the kernel's (10 %). This machine's kernel has no `netem`, so here the proxies hold up one frame in ten for as
long as TCP would before it sends again, and reset connections.
"""
OUTAGES = """\
## Outages

Ferry's own: 12,000 records in 4 partitions each, while something hangs, dies or is missing for longer. What befalls one broker of three
must not end a run (exit code 0 only). When a whole side is gone, the run must end by itself, once, and the next one must go on.
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
Left out: workers and controllers of the replicator added and removed. Ferry has none that stand: Spark's workers exist for a run, and
the first suite kills those.
"""
Rows = Sequence[Mapping[str, Any]]


def page(rows: Rows, circumstances: str) -> str:
    """The whole page; `circumstances` of this run: when, and what else the machine did."""
    kafka = [row for row in rows if row["suite"] == "transactions_test"]
    mirror = [row for row in rows if row["suite"] == "kafka-mirror-tester"]
    outages = [row for row in rows if row["suite"] == "outages"]
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
        "How late a record was for that reader, from its sender's clock. Runs follow each other, so it holds the rest of the run before.",
        "",
    ]
    lines += ["| scenario | latency |", "| --- | --- |"]
    return [*lines, *(f"| {row['scenario']} | {row['more']} |" for row in rows), ""]


def _told(rows: Rows) -> list[str]:
    lines = [f"- {row['scenario']}: {text}" for row in rows for text in row["told"]]
    return ["What runs said that failed; each was followed by another:", "", *lines, ""] if lines else []
