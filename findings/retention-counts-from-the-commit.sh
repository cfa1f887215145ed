#!/usr/bin/env bash
# Old records that are written in transactions stay for the whole retention.ms after their commit; without transactions they go at once.
#
# One would guess: retention.ms goes by the records' timestamps (message.timestamp.type=CreateTime), so records that are older than it go with
# the next check, whoever wrote them.
# What happens: each transaction leaves a marker with the time of its commit, and a segment is as old as its newest entry. Three records
# that are two hours old, in a topic that keeps one hour: without transactions the log is empty seconds later, with one transaction for
# each all three stay. At 30 days in a topic of 7 days (and segment.ms of 7 days) the first goes, since the jump in time begins a new
# segment, and the two others stay.
# With: brokers 3.9.1 and 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever backfills, restores or replicates exactly once: the copy holds what the source has deleted long since, and data that must be
# gone by a date are not. Here retention is checked each second (log.retention.check.interval.ms).
set -euo pipefail

work=$(mktemp -d)
pids=()
cleanup() {
  for pid in "${pids[@]}"; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap cleanup EXIT

# One broker of a release, which is its own controller. Sets $servers; $2: more lines for its properties.
start_kafka() {
  local directory="$work/kafka-$1" ports
  mkdir -p "$directory"
  cat >"$directory/pom.xml" <<XML
<project><modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$1</version></dependency></dependencies>
</project>
XML
  mvn -q -f "$directory/pom.xml" dependency:copy-dependencies -DoutputDirectory="$directory/jars" >"$directory/mvn.txt" 2>&1 ||
    { cat "$directory/mvn.txt"; exit 2; }
  read -r -a ports < <(python3 -c '
import socket
found = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(one.getsockname()[1] for one in found))')
  servers="127.0.0.1:${ports[0]}"
  cat >"$directory/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${ports[1]}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://$servers,CONTROLLER://127.0.0.1:${ports[1]}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$directory/logs
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
${2:-}
PROPERTIES
  java -cp "$directory/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$directory/server.properties" >"$directory/format.txt" 2>&1 ||
    { cat "$directory/format.txt"; exit 2; }
  java -Xmx512m -cp "$directory/jars/*" kafka.Kafka "$directory/server.properties" >"$directory/broker.txt" 2>&1 &
  pids+=($!)
}

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1

cat >"$work/look.py" <<'PYTHON'
import sys
import time

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

servers, release = sys.argv[1:]
HOUR = 3_600_000
DAY = 24 * HOUR


def created(admin, name, **config):
    """A topic of one partition; waits for the broker, which may still be starting."""
    deadline = time.monotonic() + 120
    while True:
        try:
            admin.create_topics([NewTopic(name, 1, 1, config=config)], request_timeout=10)[name].result(20)
            return name
        except KafkaException as problem:
            if problem.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return name
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def end(topic, spec):
    (future,) = admin.list_offsets({TopicPartition(topic, 0): spec}).values()
    return future.result(60).offset


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
now = int(time.time() * 1_000)
plain = Producer({"bootstrap.servers": servers, "log_level": 0})
transactions = Producer({"bootstrap.servers": servers, "transactional.id": "x", "log_level": 0})
created(admin, "first")
transactions.init_transactions(60)
logs = {}
for keeps, age in ((HOUR, 2 * HOUR), (7 * DAY, 30 * DAY)):
    for producer in (transactions, plain):
        way = "in transactions" if producer is transactions else "plain"
        topic = f"{way.replace(' ', '-')}-{age}"
        created(admin, topic, **{"retention.ms": str(keeps), "message.timestamp.before.max.ms": str(2**63 - 1)})
        for _ in range(3):
            if producer is transactions:
                producer.begin_transaction()
            producer.produce(topic, b"x", timestamp=now - age)
            assert producer.flush(60) == 0
            if producer is transactions:
                producer.commit_transaction(60)
        logs[way, age // HOUR, keeps // HOUR] = topic

# The plain records go last: once they are gone, the check has seen the others as well.
for topic in logs.values():
    deadline = time.monotonic() + 120
    while topic.startswith("plain") and end(topic, OffsetSpec.earliest()) < 3 and time.monotonic() < deadline:
        time.sleep(0.5)
time.sleep(10)
found = {}
for (way, age, keeps), topic in logs.items():
    found[way, age] = end(topic, OffsetSpec.earliest()), end(topic, OffsetSpec.latest())
    print(f"{release}: {way}, {age} hours old, kept for {keeps}: the log begins and ends at {found[way, age]}")
wanted = {("in transactions", 2): (0, 6), ("plain", 2): (3, 3), ("in transactions", 720): (1, 6), ("plain", 720): (3, 3)}
sys.exit(found != wanted)
PYTHON

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release" "log.retention.check.interval.ms=1000
log.initial.task.delay.ms=1000"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
