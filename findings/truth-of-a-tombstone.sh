#!/usr/bin/env bash
# A message of confluent-kafka for Python is false if its value is empty or null: `if not message: continue` skips tombstones.
#
# One would guess: poll() returns None or a message, and a message is true, so `if not message` asks whether nothing came.
# What happens: a message has a length, that of its value. Of a record with an empty value, or a tombstone, it is 0, so the message is false.
# The loop that people write skips such records without a word, and its offset is committed with the next one.
# With: broker 4.4.0, confluent-kafka 2.16.1.
# Hurt: every consumer of compacted topics, change data capture or the outbox pattern that tests for a message like that: keys are never
# deleted. Right is `if message is None`.
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

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

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

created(AdminClient({"bootstrap.servers": servers, "log_level": 0}), "t")
producer = Producer({"bootstrap.servers": servers, "log_level": 0})
for key, value in (("a", "value"), ("a", None), ("b", ""), ("c", "value")):
    producer.produce("t", value, key)
assert producer.flush(60) == 0
consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "log_level": 0})
consumer.assign([TopicPartition("t", 0, 0)])
seen, end = [], time.monotonic() + 60
while len(seen) < 4 and time.monotonic() < end:
    message = consumer.poll(1)
    if message is not None and message.error() is None:
        seen.append((message.offset(), message.key(), message.value(), bool(message)))
consumer.close()
for offset, key, value, true in seen:
    print(f"offset {offset}, key {key}, value {value}: the message is {true}")
sys.exit([true for *_, true in seen] != [True, False, False, True])
PYTHON

answer=0
for release in 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
