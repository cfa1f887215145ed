#!/usr/bin/env bash
# A lookup by time finds the marker of a transaction: an offset and a timestamp that no record has.
#
# One would guess: offsets for times (ListOffsets, offsets_for_times) and the offset of the largest timestamp (KIP-734) speak of records.
# Of three records of last month, whatever is asked for a later time finds nothing, and the largest timestamp is that of the third.
# What happens: a marker carries the time of its commit or abort, and counts. If the records were written by a transaction, a time after all
# of them finds the marker behind them, and so does the question for the largest timestamp: offset 3, of today. With read_committed too.
# Written without a transaction, the same records give what one would guess.
# With: brokers 3.9.1 and 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever takes a found offset for a record ("there is something from today"), compares two copies of a topic by their largest
# timestamp, or measures by it how fresh a topic is: backfills and replicators keep the records' own timestamps.
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

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

servers, release = sys.argv[1:]


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


def found(topic, spec, isolation=IsolationLevel.READ_UNCOMMITTED):
    """The offset and the timestamp that the broker answers."""
    (future,) = admin.list_offsets({TopicPartition(topic, 0): spec}, isolation_level=isolation).values()
    answer = future.result(60)
    return answer.offset, answer.timestamp


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
now = int(time.time() * 1_000)
old = now - 30 * 86_400_000
results = {}
for topic, config in (("plain", {}), ("transaction", {"transactional.id": "x"})):
    created(admin, topic, **{"message.timestamp.before.max.ms": str(2**63 - 1), "retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": servers, "log_level": 0, **config})
    if config:
        producer.init_transactions(60)
        producer.begin_transaction()
    for number in range(3):
        producer.produce(topic, b"x", timestamp=old + number)
    assert producer.flush(60) == 0
    if config:
        producer.commit_transaction(60)
        while found(topic, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)[0] < 4 and time.time() * 1_000 < now + 120_000:
            time.sleep(0.2)
    results[topic] = [
        found(topic, spec, isolation)
        for spec in (OffsetSpec.for_timestamp(old + 1_000), OffsetSpec.max_timestamp())
        for isolation in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)
    ]
consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "log_level": 0})
by_time = consumer.offsets_for_times([TopicPartition("transaction", 0, old + 1_000)], 60)[0].offset
consumer.close()
print(f"{release}: the records have offsets 0 to 2 and timestamps {old} to {old + 2}")
for topic, answers in results.items():
    print(f"  {topic}: for a second later {answers[:2]}, largest {answers[2:]}")
print(f"  the consumer's offsets_for_times: {by_time}")
plain, transaction = results.values()
as_guessed = plain[2:] == [(2, old + 2)] * 2 and all(offset == -1 for offset, _ in plain[:2])
markers = by_time == 3 and all(offset == 3 and timestamp >= now - 60_000 for offset, timestamp in transaction)
sys.exit(not (as_guessed and markers))
PYTHON

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
