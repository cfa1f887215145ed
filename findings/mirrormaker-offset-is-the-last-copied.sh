#!/usr/bin/env bash
# The offset of MirrorMaker 2 that Connect's REST API shows and sets is the last copied one: set to 100, it begins with 101.
#
# One would guess: it is a position as in consumer groups, the offset that is read next. Whoever sets it to 100 gets record 100 as the first.
# What happens: after 300 records, 0 to 299, GET .../offsets says 299. The connector is stopped, PATCH .../offsets sets 100, it is resumed, and
# the first record that is copied again is 101. Set to 0 it begins with 1: no number that is allowed begins with record 0; -1 is refused.
# Only removing the offset (null) begins there.
# With: broker 4.4.0, connect-mirror and connect-runtime 4.3.1, confluent-kafka 2.16.1.
# Hurt: whoever repeats a copy from a known record, or takes positions over from or into another tool: one record of each partition is missing,
# or copied twice.
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
start_kafka both
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1

cat >"$work/fill.py" <<'PYTHON'
import sys
import time

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

(servers,) = sys.argv[1:]
admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
deadline = time.monotonic() + 120
while True:
    try:
        admin.create_topics([NewTopic("t", 1, 1)], request_timeout=10)["t"].result(20)
        break
    except KafkaException as problem:
        if problem.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            break
        if time.monotonic() > deadline:
            raise
        time.sleep(1)
producer = Producer({"bootstrap.servers": servers, "log_level": 0})
for number in range(300):
    producer.produce("t", str(number).encode())
assert producer.flush(60) == 0
PYTHON
"$work/venv/bin/python" "$work/fill.py" "$servers"

fetch connect-mirror 4.3.1
rest=$(free_ports 1)
cat >"$work/worker.properties" <<PROPERTIES
bootstrap.servers=$servers
listeners=http://127.0.0.1:$rest
offset.storage.file.filename=$work/offsets
offset.flush.interval.ms=1000
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
plugin.discovery=service_load
PROPERTIES
cat >"$work/source.properties" <<PROPERTIES
name=source
connector.class=org.apache.kafka.connect.mirror.MirrorSourceConnector
source.cluster.alias=A
target.cluster.alias=B
source.cluster.bootstrap.servers=$servers
target.cluster.bootstrap.servers=$servers
topics=t
replication.factor=1
offset-syncs.topic.replication.factor=1
PROPERTIES
java -Xmx512m -cp "$work/connect-mirror-4.3.1/jars/*" org.apache.kafka.connect.cli.ConnectStandalone \
  "$work/worker.properties" "$work/source.properties" >"$work/connect.txt" 2>&1 &
pids+=($!)

cat >"$work/look.py" <<'PYTHON'
import json
import sys
import time
import urllib.error
import urllib.request

from confluent_kafka import Consumer, KafkaError, TopicPartition

servers, rest = sys.argv[1:]
PARTITION = {"cluster": "A", "topic": "t", "partition": 0}


def call(method, path, body=None):
    """The HTTP status and the answer of Connect."""
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"http://127.0.0.1:{rest}/connectors/source{path}", data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read().decode()
    except urllib.error.URLError as problem:
        return 0, str(problem)


def waited(test):
    deadline = time.monotonic() + 180
    while not (found := test()) and time.monotonic() < deadline:
        time.sleep(1)
    return found


def copied():
    """The values in the copy."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "look", "enable.auto.commit": False, "enable.partition.eof": True, "log_level": 0})
    consumer.assign([TopicPartition("A.t", 0, 0)])
    found = []
    while (message := consumer.poll(30)) and message.error() is None:
        found.append(int(message.value()))
    ended = message is not None and message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF
    consumer.close()
    return found if ended else []


def offset():
    status, answer = call("GET", "/offsets")
    found = [one["offset"]["offset"] for one in answer["offsets"] if one["partition"] == PARTITION] if status == 200 else []
    return found[0] if found else None


def copied_anew(position):
    """The HTTP status of setting the offset, and the first record that is copied then, if any."""
    before = len(copied())
    call("PUT", "/stop")
    waited(lambda: (call("GET", "/status")[1] or {}).get("connector", {}).get("state") == "STOPPED")
    wanted = None if position is None else {"offset": position}
    status = waited(lambda: (found := call("PATCH", "/offsets", {"offsets": [{"partition": PARTITION, "offset": wanted}]})[0]) and found != 409 and found)
    call("PUT", "/resume")
    if status != 200:
        return status, None
    waited(lambda: copied()[before:][-1:] == [299])
    return status, copied()[before:][:1]


waited(lambda: copied()[-1:] == [299] and offset() == 299)
shown = offset()
print(f"copied: {len(copied())} records, the last is {copied()[-1]}; offset in Connect: {shown}")
seen = {position: copied_anew(position) for position in (100, 0, -1, None)}
for position, (status, first) in seen.items():
    print(f"set to {position}: HTTP {status}, first record that is copied again: {first}")
expected = {100: (200, [101]), 0: (200, [1]), -1: (500, None), None: (200, [0])}
sys.exit(not (shown == 299 and seen == expected))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$servers" "$rest"
