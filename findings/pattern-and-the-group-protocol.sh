#!/usr/bin/env bash
# One subscription pattern finds other topics once a consumer of confluent-kafka for Python is moved to the consumer protocol (KIP-848).
#
# One would guess: group.protocol=consumer changes how partitions are assigned. Which topics "^orders" means stays as it is, or the migration
# fails loudly.
# What happens: with the classic protocol a name is found that begins with what the pattern says: "^orders" finds orders, orders.eu and
# orders-dlq, and "^orders|^bills" also bills.eu. With the consumer protocol the broker wants the whole name to match: only orders is
# left, without an error, since it is found. With ".*" at the end both find the same.
# With: broker 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever changes the protocol of a running application: it stops to read some of its topics, and their lag is nobody's any more.
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
  local ports
  cat >"$work/pom.xml" <<XML
<project><modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.4.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency></dependencies>
</project>
XML
  mvn -q -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" >"$work/mvn.txt" 2>&1 || { cat "$work/mvn.txt"; exit 2; }
  read -r -a ports < <(python3 -c '
import socket
found = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
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
  java -cp "$work/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$work/server.properties" >"$work/format.txt" 2>&1 ||
    { cat "$work/format.txt"; exit 2; }
  java -Xmx512m -cp "$work/jars/*" kafka.Kafka "$work/server.properties" >"$work/broker.txt" 2>&1 &
  broker=$!
}

start_kafka
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1

cat >"$work/look.py" <<'PYTHON'
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

(servers,) = sys.argv[1:]


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


def found(pattern, protocol):
    """The topics that a consumer of a new group is assigned, once that has not changed for five seconds."""
    group = f"{protocol} {pattern}"
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "group.protocol": protocol, "log_level": 0})
    consumer.subscribe([pattern])
    topics, since, deadline = [], time.monotonic(), time.monotonic() + 90
    while time.monotonic() < deadline and not (topics and time.monotonic() > since + 5):
        consumer.poll(0.5)
        now = sorted(one.topic for one in consumer.assignment())
        if now != topics:
            topics, since = now, time.monotonic()
    consumer.close()
    return topics


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
for name in ("orders", "orders.eu", "orders-dlq", "bills", "bills.eu"):
    created(admin, name)
seen = {}
for pattern in ("^orders", "^orders|^bills", "^orders.*"):
    seen[pattern] = [found(pattern, protocol) for protocol in ("classic", "consumer")]
    print(f"{pattern}: classic {seen[pattern][0]}, consumer {seen[pattern][1]}")
orders = ["orders", "orders-dlq", "orders.eu"]
expected = {"^orders": [orders, ["orders"]], "^orders|^bills": [["bills", "bills.eu", *orders], ["bills", "orders"]], "^orders.*": [orders, orders]}
sys.exit(seen != expected)
PYTHON
"$work/venv/bin/python" "$work/look.py" "$servers"
