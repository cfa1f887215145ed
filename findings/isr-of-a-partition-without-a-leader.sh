#!/usr/bin/env bash
# On a new cluster of Kafka 4.4 a partition whose only replica is down has no in-sync replica at all; until Kafka 3 the last one stayed in the list.
#
# One would guess: the list of in-sync replicas never becomes empty. Its last member stays, since whoever is in it may lead again without loss;
# so an offline partition with nobody in the list has lost its data, or needs an unclean election.
# What happens: on Kafka 3.9.1 Metadata shows leader -1 and in-sync replicas [2]. On 4.4.0 it shows leader -1 and []. Both elect broker 2
# again as soon as it is back, with its record and without an unclean election. Kafka 4 keeps the candidate in another list (KIP-966),
# which Metadata does not carry.
# With: brokers 3.9.1 and 4.4.0, confluent-kafka 2.16.1.
# Hurt: tools and people who decide by this list whether to wait for a broker or to elect uncleanly, and alerts on an empty one.
set -euo pipefail

work=$(mktemp -d)
pids=()
# Ends what was started last first: broker 2 asks the controller before it ends.
stop_all() {
  local place
  for ((place = ${#pids[@]} - 1; place >= 0; place--)); do
    kill "${pids[place]}" 2>/dev/null || true
    wait "${pids[place]}" 2>/dev/null || true
  done
  pids=()
}
cleanup() {
  stop_all
  rm -rf "$work"
}
trap cleanup EXIT

# The jars of a release, and the properties of node 1 (broker and controller) and node 2 (broker). Sets $directory and $servers.
prepare() {
  local ports roles listeners node
  directory="$work/kafka-$1"
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
found = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(one.getsockname()[1] for one in found))')
  servers="127.0.0.1:${ports[1]}"
  for node in 1 2; do
    roles=broker
    listeners="PLAINTEXT://127.0.0.1:${ports[$node]}"
    if [ "$node" = 1 ]; then
      roles=broker,controller
      listeners="$listeners,CONTROLLER://127.0.0.1:${ports[0]}"
    fi
    cat >"$directory/$node.properties" <<PROPERTIES
process.roles=$roles
node.id=$node
controller.quorum.voters=1@127.0.0.1:${ports[0]}
controller.listener.names=CONTROLLER
listeners=$listeners
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$directory/logs-$node
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
PROPERTIES
    java -cp "$directory/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$directory/$node.properties" \
      >"$directory/format.txt" 2>&1 || { cat "$directory/format.txt"; exit 2; }
  done
}

start() {
  java -Xmx384m -cp "$directory/jars/*" kafka.Kafka "$directory/$1.properties" >>"$directory/broker-$1.txt" 2>&1 &
  pids+=($!)
}

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1

cat >"$work/look.py" <<'PYTHON'
import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

servers, step = sys.argv[1:]
admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})


def waited(test):
    deadline = time.monotonic() + 180
    while True:
        try:
            found = test()
        except KafkaException:
            found = None
        if found or time.monotonic() > deadline:
            return found
        time.sleep(1)


def partition(leader):
    """The partition, once this broker leads it."""
    topic = admin.list_topics("t", timeout=10).topics["t"]
    return 0 in topic.partitions and topic.partitions[0].leader == leader and topic.partitions[0]


def records():
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "look", "enable.auto.commit": False, "log_level": 0})
    consumer.assign([TopicPartition("t", 0, 0)])
    message = consumer.poll(60)
    consumer.close()
    return message is not None and message.error() is None and message.value()


if step == "fill":
    assert waited(lambda: len(admin.list_topics(timeout=10).brokers) == 2), "two brokers"
    admin.create_topics([NewTopic("t", 1, replica_assignment=[[2]])])["t"].result(60)
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    producer.produce("t", b"x")
    assert producer.flush(120) == 0
    found = waited(lambda: partition(2))
    print(f"  leader {found.leader}, in-sync replicas {found.isrs}")
elif step == "down":
    found = waited(lambda: partition(-1))
    print(f"  broker 2 is down: leader {found.leader}, replicas {found.replicas}, in-sync replicas {found.isrs}")
    print("SEEN", *found.isrs)
else:
    found = waited(lambda: partition(2))
    print(f"  broker 2 is back: leader {found.leader}, in-sync replicas {found.isrs}, record {records()}")
    sys.exit(not (found.isrs == [2] and records() == b"x"))
PYTHON

answer=0
for release in 3.9.1 4.4.0; do
  prepare "$release"
  start 1
  start 2
  echo "$release:"
  "$work/venv/bin/python" "$work/look.py" "$servers" fill
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
  unset 'pids[-1]'
  seen=$("$work/venv/bin/python" "$work/look.py" "$servers" down)
  echo "$seen" | grep -v SEEN
  case "$release $(grep SEEN <<<"$seen")" in "3.9.1 SEEN 2" | "4.4.0 SEEN") ;; *) answer=1 ;; esac
  start 2
  "$work/venv/bin/python" "$work/look.py" "$servers" back || answer=1
  stop_all
done
exit "$answer"
