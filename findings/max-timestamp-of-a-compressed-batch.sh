#!/usr/bin/env bash
# The offset of the record with the largest timestamp (ListOffsets with -3, OffsetSpec.max_timestamp, KIP-734) depends on the release and the codec.
#
# One would guess: the first record that has the largest timestamp, which the answer also gives.
# What happens: of one batch with the timestamps 10, 30 and 20, Kafka 3.4.1 answers offset 1 if the batch is not compressed. If it is, the
# answer is offset 2 with timestamp 30: a pair that no record has, because only the batch was looked at, and it ends there. Kafka 3.9.1 and
# 4.4.0 answer offset 1 for both.
# With: brokers 3.4.1, 3.9.1 and 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever reads on from that offset, or compares two clusters of different releases or codecs by it: the same records, two answers.
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
BASE = 1_700_000_000_000

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


def largest(codec):
    """(offset, timestamp) that the broker tells of a topic with one batch."""
    topic = created(admin, codec)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 500, "compression.type": codec, "log_level": 0})
    for time_of_record in (10, 30, 20):
        producer.produce(topic, b"x" * 100, timestamp=BASE + time_of_record)
    assert producer.flush(60) == 0
    key = TopicPartition(topic, 0)
    told = admin.list_offsets({key: OffsetSpec.max_timestamp()})[key].result(30)
    return told.offset, told.timestamp - BASE


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
found = {codec: largest(codec) for codec in ("none", "gzip", "zstd", "lz4")}
print(f"{release}: timestamps 10, 30, 20 at offsets 0, 1, 2; the broker tells (offset, timestamp): {found}")
compressed = (2, 30) if release == "3.4.1" else (1, 30)
sys.exit(found != {"none": (1, 30), "gzip": compressed, "zstd": compressed, "lz4": compressed})
PYTHON

answer=0
for release in 3.4.1 3.9.1 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
