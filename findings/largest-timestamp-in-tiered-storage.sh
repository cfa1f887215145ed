#!/usr/bin/env bash
# With tiered storage the question for the largest timestamp (-3, KIP-734) is answered from the local part of the log alone.
#
# One would guess: tiered storage changes where records lie, and not what is answered about them. The first offset, the end, and an offset
# for a time are those of the whole log, and so is the largest timestamp.
# What happens: ten records lie in remote storage and, after local.retention.ms, nowhere else. ListOffsets gives 0 and 10 for begin and end,
# and finds offset 5 by its time. The offset of the largest timestamp is -1, as for an empty topic, without an error. A record that is
# older than all of them is written then, and this one is answered. Without tiered storage the same records give offset 9 both times.
# With: broker 4.3.1 with LocalTieredStorage of Kafka's own tests, confluent-kafka 2.16.1; kafka-python 3.0.12 encodes the request for the
# first local offset (-4).
# Hurt: whoever asks by it how fresh a topic is, or whether it is empty: a quiet topic looks empty, and one with timestamps out of order
# looks older than it is.
set -euo pipefail

work=$(mktemp -d)
broker=
cleanup() {
  if [ -n "$broker" ]; then
    kill "$broker" 2>/dev/null || true
    wait "$broker" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap cleanup EXIT

# One broker, which is its own controller. Sets $servers.
start_kafka() {
  local directory="$work/kafka" ports
  mkdir -p "$directory"
  cat >"$directory/pom.xml" <<XML
<project><modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.3.1</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-storage</artifactId><version>4.3.1</version><classifier>test</classifier></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId><version>4.3.1</version><classifier>test</classifier></dependency>
</dependencies></project>
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
log.initial.task.delay.ms=1000
log.retention.check.interval.ms=1000
remote.log.storage.system.enable=true
remote.log.storage.manager.class.name=org.apache.kafka.server.log.remote.storage.LocalTieredStorage
remote.log.storage.manager.impl.prefix=rsm.config.
rsm.config.dir=$directory/remote
remote.log.metadata.manager.listener.name=PLAINTEXT
rlmm.config.remote.log.metadata.topic.replication.factor=1
rlmm.config.remote.log.metadata.topic.num.partitions=1
remote.log.manager.task.interval.ms=1000
PROPERTIES
  java -cp "$directory/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$directory/server.properties" >"$directory/format.txt" 2>&1 ||
    { cat "$directory/format.txt"; exit 2; }
  java -Xmx512m -cp "$directory/jars/*" kafka.Kafka "$directory/server.properties" >"$directory/broker.txt" 2>&1 &
  broker=$!
}

start_kafka
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1 kafka-python==3.0.12

cat >"$work/look.py" <<'PYTHON'
import socket
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.parser import KafkaProtocol

(servers,) = sys.argv[1:]


def created(name, **config):
    """A topic of one partition; waits for the broker, which may still be starting."""
    deadline = time.monotonic() + 120
    while True:
        try:
            admin.create_topics([NewTopic(name, 1, 1, config=config)], request_timeout=10)[name].result(20)
            return
        except KafkaException as problem:
            if problem.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def asked(name, spec):
    (future,) = admin.list_offsets({TopicPartition(name, 0): spec}).values()
    found = future.result(60)
    return found.offset, found.timestamp


def first_local(name):
    """The first offset that the broker has on its own disk (ListOffsets with -4, version 9)."""
    topic = ListOffsetsRequest.ListOffsetsTopic
    partition = topic.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-4)
    request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[topic(name=name, partitions=[partition])])
    request.API_VERSION = 9
    parser = KafkaProtocol(client_id="finding")
    parser.send_request(request)
    host, port = servers.split(":")
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(parser.send_bytes())
        while True:
            for _, answer in parser.receive_bytes(connection.recv(1 << 16)):
                found = answer.topics[0].partitions[0]
                assert found.error_code == 0, found.error_code
                return found.offset


def written(name, timestamp):
    producer.produce(name, b"x", timestamp=timestamp)
    assert producer.flush(60) == 0


def readable(name):
    """How many records a consumer reads from the beginning."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "enable.auto.commit": False, "enable.partition.eof": True})
    consumer.assign([TopicPartition(name, 0, 0)])
    count = 0
    while (message := consumer.poll(60)) and message.error() is None:
        count += 1
    consumer.close()
    assert message and message.error().code() == KafkaError._PARTITION_EOF, message
    return count


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
producer = Producer({"bootstrap.servers": servers, "log_level": 0})
created("plain")
created("tiered", **{"remote.storage.enable": "true", "local.retention.ms": "1000"})
first = int(time.time() * 1_000) - 60_000
for number in range(10):
    for name in ("plain", "tiered"):
        written(name, first + number * 1_000)
deadline = time.monotonic() + 120
while first_local("tiered") < 10 and time.monotonic() < deadline:
    time.sleep(1)
print(f"tiered: first local offset {first_local('tiered')}, records read from the beginning {readable('tiered')}")
seen = {}
for name in ("plain", "tiered"):
    specs = {"begin": OffsetSpec.earliest(), "end": OffsetSpec.latest(), "time of 5": OffsetSpec.for_timestamp(first + 5_000)}
    seen[name] = [asked(name, spec)[0] for spec in specs.values()], asked(name, OffsetSpec.max_timestamp())
    written(name, first - 60_000)
    seen[name] += (asked(name, OffsetSpec.max_timestamp()),)
    print(f"{name}: {dict(zip(specs, seen[name][0]))}; largest timestamp {seen[name][1]}, after one more, older record {seen[name][2]}")
newest = 9, first + 9_000
expected = {"plain": ([0, 10, 5], newest, newest), "tiered": ([0, 10, 5], (-1, -1), (10, first - 60_000))}
sys.exit(seen != expected)
PYTHON

"$work/venv/bin/python" "$work/look.py" "$servers"
