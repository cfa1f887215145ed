#!/usr/bin/env bash
# MirrorMaker 2 copies a compacted topic into one that deletes its records, because another setting of the topic is too small for Kafka 4.
#
# One would guess: the setting that the target refuses is left out, or raised to what the target allows, and the others are synced; or the topic
# is not copied at all.
# What happens: segment.bytes below 1 MiB is valid on Kafka 3 and refused since 4.0. MirrorMaker creates the topic with all its settings in
# one request, and syncs them in one, so each is refused whole. Its producer then lets the broker create the topic with the broker's
# defaults. All records are copied, the connector is RUNNING, and cleanup.policy is `delete`: keys that are not written again expire.
# With: brokers 3.9.1 (source) and 4.4.0 (target, auto.create.topics.enable is true by default), connect-mirror 4.3.1, confluent-kafka 2.16.1.
# Hurt: whoever moves to Kafka 4 this way. The worker's log has a warning; compare the settings of all topics before the source goes.
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

# The jars of org.apache.kafka:$1:$2, in $work/$1-$2/jars.
fetch() {
  local directory="$work/$1-$2"
  mkdir -p "$directory"
  cat >"$directory/pom.xml" <<XML
<project><modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>$1</artifactId><version>$2</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
XML
  mvn -q -f "$directory/pom.xml" dependency:copy-dependencies -DoutputDirectory="$directory/jars" >"$directory/mvn.txt" 2>&1 ||
    { cat "$directory/mvn.txt"; exit 2; }
}

# As many free ports as $1 says.
free_ports() {
  python3 -c '
import socket
import sys
found = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(one.getsockname()[1] for one in found))' "$1"
}

# One broker of a release, which is its own controller. Sets $servers.
start_kafka() {
  local directory="$work/kafka_2.13-$1" ports
  fetch kafka_2.13 "$1"
  read -r -a ports < <(free_ports 2)
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
PROPERTIES
  java -cp "$directory/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$directory/server.properties" >"$directory/format.txt" 2>&1 ||
    { cat "$directory/format.txt"; exit 2; }
  java -Xmx512m -cp "$directory/jars/*" kafka.Kafka "$directory/server.properties" >"$directory/broker.txt" 2>&1 &
  pids+=($!)
}

start_kafka 3.9.1
source=$servers
start_kafka 4.4.0
target=$servers
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1

cat >"$work/fill.py" <<'PYTHON'
import sys
import time

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic


def created(admin, name, **config):
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


source, target = sys.argv[1:]
created(AdminClient({"bootstrap.servers": target, "log_level": 0}), "ready")
admin = AdminClient({"bootstrap.servers": source, "log_level": 0})
created(admin, "plain", **{"cleanup.policy": "compact", "max.message.bytes": "500000"})
created(admin, "small", **{"cleanup.policy": "compact", "max.message.bytes": "500000", "segment.bytes": "1000000"})
producer = Producer({"bootstrap.servers": source, "log_level": 0})
for topic in ("plain", "small"):
    for number in range(100):
        producer.produce(topic, b"x", key=str(number))
assert producer.flush(60) == 0
PYTHON
"$work/venv/bin/python" "$work/fill.py" "$source" "$target"

fetch connect-mirror 4.3.1
rest=$(free_ports 1)
cat >"$work/worker.properties" <<PROPERTIES
bootstrap.servers=$target
listeners=http://127.0.0.1:$rest
offset.storage.file.filename=$work/offsets
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
plugin.discovery=service_load
PROPERTIES
cat >"$work/source.properties" <<PROPERTIES
name=source
connector.class=org.apache.kafka.connect.mirror.MirrorSourceConnector
source.cluster.alias=A
target.cluster.alias=B
source.cluster.bootstrap.servers=$source
target.cluster.bootstrap.servers=$target
topics=plain,small
replication.factor=1
offset-syncs.topic.replication.factor=1
refresh.topics.interval.seconds=2
sync.topic.configs.interval.seconds=2
PROPERTIES
java -Xmx512m -cp "$work/connect-mirror-4.3.1/jars/*" org.apache.kafka.connect.cli.ConnectStandalone \
  "$work/worker.properties" "$work/source.properties" >"$work/connect.txt" 2>&1 &
pids+=($!)

cat >"$work/look.py" <<'PYTHON'
import json
import sys
import time
import urllib.request

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec

target, rest, log = sys.argv[1:]
admin = AdminClient({"bootstrap.servers": target, "log_level": 0})
names = ("A.plain", "A.small")


def copied():
    """How many records each copy has."""
    if not set(names) <= set(admin.list_topics(timeout=60).topics):
        return []
    asked = {TopicPartition(name, 0): OffsetSpec.latest() for name in names}
    return [future.result(60).offset for future in admin.list_offsets(asked).values()]


def syncs():
    """How often the configs were refused."""
    with open(log, errors="replace") as lines:
        return sum("Could not alter configuration of topic A.small" in line for line in lines)


deadline = time.monotonic() + 240
while (copied() != [100, 100] or syncs() < 3) and time.monotonic() < deadline:
    time.sleep(1)
settings = {}
for resource, future in admin.describe_configs([ConfigResource("topic", name) for name in names]).items():
    found = future.result(60)
    settings[resource.name] = [found[key].value for key in ("cleanup.policy", "max.message.bytes")]
with urllib.request.urlopen(f"http://127.0.0.1:{rest}/connectors/source/status", timeout=60) as answer:
    states = {one["state"] for one in json.load(answer)["tasks"]}
print(f"records of A.plain and A.small: {copied()}; tasks {states}; syncs that were refused at least 3: {syncs() >= 3}")
print(f"cleanup.policy and max.message.bytes (on the source: compact, 500000): {settings}")
expected = {"A.plain": ["compact", "500000"], "A.small": ["delete", "1048588"]}
sys.exit(not (copied() == [100, 100] and states == {"RUNNING"} and settings == expected))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$target" "$rest" "$work/connect.txt"
