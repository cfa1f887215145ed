#!/usr/bin/env bash
# Adding to a list of a topic's config (APPEND of IncrementalAlterConfigs) begins at Kafka's own default, not at the value in force.
#
# One would guess: a topic that inherits log.cleanup.policy=compact from its brokers and gets `delete` appended to cleanup.policy has
# `compact,delete` then. And compact subtracted from it leaves nothing, or is refused.
# What happens: the value in force, which DescribeConfigs shows, is compact; after APPEND of delete it is `delete` alone, so the topic is not
# compacted any more, and its retention deletes what should stay. SUBTRACT of compact gives `delete` too. Both set it on the topic for good.
# With: brokers 3.9.1 and 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever changes lists step by step on clusters with defaults of their own; a tool that copies configs must compute the whole value
# and SET it.
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

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

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


def policy(topic):
    (future,) = admin.describe_configs([ConfigResource("topic", topic)]).values()
    return future.result(60)["cleanup.policy"].value


def changed(topic, operation, value):
    """The policy of a new topic before and after the change."""
    before = policy(created(admin, topic))
    entry = ConfigEntry("cleanup.policy", value, incremental_operation=operation)
    (future,) = admin.incremental_alter_configs([ConfigResource("topic", topic, incremental_configs=[entry])]).values()
    future.result(60)
    deadline = time.monotonic() + 30
    while policy(topic) == before and time.monotonic() < deadline:
        time.sleep(0.5)
    return before, policy(topic)


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
added = changed("a", AlterConfigOpType.APPEND, "delete")
taken = changed("b", AlterConfigOpType.SUBTRACT, "compact")
print(f"{release}: before and after delete is appended {added}, before and after compact is subtracted {taken}")
sys.exit(not added == taken == ("compact", "delete"))
PYTHON

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release" "log.cleanup.policy=compact"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
