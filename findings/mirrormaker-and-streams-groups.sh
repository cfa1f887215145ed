#!/usr/bin/env bash
# A Kafka Streams application that moves to group.protocol=streams drops out of MirrorMaker 2: its positions are not synced any more.
#
# One would guess: the protocol is a matter between the application and its brokers. Its group has committed offsets as before, and with
# groups=.* MirrorMaker writes checkpoints for it and syncs it, as it does for groups of the newer consumer protocol.
# What happens: three groups have read the same topic to its end: a Streams application of the classic protocol, one of the streams protocol
# (KIP-1071), and a consumer of the consumer protocol (KIP-848). The first and the last have checkpoints and the position on the target; the
# streams group has neither.
# With: brokers and Kafka Streams 4.4.0, connect-mirror 4.3.1, confluent-kafka 2.16.1.
# Hurt: whoever plans a move to the other cluster: the application starts there without positions, and begins by auto.offset.reset, which is
# "earliest" in Kafka Streams. It processes all again.
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

# One broker, which is its own controller. Sets $servers; $1: a name for its folder.
start_kafka() {
  local directory="$work/$1" jars="$work/kafka_2.13-4.4.0/jars" ports
  mkdir -p "$directory"
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
  java -cp "$jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$directory/server.properties" >"$directory/format.txt" 2>&1 ||
    { cat "$directory/format.txt"; exit 2; }
  java -Xmx512m -cp "$jars/*" kafka.Kafka "$directory/server.properties" >"$directory/broker.txt" 2>&1 &
  pids+=($!)
}

fetch kafka_2.13 4.4.0
start_kafka source
source=$servers
start_kafka target
target=$servers
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1

fetch kafka-streams 4.4.0
cat >"$work/App.java" <<'JAVA'
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;

public class App {
  public static void main(String[] words) throws Exception {
    var config = new Properties();
    config.put("bootstrap.servers", words[0]);
    config.put("application.id", words[1]);
    config.put("group.protocol", words[1]);
    config.put("state.dir", words[2]);
    config.put("commit.interval.ms", "500");
    config.put("default.key.serde", Serdes.ByteArraySerde.class.getName());
    config.put("default.value.serde", Serdes.ByteArraySerde.class.getName());
    var builder = new StreamsBuilder();
    builder.stream("t").to("out");
    try (var app = new KafkaStreams(builder.build(), config)) {
      app.start();
      System.in.read();
    }
  }
}
JAVA
cat >"$work/fill.py" <<'PYTHON'
import subprocess
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

source, target, work = sys.argv[1:]


def created(admin, name):
    """A topic of one partition; waits for the broker, which may still be starting."""
    deadline = time.monotonic() + 120
    while True:
        try:
            admin.create_topics([NewTopic(name, 1, 1)], request_timeout=10)[name].result(20)
            return
        except KafkaException as problem:
            if problem.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def position(group):
    """The group's offset on the source, or a negative number if it has none."""
    consumer = Consumer({"bootstrap.servers": source, "group.id": group, "enable.auto.commit": False, "log_level": 0})
    try:
        return consumer.committed([TopicPartition("t", 0)], timeout=30)[0].offset
    finally:
        consumer.close()


created(AdminClient({"bootstrap.servers": target, "log_level": 0}), "ready")
admin = AdminClient({"bootstrap.servers": source, "log_level": 0})
for name in ("t", "out"):
    created(admin, name)
producer = Producer({"bootstrap.servers": source, "log_level": 0})
for _ in range(10):
    producer.produce("t", b"x")
assert producer.flush(60) == 0
consumer = Consumer(
    {"bootstrap.servers": source, "group.id": "consumer", "group.protocol": "consumer", "auto.offset.reset": "earliest", "log_level": 0}
)
consumer.subscribe(["t"])
count, deadline = 0, time.monotonic() + 120
while count < 10 and time.monotonic() < deadline:
    message = consumer.poll(1)
    count += message is not None and message.error() is None
