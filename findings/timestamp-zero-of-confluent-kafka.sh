#!/usr/bin/env bash
# A record with the timestamp 0 (1970-01-01) cannot be written with confluent-kafka for Python: 0 stands for "now".
#
# One would guess: produce(..., timestamp=0) stores 0, as timestamp=1 stores 1 and a missing one the time of the call.
# What happens: 0 is stored as the time of the call, without a word; so a copy of such a record has another timestamp. The values beside it,
# also negative ones that mean nothing, are stored as they are. kafka-python stores 0.
# With: broker 4.4.0, confluent-kafka 2.16.1, kafka-python 3.0.12.
# Hurt: whoever copies or restores records with this client (0 is what devices without a clock, and tests, give), and keeps them by time.
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
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1 kafka-python==3.0.12

cat >"$work/look.py" <<'PYTHON'
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer

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


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
created(admin, "t", **{"message.timestamp.before.max.ms": str(2**63 - 1), "retention.ms": "-1"})
begun = time.time() * 1_000
producer = Producer({"bootstrap.servers": servers, "log_level": 0})
for timestamp in (0, 1, -1, -5):
    producer.produce("t", b"x", timestamp=timestamp)
    assert producer.flush(60) == 0
other = KafkaProducer(bootstrap_servers=servers)
other.send("t", b"x", timestamp_ms=0).get(60)
other.close()
consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "log_level": 0})
consumer.assign([TopicPartition("t", 0, 0)])
found = []
while len(found) < 5 and time.time() * 1_000 - begun < 120_000:
    found += [record.timestamp()[1] for record in consumer.consume(5, 5) if record.error() is None]
consumer.close()
print(f"confluent-kafka 0, 1, -1, -5 and kafka-python 0 are stored as {found}")
sys.exit(not (found[0] >= begun - 60_000 and found[1:] == [1, -1, -5, 0]))
PYTHON

answer=0
for release in 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
