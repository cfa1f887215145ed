#!/usr/bin/env bash
# A consumer with read_committed whose position is above the last stable offset asks the broker again and again, without a pause.
#
# One would guess: the broker holds such a fetch back for fetch.wait.max.ms (500 ms), as it does when nothing new is there, until the open
# transaction ends; so the consumer asks about twice a second.
# What happens: the consumer at the first offset of the open transaction asks so. At any offset above, up to the log's end, each fetch is
# answered at once, with no records and no error, and librdkafka sends the next one: hundreds a second and more, as fast as both can, until the
# transaction ends. The application sees nothing but silence.
# With: brokers 3.9.1 and 4.4.0, confluent-kafka 2.16.1.
# Hurt: a group that was read with read_uncommitted before, or set to the log's end of this moment: one transaction that hangs makes the
# load of the consumer and its broker. Whoever begins at an end should take the stable one, asked for with read_committed.
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
import json
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

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


def fetches(offset):
    """How many fetch requests a consumer at that offset sends in ten seconds, and how many messages it gets."""
    counts = []
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "g",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "statistics.interval.ms": 1_000,
            "stats_cb": lambda text: counts.append(sum(broker["req"].get("Fetch", 0) for broker in json.loads(text)["brokers"].values())),
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition("t", 0, offset)])
    messages = 0
    while not counts or not counts[-1]:
        messages += consumer.poll(0.1) is not None
    begun, before = time.monotonic(), counts[-1]
    while time.monotonic() < begun + 10:
        messages += consumer.poll(0.1) is not None
    consumer.close()
    return counts[-1] - before, messages


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
created(admin, "t")
transaction = Producer({"bootstrap.servers": servers, "transactional.id": "x", "log_level": 0})
transaction.init_transactions(60)
transaction.begin_transaction()
transaction.produce("t", b"open")
assert transaction.flush(60) == 0
plain = Producer({"bootstrap.servers": servers, "log_level": 0})
for _ in range(3):
    plain.produce("t", b"plain")
    assert plain.flush(60) == 0
found = {offset: fetches(offset) for offset in (0, 2, 4)}
transaction.abort_transaction(60)
print(f"{release}: offset, and fetches and messages in ten seconds: {found}")
sys.exit(not (all(messages == 0 for _, messages in found.values()) and found[0][0] <= 30 and min(found[2][0], found[4][0]) >= 300))
PYTHON

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
