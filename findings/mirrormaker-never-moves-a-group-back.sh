#!/usr/bin/env bash
# MirrorMaker 2 never moves a group back on the target: a reset to an earlier position stays on the source, also if the group was deleted there.
#
# One would guess: with sync.group.offsets.enabled a group without members has on the target what it has on the source, within the precision of
# the translation. Whoever resets it on the source to read again finds it reset on the target too.
# What happens: a group at the end, 300, has 300 on the target. It is reset to 0 on the source. The checkpoint follows, to 0; the group on the
# target keeps 300. It is deleted on the source, and committed anew at 200: a new checkpoint, and still 300 on the target.
# With: brokers 4.4.0, connect-mirror 4.3.1, confluent-kafka 2.16.1.
# Hurt: whoever resets a group to repair data, and moves its application to the other cluster before it has read up to the old position again: it
# goes on from there, and the rest is never read again. RemoteClusterUtils, which reads checkpoints, and the group itself say different
# things then.
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

cat >"$work/fill.py" <<'PYTHON'
import sys
import time

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic


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


source, target = sys.argv[1:]
created(AdminClient({"bootstrap.servers": target, "log_level": 0}), "ready")
created(AdminClient({"bootstrap.servers": source, "log_level": 0}), "t")
producer = Producer({"bootstrap.servers": source, "log_level": 0})
for number in range(300):
    producer.produce("t", b"x")
assert producer.flush(60) == 0
PYTHON
"$work/venv/bin/python" "$work/fill.py" "$source" "$target"

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
groups=g
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
from confluent_kafka.admin import AdminClient

source, target = sys.argv[1:]


def in_group(servers, act):
    """What `act` gives for a consumer of the group that never joins it; asks again while the group's coordinator is not ready."""
    deadline = time.monotonic() + 120
    while True:
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "enable.auto.commit": False, "log_level": 0})
        try:
            return act(consumer)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)
        finally:
            consumer.close()


def commit(offset):
    in_group(source, lambda consumer: consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False))


def position_on_target():
    """The group's offset on the target, or a negative number if it has none."""
    return in_group(target, lambda consumer: consumer.committed([TopicPartition("A.t", 0)], timeout=30)[0].offset)


def checkpoints():
    """The (upstream, downstream) offsets of all checkpoints so far."""
    consumer = Consumer({"bootstrap.servers": target, "group.id": "look", "enable.auto.commit": False, "enable.partition.eof": True, "log_level": 0})
    consumer.assign([TopicPartition("A.checkpoints.internal", 0, 0)])
    found = []
    while (message := consumer.poll(30)) and message.error() is None:
        found.append(struct.unpack(">qq", message.value()[2:18]))
    assert message and message.error().code() == KafkaError._PARTITION_EOF, message
    consumer.close()
    return found


def waited(test):
    deadline = time.monotonic() + 240
    while not test() and time.monotonic() < deadline:
        time.sleep(1)


def checkpoint_of(upstream):
    """The newest checkpoint, once it is that of this position, and the group's position on the target some syncs later."""
    waited(lambda: checkpoints()[-1:] and checkpoints()[-1][0] == upstream)
    time.sleep(10)
    return checkpoints()[-1], position_on_target()


commit(300)
waited(lambda: position_on_target() == 300)
seen = {"at the end": (checkpoints()[-1], position_on_target())}
commit(0)
seen["reset to 0"] = checkpoint_of(0)
admin = AdminClient({"bootstrap.servers": source, "log_level": 0})
admin.delete_consumer_groups(["g"], request_timeout=60)["g"].result(60)
commit(200)
seen["deleted, and committed anew at 200"] = checkpoint_of(200)
for what, (checkpoint, position) in seen.items():
    print(f"{what}: newest checkpoint (source, target) {checkpoint}, group's position on the target {position}")
upstreams = [checkpoint[0] for checkpoint, _ in seen.values()]
sys.exit(not (upstreams == [300, 0, 200] and {position for _, position in seen.values()} == {300}))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$source" "$target"
