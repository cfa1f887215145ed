#!/usr/bin/env bash
# On a new cluster of Kafka 4.4 whoever changes min.insync.replicas in server.properties and restarts changes nothing.
#
# One would guess: a setting of the file counts from the next start on, unless somebody has set another one dynamically; nobody has.
# What happens: at its first start the cluster writes the value of the file (2 here) into its own metadata, as a default for all brokers that one
# would take for set by hand (DYNAMIC_DEFAULT_BROKER_CONFIG). It outranks the file: after a restart with 3 in the file, topics made
# before and after have 2. On Kafka 3.9.1 both have 3. The eligible leader replicas (KIP-966), on in new clusters since 4.1, come with this;
# their documentation speaks of values that were set dynamically.
# With: brokers 3.9.1 and 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever raises the safety of a cluster by its files, as ever: writes are acknowledged by fewer replicas than the files say. And a tool
# that copies dynamic defaults between clusters finds one that nobody set. Change it with kafka-configs.sh --entity-default.
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
  run_kafka "$1"
}

run_kafka() {
  java -Xmx512m -cp "$work/kafka-$1/jars/*" kafka.Kafka "$work/kafka-$1/server.properties" >"$work/kafka-$1/broker.txt" 2>&1 &
  pids+=($!)
}

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1

cat >"$work/look.py" <<'PYTHON'
import sys
import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, NewTopic

servers, release, turn = sys.argv[1:]


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


def value(kind, name):
    """The value in force, and where it is from."""
    (future,) = admin.describe_configs([ConfigResource(kind, name)]).values()
    entry = future.result(60)["min.insync.replicas"]
    return entry.value, ConfigSource(entry.source).name


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
if turn == "first":
    created(admin, "before")
    found = [value(ConfigResource.Type.BROKER, "1"), value(ConfigResource.Type.TOPIC, "before")]
    print(f"{release}, 2 in the file: broker {found[0]}, topic {found[1]}")
    wanted = "2"
else:
    created(admin, "after")
    found = [value(ConfigResource.Type.BROKER, "1"), *(value(ConfigResource.Type.TOPIC, name) for name in ("before", "after"))]
    print(f"{release}, 3 in the file since the restart: broker {found[0]}, topics {found[1:]}")
    wanted = "3" if release == "3.9.1" else "2"
source = "STATIC_BROKER_CONFIG" if release == "3.9.1" else "DYNAMIC_DEFAULT_BROKER_CONFIG"
sys.exit(any(one != (wanted, source) for one in found))
PYTHON

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release" "min.insync.replicas=2"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" first || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
  sed -i 's/^min.insync.replicas=2$/min.insync.replicas=3/' "$work/kafka-$release/server.properties"
  run_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" restarted || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
