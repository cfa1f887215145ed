#!/usr/bin/env bash
# A group can be deleted while a transaction that holds its positions is open; the transaction then commits, and the positions are nowhere.
#
# One would guess: the group is in use, so DeleteGroups answers NON_EMPTY_GROUP, or the transaction's commit brings the group back with its
# positions, or fails.
# What happens: DeleteGroups succeeds and drops what is pending too. The transaction commits without an error, its records are visible, and
# the group has no position.
# With: brokers 3.9.1 and 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever deletes "empty" groups by a list (Flink, Spark and other applications that assign partitions themselves have groups without
# members): the application begins by auto.offset.reset although its last commit had succeeded.
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

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

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


def committed(group):
    """What the group has committed, when no transaction of it is under way any more."""
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], require_stable=True).values()
    return [one.offset for one in future.result(60).topic_partitions]


def settled(wanted):
    """What is committed once it is `wanted`, or after 30 s: markers of a commit arrive a moment after its answer."""
    deadline = time.monotonic() + 30
    while committed("g") != wanted and time.monotonic() < deadline:
        time.sleep(0.5)
    return committed("g")


def begun(offset):
    """Begin a transaction that writes one record and commits `offset` for the group."""
    producer.begin_transaction()
    producer.produce("t", b"x")
    group = Consumer({"bootstrap.servers": servers, "group.id": "g", "log_level": 0})
    producer.send_offsets_to_transaction([TopicPartition("t", 0, offset)], group.consumer_group_metadata(), 60)
    group.close()


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
created(admin, "t")
producer = Producer({"bootstrap.servers": servers, "transactional.id": "x", "log_level": 0})
producer.init_transactions(60)
begun(3)
producer.commit_transaction(60)

first = settled([3])
begun(10)
admin.delete_consumer_groups(["g"])["g"].result(60)
producer.commit_transaction(60)
time.sleep(5)
key = TopicPartition("t", 0)
stable = admin.list_offsets({key: OffsetSpec.latest()}, isolation_level=IsolationLevel.READ_COMMITTED)[key].result(30).offset
print(f"{release}: before {first}, deleted within a transaction that commits 10, after its commit {committed('g')}; committed records end at {stable}")
sys.exit(not (first == [3] and committed("g") == [] and stable == 4))
PYTHON

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
