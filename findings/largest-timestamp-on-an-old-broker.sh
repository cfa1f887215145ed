#!/usr/bin/env bash
# Kafka 2.8 does not know the question for the largest timestamp (-3, KIP-734), and answers it with the first record, without an error.
#
# One would guess: an unknown negative time is refused, or nothing is found. And a client's admin call that the broker is too old for fails
# with "unsupported version", before it is sent.
# What happens: the broker takes -3 (and -4 and -5, which later releases gave a meaning) for a time before 1970, and answers with the first
# record that is not older: offset 0 and its timestamp. confluent-kafka's list_offsets with OffsetSpec.max_timestamp() sends it to that
# broker and gives the answer as the largest timestamp. Kafka 4.4.0 gives offset 1, which has it.
# With: brokers 2.8.2 and 4.4.0, confluent-kafka 2.16.1; kafka-python 3.0.12 encodes the requests of -3, -4 and -5.
# Hurt: whoever asks clusters of several releases how fresh a topic is: an old one says "as old as its first record". Look at the version
# of ListOffsets that the broker supports (7 for -3) first.
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

# One broker of a release; 2.8.2 with ZooKeeper, 4.4.0 as its own controller. Sets $servers.
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
log.dirs=$directory/logs
offsets.topic.replication.factor=1
PROPERTIES
  if [ "$1" = 2.8.2 ]; then
    cat >"$directory/zookeeper.properties" <<PROPERTIES
dataDir=$directory/zookeeper
clientPort=${ports[1]}
clientPortAddress=127.0.0.1
admin.enableServer=false
PROPERTIES
    java -Xmx256m -cp "$directory/jars/*" org.apache.zookeeper.server.ZooKeeperServerMain "$directory/zookeeper.properties" >"$directory/zookeeper.txt" 2>&1 &
    pids+=($!)
    cat >>"$directory/server.properties" <<PROPERTIES
broker.id=1
listeners=PLAINTEXT://$servers
zookeeper.connect=127.0.0.1:${ports[1]}
zookeeper.connection.timeout.ms=60000
PROPERTIES
  else
    cat >>"$directory/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${ports[1]}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://$servers,CONTROLLER://127.0.0.1:${ports[1]}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
PROPERTIES
    java -cp "$directory/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$directory/server.properties" >"$directory/format.txt" 2>&1 ||
      { cat "$directory/format.txt"; exit 2; }
  fi
  java -Xmx512m -cp "$directory/jars/*" kafka.Kafka "$directory/server.properties" >"$directory/broker.txt" 2>&1 &
  pids=("$!" "${pids[@]}")
}

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1 kafka-python==3.0.12

cat >"$work/look.py" <<'PYTHON'
import socket
import sys
import time

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.parser import KafkaProtocol

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


def asked(timestamp):
    """The error, offset and timestamp that ListOffsets (version 6, the newest of Kafka 2.8) answers."""
    topic = ListOffsetsRequest.ListOffsetsTopic
    partition = topic.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[topic(name="t", partitions=[partition])])
    request.API_VERSION = 6
    parser = KafkaProtocol(client_id="finding")
    parser.send_request(request)
    host, port = servers.split(":")
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(parser.send_bytes())
        while True:
            for _, answer in parser.receive_bytes(connection.recv(1 << 16)):
                found = answer.topics[0].partitions[0]
                return found.error_code, found.offset, found.timestamp


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
created(admin, "t")
now = int(time.time() * 1_000)
producer = Producer({"bootstrap.servers": servers, "log_level": 0})
for timestamp in (now - 30_000, now - 10_000, now - 20_000):
    producer.produce("t", b"x", timestamp=timestamp)
    assert producer.flush(60) == 0
(future,) = admin.list_offsets({TopicPartition("t", 0): OffsetSpec.max_timestamp()}).values()
largest = future.result(60).offset, future.result(60).timestamp
print(f"{release}: offsets and timestamps 0: {now - 30_000}, 1: {now - 10_000}, 2: {now - 20_000}")
print(f"  largest by list_offsets: {largest}")
if release != "2.8.2":
    sys.exit(largest != (1, now - 10_000))
answers = {timestamp: asked(timestamp) for timestamp in (-3, -4, -5)}
print(f"  error, offset and timestamp: {answers}")
sys.exit(not (largest == (0, now - 30_000) and all(one == (0, 0, now - 30_000) for one in answers.values())))
PYTHON

answer=0
for release in 2.8.2 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  for pid in "${pids[@]}"; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  pids=()
done
exit "$answer"
