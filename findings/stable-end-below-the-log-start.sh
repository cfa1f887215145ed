#!/usr/bin/env bash
# On Kafka 4 a log's end for read_committed can lie before its start.
#
# One would guess: begin <= last stable offset <= high watermark. On Kafka 3.9.1 it is so: when DeleteRecords removes the first records of a
# transaction that is still open, the last stable offset moves up to the log's start.
# What happens from 4.0.0 on: ListOffsets says that the log begins at 7 and that its committed end is 0, where the transaction had begun,
# until the transaction ends. librdkafka's query of both, which orders them, gives 0 and 7: a first offset that does not exist.
# With: brokers 3.9.1, 4.0.0, 4.3.1 and 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever computes lag or "records left" as end minus begin or position (negative), or takes an end before one's position for a log that
# was truncated.
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


def ends(topic):
    """The first offset of the log, and its end for a reader of committed records."""
    key, committed = TopicPartition(topic, 0), IsolationLevel.READ_COMMITTED
    specs = OffsetSpec.earliest(), OffsetSpec.latest()
    return tuple(admin.list_offsets({key: spec}, isolation_level=committed)[key].result(30).offset for spec in specs)


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
created(admin, "t")
producer = Producer({"bootstrap.servers": servers, "transactional.id": "x", "log_level": 0})
producer.init_transactions(60)
producer.begin_transaction()
for _ in range(10):
    producer.produce("t", b"x")
assert producer.flush(60) == 0
before = ends("t")
admin.delete_records([TopicPartition("t", 0, 7)])[TopicPartition("t", 0, 7)].result(60)
within = ends("t")
consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "isolation.level": "read_committed", "log_level": 0})
marks = consumer.get_watermark_offsets(TopicPartition("t", 0), timeout=30)
consumer.close()
producer.commit_transaction(60)
deadline = time.monotonic() + 30
while ends("t") != (7, 11) and time.monotonic() < deadline:
    time.sleep(0.5)
print(f"{release}: begin and stable end {before}, after DeleteRecords to 7 {within} (get_watermark_offsets {marks}), after the commit {ends('t')}")
new = release >= "4"
sys.exit(not (before == (0, 0) and within == ((7, 0) if new else (7, 7)) and marks == ((0, 7) if new else (7, 7)) and ends("t") == (7, 11)))
PYTHON

answer=0
for release in 3.9.1 4.0.0 4.3.1 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
