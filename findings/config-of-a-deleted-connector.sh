#!/usr/bin/env bash
# Deleting a connector of Kafka Connect leaves its whole config in the config topic: that of its tasks is never deleted.
#
# One would guess: DELETE /connectors/NAME writes tombstones for whatever the topic holds of it, and the compaction removes the rest.
# What happens: connector-NAME and target-state-NAME get tombstones. task-NAME-0, which repeats every setting of this connector, and commit-NAME
# keep their values, and compaction keeps the last value of a key for good. The REST API knows the connector no more (404).
# With: Connect, MirrorHeartbeatConnector and broker 4.3.1, confluent-kafka 2.16.1.
# Hurt: settings with passwords that were typed in plain stay readable for whoever may read the topic, also in its copies and backups; and
# whoever lists connectors by the keys of the topic finds some that are gone. Whoever wants them away must write the tombstones.
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

# The jars of a package of Apache Kafka and of what it needs.
jars() {
  mkdir -p "$work/$1"
  cat >"$work/$1/pom.xml" <<XML
<project><modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>$1</artifactId><version>4.3.1</version></dependency>
</dependencies>
</project>
XML
  mvn -q -f "$work/$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/$1/jars" >"$work/mvn.txt" 2>&1 ||
    { cat "$work/mvn.txt"; exit 2; }
}

jars kafka_2.13
jars connect-mirror
read -r -a ports < <(python3 -c '
import socket
found = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(one.getsockname()[1] for one in found))')
servers="127.0.0.1:${ports[0]}"
cat >"$work/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${ports[1]}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://$servers,CONTROLLER://127.0.0.1:${ports[1]}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$work/logs
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
PROPERTIES
java -cp "$work/kafka_2.13/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$work/server.properties" >"$work/format.txt" 2>&1 ||
  { cat "$work/format.txt"; exit 2; }
java -Xmx512m -cp "$work/kafka_2.13/jars/*" kafka.Kafka "$work/server.properties" >"$work/broker.txt" 2>&1 &
pids+=($!)

cat >"$work/worker.properties" <<PROPERTIES
bootstrap.servers=$servers
group.id=connect
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.storage.partitions=1
status.storage.partitions=1
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
listeners=http://127.0.0.1:${ports[2]}
PROPERTIES

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1

cat >"$work/ready.py" <<'PYTHON'
import sys
import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

admin = AdminClient({"bootstrap.servers": sys.argv[1], "log_level": 0})
for _ in range(120):
    try:
        if admin.list_topics(timeout=5).brokers:
            sys.exit(0)
    except KafkaException:
        time.sleep(1)
sys.exit("no broker")
PYTHON
"$work/venv/bin/python" "$work/ready.py" "$servers"
java -Xmx512m -cp "$work/connect-mirror/jars/*" org.apache.kafka.connect.cli.ConnectDistributed "$work/worker.properties" >"$work/worker.txt" 2>&1 &
pids=("$!" "${pids[@]}")

cat >"$work/look.py" <<'PYTHON'
import json
import sys
import time
import urllib.error
import urllib.request

from confluent_kafka import Consumer, TopicPartition

servers, rest = sys.argv[1:]


def asked(method, path, body=None):
    """The status of an answer, 0 if there was none, and its JSON if all is well."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(rest + path, method=method, data=data, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as problem:
        return problem.code, None
    except OSError:
        return 0, None


def until(is_so, seconds=180):
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit("waited in vain")
        time.sleep(0.5)


def last_values():
    """The last value of each key in the config topic: what compaction keeps."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "enable.partition.eof": True, "log_level": 0})
    consumer.assign([TopicPartition("connect-configs", 0, 0)])
    found = {}
    while (record := consumer.poll(30)) is not None and record.error() is None:
        found[record.key().decode()] = record.value()
    consumer.close()
    return found


config = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": servers,
    "target.cluster.bootstrap.servers": servers,
    "heartbeats.topic.replication.factor": "1",
    "note": "a text to look for",
}
until(lambda: asked("GET", "/connectors")[0] == 200)
until(lambda: asked("POST", "/connectors", {"name": "heart", "config": config})[0] in (201, 409))
until(lambda: [task["state"] for task in (asked("GET", "/connectors/heart/status")[1] or {}).get("tasks", [])] == ["RUNNING"])
deleted = asked("DELETE", "/connectors/heart")[0]
until(lambda: asked("GET", "/connectors/heart")[0] == 404)
time.sleep(5)
found = last_values()
print(f"DELETE answered {deleted}; the last values of its keys afterwards:")
for key, value in found.items():
    if "heart" in key:
        print(f"  {key}: {value}")
gone = deleted == 204 and found["connector-heart"] is None and found["target-state-heart"] is None
task = json.loads(found.get("task-heart-0") or b"null")
kept = task is not None and config.items() <= task["properties"].items() and found.get("commit-heart") is not None
sys.exit(not (gone and kept))
PYTHON

"$work/venv/bin/python" "$work/look.py" "$servers" "http://127.0.0.1:${ports[2]}"