consumer.close()
for group in ("classic", "streams"):
    app = subprocess.Popen(
        ["java", "-Xmx256m", "-cp", f"{work}/kafka-streams-4.4.0/jars/*", f"{work}/App.java", source, group, f"{work}/state"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=open(f"{work}/{group}.txt", "w"),
    )
    deadline = time.monotonic() + 120
    while position(group) != 10 and time.monotonic() < deadline and app.poll() is None:
        time.sleep(1)
    app.communicate(b"end", timeout=120)
positions = {group: position(group) for group in ("classic", "consumer", "streams")}
print(f"positions on the source: {positions}")
assert set(positions.values()) == {10}
PYTHON
"$work/venv/bin/python" "$work/fill.py" "$source" "$target" "$work" || { tail -n 20 "$work"/classic.txt "$work"/streams.txt; exit 2; }

fetch connect-mirror 4.3.1
cat >"$work/worker.properties" <<PROPERTIES
bootstrap.servers=$target
listeners=http://127.0.0.1:$(free_ports 1)
offset.storage.file.filename=$work/offsets
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
plugin.discovery=service_load
PROPERTIES
for name in Source Checkpoint; do
  cat >"$work/$name.properties" <<PROPERTIES
name=$name
connector.class=org.apache.kafka.connect.mirror.Mirror${name}Connector
source.cluster.alias=A
target.cluster.alias=B
source.cluster.bootstrap.servers=$source
target.cluster.bootstrap.servers=$target
topics=t
groups=.*
replication.factor=1
offset-syncs.topic.replication.factor=1
checkpoints.topic.replication.factor=1
refresh.topics.interval.seconds=2
refresh.groups.interval.seconds=2
emit.checkpoints.interval.seconds=1
sync.group.offsets.enabled=true
sync.group.offsets.interval.seconds=1
PROPERTIES
done
java -Xmx512m -cp "$work/connect-mirror-4.3.1/jars/*" org.apache.kafka.connect.cli.ConnectStandalone \
  "$work/worker.properties" "$work/Source.properties" "$work/Checkpoint.properties" >"$work/connect.txt" 2>&1 &
pids+=($!)

cat >"$work/look.py" <<'PYTHON'
import struct
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

source, target = sys.argv[1:]
GROUPS = ("classic", "consumer", "streams")


def position_on_target(group):
    """The group's offset on the target, or a negative number if it has none; also while its coordinator is not ready."""
    consumer = Consumer({"bootstrap.servers": target, "group.id": group, "enable.auto.commit": False, "log_level": 0})
    try:
        return consumer.committed([TopicPartition("A.t", 0)], timeout=30)[0].offset
    except KafkaException:
        return -1
    finally:
        consumer.close()


def checkpoints():
    """The newest (upstream, downstream) offsets of each group that has a checkpoint."""
    consumer = Consumer({"bootstrap.servers": target, "group.id": "look", "enable.auto.commit": False, "enable.partition.eof": True, "log_level": 0})
    consumer.assign([TopicPartition("A.checkpoints.internal", 0, 0)])
    found = {}
    while (message := consumer.poll(30)) and message.error() is None:
        (length,) = struct.unpack(">h", message.key()[:2])
        found[message.key()[2 : 2 + length].decode()] = struct.unpack(">qq", message.value()[2:18])
    ended = message is not None and message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF
    consumer.close()
    return found if ended else {}


deadline = time.monotonic() + 240
while not all(position_on_target(group) == 10 for group in ("classic", "consumer")) and time.monotonic() < deadline:
    time.sleep(1)
time.sleep(15)
positions = {group: position_on_target(group) for group in GROUPS}
seen = checkpoints()
print(f"positions on the target: {positions}")
print(f"checkpoints (source, target): {seen}")
ours = {"classic": (10, 10), "consumer": (10, 10)}
sys.exit(not ({group: positions[group] > 0 for group in GROUPS} == {"classic": True, "consumer": True, "streams": False} and seen == ours))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$source" "$target"
