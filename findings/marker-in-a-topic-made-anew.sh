#!/usr/bin/env bash
# The marker of a transaction lands in a topic that was deleted and made anew meanwhile: a topic without records ends at offset 1.
#
# One would guess: a transaction that wrote to a topic which is gone fails at its commit, or ends without that topic; the topic of the same name
# that was made afterwards knows nothing of it, and is empty: its log begins and ends at 0.
# What happens: the commit succeeds, as if its record were there, and the coordinator, which knows partitions by name, writes its commit
# marker into the new topic, as its first entry. The new topic begins at 0 and ends at 1, and has no record.
# With: brokers 3.9.1 and 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever takes "end minus begin" of a new topic for its number of records, waits until a position reaches the first record, or takes a
# successful commit as proof that its records are somewhere.
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


def ends(topic):
    """The first offset of the log and the one after its last entry."""
    key = TopicPartition(topic, 0)
    return tuple(admin.list_offsets({key: spec})[key].result(30).offset for spec in (OffsetSpec.earliest(), OffsetSpec.latest()))


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
created(admin, "t")
producer = Producer({"bootstrap.servers": servers, "transactional.id": "x", "log_level": 0})
producer.init_transactions(60)
producer.begin_transaction()
producer.produce("t", b"x")
assert producer.flush(60) == 0
admin.delete_topics(["t"])["t"].result(30)
deadline = time.monotonic() + 60
while "t" in admin.list_topics(timeout=30).topics and time.monotonic() < deadline:
    time.sleep(0.5)
created(admin, "t")
time.sleep(2)
before = ends("t")
producer.commit_transaction(60)
deadline = time.monotonic() + 30
while ends("t") == before and time.monotonic() < deadline:
    time.sleep(0.5)
consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "log_level": 0})
consumer.assign([TopicPartition("t", 0, 0)])
records = [record for record in consumer.consume(10, 5) if record.error() is None]
consumer.close()
print(f"{release}: the new topic begins and ends at {before}, after the commit at {ends('t')}, records in it: {len(records)}")
sys.exit(not (before == (0, 0) and ends("t") == (0, 1) and not records))
PYTHON

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
