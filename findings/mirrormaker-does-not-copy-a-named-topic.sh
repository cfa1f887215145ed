#!/usr/bin/env bash
# MirrorMaker 2 does not copy a topic that its settings name, if the topic's name happens to begin with the target's alias and a dot.
#
# One would guess: what `topics` names is copied. A name with a dot is a name like another, as long as no MirrorMaker has made the topic.
# What happens: with clusters eu and us, the flow eu->us, and topics=orders,us.sales,asia.sales,usa.sales: us.sales is not copied, and no warning
# names it, since it counts as a copy from us that would return home. No flow from us to eu exists, and the topic was made by hand. The
# other three are copied.
# With: brokers 4.4.0, connect-mirror 4.3.1 with its default policy, confluent-kafka 2.16.1.
# Hurt: whoever names topics after regions, and clusters after regions too. The connector runs and shows nothing; compare the lists of topics.
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

topics=orders,us.sales,asia.sales,usa.sales
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


source, target, topics = sys.argv[1:]
created(AdminClient({"bootstrap.servers": target, "log_level": 0}), "ready")
admin = AdminClient({"bootstrap.servers": source, "log_level": 0})
producer = Producer({"bootstrap.servers": source, "log_level": 0})
for topic in topics.split(","):
    created(admin, topic)
    producer.produce(topic, b"x")
assert producer.flush(60) == 0
PYTHON
"$work/venv/bin/python" "$work/fill.py" "$source" "$target" "$topics"

fetch connect-mirror 4.3.1
cat >"$work/worker.properties" <<PROPERTIES
bootstrap.servers=$target
listeners=http://127.0.0.1:$(free_ports 1)
offset.storage.file.filename=$work/offsets
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
plugin.discovery=service_load
PROPERTIES
cat >"$work/source.properties" <<PROPERTIES
name=source
connector.class=org.apache.kafka.connect.mirror.MirrorSourceConnector
source.cluster.alias=eu
target.cluster.alias=us
source.cluster.bootstrap.servers=$source
target.cluster.bootstrap.servers=$target
topics=$topics
replication.factor=1
offset-syncs.topic.replication.factor=1
refresh.topics.interval.seconds=2
PROPERTIES
java -Xmx512m -cp "$work/connect-mirror-4.3.1/jars/*" org.apache.kafka.connect.cli.ConnectStandalone \
  "$work/worker.properties" "$work/source.properties" >"$work/connect.txt" 2>&1 &
pids+=($!)

cat >"$work/look.py" <<'PYTHON'
import sys
import time

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

target, topics, log = sys.argv[1:]
admin = AdminClient({"bootstrap.servers": target, "log_level": 0})


def copied():
    """The topics that have a copy with a record."""
    names = [topic for topic in topics.split(",") if f"eu.{topic}" in admin.list_topics(timeout=60).topics]
    asked = {TopicPartition(f"eu.{name}", 0): OffsetSpec.latest() for name in names}
    ends = [future.result(60).offset for future in admin.list_offsets(asked).values()] if asked else []
    return [name for name, end in zip(names, ends) if end == 1]


deadline = time.monotonic() + 240
while len(copied()) < 3 and time.monotonic() < deadline:
    time.sleep(1)
# Several refreshes of the list of topics later.
time.sleep(15)
seen = copied()
missing = [topic for topic in topics.split(",") if topic not in seen]
with open(log, errors="replace") as lines:
    warned = [line for line in lines if " WARN " in line and any(topic in line for topic in missing)]
print(f"copied: {seen}")
print(f"not copied: {missing}; warnings that name them: {len(warned)}")
sys.exit(not (seen == ["orders", "asia.sales", "usa.sales"] and not warned))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$target" "$topics" "$work/connect.txt"
