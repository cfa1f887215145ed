#!/usr/bin/env bash
# Deleting a topic deletes what every group had committed for it, and, before Kafka 4, the group itself.
#
# One would guess: commits stay for offsets.retention.minutes (7 days), as for a group that has ended, and a topic that is made anew under
# its name finds them.
# What happens: the commits are gone when the topic is. On Kafka 3.9.1 a group that has no members and nothing else committed is gone with
# them, from lists too. On Kafka 4.4.0 it was still in the list seconds later, without any commit.
# With: brokers 3.9.1 and 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever deletes a topic to make it anew with other settings, with its groups stopped: they begin by auto.offset.reset, which by default
# skips what was written meanwhile. And whoever counts groups before and after.
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

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
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


def committed():
    """What the group has committed for all topics."""
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("g")]).values()
    return {f"{one.topic}-{one.partition}": one.offset for one in future.result(30).topic_partitions}


def listed():
    return "g" in {one.group_id for one in admin.list_consumer_groups().result(30).valid}


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
created(admin, "t")
producer = Producer({"bootstrap.servers": servers, "log_level": 0})
for _ in range(10):
    producer.produce("t", b"x")
assert producer.flush(60) == 0
consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "log_level": 0})
consumer.commit(offsets=[TopicPartition("t", 0, 7)], asynchronous=False)
consumer.close()
before = committed(), listed()
admin.delete_topics(["t"])["t"].result(30)
end = time.monotonic() + 30
while committed() and time.monotonic() < end:
    time.sleep(0.5)
time.sleep(2)
after = committed(), listed()
time.sleep(2)
created(admin, "t")
print(f"{release}: committed, group listed: before {before}, after the deletion {after}, with a topic of that name again {committed()}")
sys.exit(not (before == ({"t-0": 7}, True) and after == ({}, release >= "4") and committed() == {}))
PYTHON

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
